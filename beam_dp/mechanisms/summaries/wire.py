"""Pack tables, summaries and owner lines into bytes for the shuffle, as narrow as they fit.

Elements that cross a GroupByKey are bytes: a pickled Arrow slice drags its whole parent buffer
along, and coders per row cost more than the work on the rows.
"""

import numpy as np

from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries.histograms import Summary
from beam_dp.mechanisms.summaries.owner_lines import Owned

_KINDS = ("<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8")
_OWNED = b"owned..."  # other blobs begin with their number of columns, which this is not
_NONE, _NO_LENGTHS = np.zeros(0, bool), np.zeros(0, np.int64)
_WIDE = -1  # instead of a height: a column of Python integers, as limbs


def pack_table(table: Table) -> bytes:
    """Return the table as bytes, with the names of its own partitions only."""
    names = _pack_names(table.names, table.partition)
    return _pack([*names, table.person, table.partition, table.rows, *table.values])


def unpack_table(blob: bytes) -> Table:
    """Return the table that `pack_table` packed."""
    words, lengths, text, person, partition, rows, *values = _unpack(blob)
    names = _unpack_names(words, lengths, text)
    return Table(_ids(person), _ids(partition), rows, values, names)


def pack_owned(lines: Owned) -> bytes:
    """Return the lines as bytes, with the names of their own partitions only."""
    names = _pack_names(lines.names, lines.partition)
    columns = [lines.partition, lines.relation, lines.person, lines.item, lines.count]
    columns += lines.others
    return _OWNED + _pack([*names, *(part for column in columns for part in _runs(column))])


def is_owned(blob: bytes) -> bool:
    """Return whether a blob was packed by `pack_owned`, not by `pack_summary`."""
    return blob.startswith(_OWNED)


def unpack_owned(blob: bytes) -> Owned:
    """Return the lines that `pack_owned` packed."""
    words, lengths, text, *runs = _unpack(blob[len(_OWNED) :])
    names = _unpack_names(words, lengths, text)
    columns = [_repeated(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)]
    partition, relation, person, item, count, *others = columns
    return Owned(
        partition=_ids(partition),
        relation=relation,
        person=_ids(person),
        item=item,
        count=count,
        others=tuple(map(_ids, others)),
        names=names,
    )


def _runs(column: np.ndarray) -> list[np.ndarray]:
    """Return the first entry and the length of each run of equal entries, or the column alone."""
    new = changes(column if column.ndim == 2 else column[None]) if column.shape[-1] else _NONE
    starts = np.flatnonzero(new)
    if 2 * len(starts) > column.shape[-1]:
        return [column, _NO_LENGTHS]
    return [np.take(column, starts, axis=-1), np.diff(starts, append=column.shape[-1])]


def _repeated(column: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return np.repeat(column, lengths, axis=-1) if len(lengths) else column


def pack_summary(summary: Summary) -> bytes:
    """Return the summary as bytes, with the names of its own partitions only."""
    names = _pack_names(summary.names, summary.partition)
    columns = [summary.measure, summary.bucket, summary.people, summary.total]
    return _pack([*names, summary.partition, *columns])


def unpack_summary(blob: bytes) -> Summary:
    """Return the summary that `pack_summary` packed."""
    words, lengths, text, partition, measure, bucket, people, total = _unpack(blob)
    names = _unpack_names(words, lengths, text)
    return Summary(_ids(partition), measure, bucket, people, total, names)


def _ids(column: np.ndarray) -> np.ndarray:
    return column.view(np.uint64)


def _pack_names(names: dict[tuple[int, int], bytes], partition: np.ndarray) -> list[np.ndarray]:
    if not names or not partition.shape[1]:
        return [np.empty((2, 0), np.uint64), np.empty(0, np.int64), np.empty(0, np.int64)]
    present = np.unique(np.ascontiguousarray(partition.T).view(f"V{8 * partition.shape[0]}"))
    keys = np.frombuffer(present.tobytes(), np.uint64).reshape(-1, partition.shape[0])
    pairs = [(int(first), int(second[0]) if second else 0) for first, *second in keys.tolist()]
    named = [pair for pair in pairs if pair in names]
    words = np.array(named, np.uint64).reshape(-1, 2).T
    texts = [names[pair] for pair in named]
    joined = b"".join(texts)
    padded = joined + bytes(-len(joined) % 8)
    lengths = np.array([len(text) for text in texts], np.int64)
    return [words, lengths, np.frombuffer(padded, np.int64)]


def _unpack_names(
    words: np.ndarray, lengths: np.ndarray, text: np.ndarray
) -> dict[tuple[int, int], bytes]:
    raw, names, start = text.tobytes(), {}, 0
    pairs = zip(*words.view(np.uint64).tolist(), strict=True)
    for pair, length in zip(pairs, lengths.tolist(), strict=True):
        names[pair] = raw[start : start + length]
        start += length
    return names


def _pack(columns: list[np.ndarray]) -> bytes:
    header, bodies = [len(columns)], []
    for column in columns:
        body = integers.to_limbs(column) if column.dtype == object else column
        kind = narrowest(body)
        wide = column.dtype == object
        height = _WIDE if wide else body.shape[0] if body.ndim == 2 else 0
        header += [_KINDS.index(kind), height, body.shape[-1]]
        bodies.append(body.astype(kind).tobytes())
    return b"".join([np.array(header, np.int64).tobytes(), *bodies])


def narrowest(column: np.ndarray) -> str:
    """Return the narrowest type that holds all values: most identities and counts are small."""
    family = _KINDS[4:] if column.dtype == np.uint64 else _KINDS[:4]
    low, high = (int(column.min()), int(column.max())) if column.size else (0, 0)
    return next(kind for kind in family if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)


def _unpack(blob: bytes) -> list[np.ndarray]:
    count = int(np.frombuffer(blob, np.int64, 1)[0])
    header = np.frombuffer(blob, np.int64, 3 * count, 8).reshape(count, 3).tolist()
    start, columns = 8 + 24 * count, []
    for index, height, width in header:
        kind = np.dtype(_KINDS[index])
        size = (integers.LIMBS if height == _WIDE else max(height, 1)) * width
        body = np.frombuffer(blob, kind, size, start)
        body = body.astype(np.uint64 if kind.kind == "u" else np.int64)
        start += size * kind.itemsize
        if height == _WIDE:
            columns.append(integers.from_limbs(body.reshape(integers.LIMBS, width)))
        else:
            columns.append(body.reshape(height, width) if height else body)
    return columns

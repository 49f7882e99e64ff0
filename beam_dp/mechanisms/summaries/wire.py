"""Pack tables, summaries and owner lines into bytes for the shuffle, as narrow as they fit.

Elements that cross a GroupByKey are bytes: a pickled Arrow slice drags its whole parent buffer
along, and coders per row cost more than the work on the rows.
"""

import marshal
from typing import Any

import numpy as np

from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.summaries.histograms import Summary
from beam_dp.mechanisms.summaries.owner_lines import Owned

_FORMAT = 2  # without references: equal columns become equal bytes
_KINDS = ("<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8")
_OWNED = b"owned..."  # other blobs begin as `marshal` writes a tuple
_NONE, _NO_LENGTHS = np.zeros(0, bool), np.zeros(0, np.int64)

Names = dict[tuple[int, int], bytes]


def pack_table(table: Table) -> bytes:
    """Return the table as bytes, with the names of its own partitions only."""
    columns = [table.person, table.partition, table.rows, *table.values]
    return _pack(_names_of(table.names, table.partition), columns)


def unpack_table(blob: bytes) -> Table:
    """Return the table that `pack_table` packed."""
    names, (person, partition, rows, *values) = _unpack(blob)
    return Table(person, partition, rows, values, names)


def pack_owned(lines: Owned) -> bytes:
    """Return the lines as bytes, with the names of their own partitions only."""
    columns = [lines.partition, lines.relation, lines.person, lines.item, lines.count]
    columns += lines.others
    runs = [part for column in columns for part in _runs(column)]
    return _OWNED + _pack(_names_of(lines.names, lines.partition), runs)


def is_owned(blob: bytes) -> bool:
    """Return whether a blob was packed by `pack_owned`, not by `pack_summary`."""
    return blob.startswith(_OWNED)


def unpack_owned(blob: bytes) -> Owned:
    """Return the lines that `pack_owned` packed."""
    names, runs = _unpack(blob[len(_OWNED) :])
    columns = [_repeated(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)]
    partition, relation, person, item, count, *others = columns
    return Owned(
        partition=partition,
        relation=relation,
        person=person,
        item=item,
        count=count,
        others=tuple(others),
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
    columns = [summary.measure, summary.bucket, summary.people, summary.total]
    names = _names_of(summary.names, summary.partition)
    return _pack(names, [summary.partition, *columns])


def unpack_summary(blob: bytes) -> Summary:
    """Return the summary that `pack_summary` packed."""
    names, (partition, measure, bucket, people, total) = _unpack(blob)
    return Summary(partition, measure, bucket, people, total, names)


def _names_of(names: Names, partition: np.ndarray) -> Names:
    """Return the names of these partitions."""
    if not names or not partition.shape[1]:
        return {}
    present = np.unique(np.ascontiguousarray(partition.T).view(f"V{8 * partition.shape[0]}"))
    keys = np.frombuffer(present.tobytes(), np.uint64).reshape(-1, partition.shape[0])
    pairs = [(first, second[0] if second else 0) for first, *second in keys.tolist()]
    return {pair: names[pair] for pair in pairs if pair in names}


def _pack(names: Names, columns: list[np.ndarray]) -> bytes:
    return marshal.dumps((names, tuple(map(_packed, columns))), _FORMAT)


def _unpack(blob: bytes) -> tuple[Names, list[np.ndarray]]:
    names, columns = marshal.loads(blob)
    return names, [_unpacked(*column) for column in columns]


def _packed(column: np.ndarray) -> tuple[Any, ...]:
    """Return the type, the shape and the content; of a column of Python integers these alone."""
    if column.dtype == object:
        return (list(map(int, column)),)
    kind = narrowest(column)
    return kind, column.shape, column.astype(kind).tobytes()


def _unpacked(kind: Any, shape: tuple[int, ...] = (), content: bytes = b"") -> np.ndarray:
    if isinstance(kind, list):
        return np.array(kind, object)
    narrow = np.frombuffer(content, kind).reshape(shape)
    return narrow.astype(np.uint64 if narrow.dtype.kind == "u" else np.int64)


def narrowest(column: np.ndarray) -> str:
    """Return the narrowest type that holds all values: most identities and counts are small."""
    family = _KINDS[4:] if column.dtype == np.uint64 else _KINDS[:4]
    low, high = (int(column.min()), int(column.max())) if column.size else (0, 0)
    return next(kind for kind in family if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)

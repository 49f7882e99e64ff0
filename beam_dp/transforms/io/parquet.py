"""Read Parquet files by row groups: only the wanted columns, repeated text as dictionaries."""

import collections
import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt
from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns import ids
from beam_dp.transforms.io import open_files

SLICE = 131_072
# Batches of more would leave the cache, and their memory would be mapped anew for each of them.
BATCH_BYTES = 4 << 20
RANGE_ROWS = 1 << 20
# A text column whose chunks take more bytes per value than this repeats too little: reading
# it as a dictionary costs more than it saves (twice the time for a million different UUIDs).
DICTIONARY_BYTES = 8
# Work on batches is uneven: now and then the kept lines are merged, which takes as long as decoding
# several batches. A few batches ahead keep the thread busy meanwhile, and cost their memory.
_AHEAD = 4
# Enough to hide an object store's latency; threads only wait here.
FOOTERS_AT_ONCE = 16
_FOOTERS_KEPT = 2

Footer = Callable[[str], pq.FileMetaData]
"""Returns the footer of the file of a path."""


class Range(NamedTuple):
    """Some consecutive row groups of one file, and the kinds of its wanted columns."""

    path: str
    first: int
    last: int
    kinds: tuple[str, ...]


_KINDS = (
    ("integer", pt.is_integer),
    ("float", pt.is_floating),
    ("decimal", pt.is_decimal),
    ("text", pt.is_string),
    ("text", pt.is_large_string),
    ("text", pt.is_string_view),
    ("bytes", pt.is_binary),
    ("bytes", pt.is_large_binary),
    ("bytes", pt.is_binary_view),
)


_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def ranges(paths: Sequence[str], pattern: str, columns: Sequence[str]) -> list[Range]:
    """Return the row groups of all files in ranges of about a million rows; reads footers only.

    Raises:
        ValueError: a wanted column is missing or has two types (a column of nulls fits any),
            or a file is damaged; the message names only the column and the pattern.
    """

    def of_file(path: str) -> list[Range]:
        return list(open_files.guarded(_ranges(path, pattern, columns), _damaged(pattern)))

    with futures.ThreadPoolExecutor(FOOTERS_AT_ONCE) as threads:
        parts = [part for file_parts in threads.map(of_file, paths) for part in file_parts]
    _check_kinds([part.kinds for part in parts], pattern, columns)
    return parts


def _check_kinds(files: Sequence[tuple[str, ...]], pattern: str, columns: Sequence[str]) -> None:
    for index, column in enumerate(columns):
        kinds = {file[index] for file in files} - {"null"}
        checks.require(
            len(kinds) <= 1,
            "ReadRows",
            f"column {column!r}",
            f"have one type in all files of {pattern!r}, not {' and '.join(sorted(kinds))}",
            "Write the files again with one type.",
        )


def _damaged(pattern: str) -> str:
    return open_files.unreadable(pattern, "a Parquet file")


def _ranges(path: str, pattern: str, columns: Sequence[str]) -> Iterator[Range]:
    footer = footer_of(path)
    kinds = _kinds_in(footer.schema.to_arrow_schema(), pattern, columns)
    first, rows = 0, 0
    for group in range(footer.num_row_groups):
        rows += footer.row_group(group).num_rows
        if rows >= RANGE_ROWS or group == footer.num_row_groups - 1:
            yield Range(path, first, group, kinds)
            first, rows = group + 1, 0


def _kinds_in(schema: pa.Schema, pattern: str, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(_kind_of(schema, pattern, column) for column in columns)


def _kind_of(schema: pa.Schema, pattern: str, column: str) -> str:
    if schema.names.count(column) != 1:
        raise open_files.absent(pattern, column, checks.listed(schema.names), schema.names)
    kind = schema.field(column).type
    stored = kind.value_type if pt.is_dictionary(kind) else kind
    return next((name for name, fits in _KINDS if fits(stored)), str(stored))


def types_of(paths: Sequence[str], pattern: str, columns: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the types of the wanted columns; reads footers only.

    Raises:
        ValueError: as `ranges`.
    """
    footers = open_files.guarded(map(footer_of, paths), _damaged(pattern))
    schemas = [footer.schema.to_arrow_schema() for footer in footers]
    _check_kinds([_kinds_in(schema, pattern, columns) for schema in schemas], pattern, columns)
    typed = {column: [schema.field(column).type for schema in schemas] for column in columns}
    # A column of nulls fits any other: the type is that of the others, if there are any.
    return {
        column: without_view(max(kinds, key=lambda kind: not pt.is_null(kind)))
        for column, kinds in typed.items()
        if kinds
    }


def footer_of(path: str) -> pq.FileMetaData:
    """Return the footer of a file."""
    with _opened(path) as source, pq.ParquetFile(source) as file:
        return file.metadata


def kept_footers() -> Footer:
    """Return `footer_of` with a memory of the last files.

    A footer lists all row groups, so that its size grows with the file: without a memory, who reads
    a large file in ranges would spend more time on its footer than on a range's rows.
    """
    return functools.lru_cache(_FOOTERS_KEPT)(footer_of)


def read_parquet(
    part: Range, pattern: str, columns: Sequence[str], footer: Footer = footer_of
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns of a range in batches of at most 131,072 rows.

    A batch takes about 4 MiB as the file encodes it, before compression; values that repeat take
    more in memory.

    A text column that repeats its values comes as a dictionary, any other as it is stored;
    nulls stay nulls.

    Args:
        part: the range.
        pattern: what messages name.
        columns: the names of the wanted columns.
        footer: for several ranges of a file, `kept_footers()`.

    Raises:
        ValueError: the file is damaged; the message names the pattern only.
    """
    return open_files.guarded(_ahead(_batches(part, columns, footer)), _damaged(pattern))


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield `batches`, decoding the next ones in a thread while the caller works on the last."""
    thread = futures.ThreadPoolExecutor(1)
    try:
        following = collections.deque(thread.submit(next, batches, None) for _ in range(_AHEAD))
        while (batch := following.popleft().result()) is not None:
            following.append(thread.submit(next, batches, None))
            yield batch
    finally:
        # Nobody waits for batches that the thread still decodes.
        thread.shutdown(wait=False, cancel_futures=True)


def _batches(part: Range, columns: Sequence[str], footer: Footer) -> Iterator[pa.RecordBatch]:
    groups = range(part.first, part.last + 1)
    metadata = footer(part.path)
    with _opened(part.path) as source:
        _check(metadata, part, columns)
        repeated = _repeated(pq.ParquetFile(source, metadata=metadata), groups, columns)
        each = source.size() / max(metadata.num_rows, 1)
        most = _rows_of_batch(metadata, groups, columns)
        with pq.ParquetFile(source, metadata=metadata, read_dictionary=repeated) as file:
            for batch in file.iter_batches(most, row_groups=list(groups), columns=list(columns)):
                open_files.count(each * len(batch))
                yield without_views(batch)


def _check(metadata: pq.FileMetaData, part: Range, columns: Sequence[str]) -> None:
    """Refuse a file that is another one than when it was cut into ranges, as a damaged one."""
    names = metadata.schema.to_arrow_schema().names
    if part.last >= metadata.num_row_groups or not set(columns) <= set(names):
        raise pa.ArrowInvalid("the file has changed")


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return `batch` with plain text and bytes: Arrow computes little on its view types yet."""
    plain = list(map(_plain, batch.columns))
    return pa.RecordBatch.from_arrays(plain, batch.schema.names)


def _plain(column: pa.Array) -> pa.Array:
    if pt.is_dictionary(column.type):  # Arrow has no cast of dictionaries with views
        return pa.DictionaryArray.from_arrays(column.indices, _plain(column.dictionary))
    return column.cast(_PLAIN[column.type]) if column.type in _PLAIN else column


def without_view(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column has after `without_views`."""
    if pt.is_dictionary(kind):
        return pa.dictionary(kind.index_type, without_view(kind.value_type))
    return _PLAIN.get(kind, kind)


def _opened(path: str) -> pa.NativeFile:
    if open_files.is_local(path):
        # Not memory-mapped: mapped pages count as the worker's memory until the system takes them.
        return pa.OSFile(path)
    return pa.PythonFile(FileSystems.open(path), mode="r")


def _repeated(file: pq.ParquetFile, groups: range, columns: Sequence[str]) -> list[str]:
    kinds = {field.name: field.type for field in file.schema_arrow if field.name in columns}
    return [
        name for name, kind in kinds.items() if _as_dictionary(file.metadata, groups, name, kind)
    ]


def _as_dictionary(metadata: pq.FileMetaData, groups: range, name: str, kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind):
        # Else Arrow gives it the type of indices that it was written with, by a conversion that
        # fails at text that is no UTF-8.
        return ids.is_text(kind.value_type)
    return ids.is_text(kind) and _bytes_per_value(metadata, groups, name) <= DICTIONARY_BYTES


def _paths(metadata: pq.FileMetaData) -> list[str]:
    return [metadata.schema.column(index).path for index in range(metadata.num_columns)]


def _bytes_per_value(metadata: pq.FileMetaData, groups: range, name: str) -> float:
    index = _paths(metadata).index(name)
    chunks = [metadata.row_group(group).column(index) for group in groups]
    values: int = sum(chunk.num_values for chunk in chunks)
    size: int = sum(chunk.total_uncompressed_size for chunk in chunks)
    return size / max(values, 1)


def _rows_of_batch(metadata: pq.FileMetaData, groups: range, columns: Sequence[str]) -> int:
    """Return how many rows make a batch: a power of two, which mostly divides row groups evenly."""
    begins = tuple(f"{name}." for name in columns)
    wanted = [i for i, path in enumerate(_paths(metadata)) if f"{path}.".startswith(begins)]
    stored = [metadata.row_group(group) for group in groups]
    size = sum(group.column(index).total_uncompressed_size for group in stored for index in wanted)
    rows = BATCH_BYTES * sum(group.num_rows for group in stored) // max(size, 1)
    most: int = min(SLICE, 1 << max(rows.bit_length() - 1, 0))
    return most

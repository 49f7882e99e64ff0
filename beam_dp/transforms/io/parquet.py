"""Parquet files, by row groups: only the wanted columns, repeated text as dictionaries."""

import collections
import functools
import io
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns import ids
from beam_dp.transforms.io import open_files
from beam_dp.transforms.io.file_format import Format, Sniffed, Wanted
from beam_dp.transforms.io.schemas import check_names, types_of

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
# As nanoseconds, times of INT96 (those of Spark) in the year 9999 would be in 1816.
_file = functools.partial(
    pq.ParquetFile, coerce_int96_timestamp_unit="us", page_checksum_verification=True
)

_RULE = "a Parquet file without encryption"
_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary(), pa.uuid(): pa.string()}


class RowGroups(NamedTuple):
    """Some consecutive row groups of one file, and the listing of files that it is from.

    `typed` has the columns that are nulls in this file, with the types that they have in others.
    """

    path: str
    first: int
    last: int
    listing: str
    typed: Mapping[str, pa.DataType]


class Parquet(Format):
    """Files of columns with types, in row groups.

    A text column that repeats its values comes as a dictionary, any other as it is stored; nulls
    stay nulls. A column has one kind of values in all files, or is null: the ids 1 and "1" would
    name two people.
    """

    def sniff(self, paths: Sequence[str], wanted: Wanted) -> Sniffed:
        """Refuse files for their footers; return the types of the columns."""
        listing = uuid.uuid4().hex
        types = types_of([_opened(path, listing, wanted)[0] for path in paths], wanted)
        return Sniffed(
            [{name: without_view(kind) for name, kind in each.items()} for each in types]
        )

    def parts(self, paths: Sequence[str], wanted: Wanted) -> list[RowGroups]:
        """Return the row groups of all files in ranges of about a million rows."""
        listing = uuid.uuid4().hex

        def of_file(path: str) -> tuple[pa.Schema, list[RowGroups]]:
            schema, footer = _opened(path, listing, wanted)
            return schema, _ranges(path, footer, listing)

        with futures.ThreadPoolExecutor(FOOTERS_AT_ONCE) as threads:
            files = list(threads.map(of_file, paths))
        types = types_of([schema for schema, _ in files], wanted)
        return [
            each._replace(typed=_missing_types(schema, kinds))
            for (schema, ranges), kinds in zip(files, types, strict=True)
            for each in ranges
        ]

    def rows(self, part: RowGroups, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yield batches of at most 131,072 rows.

        A batch takes about 4 MiB as the file encodes it, before compression; values that repeat
        take more in memory.
        """
        batches = _ahead(_batches(part, wanted.columns))
        return open_files.rows_of(batches, part.path, wanted.pattern, _RULE)

    def write(self, file: BinaryIO, table: pa.Table) -> None:
        """Write a table, with its types."""
        pq.write_table(table, file)


@functools.lru_cache(_FOOTERS_KEPT)
def footer_of(path: str, listing: str) -> tuple[pa.Schema, pq.FileMetaData]:
    """Return schema and footer of a file; for the same listing of files they are kept in memory.

    A footer lists all row groups, so that its size grows with the file: without a memory, who reads
    a large file in ranges would spend more time on its footer than on a range's rows.
    """
    with open_files.seekable(path) as source, _file(source) as file:
        source.seek(-8, io.SEEK_END)  # the length of the footer, and PAR1
        # Behind the footer of encrypted columns is a signature. Arrow ends the process for these.
        if int.from_bytes(source.read(4), "little") != file.metadata.serialized_size:
            raise pa.ArrowInvalid("columns are encrypted")
        return file.schema_arrow, file.metadata


def _ranges(path: str, footer: pq.FileMetaData, listing: str) -> list[RowGroups]:
    ranges, first, rows = [], 0, 0
    for group in range(footer.num_row_groups):
        rows += footer.row_group(group).num_rows
        if rows >= RANGE_ROWS or group == footer.num_row_groups - 1:
            ranges.append(RowGroups(path, first, group, listing, {}))
            first, rows = group + 1, 0
    return ranges


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


def _opened(path: str, listing: str, wanted: Wanted) -> tuple[pa.Schema, pq.FileMetaData]:
    """Return the schema of a file, in which each wanted column stands once, and its footer."""
    found = (footer_of(each, listing) for each in [path])
    [(schema, footer)] = open_files.rows_of(found, path, wanted.pattern, _RULE)
    named = check_names(path, schema, wanted)
    for name in _deltas(footer).intersection(wanted.columns):
        rule = "not be a category in a delta encoding, which Arrow does not read"
        is_category = pt.is_dictionary(schema.field(name).type)
        checks.require(not is_category, "ReadRows", f"column {name!r}", rule, "Write it as text.")
    return named, footer


def _batches(part: RowGroups, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    groups = range(part.first, part.last + 1)
    schema, metadata = footer_of(part.path, part.listing)
    if part.last >= metadata.num_row_groups or not set(columns) <= set(schema.names):
        raise pa.ArrowInvalid("the file is another one than when it was listed")
    rows = max(sum(metadata.row_group(group).num_rows for group in groups), 1)
    sizes = _sizes(metadata, groups, columns)
    deltas = _deltas(metadata)
    repeated = [
        name
        for name in columns
        if name not in deltas and _repeats(schema.field(name).type, sizes[name] / rows)
    ]
    # A power of two, which mostly divides row groups evenly.
    fitting = BATCH_BYTES * rows // max(sum(sizes.values()), 1)
    most = min(SLICE, 1 << max(fitting.bit_length() - 1, 0))
    with (
        open_files.seekable(part.path) as source,
        _file(source, metadata=metadata, read_dictionary=repeated) as file,
    ):
        for batch in file.iter_batches(most, row_groups=list(groups), columns=list(columns)):
            yield _of_types(without_views(batch), part.typed)


def _missing_types(schema: pa.Schema, types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Return the types, in other files, of columns that are nulls in a file."""
    return {
        name: without_view(kind)
        for name, kind in types.items()
        if pt.is_null(schema.field(name).type)
    }


def _of_types(batch: pa.RecordBatch, typed: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """Return a batch whose columns of nulls have these types: one cell of one row decides on that."""
    for name, kind in typed.items():
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, name, pa.nulls(len(batch), kind))
    return batch


def _sizes(metadata: pq.FileMetaData, groups: range, columns: Sequence[str]) -> dict[str, int]:
    """Return how many bytes each column, nested or not, has in some row groups, uncompressed."""
    sizes = dict.fromkeys(columns, 0)
    stored = [metadata.row_group(group) for group in groups]
    for index in range(metadata.num_columns):
        path = f"{metadata.schema.column(index).path}."
        for name in columns:
            if path.startswith(f"{name}."):
                sizes[name] += sum(group.column(index).total_uncompressed_size for group in stored)
    return sizes


def _deltas(metadata: pq.FileMetaData) -> set[str]:
    """Return the columns with delta encodings, which Arrow does not read as a dictionary."""
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    parts = [group.column(index) for group in groups for index in range(metadata.num_columns)]
    found = [part for part in parts if any(each.startswith("DELTA") for each in part.encodings)]
    return {part.path_in_schema for part in found}


def _repeats(kind: pa.DataType, size: float) -> bool:
    """Return whether a column is read as a dictionary, whose values take `size` bytes on average.

    Text that was written as a dictionary always is. Else Arrow gives it the type of indices that it
    was written with, by a conversion that fails at text that is no UTF-8.
    """
    if pt.is_dictionary(kind):
        return ids.is_text(kind.value_type)
    return ids.is_text(kind) and size <= DICTIONARY_BYTES


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return `batch` with plain text and bytes: Arrow computes little on views and UUIDs yet."""
    plain = list(map(_plain, batch.columns))
    return pa.RecordBatch.from_arrays(plain, batch.schema.names)


def _plain(column: pa.Array) -> pa.Array:
    if pt.is_dictionary(column.type):  # Arrow has no cast of dictionaries with views
        return pa.DictionaryArray.from_arrays(column.indices, _plain(column.dictionary))
    column = ids.without_uuids(column)
    return column.cast(_PLAIN[column.type]) if column.type in _PLAIN else column


def without_view(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column has after `without_views`."""
    return _plain(pa.nulls(0, kind)).type

"""Rows of a table of this process, of pyarrow, pandas, Polars or another library, by Arrow.

Tables of other libraries come through Arrow's PyCapsule interface (`__arrow_c_stream__`), so none
of these libraries is imported here. The rows stay where they are: the steps of a pipeline that runs
in the memory of this process find them under a name. No other runner can read them.

*Cells of any type.* A pandas column of `object` has no type: Arrow would take one from its cells,
and one person's cell would decide what becomes of all others. So a table with such a column is read
as rows, of which each decides about itself, as rows that are dicts do everywhere else. The same
holds for categories of `object`. All other types are those of the columns; text that UTF-8 cannot
write is null there, and the index is never looked at.
"""

import contextlib
import dataclasses
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

from beam_dp.mechanisms.numerics import checks, value_types
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import plain_values
from beam_dp.transforms.io import open_files, parquet
from beam_dp.transforms.stages import quick_steps

STREAM = "__arrow_c_stream__"
_ROWS = 1 << 16
_MEND = (
    "Give a path, a pyarrow.Table, or a DataFrame of pandas (2.2 or later) or Polars; of a list of "
    "dicts: pa.Table.from_pylist(rows, schema=schema)."
)
_held: dict[str, "Frame"] = {}


@dataclasses.dataclass(frozen=True)
class Frame:
    """Some columns of a table of this process.

    Attributes:
        columns: the names of the columns.
        types: their types, by name, of those that have one.
        batches: the rows, if all columns have types.
        lists: for each column its cells, if one has cells of any type.
    """

    columns: tuple[str, ...]
    types: dict[str, pa.DataType]
    batches: tuple[pa.RecordBatch, ...] = ()
    lists: tuple[list[Any], ...] = ()

    def rows(self) -> Iterator[pa.RecordBatch | dict[str, Any]]:
        """Yield the rows, as batches or as dicts."""
        yield from self.batches
        for cells in zip(*self.lists, strict=True):
            yield dict(zip(self.columns, cells, strict=True))


def frame_of(owner: str, data: Any, wanted: Sequence[str]) -> Frame:
    """Return the wanted columns of a table, without copying what is held by Arrow already.

    Args:
        owner: the name that errors begin with.
        data: a table, a batch, or a DataFrame.
        wanted: the names of the columns.

    Raises:
        TypeError, ValueError: for what is no table, and for a column that the table has not once.
    """
    names = tuple(dict.fromkeys(wanted))
    if not hasattr(data, STREAM):
        kind = f"an object of type {type(data).__name__}"
        raise checks.ParameterTypeError(owner, "data", f"be a table, not {kind}", _MEND)
    if _is_pandas(data):
        _check_names(owner, list(data.columns), names)
        return _of_columns(names, [_column(owner, data[[name]]) for name in names])
    reader = _opened(owner, data)
    _check_names(owner, reader.schema.names, names)
    types = {name: parquet.without_view(reader.schema.field(name).type) for name in names}
    rows = open_files.guarded(reader, f"{owner}: data must be a table that can be read to its end.")
    batches = (parquet.without_views(batch.select(names)) for batch in rows)
    return Frame(names, types, tuple(batches))


def _opened(owner: str, data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError):
        pass  # the text of these errors may quote cells
    rule = "be a table whose columns all have a type that Arrow has"
    raise checks.ParameterTypeError(owner, "data", rule, 'Convert them: df.astype({"day": "str"}).')


def _is_pandas(data: Any) -> bool:
    return hasattr(getattr(data, "dtypes", None), "items") and hasattr(data, "columns")


def _column(owner: str, data: Any) -> pa.ChunkedArray | list[object]:
    """Return the only column of a DataFrame; a list if its cells are of any type."""
    data.index = range(len(data))  # that of the rows has cells too
    [name] = data.columns
    match str(data.dtypes.iloc[0]):
        case "object":
            return [_held_by_beam(cell) for cell in data[name].tolist()]
        case "category":
            return _by_codes(owner, name, data[name].cat)
        case "string" | "str":
            with contextlib.suppress(checks.ParameterTypeError):
                return _opened(owner, data).read_all().column(name).cast(pa.large_string())
            return _texts(data[name].tolist())
    return _opened(owner, data).read_all().column(name)


def _by_codes(owner: str, name: str, cat: Any) -> pa.ChunkedArray | list[object]:
    """Return a column of categories: a bad one spoils the rows that have it."""
    codes = cat.codes.to_numpy()
    categories = _column(owner, cat.categories.to_frame(index=False, name=name))
    if isinstance(categories, list):
        cells = [*categories, None]  # of the code -1
        return [cells[code] for code in codes.tolist()]
    indices = pa.array(codes, mask=codes < 0)
    coded = pa.DictionaryArray.from_arrays(indices, categories.combine_chunks())
    return pa.chunked_array([coded])


def _held_by_beam(cell: object) -> object:
    """Return a cell; None for one without a plain form, which no release could read.

    Beam encodes some elements, chosen at random, to learn how large they are: a cell that cannot
    be encoded would fail the run now and then.
    """
    return None if plain_values.plain(cell) is None else cell


def _texts(cells: list[Any]) -> pa.ChunkedArray:
    texts = [cell if type(cell) is str and value_types.is_utf8(cell) else None for cell in cells]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def _of_columns(names: Sequence[str], columns: Sequence[pa.ChunkedArray | list[object]]) -> Frame:
    typed = {
        name: column
        for name, column in zip(names, columns, strict=True)
        if not isinstance(column, list)
    }
    types = {name: parquet.without_view(column.type) for name, column in typed.items()}
    if len(typed) < len(names):
        lists = (column if isinstance(column, list) else _cells(column) for column in columns)
        return Frame(tuple(names), types, lists=tuple(lists))
    batches = map(parquet.without_views, pa.table(typed).to_batches())
    return Frame(tuple(names), types, tuple(batches))


def _cells(column: pa.ChunkedArray) -> list[object]:
    """Return typed cells as Python values of the same meaning: floats as wide, times in UTC."""
    if pa.types.is_dictionary(column.type):
        kind = column.type.value_type
        column = pa.chunked_array([each.dictionary_decode() for each in column.chunks], kind)
    kind = column.type
    if pa.types.is_floating(kind) and kind.bit_width < 64:
        return list(column.to_numpy())
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp(kind.unit))
    return [cell for chunk in column.chunks for cell in plain_values.to_list(chunk)]


def _check_names(owner: str, there: Sequence[object], wanted: Sequence[str]) -> None:
    known = [name for name in there if isinstance(name, str)]
    for name in wanted:
        rule = f"be one of the columns of data, once: {checks.listed(known)}"
        checks.require(known.count(name) == 1, owner, f"column {name!r}", rule)


@contextlib.contextmanager
def held(frame: Frame) -> Iterator["ReadFrame"]:
    """Yield the source of the rows of a table; it can be read until the end of the block."""
    token = uuid.uuid4().hex
    _held[token] = frame
    try:
        yield ReadFrame(token, frame.columns, frame.types, bool(frame.lists))
    finally:
        del _held[token]


@dataclasses.dataclass(eq=False)
class ReadFrame(beam.PTransform[beam.pvalue.PBegin, beam.PCollection[Any]]):
    """Read the rows of a table that this process holds.

    Args:
        token: under which name it is held.
        columns: the names of its columns.
        types: their types, of those that have one.
        loose: whether its rows are dicts.
    """

    token: str
    columns: Sequence[str]
    types: dict[str, pa.DataType]
    loose: bool

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[Any]:
        """Apply the transform to a pipeline that runs in this process."""
        read = quick_steps.flat_mapped(_rows, self.token)
        typed = read.with_output_types(dict if self.loose else pa.RecordBatch)
        return known_columns.remember(
            pbegin | "Start" >> beam.Impulse() | "Rows" >> typed, self.columns, self.types
        )

    def size_in_bytes(self) -> int:
        """Return the size of the columns that have types."""
        return sum(batch.nbytes for batch in _held[self.token].batches)


def _rows(_: bytes, token: str) -> Iterator[pa.RecordBatch | dict[str, Any]]:
    return _held[token].rows()

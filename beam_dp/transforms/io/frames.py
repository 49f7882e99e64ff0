"""Rows of a table of this process, of pyarrow, pandas, Polars or another library, by Arrow.

Tables of other libraries come through Arrow's PyCapsule interface (`__arrow_c_stream__`), so none
of these libraries is imported here. The rows stay where they are: the steps of a pipeline that runs
in the memory of this process find them under a name. No other runner can read them.

*Cells of any type.* A pandas column of `object` has no type: Arrow would take one from its cells,
and one person's cell would decide what becomes of all others. So such a column is text, whatever it
holds: each cell by its canonical form (`columns.ids`), which is the same id, key or item as the
cell itself; a cell that is no id is null. Numbers and times must have a type to be added or
ordered. The same holds for categories of `object`. All other types are those of the columns; text
that UTF-8 cannot write is null, and the index is never looked at.
"""

import contextlib
import dataclasses
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import ids
from beam_dp.transforms.io import open_files, parquet
from beam_dp.transforms.io.file_format import Sniffed
from beam_dp.transforms.stages import quick_steps

STREAM = "__arrow_c_stream__"
_HINT = (
    "Give a path, a pyarrow.Table, or a DataFrame of pandas (2.2 or later) or Polars; of a list of "
    "dicts: pa.Table.from_pylist(rows, schema=schema)."
)
_held: dict[str, "Frame"] = {}


@dataclasses.dataclass(frozen=True)
class Frame:
    """Some columns of a table of this process.

    Attributes:
        types: their types, by name.
        batches: the rows.
    """

    types: dict[str, pa.DataType]
    batches: tuple[pa.RecordBatch, ...]


def frame_of(subject: str, data: Any, wanted: Sequence[str]) -> Frame:
    """Return the wanted columns of a table, without copying what is held by Arrow already.

    Args:
        subject: the name that errors begin with.
        data: a table, a batch, or a DataFrame.
        wanted: the names of the columns.

    Raises:
        TypeError, ValueError: for what is no table, and for a column that is not there once.
    """
    names = tuple(dict.fromkeys(wanted))
    if not hasattr(data, STREAM):
        kind = f"an object of type {type(data).__name__}"
        raise checks.ParameterTypeError(subject, "data", f"be a table, not {kind}", _HINT)
    if _is_pandas(data):
        _check_names(subject, list(data.columns), names)
        data = pa.table({name: _column(subject, data[[name]]) for name in names})
    reader = _opened(subject, data)
    _check_names(subject, reader.schema.names, names)
    types = {name: parquet.without_view(reader.schema.field(name).type) for name in names}
    rows = open_files.guarded(
        reader, f"{subject}: data must be a table that can be read to its end."
    )
    return Frame(types, tuple(parquet.without_views(batch.select(names)) for batch in rows))


def _opened(subject: str, data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError):
        pass  # the text of these errors may quote cells
    rule = "be a table whose columns all have a type that Arrow has"
    raise checks.ParameterTypeError(
        subject, "data", rule, 'Convert them: df.astype({"day": "str"}).'
    )


def _is_pandas(data: Any) -> bool:
    return hasattr(getattr(data, "dtypes", None), "items") and hasattr(data, "columns")


def _column(subject: str, data: Any) -> pa.ChunkedArray:
    """Return the only column of a DataFrame."""
    data.index = range(len(data))  # that of the rows has cells too
    [name] = data.columns
    match str(data.dtypes.iloc[0]):
        case "category":  # a bad one spoils the rows that have it
            cat = data[name].cat
            codes = cat.codes.to_numpy()
            categories = _column(subject, cat.categories.to_frame(index=False, name=name))
            indices = pa.array(codes, mask=codes < 0)
            made = pa.DictionaryArray.from_arrays(indices, categories.combine_chunks())
            return pa.chunked_array([made])
        case "object":
            return _texts(data[name].tolist())
        case "string" | "str":
            with contextlib.suppress(checks.ParameterTypeError):
                return _opened(subject, data).read_all().column(name).cast(pa.large_string())
            return _texts(data[name].tolist())
    return _opened(subject, data).read_all().column(name)


def _texts(cells: list[object]) -> pa.ChunkedArray:
    column = ids.to_array(cells)
    if column is None or not ids.is_text(column.type):
        column = pa.array(map(ids.canonical, cells), pa.large_string())
    return pa.chunked_array([column])


def _check_names(subject: str, there: Sequence[object], wanted: Sequence[str]) -> None:
    known = [name for name in there if isinstance(name, str)]
    for name in wanted:
        rule = f"be one of the columns of data, once: {checks.listed(known)}"
        near = checks.near(name, known)
        checks.require(known.count(name) == 1, subject, f"column {name!r}", rule, near)


@contextlib.contextmanager
def held(frame: Frame) -> Iterator["ReadFrame"]:
    """Yield the source of the rows of a table; it can be read until the end of the block."""
    token = uuid.uuid4().hex
    _held[token] = frame
    try:
        yield ReadFrame(token)
    finally:
        del _held[token]


@dataclasses.dataclass(eq=False)
class ReadFrame(beam.PTransform[beam.pvalue.PBegin, beam.PCollection[Any]]):
    """Read the rows of a table that this process holds.

    Args:
        token: under which name it is held.
    """

    token: str

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[Any]:
        """Apply the transform to a pipeline that runs in this process."""
        read = quick_steps.flat_mapped(_rows, self.token)
        typed = read.with_output_types(pa.RecordBatch)
        rows = pbegin | "Start" >> beam.Impulse() | "Rows" >> typed
        types = _held[self.token].types
        return known_columns.remember(rows, list(types), Sniffed([types]))

    def size_in_bytes(self) -> int:
        """Return the size of the columns."""
        return sum(batch.nbytes for batch in _held[self.token].batches)


def _rows(_: bytes, token: str) -> tuple[pa.RecordBatch, ...]:
    return _held[token].batches

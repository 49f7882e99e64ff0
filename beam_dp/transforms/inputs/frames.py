"""Rows of a table of this process, of pyarrow, pandas, Polars or another library, by Arrow.

Tables of other libraries come through Arrow's PyCapsule interface (`__arrow_c_stream__`), so none
of these libraries is imported here. The rows stay where they are: the steps of a pipeline that runs
in the memory of this process find them under a name. No other runner can read them.

*Cells of any type.* A pandas column of `object` has no type: Arrow would take one from its cells,
and one person's cell would decide what becomes of all others. So a table with such a column is read
as rows, of which each decides about itself, as rows that are dicts do everywhere else.
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
from beam_dp.transforms.building import quick_steps
from beam_dp.transforms.io import open_files, parquet

STREAM = "__arrow_c_stream__"
_ROWS = 1 << 16
_UNTYPED = "object"
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
        types: their types, by name; {} if they have cells of any type.
        batches: the rows, if they have types.
        lists: for each column its cells, if these are of any type.
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
    kinds = _kinds(data)
    if kinds:  # only the wanted columns must have types
        _check_names(owner, list(data.columns), names)
        data = data[list(names)]
    if _UNTYPED in map(kinds.get, names):
        return Frame(names, {}, lists=tuple(data[name].tolist() for name in names))
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


def _kinds(data: Any) -> dict[object, str]:
    """Return the types of the columns of a pandas DataFrame in words; {} for other tables."""
    kinds: Any = getattr(data, "dtypes", None)
    known = hasattr(kinds, "items") and hasattr(data, "columns")
    return {name: str(kind) for name, kind in kinds.items()} if known else {}


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
        yield ReadFrame(token, frame.columns, bool(frame.lists))
    finally:
        del _held[token]


@dataclasses.dataclass(eq=False)
class ReadFrame(beam.PTransform[beam.pvalue.PBegin, beam.PCollection[Any]]):
    """Read the rows of a table that this process holds.

    Args:
        token: under which name it is held.
        columns: the names of its columns.
        loose: whether its rows are dicts.
    """

    token: str
    columns: Sequence[str]
    loose: bool

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[Any]:
        """Apply the transform to a pipeline that runs in this process."""
        read = quick_steps.flat_mapped(_rows, self.token)
        typed = read.with_output_types(dict if self.loose else pa.RecordBatch)
        return known_columns.remember(
            pbegin | "Start" >> beam.Impulse() | "Rows" >> typed, self.columns
        )

    def size_in_bytes(self) -> int:
        """Return the size of the columns that have types."""
        return sum(batch.nbytes for batch in _held[self.token].batches)


def _rows(_: bytes, token: str) -> Iterator[pa.RecordBatch | dict[str, Any]]:
    return _held[token].rows()

"""Run a query on the rows of a pipeline, batches or not."""

import collections
import contextlib
import datetime
import decimal
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns import ids, layout, plain_values, row_fields
from beam_dp.transforms.io import table_files
from beam_dp.transforms.sql.query_engine import Engine
from beam_dp.transforms.sql.row_queries import Query

_INTEGERS = range(-(2**63), 2**63)


class RunQuery(beam.DoFn):
    """Runs a query on elements; rows that are no batches wait for the end of their bundle.

    Of a batch of which no row is left, a batch without rows is: what reads it refuses its types,
    and no row decides whether it does.

    Args:
        query: the query.
        columns: those that `*` gives of rows that are no batches.
    """

    def __init__(self, query: Query, columns: Sequence[str] = ()) -> None:
        self._query = query
        self._read = tuple(columns) if query.star else query.needs

    def setup(self) -> None:
        """Start DuckDB."""
        self._engine = Engine(self._query)

    def start_bundle(self) -> None:
        """Begin without rows."""
        self._waiting = row_fields.FieldLists(self._read or ("",))

    def process(self, element: Any) -> Iterator[pa.RecordBatch]:
        """Run the query on a batch, or keep a row."""
        if row_fields.is_columnar(element):
            chosen = self._engine.chosen(element) if element.num_columns else element
            for batch in layout.batches(chosen):
                schema = self._engine.schema_of(batch.schema)
                yield from [*self._engine.rows(batch)] or [row_fields.none_of(schema)]
        elif self._waiting.add(element):
            yield from self._drained()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Run the query on the rows that wait."""
        for batch in self._drained():
            yield GlobalWindows.windowed_value(batch)

    def _drained(self) -> Iterator[pa.RecordBatch]:
        for batch in _batches(self._read, zip(*self._waiting.drain(), strict=True)):
            with contextlib.suppress(checks.ParameterError):  # for types of these rows alone
                self._engine.schema_of(batch.schema)
                for made in self._engine.rows(batch):
                    yield made.replace_schema_metadata(row_fields.OF_DICTS)


def _batches(names: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[pa.RecordBatch]:
    """Yield rows in batches of the same types, each of them that of the row's own cells."""
    alike: dict[tuple[pa.DataType, ...], list[list[Any]]] = collections.defaultdict(list)
    for row in rows:
        cells = list(map(_cell, row))
        alike[tuple(map(_type, cells))].append(cells)
    for types, found in alike.items():
        columns = list(map(pa.array, zip(*found, strict=True), types))
        yield pa.RecordBatch.from_arrays(columns, list(names) or [""])


def _cell(value: object) -> Any:
    """Return a cell as a value that has a type in Arrow; text where it is an id of another kind.

    A decimal is an integer if it is whole, else the nearest double.
    """
    known = plain_values.restored(plain_values.plain(value))
    if type(known) is decimal.Decimal:
        whole = ids.whole_number(known)
        known = float(known) if whole is None and known.is_finite() else whole
    if type(known) in (int, uuid.UUID):
        return known if type(known) is int and known in _INTEGERS else ids.canonical(known)
    return known


def _type(cell: Any) -> pa.DataType:
    if isinstance(cell, datetime.datetime):
        return pa.timestamp("us", "UTC" if cell.tzinfo else None)
    return table_files.ARROW_TYPES.get(type(cell), pa.null())

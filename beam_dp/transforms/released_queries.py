"""SQL on a released table: a function of what was released, so it costs nothing.

DuckDB runs it where the table is written, or handed on, with no file, no network and no setting in
its reach (Dwork, Roth, 2014, Proposition 2.1: post-processing). Columns that were released keep
their numbers; the SQL says which rows stay, in which order, and which columns are computed.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns, row_queries, run_record
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.io import table_files
from beam_dp.transforms.private_tables import PrivateTables
from beam_dp.transforms.stages import output_names, quick_steps

_OWNER, _NAME = "release", "post_process"
_FORM = "Write SELECT *, spent / visits AS each FROM released WHERE people >= 100 ORDER BY visits."
_TABLE, _ROW = "released", "row of the released table"


@dataclasses.dataclass(frozen=True)
class ReleasedQuery:
    """SQL on a released table.

    `SELECT *, expressions FROM released`, with all that SQL has for one table behind it. NaN is
    null. Where the SQL fails on what was released (as a number beyond all types), all rows stay, in
    the order of their cells, and computed columns are empty: the table is paid for.

    Attributes:
        text: the SQL.
        keys: the columns of keys that it may name; a table that lacks one has nulls there.
        numbers: the columns of released numbers.
    """

    text: str
    keys: tuple[str, ...]
    numbers: tuple[str, ...]

    @classmethod
    def of(cls, text: str | None, tables: PrivateTables) -> "ReleasedQuery | None":
        """Return SQL on each of some tables; None where there is none.

        Raises:
            TypeError, ValueError: for SQL that does not fit the columns.
        """
        if text is None:
            return None
        made = cls(text, tables.columns, output_names.output_names((), tables.first.metrics))
        return made if made.computed is not None else None

    @functools.cached_property
    def computed(self) -> dict[str, bool]:
        """The columns that it computes, and whether they are numbers; all else is text.

        Raises:
            ValueError: for SQL that does not fit the columns.
        """
        _, parsed = row_queries.tree_of(_OWNER, _NAME, self.text, _FORM)
        star = parsed["statements"][0]["node"]["select_list"][0]["class"] == "STAR"
        rule = f"be SELECT *, ... FROM {_TABLE}"
        checks.require(star, _OWNER, _NAME, rule, _FORM)
        known = [*self.keys, *self.numbers]
        made, problem = self._made(pa.table({name: pa.nulls(0) for name in known}))
        said = problem.partition("\n")[0].rstrip(".")
        rule = f"fit the released columns {checks.listed(known)}: {said}"
        checks.require(made is not None, _OWNER, _NAME, rule, _FORM)
        names = [] if made is None else made.column_names
        at = len(known) + 1
        plain = names[:at] == [*known, _ROW] and len({*names}) == len(names)
        rule = f"give its columns names of their own, and they are {checks.listed(names)}"
        checks.require(plain, _OWNER, _NAME, rule, _FORM)
        return {name: _is_number(made.schema.field(name).type) for name in names[at:]}

    def run(self, table: pa.Table) -> pa.Table:
        """Return the rows of a released table that stay, in their order, with computed columns."""
        table = table_files.ordered(table)
        made, _ = self._made(table)
        if made is None:
            made = pa.table(
                {_ROW: range(len(table))} | dict.fromkeys(self.computed, pa.nulls(len(table)))
            )
        kept = table.take(made[_ROW])
        for name, is_number in self.computed.items():
            kept = kept.append_column(
                name, made[name].cast(pa.float64() if is_number else pa.string())
            )
        return kept

    def noted(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of its table, which names the computed columns too."""
        of = record[run_record.COLUMNS]
        before = [name for name in of["keys"] if name != of.get("other")]
        text = [name for name, is_number in self.computed.items() if not is_number]
        numbers = [[name] for name, is_number in self.computed.items() if is_number]
        keys = [*before, *text, *of["keys"][len(before) :]]
        columns = {**of, "keys": keys, "numbers": [*of["numbers"], *numbers]}
        return {**record, run_record.COLUMNS: columns}

    def _made(self, table: pa.Table) -> tuple[Any, str]:
        """Return what the SQL makes of a table, with the number of each row; or None, and why."""
        rows: dict[str, Any] = {}
        for name in (*self.keys, *self.numbers):
            there = name in table.column_names
            rows[name] = _plain(table[name] if there else pa.nulls(len(table)), name in self.keys)
        engine = row_queries.connected()
        engine.register(_TABLE, pa.table(rows | {_ROW: range(len(table))}))
        try:
            return engine.sql(self.text).to_arrow_table(), ""
        except row_queries.duckdb().Error as error:
            return None, str(error)


def _plain(cells: Any, is_key: bool) -> Any:
    """Return keys as text, and numbers as doubles without NaN."""
    if is_key:
        return pa.array(
            (None if c is None else table_files.text(c) for c in cells.to_pylist()), pa.string()
        )
    numbers = cells.cast(pa.float64())
    return pc.if_else(pc.is_nan(numbers), None, numbers)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


@dataclasses.dataclass(eq=False)
class PostProcess(beam.PTransform[beam.PCollection[Any], beam.PCollection[beam.Row]]):
    """Run SQL on released rows, all in one place.

    Args:
        query: the SQL.
        table: what released the rows.
    """

    query: ReleasedQuery
    table: PrivateAggregate

    def expand(self, released: beam.PCollection[Any]) -> beam.PCollection[beam.Row]:
        """Apply the transform to released rows."""
        fields = list(known_columns.fields_of(released) or ())
        kinds = {True: float | None, False: str | None}
        more = [
            (output_names.field_name(name), kinds[n]) for name, n in self.query.computed.items()
        ]
        made = output_names.row_type([*fields, *more])
        given = beam.pvalue.AsIter(released)
        names = output_names.output_names(self.table.keys, self.table.metrics)
        step = quick_steps.flat_mapped(_rows, self.query, names, fields, given)
        start = released.pipeline | "Start" >> beam.Impulse()
        return start | "PostProcess" >> step.with_output_types(made)


def _rows(
    _: bytes,
    query: ReleasedQuery,
    names: Sequence[str],
    fields: Sequence[tuple[str, Any]],
    given: Iterable[Any],
) -> Iterator[beam.Row]:
    cells = [tuple(getattr(row, name) for name, _ in fields) for row in given]
    table = query.run(table_files.table_of(names, [kind for _, kind in fields], cells))
    words = [name for name, _ in fields] + [output_names.field_name(n) for n in query.computed]
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield beam.Row(**dict(zip(words, row, strict=True)))

"""SQL on a released table: a function of what was released, so it costs nothing.

DuckDB runs it where the table is written, or handed on, with no file, no network and no setting in
its reach (Dwork, Roth, 2014, Proposition 2.1: post-processing). It names released columns, functions
of one row that `row_queries` has on its list, aggregates and windows, and no other table: so no
clock, which would tell when a run ended. Columns that were released keep their numbers; the SQL says
which rows stay, in which order, and which columns are computed. An interval holds less often where
its row stays for its number, as the first of many does for its noise.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns, run_record
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.io import table_files
from beam_dp.transforms.private_tables import PrivateTables
from beam_dp.transforms.sql import databases, row_queries, sql_trees
from beam_dp.transforms.stages import output_names, quick_steps

_SUBJECT, _NAME = "release", "post_process"
_FORM = "Name columns of GROUP BY and aggregates: SELECT *, spent / n AS each FROM released."
_TABLE, _ROW = "released", "row of the released table"
_FURTHER = ("where_clause", "modifiers", "qualify")
_PARTS = {*_FURTHER, "type", "class", "select_list", "from_table", "table_name"}
_CLASSES = row_queries.CLASSES | {"WINDOW"}


@dataclasses.dataclass(frozen=True)
class ReleasedQuery:
    """SQL on a released table.

    `SELECT *, expressions FROM released`, with all that SQL has for one table behind it. NaN is
    null. Where the SQL fails on what was released (as a number beyond all types), all rows stay, in
    the order of their cells, and computed columns are empty: the table is paid for. Keys have the
    type with which they are released, so 2 comes before 10; where the SQL takes them as text, as
    LIKE does, they are text.

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
        _ = made.computed  # refuses SQL that does not fit
        return made

    @functools.cached_property
    def computed(self) -> list[str]:
        """The columns that it computes: numbers.

        Raises:
            ValueError: for SQL that does not fit the columns.
        """
        node = sql_trees.tree_of(_SUBJECT, _NAME, self.text, _FORM)
        known, names, problem = [*self.keys, *self.numbers], [], ""
        _check_parts(node, known)
        # Literals are read where there is a row. WHERE would keep none: it is a column here.
        nulls, kept = pa.table({name: pa.nulls(1) for name in known}), node["where_clause"]
        items = [*node["select_list"], *filter(None, [kept])]
        whole = {**node, "select_list": items, "where_clause": None}
        whole = sql_trees.rewritten(whole, row_queries.strict)
        try:
            names = self._made(nulls, True).column_names
            dataclasses.replace(self, text=sql_trees.sql_of(whole))._made(nulls, True)
        except (databases.duckdb().Error, pa.ArrowException) as error:
            problem = f": {error}".partition("\n")[0].rstrip(".")
        rule = f"fit the released columns {checks.listed(known)}{problem}"
        keys = [f'"{key}"' for key in self.keys[:1]]
        as_numbers = [
            f"Keys are text here; numbers of them: CAST({key} AS BIGINT)." for key in keys
        ]
        hint = " ".join([_FORM, *as_numbers])
        checks.require(not problem, _SUBJECT, _NAME, rule, hint)
        twice = {name for name in names if names.count(name) > 1}
        rule = f"give new columns other names than {checks.listed(sorted(twice))}"
        checks.require(not twice, _SUBJECT, _NAME, rule, _FORM)
        return names[len(known) + 1 :]

    def run(self, table: pa.Table) -> pa.Table:
        """Return the rows of a released table that stay, in their order, with computed columns."""
        table = table_files.ordered(table)
        empty = dict.fromkeys(self.computed, pa.nulls(len(table), pa.float64()))
        made = pa.table({_ROW: range(len(table)), **empty})
        failed = databases.duckdb().Error, pa.ArrowException, checks.ParameterError
        for as_text in (True, False):  # the last one that the SQL fits
            with contextlib.suppress(*failed):
                made = self._made(table, as_text)
        kept = table.take(made[_ROW])
        for name in self.computed:
            kept = kept.append_column(name, made[name])
        return kept

    def noted(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of its table, which names the computed columns too."""
        of = record[run_record.COLUMNS]
        numbers = [*of["numbers"], *([name] for name in self.computed)]
        [_, *items] = sql_trees.tree_of(_SUBJECT, _NAME, self.text, _FORM)["select_list"]
        parts = [[*map(sql_trees.column_name, sql_trees.parts_of(item))] for item in items]
        computed = {n: [*filter(None, p)] for n, p in zip(self.computed, parts, strict=True)}
        return {**record, run_record.COLUMNS: {**of, "numbers": numbers, "computed": computed}}

    def _made(self, table: pa.Table, as_text: bool) -> pa.Table:
        """Return what the SQL makes of a table: its columns, the place of each row, and numbers."""
        rows = {}
        for name in self.keys:
            cells = table[name] if name in table.column_names else pa.nulls(len(table))
            typed = not as_text and not pa.types.is_null(cells.type)
            rows[name] = cells if typed else cells.cast(pa.string())
        for name in self.numbers:
            cells = table[name].cast(pa.float64())
            rows[name] = pc.if_else(pc.is_nan(cells), None, cells)
        engine = databases.connected()
        engine.register(_TABLE, pa.table({**rows, _ROW: range(len(table))}))
        made = engine.sql(self.text).to_arrow_table()
        text = [field.name for field in made.schema if pa.types.is_string(field.type)]
        rule = "compute numbers: CASE WHEN ... THEN 1 ELSE 0 END"
        checks.require({*text} <= {*self.keys}, _SUBJECT, _NAME, rule, _FORM)
        kinds = [made.schema.field(place) for place in range(len(rows) + 1)]  # those of `*`
        more = [pa.field(name, pa.float64()) for name in made.column_names[len(kinds) :]]
        return made.cast(pa.schema([*kinds, *more]))


def _check_parts(node: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Refuse what is no function of the released table alone."""
    table, [star, *items] = node["from_table"], node["select_list"]
    every = [*node.items(), *table.items(), *star.items()]
    parts = {name for name, value in every if value not in sql_trees.NOTHING}
    plain = (
        parts <= _PARTS
        and star["class"] == "STAR"
        and table.get("table_name", "").lower() == _TABLE
    )
    rule = "be SELECT *, and expressions, of the released table alone"
    checks.require(plain, _SUBJECT, _NAME, rule, _FORM)
    known = {name.lower() for name in (*columns, *(item["alias"] for item in items))}
    functions = {*row_queries.FUNCTIONS, *databases.functions_of("aggregate", "window")}
    for part in sql_trees.parts_of([items, *(node[name] for name in _FURTHER)]):
        kind, call = part.get("class", "CONSTANT"), part.get("function_name", "").lower()
        rule = f"not have a {kind.lower()}"
        checks.require(kind in _CLASSES, _SUBJECT, _NAME, rule, _FORM)
        rule = f"not call {call}: it is not on the list of functions of one row, and no aggregate"
        checks.require(not call or call in functions, _SUBJECT, _NAME, rule)
        for name in part["column_names"][-1:] if kind == "COLUMN_REF" else ():
            rule = f"fit the released columns {checks.listed(columns)}, and {name} is none"
            near = checks.near(name, columns) or _FORM
            checks.require(name.lower() in known, _SUBJECT, _NAME, rule, near)


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
        fields = dict(known_columns.fields_of(released) or ())
        more = {output_names.field_name(name): float | None for name in self.query.computed}
        names = output_names.output_names(self.table.keys, self.table.metrics)
        given = beam.pvalue.AsIter(released)
        step = quick_steps.flat_mapped(_rows, self.query, names, fields, [*more], given)
        made = output_names.row_type([*(fields | more).items()])
        start = released.pipeline | "Start" >> beam.Impulse()
        return start | "PostProcess" >> step.with_output_types(made)


def _rows(
    _: bytes,
    query: ReleasedQuery,
    names: Sequence[str],
    fields: Mapping[str, Any],
    more: Sequence[str],
    given: Iterable[Any],
) -> Iterator[beam.Row]:
    cells = [tuple(getattr(row, name) for name in fields) for row in given]
    table = query.run(table_files.table_of(names, [*fields.values()], cells))
    for row in table.rename_columns([*fields, *more]).to_pylist():
        yield beam.Row(**row)

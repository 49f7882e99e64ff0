"""Rows: filter rows, and compute columns of them, by SQL that never looks at two rows.

A query is `SELECT expressions FROM rows WHERE condition`. *What becomes of a row depends on that row
alone*, so one person changes their own rows only, and all that a release says of people holds for
the rows that come out. It holds because of what a query may be, and of how it is run:

* DuckDB's own parser gives the tree of a query, and what is not on a list is refused. On the list
  are the columns of one row, literals, casts, CASE, IN, and scalar functions that DuckDB calls
  consistent: the same arguments give the same value. So there are no aggregates, windows, subqueries,
  joins, samples, clocks or random numbers. Functions by which one cell could ask for any memory are
  left out too.
* DuckDB has no file, no extension, no network and no setting that a query could reach.
* A row in which an expression fails (a cast, an overflow) is dropped, and no other: DuckDB's `TRY`
  evaluates each expression of a row alone where it fails in the batch, and a row stays where the
  condition is true and no column fails. So no order of conditions matters. What could tell DuckDB of
  other rows (statistics, filters in the scan) is off. A batch that fails all the same, as by text
  that is no UTF-8, is halved until the row is alone.
* A type is that of a column, or for rows that are no batches that of the row's own cells.
"""

import collections
import contextlib
import dataclasses
import datetime
import decimal
import functools
import importlib.util
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import ids, plain_values, row_fields
from beam_dp.transforms.io import table_files

_OWNER = "Rows"
_TABLE = "rows"
_FORM = "Write SELECT visitor_id, spent * 1.2 AS spent FROM rows WHERE minutes > 5."
_CONFIG = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "threads": "1",
}
_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET disabled_optimizers = 'filter_pushdown,statistics_propagation'",
    "SET lock_configuration = true",
)
_FUNCTIONS = """
    SELECT function_name FROM duckdb_functions() GROUP BY function_name
    HAVING bool_or(function_type = 'scalar' AND stability = 'CONSISTENT')
    AND NOT bool_or(function_type IN ('aggregate', 'window') OR coalesce(stability, '') = 'VOLATILE')
"""
_MACROS = {"if", "nullif", "split_part"}
# Of internals, settings, and states of aggregates; of today's date; with results of any length, or
# a work that grows with the square of a cell.
_LEFT_OUT = re.compile(
    r"__internal.*|.*aggr.*|combine|finalize|invoke|.*_sort_key|json_(de)?serialize.*|version|st_.*"
    r"|current_.*|age|repeat|[lr]pad|range|generate_series|.*_resize|.*bitstring.*|printf|format"
    r"|replace|regexp_replace|.*levenshtein.*|editdist3|equi_width_bins"
)
_CLASSES = {
    *("COLUMN_REF", "CONSTANT", "CAST", "TYPE", "CASE", "FUNCTION"),
    *("COMPARISON", "CONJUNCTION", "BETWEEN", "OPERATOR"),
}
_PLACES = ("query_location", "query_location_length", "qualified_name")
_NOTHING: tuple[Any, ...] = (None, "", [], False, {"map": []}, "STANDARD_HANDLING")
_OF_CALLS = ("filter", "distinct", "export_state", "schema", "catalog")
_INTEGERS = range(-(2**63), 2**63)


@dataclasses.dataclass(eq=False)
class Rows(beam.PTransform[beam.PCollection[Any], beam.PCollection[pa.RecordBatch]]):
    """Filter rows and compute columns of them, row by row, in SQL (extra: sql).

        rows | dp.Rows("SELECT visitor_id, dayname(at_time) AS day, spent FROM rows WHERE spent > 0")

    The SQL is that of DuckDB, one `SELECT ... FROM rows WHERE ...`. A release of the rows that come
    out protects people as one of the rows that go in: see the module. `*` is all columns. Every
    expression but a column needs a name (`AS day`). The name of a computed column means that column,
    in WHERE too, even if the rows have another one. Times are in UTC.

    Batches of columns are much faster than dicts, of which `*` gives nothing; the output is batches.
    A row in which an expression fails is dropped, even if an OR beside it is true already: write
    `TRY_CAST(spent AS DOUBLE)` for null instead. A row is dropped too where text in a column that is
    read is no UTF-8. In CSV, columns are text unless `ReadRows` reads them as numbers. Cells of dicts
    have types of their own: an expression that has no meaning for them drops their row.

    Args:
        query: the SQL.

    Raises:
        ValueError, TypeError: for a query that is none, that could look at two rows, or that does
            not fit the columns, where these are known; with one line that names the part.
    """

    query: str

    def __post_init__(self) -> None:
        super().__init__()
        self.parsed = Query.of(self.query)

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[pa.RecordBatch]:
        """Apply the transform to rows."""
        parsed = self.parsed
        known_columns.check(_OWNER, rows, parsed.needs, None)
        names = known_columns.names_of(rows)
        read = names if parsed.star else parsed.needs
        made = rows | "Query" >> beam.ParDo(_Run(parsed)).with_output_types(pa.RecordBatch)
        if read is None:
            return made
        types = known_columns.types_of(rows)
        known = {name: types[name] for name in read if name in types}
        out: dict[str, pa.DataType] = {}
        if len(known) == len(read):
            schema = _Engine(parsed).bound(pa.schema(list(known.items())))
            out = dict(zip(schema.names, schema.types, strict=True))
        return known_columns.remember(made, parsed.outputs(read), out)


@dataclasses.dataclass(frozen=True)
class Query:
    """A query that looks at one row at a time.

    Attributes:
        text: its SQL, with a condition that drops the rows in which an expression fails.
        needs: the columns that it names.
        star: whether it gives all columns.
        named: its other columns; of those that are columns as they are, which ones.
    """

    text: str
    needs: tuple[str, ...]
    star: bool
    named: Mapping[str, str | None]

    @classmethod
    def of(cls, text: object) -> "Query":
        """Return a query, or refuse it.

        Raises:
            ValueError, TypeError: names what is refused; no data is known here.
        """
        if type(text) is not str:
            raise checks.ParameterTypeError(_OWNER, "query", f"be SQL, not {text!r}", _FORM)
        engine = _connected()
        [[tree]] = engine.execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchall()
        parsed = json.loads(tree)
        problem = parsed.get("error_message", "")
        _require(not parsed["error"], f"be one SELECT that can be read: {problem}")
        _require(len(parsed["statements"]) == 1, "be one SELECT")
        [statement] = parsed["statements"]
        node = statement["node"]
        _require(node["type"] == "SELECT_NODE", "be one SELECT without UNION")
        _only(node, "type", "select_list", "from_table", "where_clause")
        table = node["from_table"]
        is_table = table["type"] == "BASE_TABLE" and table["table_name"].lower() == _TABLE
        _require(is_table, "be FROM rows, and from nothing else")
        _only(table, "type", "table_name", *_PLACES)
        known = {name for [name] in engine.execute(_FUNCTIONS).fetchall()} | _MACROS
        known = {name for name in known if not _LEFT_OUT.fullmatch(name)}
        stars = [item for item in node["select_list"] if item["class"] == "STAR"]
        for star in stars:
            _only(star, "class", "type", *_PLACES)
        items = [item for item in node["select_list"] if item["class"] != "STAR"]
        named: dict[str, str | None] = {}
        used = list(_columns(node["where_clause"], known))
        aliases: set[str] = set()
        read: set[str] = set()
        for item in items:
            found = list(_columns(item, known))
            read |= {*found} - aliases
            plain = item.get("column_names", [""])[-1] in found
            name = item["alias"] or (found[0] if plain else "")
            _require(bool(name), "name each expression, as in spent * 1.2 AS spent")
            unlike = name.lower() not in map(str.lower, named)
            _require(unlike, f"give its columns different names, and {name!r} stands twice")
            named[name] = found[0] if plain else None
            aliases |= {name} - {*found}
            used += found
        # Rows may have a column of the name too, which SQL would mean.
        read |= {name for name in used if named.get(name) or name in named.values()}
        rule = "not give an expression the name of a column that another one reads"
        _require(not aliases & read, f"{rule}: {checks.listed(sorted(aliases & read))}")
        needs = tuple(name for name in dict.fromkeys(used) if name not in aliases)
        node["where_clause"] = _guard(node["where_clause"], items)
        [[guarded]] = engine.execute(
            "SELECT json_deserialize_sql(?::JSON)", [json.dumps(parsed)]
        ).fetchall()
        return cls(guarded, needs, bool(stars), named)

    def outputs(self, read: Sequence[str]) -> list[str]:
        """Return the names of the columns that come out, if these are the ones that go in."""
        return [*read, *self.named] if self.star else [*self.named]

    def columns_of(self, outputs: Iterable[str]) -> list[str]:
        """Return which columns come out under these names as they are; others are computed."""
        found = [self.named.get(name, name if self.star else None) for name in outputs]
        return [name for name in found if name is not None]


def _require(ok: bool, rule: str) -> None:
    checks.require(ok, _OWNER, "query", rule, _FORM)


def _only(node: Mapping[str, Any], *parts: str) -> None:
    """Refuse a part of a query that has more than these parts."""
    for name, value in node.items():
        _require(name in parts or value in _NOTHING, f"not have {name.replace('_', ' ')}")


def _columns(tree: Any, known: set[str]) -> Iterator[str]:
    """Yield the columns that an expression names; refuse what could look at other rows."""
    if isinstance(tree, list):
        for each in tree:
            yield from _columns(each, known)
    if not isinstance(tree, dict):
        return
    kind = tree.get("class", "CONSTANT")
    rule = f"look at one row: it may not have a {kind.lower()}"
    _require(kind in _CLASSES and tree.get("type") != "SELECT_NODE", rule)
    if kind == "COLUMN_REF":
        names = tree["column_names"]
        yield names[len(names) > 1 and names[0].lower() == _TABLE]
        return
    if kind == "FUNCTION":
        name = tree["function_name"]
        rule = f"have functions of one row that are always the same, and {name} is none"
        plain = not any(tree.get(part) for part in _OF_CALLS) and name.lower() in known
        _require(plain and not tree["order_bys"]["orders"], rule)
    for part in tree.values():
        yield from _columns(part, known)


def _guard(condition: Any, items: Sequence[Any]) -> Any:
    """Return the condition that a row meets where no expression fails; None for no condition."""
    tests = [_operator("TRY", condition)] if condition else []
    for item in items:
        if item["class"] != "COLUMN_REF":
            fails = _operator("TRY", _operator("IS_NULL", {**item, "alias": ""}))
            tests.append(_operator("IS_NOT_NULL", fails))
    both = {"class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": "", "children": tests}
    return both if tests else None


def _operator(kind: str, *children: Any) -> dict[str, Any]:
    made = {"class": "OPERATOR", "type": f"OPERATOR_{kind}", "alias": ""}
    return {**made, "children": children}


def _duckdb() -> Any:
    found = importlib.util.find_spec("duckdb") is not None
    checks.require(found, _OWNER, "duckdb", "be installed", "Write: pip install duckdb.")
    return importlib.import_module("duckdb")  # here, for it comes with an extra


def _connected() -> Any:
    """Return a DuckDB of its own that reaches nothing."""
    connection = _duckdb().connect(":memory:", config=_CONFIG)
    for setting in _SETTINGS:
        connection.execute(setting)
    return connection


class _Stream:
    """A batch that DuckDB reads as a stream: into other objects it would push filters."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        made = pa.RecordBatchReader.from_batches(self._batch.schema, [self._batch])
        return made.__arrow_c_stream__(requested_schema)


class _Engine:
    """Runs a query on batches."""

    def __init__(self, query: Query) -> None:
        self._query, self._connection = query, _connected()
        self.bound = functools.lru_cache(self._bound)

    def rows(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield what a query makes of a batch, without the rows where it fails."""
        try:
            batch.validate(full=True)  # text that is no UTF-8 is not for DuckDB
            made = self._run(batch).to_batches()
        except (pa.ArrowException, _duckdb().Error) as error:
            if isinstance(error, (_duckdb().FatalException, _duckdb().InternalException)):
                self._connection = _connected()  # the old one refuses everything from now on
            made = None
        if made is not None:
            yield from made
        elif any(map(pa.types.is_dictionary, batch.schema.types)):  # of cells of other rows too
            plain = list(map(_without_dictionary, batch.columns))
            yield from self.rows(pa.RecordBatch.from_arrays(plain, batch.schema.names))
        elif len(batch) > 1:
            half = len(batch) // 2
            yield from self.rows(batch.slice(0, half))
            yield from self.rows(batch.slice(half))

    def chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that the query needs."""
        there = batch.schema.names
        needs = tuple(dict.fromkeys([*there, *self._query.needs]))
        names = needs if self._query.star else self._query.needs
        for name in names:
            rule = f"stand once in every batch; one of them has {checks.listed(there)}"
            checks.require(there.count(name) == 1, _OWNER, f"column {name!r}", rule)
        # Without columns a batch has no rows: SELECT 1 AS one FROM rows.
        return batch.select(list(names) or there[:1]).replace_schema_metadata()

    def _run(self, batch: pa.RecordBatch) -> pa.Table:
        self._connection.register(_TABLE, _Stream(batch))
        return self._connection.sql(self._query.text).to_arrow_table()

    def _bound(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of what comes out.

        Raises:
            ValueError: the query does not fit the columns. The message knows of no row.
        """
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        rule = f"read columns of plain cells: {checks.listed(nested)} holds several in one"
        checks.require(not nested, _OWNER, "query", rule, "Take them apart before.")
        problem, made = "", schema
        none = [pa.nulls(0, kind) for kind in schema.types]
        try:
            made = self._run(pa.RecordBatch.from_arrays(none, schema=schema)).schema
        except (pa.ArrowException, _duckdb().Error) as error:
            problem = str(error).partition("\n")[0].rstrip(".")
        mend = "Text is made a number by CAST(spent AS DOUBLE); numbers names those of CSV."
        rule = f"fit the columns {checks.listed(schema.names)}: {problem}"
        checks.require(not problem, _OWNER, "query", rule, mend)
        names = self._query.outputs(schema.names)
        rule = f"give its columns different names, and they are {checks.listed(names)}"
        checks.require(made.names == names, _OWNER, "query", rule)
        return made


def _without_dictionary(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


class _Run(beam.DoFn):
    """Runs a query on elements; rows that are no batches wait for the end of their bundle."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def setup(self) -> None:
        """Start DuckDB."""
        self._engine = _Engine(self._query)

    def start_bundle(self) -> None:
        """Begin without rows."""
        self._waiting = row_fields.FieldLists(self._query.needs or ("",))

    def process(self, element: Any) -> Iterator[pa.RecordBatch]:
        """Run the query on a batch, or keep a row."""
        if row_fields.is_columnar(element):
            batches = [element] if type(element) is pa.RecordBatch else element.to_batches()
            for batch in map(self._engine.chosen, batches):
                self._engine.bound(batch.schema)
                yield from self._engine.rows(batch)
        elif self._waiting.add(element):
            yield from self._drained()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Run the query on the rows that wait."""
        for batch in self._drained():
            yield GlobalWindows.windowed_value(batch)

    def _drained(self) -> Iterator[pa.RecordBatch]:
        for batch in _batches(self._query.needs, zip(*self._waiting.drain(), strict=True)):
            with contextlib.suppress(checks.ParameterError):  # for types of these rows alone
                self._engine.bound(batch.schema)
                yield from self._engine.rows(batch)


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
    """Return a cell as a value that has a type in Arrow; text where it is an id of another kind."""
    known = plain_values.restored(plain_values.plain(value))
    if type(known) in (int, decimal.Decimal, uuid.UUID):
        return known if type(known) is int and known in _INTEGERS else ids.canonical(known)
    return known


def _type(cell: Any) -> pa.DataType:
    if isinstance(cell, datetime.datetime):
        return pa.timestamp("us", "UTC" if cell.tzinfo else None)
    return table_files.ARROW_TYPES.get(type(cell), pa.null())

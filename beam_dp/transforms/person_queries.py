"""Rows: SQL on rows, one row at a time; behind a WITH, one person at a time.

`row_queries` has the proof for a query that looks at one row. A query with a WITH is three steps:

    WITH t AS (SELECT visitor_id, max(spent) AS most FROM rows WHERE spent > 0 GROUP BY visitor_id)
    SELECT visitor_id, dayname(...), most FROM t WHERE most > 5

1. A query of one row makes keys, and what the aggregates are taken of: JOIN, WHERE, expressions.
2. Rows with equal keys become one row of t. The first key is the person, and `check_person` lets no
   release take another column for the person.
3. A query of one row runs on t.

*A row of t depends on rows of one person alone*, so people who come or go bring or take their own
rows of t, and change no other: neighbours among rows are neighbours in t, and all that a release
says of people holds for the rows that come out. For a period that is a key the same holds of the
rows of one person in one period. It holds because

* steps 1 and 3 are queries of one row: a row that fails is dropped, and is its person's own;
* a row of t is a function of the rows of its keys *as a multiset*: counts, least and largest values
  do not depend on an order, and sums of doubles are taken in the order of their values (rows that
  are equal in all that is summed may change places, which changes no term). `group_by` of Arrow
  adds one row after the other, in one thread. Values that differ only by their sign of zero, or by
  the bits of NaN, are made equal before;
* keys are compared by value. Ids of one column have one type, so that two forms of one id, as 17
  and "17" (`columns.ids`), do not meet; ids that a release would drop are dropped before step 2;
* columns have the types of the schema, which belongs to no row.

A person meets in one shard, by a hash with the run's key; how many shards there are, and who shares
one, changes no row of t.
"""

import dataclasses
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.bounding import table as tables
from beam_dp.mechanisms.numerics import checks, hashing
from beam_dp.mechanisms.summaries import wire
from beam_dp.transforms import known_columns, row_queries
from beam_dp.transforms.columns import ids, layout, row_fields
from beam_dp.transforms.row_queries import Query
from beam_dp.transforms.stages import guards, quick_steps, shard_number

_SUBJECT = "Rows"
_FORM = (
    "Write WITH t AS (SELECT visitor_id, max(spent) AS most FROM rows GROUP BY visitor_id) "
    "SELECT visitor_id, most FROM t"
)
_ONLY, _ALL = (pc.CountOptions(mode=mode) for mode in ("only_valid", "all"))
_SUMS = ("sum", "mean")
_AGGREGATES = {  # of SQL: the one of Arrow, and its options
    "count_star": ("count", _ALL),
    **dict.fromkeys(("count", "count_if", "countif"), ("count", _ONLY)),
    "count_distinct": ("count_distinct", _ONLY),
    **{name: (name, None) for name in ("sum", "mean", "min", "max")},
    "avg": ("mean", None),
}
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_TIMES = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_time)
_KEYS = (*_TIMES, ids.supported, *_NUMBERS)
_TAKES: dict[str, tuple[tuple[Callable[[Any], bool], ...], str]] = {
    "person": ((ids.supported,), "integers, text, dates or booleans"),
    "key": (_KEYS, "numbers, text, dates, times or booleans"),
    "count": ((lambda _: True,), "any value"),
    "count_distinct": (_KEYS, "numbers, text, dates, times or booleans"),
    **dict.fromkeys(_SUMS, ((*_NUMBERS, pa.types.is_boolean), "numbers")),
    **dict.fromkeys(("min", "max"), ((*_NUMBERS, *_TIMES), "numbers, dates or times")),
}
"""By the aggregate of Arrow, or the kind of key: which types it takes, and these in words."""
_Types = dict[str, pa.DataType]
_Forms = Mapping[str, frozenset[str]]
_Known = tuple[list[str] | None, _Types, _Forms]
"""The columns of rows, the types of those whose type is known, and how cells are written."""


@dataclasses.dataclass(frozen=True)
class Feature:
    """An aggregate of the rows that have one key.

    Attributes:
        name: its column in t.
        column: the column of rows that it is taken of.
        call: the aggregate of SQL.
    """

    name: str
    column: str
    call: str

    @property
    def function(self) -> str:
        """The aggregate of Arrow."""
        return _AGGREGATES[self.call][0]


@dataclasses.dataclass(frozen=True)
class PersonQuery(Query):
    """A query with a WITH; as a `Query` it names columns of the rows that go in.

    Attributes:
        inner: makes keys, and what aggregates are taken of.
        keys: those of GROUP BY: first the person.
        features: the aggregates.
        outer: runs on t.
    """

    inner: Query = dataclasses.field(kw_only=True)
    keys: tuple[str, ...] = dataclasses.field(kw_only=True)
    features: tuple[Feature, ...] = dataclasses.field(kw_only=True)
    outer: Query = dataclasses.field(kw_only=True)

    @property
    def columns(self) -> list[str]:
        """The columns of t."""
        return [*self.keys, *(each.name for each in self.features)]

    def check_person(self, name: str) -> None:
        """Refuse a person that is not the first key, as it is."""
        rule = f"group by {name!r}, the one person of a row, first, and give it as it is"
        _require(self.outer.columns_of([name]) == [*self.keys[:1]], rule)
        self.inner.check_person(self.keys[0])
        self.outer.check_person(name)

    def types(self, given: pa.Schema) -> pa.Schema:
        """Return the types that rows have in step 2; refuse what an aggregate does not take."""
        made = pa.schema([(each.name, _plain(each.type)) for each in given])
        first, *others = self.keys
        used = [(first, first, "person"), *((name, name, "key") for name in others)]
        used += [(each.name, each.column, each.function) for each in self.features]
        for name, column, use in used:
            takes, words = _TAKES[use]
            kind = made.field(column).type
            rule = f"make {name} of {words}, not of {kind}; numbers names the numbers of CSV"
            _require(any(is_good(kind) for is_good in takes), rule)
        return made

    def grouped(self, rows: pa.Table) -> pa.Table:
        """Return the rows of t of all rows of some people."""
        cells = [rows[name] for name in self.keys]
        cells += [_taken(rows[each.column], each.function) for each in self.features]
        numbered = list(map(str, range(len(cells))))
        keys, values = numbered[: len(self.keys)], numbered[len(self.keys) :]
        made = pa.table(cells, numbered)
        pairs = list(zip(values, self.features, strict=True))
        order = [(at, "ascending") for at, each in pairs if each.function in _SUMS]
        made = made.take(pc.sort_indices(made, sort_keys=order)) if order else made
        asked = [(at, *_AGGREGATES[each.call]) for at, each in pairs]
        made = made.group_by(keys, use_threads=False).aggregate(asked)
        names = [*keys, *(f"{at}_{each.function}" for at, each in pairs)]
        return pa.table([_one_zero(made[name]) for name in names], self.columns)


def parsed(text: object) -> Query:
    """Return a query of one row, or of one person; refuse what is neither.

    Raises:
        ValueError, TypeError: names what is refused; no data is known here.
    """
    engine, tree = row_queries.tree_of(_SUBJECT, "query", text, row_queries.FORM)
    node = tree["statements"][0]["node"]
    found, node["cte_map"] = node["cte_map"]["map"], {"map": []}
    if not found:
        return Query.of(text)
    [made, *further] = found
    name, inside = made["key"].lower(), made["value"]["query_node"]
    plain = not further and inside["type"] == "SELECT_NODE" and not made["value"]["aliases"]
    _require(plain, "have one WITH, of one SELECT")
    keys, features, items = _split(engine, tree, inside)
    inside = {**inside, "select_list": items, "group_expressions": [], "group_sets": []}
    inner = Query.of(row_queries.sql_of(engine, tree, **inside))
    first = node["from_table"]
    while first["type"] == "JOIN":
        first = first["left"]
    _require(first.get("table_name", "").lower() == name, f"be FROM {made['key']}")
    node = row_queries.rewritten(node, lambda part: _of_rows(part, name))
    outer = Query.of(row_queries.sql_of(engine, tree, **node))
    _require(name not in (each.name.lower() for each in outer.public), "give each table a name")
    columns = [*keys, *(each.name for each in features)]
    for column in outer.needs:
        rule = f"name columns of {made['key']}, {checks.listed(columns)}, and {column} is none"
        near = checks.near(column, columns) or _FORM
        checks.require(column in columns, _SUBJECT, "query", rule, near)
    names = outer.outputs(columns)
    key_of = {name: of for name in names for of in outer.columns_of([name]) if of in keys}
    named = {name: inner.named[key_of[name]] if name in key_of else None for name in names}
    computed = {
        name: inner.computed.get(key_of.get(name, ""), "") for name in names if not named[name]
    }
    return PersonQuery(
        text=str(text),
        needs=inner.needs,
        star=False,
        named=named,
        computed=computed,
        mixed=frozenset(),
        public=inner.public,
        inner=inner,
        keys=keys,
        features=features,
        outer=outer,
    )


def _split(
    engine: Any, tree: Mapping[str, Any], inside: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[Feature, ...], list[Any]]:
    """Return keys and features of a WITH, and the expressions of which they are made."""
    parts = "type", "select_list", "from_table", "where_clause", "group_expressions", "group_sets"
    row_queries.only(inside, *parts)
    inside = row_queries.rewritten(inside, _without_places)
    given = [(each["alias"] or _name(each), each) for each in inside["select_list"]]
    items = dict(given)
    _require("" not in items, "name each expression, as in max(spent) AS most")
    unlike = len({name.lower() for name in items}) == len(given)
    _require(unlike, f"give its columns different names, and they are {checks.listed([*items])}")
    grouped = inside["group_expressions"]
    [*sets] = inside["group_sets"]
    _require(sets == [[*range(len(grouped))]] and sets != [[]], "GROUP BY the person, and columns")
    keys = dict.fromkeys(_key(each, items) for each in grouped)
    made = {name: items[name] for name in keys}
    features = []
    for name in [name for name in items if name not in keys]:
        is_call = items[name]["class"] == "FUNCTION"
        call = items[name]["function_name"].lower() if is_call else ""
        call = "count_distinct" if call == "count" and items[name]["distinct"] else call
        rule = f"make {name} a column of GROUP BY, or one of {', '.join(_AGGREGATES)}"
        _require(call in _AGGREGATES, rule)
        column = _argument(engine, tree, items[name], call, made) or next(iter(keys))
        features.append(Feature(name, column, call))
    selected = [{**each, "alias": name * (_name(each) != name)} for name, each in made.items()]
    return tuple(keys), tuple(features), selected


def _argument(
    engine: Any, tree: Mapping[str, Any], call: Mapping[str, Any], name: str, made: dict[str, Any]
) -> str:
    """Return the column that an aggregate is taken of, and add it to those that are made."""
    given = [each["expression"] for each in call["arguments"]]
    further = {**call, "distinct": call["distinct"] and name != "count_distinct"}
    plain = not any(further[part] for part in row_queries.OF_CALLS) and not any(
        each["name"] for each in call["arguments"]
    )
    one = len(given) == (name != "count_star") and not call["order_bys"]["orders"]
    _require(plain and one, f"call {name} plainly: {name}(CASE WHEN c THEN x END)")
    if not given:
        return ""
    [value] = given
    if name in ("count_if", "countif"):
        kind = {"class": "CASE", "type": "CASE_EXPR", "alias": ""}
        check = {"when_expr": value, "then_expr": row_queries.literal("INTEGER", "1")}
        value = {
            **kind,
            "case_checks": [check],
            "else_expr": row_queries.literal("NULL_LITERAL", ""),
        }
    value = {**value, "alias": ""}
    column = _name(value) or row_queries.value_of(engine, tree, value)
    same = made.setdefault(column, value)
    rule = f"not give a key the name of {column}, which an aggregate takes"
    _require({**same, "alias": ""} == value, rule)
    return column


def _key(tree: Mapping[str, Any], items: Mapping[str, Any]) -> str:
    """Return the column of SELECT that an expression of GROUP BY is."""
    bare = [name for name, each in items.items() if {**each, "alias": ""} == {**tree, "alias": ""}]
    found = [name for name in items if name == _name(tree)] or bare
    _require(bool(found), "have in SELECT all that it groups by")
    [name] = found[:1]
    read = {_name(part) for part in row_queries.parts_of(items[name])}
    means_one = name in bare or _name(tree) != name or name not in read
    _require(means_one, f"group by the expression itself, where {name} is a column that it reads")
    return name


def _name(tree: Mapping[str, Any]) -> str:
    """Return the name of a plain column; "" for others."""
    [*table, name] = tree.get("column_names") or [""]
    return "" if table else name


def _without_places(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in tree.items() if name not in row_queries.PLACES}


def _of_rows(tree: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a part of a query of t as one of a query of rows."""
    if tree.get("type") == "BASE_TABLE" and tree["table_name"].lower() == name:
        return {**_without_places(tree), "table_name": row_queries.TABLE}
    [*table, column] = tree.get("column_names") or [""]
    is_its = [each.lower() for each in table] == [name]
    return {**tree, "column_names": [row_queries.TABLE, column]} if is_its else tree


def _require(ok: bool, rule: str) -> None:
    checks.require(ok, _SUBJECT, "query", rule, _FORM)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries, with long text and doubles."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    kind = pa.large_string() if ids.is_text(kind) else kind
    return pa.float64() if pa.types.is_floating(kind) else kind


def _one_zero(cells: Any) -> Any:
    """Return doubles with one zero, and null for NaN; other cells as they are."""
    if not pa.types.is_floating(cells.type):
        return cells
    return pc.if_else(pc.is_nan(cells), None, pc.add(cells, 0.0))


def _taken(cells: Any, function: str) -> Any:
    """Return cells as an aggregate takes them: sums are of doubles, which never wrap."""
    return cells.cast(pa.float64(), safe=False) if function in _SUMS else cells


class _Scatter(quick_steps.QuickStep):
    """Send rows to the shards of their people."""

    def __init__(self, query: PersonQuery, types: pa.Schema | None, shards: int) -> None:
        self._query, self._types, self._shards = query, types, shards
        self._key = layout.fresh_key()

    def process(self, batch: pa.RecordBatch) -> Iterable[tuple[int, bytes]]:
        """Take what a query makes of a batch."""
        typed = batch.schema.metadata != row_fields.OF_DICTS
        if not typed and self._types is None:
            return ()  # batches were announced, and rows that are none have no types
        types, made = self._types or self._query.types(batch.schema), []
        for each in types:
            cells = _fitted(batch.column(each.name), each.type)
            fits = cells.type == each.type
            _require(fits or not typed, "find the same types in every batch")
            made.append(cells if fits else pa.nulls(len(batch), each.type))
        return self._by_shard(pa.RecordBatch.from_arrays(made, schema=types))

    def _by_shard(self, rows: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        person = rows.column(self._query.keys[0])
        if pa.types.is_floating(person.type):
            person = ids.whole(person)
        identity, known = ids.identify(person, self._key)
        constant = hashing.salt(self._key, "shard")
        hashed = hashing.fold(tables.two_words(identity), constant)
        shard = np.where(known, (hashed >> np.uint64(33)).astype(np.int64) % self._shards, -1)
        for number in np.unique(shard[known]).tolist():
            part = rows.filter(pa.array(shard == number))
            yield from ((number, packed) for packed in _packed(part))


def _fitted(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return cells with a type that all of them fit; as they are, where it is another one."""
    made = cells.cast(_plain(cells.type))
    whole = pa.types.is_integer(made.type) and pa.types.is_floating(kind)
    made = made.cast(kind, safe=False) if whole or pa.types.is_null(made.type) else made
    return _one_zero(made)


def _packed(rows: pa.RecordBatch) -> Iterator[bytes]:
    """Yield rows as bytes that every runner can send; a single row is not cut."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    content = sink.getvalue().to_pybytes()
    if len(content) <= wire.MOST_BYTES or len(rows) < 2:
        yield content
        return
    half = len(rows) // 2
    for part in (rows.slice(0, half), rows.slice(half)):
        yield from _packed(part)


class _Group(quick_steps.QuickStep):
    """Make the rows of t of the people of a shard."""

    def __init__(self, query: PersonQuery) -> None:
        self._query = query

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[pa.RecordBatch]:
        """Take all rows of one shard."""
        parts = [pa.ipc.open_stream(packed).read_all() for packed in element[1]]
        same = all(part.schema == parts[0].schema for part in parts)
        _require(same, "find the same types in every batch")
        made = self._query.grouped(pa.concat_tables(parts))
        yield from made.combine_chunks().to_batches()


@dataclasses.dataclass(eq=False)
class Rows(beam.PTransform[beam.PCollection[Any], beam.PCollection[pa.RecordBatch]]):
    """Filter rows and compute columns of them, row by row, in SQL (extra: sql).

        rows | dp.Rows("SELECT visitor_id, dayname(at_time) AS day, spent FROM rows WHERE spent > 0")

    The SQL is that of DuckDB, one `SELECT ... FROM rows WHERE ...`. A release of the rows that come
    out protects people as one of the rows that go in: see the module. `*` is all columns. Every
    expression but a column needs a name (`AS day`). The name of a computed column means that column,
    in WHERE too, even if the rows have another one. Times are in UTC.

    Batches of columns are much faster than dicts, of which `*` gives nothing; the output is batches.
    A cast that fails is null, as with TRY_CAST; so are an integer division by zero, and a logarithm
    or a root that there is none of. A row in which another expression fails (a sum above 64 bits, a date that
    there is none of) is dropped, even if an OR beside it is true already. A row is dropped too where
    text in a column that is read is no UTF-8, or above 64 KiB. In CSV, columns are text unless
    `ReadRows` reads them as numbers. Cells of dicts have types of their own: an expression that has
    no meaning for them drops their row. Integers come out with 64 bits, times without a zone.

    `JOIN 'stores.csv' AS s ON rows.store = s.store`, or LEFT JOIN, looks up columns of a public
    file (CSV, Parquet), as `s.region`. It is read when the query is; nobody in it is protected. A
    key that it has twice is refused.

    `WITH t AS (SELECT visitor_id, day, max(spent) AS most, count(*) AS n FROM rows GROUP BY visitor_id,
    day) SELECT visitor_id, n FROM t WHERE most > 5` groups rows by the person first, and has one row
    per person, or per person and further columns. It takes `count count_if sum avg min max
    count(DISTINCT x)`. Sums and means are doubles; NaN is null; null is a key like others, but the
    person's. The types of the rows must be known: of CSV, Parquet, tables, or a NamedTuple, where a
    cell of another type is null. The period of a release must be a key too.

    Args:
        query: the SQL.

    Raises:
        ValueError, TypeError: for a query that is none, with a part that is not on the list (see the
            module), or that does not fit the columns, where these are known; with one line that
            names the part.
    """

    query: str

    def __post_init__(self) -> None:
        super().__init__()
        self.parsed = parsed(self.query)

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[pa.RecordBatch]:
        """Apply the transform to rows."""
        query = self.parsed
        known_columns.check(_SUBJECT, rows, query.needs, None)
        rule = "be rows that no other query makes: a person could be computed twice"
        checks.require(query_of(rows) is None, _SUBJECT, "its input", rule, "Write one query")
        known = (
            known_columns.names_of(rows),
            known_columns.types_of(rows),
            known_columns.forms_of(rows),
        )
        last = query
        if isinstance(query, PersonQuery):
            rows, known = _grouped(rows, query, known)
            last = query.outer
        made = rows | "Query" >> _run(last)
        _made_by[made] = query
        names, types, forms = _after(last, *known)
        return made if names is None else known_columns.remember(made, names, types, forms)


def _grouped(
    rows: beam.PCollection[Any], query: PersonQuery, known: _Known
) -> tuple[beam.PCollection[pa.RecordBatch], _Known]:
    """Return the rows of t, and what is known of them."""
    guards.check_input(_SUBJECT, rows)
    columnar = rows.element_type in (pa.RecordBatch, pa.Table)
    shards = shard_number.number_of(rows)
    _, found, forms = _after(query.inner, *known)
    types = query.types(pa.schema([*found.items()])) if found else None
    rule = "be rows whose types are known, for WITH: of CSV, Parquet, a table, or a NamedTuple"
    checks.require(bool(found) or columnar, _SUBJECT, "its input", rule)
    if types is not None:
        made = query.grouped(types.empty_table()).schema
        found = dict(zip(made.names, made.types, strict=True))
    scatter = beam.ParDo(_Scatter(query, types, shards)).with_output_types(tuple[int, bytes])
    group = beam.ParDo(_Group(query)).with_output_types(pa.RecordBatch)
    grouped = (
        rows
        | "QueryRows" >> _run(query.inner)
        | "ScatterPeople" >> scatter
        | "GroupByShard" >> beam.GroupByKey()
        | "GroupRows" >> group
    )
    return grouped, (
        query.columns,
        found,
        {name: forms[name] for name in query.keys if name in forms},
    )


def grouped_here(
    query: PersonQuery, rows: Sequence[pa.RecordBatch]
) -> tuple[list[pa.RecordBatch], int]:
    """Return the rows of t, made in this process, and how many rows have no person."""
    scatter = _Scatter(query, None, 1)
    packed = [each for batch in rows for _, each in scatter.process(batch)]
    sent = sum(len(pa.ipc.open_stream(each).read_all()) for each in packed)
    made = list(_Group(query).process((0, packed))) if packed else []
    return made, sum(map(len, rows)) - sent


def _run(query: Query) -> beam.ParDo:
    return beam.ParDo(row_queries._Run(query)).with_output_types(pa.RecordBatch)


def _after(query: Query, names: list[str] | None, types: _Types, forms: _Forms) -> _Known:
    """Return what is known of the rows that a query of one row makes."""
    read = names if query.star else [*query.needs]
    if read is None:
        return None, {}, {}
    known = {name: types[name] for name in read if name in types}
    out: dict[str, pa.DataType] = {}
    if len(known) == len(read):
        schema = row_queries._Engine(query).bound(pa.schema(list(known.items())))
        out = dict(zip(schema.names, schema.types, strict=True))
    kept = {name: name for name in read} if query.star else {}
    plain = kept | {name: of for name, of in query.named.items() if of is not None}
    passed = {name: forms[of] for name, of in plain.items() if of in forms}
    return query.outputs(read), out, passed


_made_by: weakref.WeakKeyDictionary[beam.PCollection[Any], Query] = weakref.WeakKeyDictionary()


def query_of(rows: beam.PCollection[Any]) -> Query | None:
    """Return the query that made these rows; None where none is known."""
    return _made_by.get(rows)

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
* columns have the types of the schema, which belongs to no row; rows of different schemas, as of
  signed and unsigned integers, do not meet, and a schema is refused for itself, whatever rows have
  it. Of files, a column that is all nulls has the type that it has in others (`io.parquet`).

A person meets in one shard, by a hash with the run's key; how many shards there are, and who shares
one, changes no row of t.
"""

import collections
import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.bounding import table as tables
from beam_dp.mechanisms.numerics import checks, hashing
from beam_dp.mechanisms.summaries import wire
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import ids, layout, row_fields
from beam_dp.transforms.io.file_format import Cast, Sniffed
from beam_dp.transforms.known_columns import Known
from beam_dp.transforms.sql import public_tables, query_engine, query_steps, sql_trees
from beam_dp.transforms.sql.row_queries import Query, distinguished
from beam_dp.transforms.sql.sql_trees import column_name
from beam_dp.transforms.stages import guards, quick_steps, shard_number

_SUBJECT = sql_trees.SUBJECT
_FORM = (
    "Write WITH t AS (SELECT visitor_id, max(spent) AS most FROM rows GROUP BY visitor_id) "
    "SELECT visitor_id, most FROM t"
)
_AGGREGATES = {  # of SQL: the one of Arrow, and its options
    "count_star": ("count", pc.CountOptions(mode="all")),
    **dict.fromkeys(("count", "count_if"), ("count", pc.CountOptions(mode="only_valid"))),
    "count_distinct": ("count_distinct", pc.CountOptions(mode="only_valid")),
    **{name: (name, None) for name in ("sum", "min", "max")},
    **dict.fromkeys(("avg", "mean"), ("mean", None)),
}
_TAKEN = "count(*), count(x), count(DISTINCT x), count_if, sum, avg, min, max"
_SUMS = ("sum", "mean")
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_TIMES = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_time)
_TAKES: dict[str, tuple[Callable[[Any], bool], ...]] = {
    "person": (ids.supported,),
    **dict.fromkeys(("key", "count_distinct"), (ids.supported, *_NUMBERS, *_TIMES)),
    **dict.fromkeys(_SUMS, (*_NUMBERS, pa.types.is_boolean)),
    **dict.fromkeys(("min", "max"), (*_NUMBERS, *_TIMES)),
}
"""Which types make a key, and which ones an aggregate of Arrow takes; a count takes all."""


@dataclasses.dataclass(frozen=True)
class PersonQuery(Query):
    """A query with a WITH; as a `Query` it names columns of the rows that go in.

    Attributes:
        inner: makes keys, and what aggregates are taken of.
        keys: those of GROUP BY: first the person.
        features: the aggregates of SQL by their columns in t, each with the column it is taken of.
        outer: runs on t.
    """

    inner: Query
    keys: tuple[str, ...]
    features: Mapping[str, tuple[str, str]]
    outer: Query

    @property
    def casts(self) -> list[Cast]:
        """The columns of the rows that it reads as dates, times or numbers, here or behind."""
        passed = [name for name in self.keys if self.inner.named[name] == name]
        return self.inner.casts + [cast for cast in self.outer.casts if cast.column in passed]

    def check_person(self, name: str) -> None:
        """Refuse a person that is not the first key, as it is."""
        rule = f"group by {name!r}, the one person of a row, first, and give it as it is"
        _require(self.outer.columns_of([name]) == [self.keys[0]], rule)
        self.inner.check_person(self.keys[0])
        self.outer.check_person(name)

    def checked(self, types: pa.Schema) -> pa.Schema:
        """Return the types of t; refuse what makes no key, and what an aggregate does not take."""
        empty = self.of_few_types(types.empty_table())
        used = [(name, name, "key" if at else "person") for at, name in enumerate(self.keys)]
        used += [(of, name, _AGGREGATES[call][0]) for name, (call, of) in self.features.items()]
        for column, name, use in used:
            kind = empty.schema.field(column).type
            good = use == "count" or any(is_good(kind) for is_good in _TAKES[use])
            _require(good, f"not make {name}, a {use}, of {kind}; numbers names the numbers of CSV")
        return self.grouped(empty).schema

    def of_few_types(self, rows: Any) -> Any:
        """Return rows of the inner query, whose cells have one type for values of one kind."""
        names = rows.schema.names
        columns = [_of_one_type(rows[name], name in self.keys) for name in names]
        return type(rows).from_arrays(columns, names)

    def grouped(self, rows: pa.Table) -> pa.Table:
        """Return the rows of t of all rows of some people."""
        cells = [rows[name] for name in self.keys]
        keys, order = list(map(str, range(len(cells)))), []
        asked: list[tuple[str, str, Any]] = []
        for call, column in self.features.values():
            (function, options), number = _AGGREGATES[call], str(len(cells))
            asked.append((number, function, options))
            cells.append(rows[column])
            if function in _SUMS:  # of doubles, which do not wrap
                cells[-1] = cells[-1].cast(pa.float64(), safe=False)
                order.append((number, "ascending"))
        made = pa.table(cells, list(map(str, range(len(cells)))))
        made = made.take(pc.sort_indices(made, sort_keys=order)) if order else made
        made = made.group_by(keys, use_threads=False).aggregate(asked)
        names = [*keys, *(f"{number}_{function}" for number, function, _ in asked)]
        return pa.table([_one_zero(made[name]) for name in names], [*self.keys, *self.features])


def with_of(node: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the part of a SELECT that is its WITH; None where there is none."""
    found = node["cte_map"]["map"]
    if not found:
        return None
    one = found[0]["value"]["query_node"]["type"] == "SELECT_NODE" and not found[1:]
    _require(one and not found[0]["value"]["aliases"], "have one WITH, of one SELECT")
    name, parts = found[0]["key"].lower(), sql_trees.parts_of(node["from_table"])
    given = [(part.get(of) or "").lower() for part in parts for of in ("table_name", "alias")]
    alone = given.count(name) == 1 and sql_trees.TABLE not in {*given} - {name}
    _require(alone, f"be FROM {name}, which its WITH makes")
    return dict(found[0])


def parsed(text: object) -> Query:
    """Return a query of one row, or of one person; refuse what is neither.

    Raises:
        ValueError, TypeError: names what is refused; no data is known here.
    """
    node = sql_trees.tree_of(_SUBJECT, "query", text, sql_trees.FORM)
    made, node["cte_map"] = with_of(node), {"map": []}
    if made is None:
        return Query.of(text)
    keys, features, inside = _split(made["value"]["query_node"])
    inner = Query.of(sql_trees.sql_of(node, **inside))
    node = sql_trees.rewritten(node, lambda part: _as_of_rows(part, made["key"].lower()))
    outer, columns = Query.of(sql_trees.sql_of(node)), [*keys, *features]
    for name in outer.needs:
        rule = f"name columns of {made['key']}, {checks.listed(columns)}, and {name} is none"
        _require(name in columns, rule, checks.near(name, columns) or _FORM)
    key_of = {name: [*outer.columns_of([name]), ""][0] for name in outer.outputs(columns)}
    named = {name: inner.named.get(of) if of in keys else None for name, of in key_of.items()}
    computed = {
        name: inner.computed[of] if of in keys else ""
        for name, of in key_of.items()
        if named[name] is None
    }
    public = (*inner.public, *(_of_inner(each, keys, inner) for each in outer.public))
    return PersonQuery(
        text=str(text),
        needs=inner.needs,
        star=False,
        named=named,
        computed=computed,
        no_person={},
        public=public,
        inner=inner,
        keys=keys,
        features=features,
        outer=outer,
    )


def _of_inner(
    table: public_tables.PublicTable, keys: Iterable[str], inner: Query
) -> public_tables.PublicTable:
    """Return a public table that t is joined with, as one for rows: by keys that are columns."""
    sources = {key: source for key in keys if (source := inner.named.get(key))}
    on = tuple((sources[of], own) for of, own in table.on if of in sources)
    return dataclasses.replace(table, on=on)


def _split(
    node: Mapping[str, Any],
) -> tuple[tuple[str, ...], dict[str, tuple[str, str]], dict[str, Any]]:
    """Return keys and features of a WITH, and the query of one row that makes what they need."""
    parts = "type", "select_list", "from_table", "where_clause", "group_expressions", "group_sets"
    sql_trees.only(node, *parts)
    items = {each["alias"] or column_name(each): each for each in node["select_list"]}
    unlike = len({name.lower() for name in items}) == len(node["select_list"])
    _require(unlike and "" not in items, "name each expression, and each in another way")
    keys = tuple(map(column_name, node["group_expressions"]))
    plain = {*keys} <= {*items} and node["group_sets"] == [[*range(len(keys))]]
    _require(plain and bool(keys), "GROUP BY the person, and by names of its SELECT")
    longest = max(map(len, _names(node)))
    features: dict[str, tuple[str, str]] = {}
    taken: dict[str, Any] = {}
    for name, item in items.items():
        if name not in keys:
            call, value = _call(item)
            same = json.dumps(value)
            alias = f"{len(taken)}".rjust(longest + 1, "_")  # no column has that name
            found = taken.setdefault(same, {**(value or {}), "alias": alias})
            features[name] = call, found["alias"] if value else keys[0]
    made = [
        *(items[name] for name in keys),
        *(each for each in taken.values() if each.get("class")),
    ]
    return keys, features, {**node, "select_list": made, "group_expressions": [], "group_sets": []}


def _call(tree: Mapping[str, Any]) -> tuple[str, Any]:
    """Return an aggregate, and what it is taken of: None where that is the row."""
    name = tree["function_name"].lower() if tree["class"] == "FUNCTION" else ""
    kept, tree = tree.get("filter"), {**tree, "filter": None}
    if name == "count" and tree["distinct"]:
        name, tree = "count_distinct", {**tree, "distinct": False}
    rule = f"have columns of GROUP BY, and of {_TAKEN}, each alone, and nothing else in its WITH"
    _require(name in _AGGREGATES, rule)
    given = sql_trees.arguments_of(tree)
    _require(len(given) == (name != "count_star"), f"call {name} plainly")
    one = sql_trees.literal("INTEGER", "1")
    if name == "count_if":
        return name, sql_trees.where(kept, sql_trees.where(given[0], one))
    if name == "count_star" and kept is not None:
        return "count", sql_trees.where(kept, one)
    return name, sql_trees.where(kept, given[0]) if given else None


def _names(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield all names of columns in a SELECT."""
    for part in sql_trees.parts_of(node):
        yield from (part.get("alias") or "", *(part.get("column_names") or ()))


def _as_of_rows(tree: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a part of a query of t as one of a query of rows."""
    if tree.get("table_name", "").lower() == name:
        return {**tree, "table_name": sql_trees.TABLE}
    [*table, column] = tree.get("column_names") or [""]
    is_its = [each.lower() for each in table] == [name]
    return {**tree, "column_names": [sql_trees.TABLE, column]} if is_its else tree


def _require(ok: bool, rule: str, hint: str = _FORM) -> None:
    checks.require(ok, _SUBJECT, "query", rule, hint)


def _of_one_type(cells: Any, is_key: bool) -> Any:
    """Return cells without dictionaries, text as long text, fractions and nulls as doubles.

    No value decides on what is cast, and these casts succeed for all values.
    """
    kind = ids.stored(cells.type)
    cells = cells.cast(kind)
    if ids.is_text(kind):
        return cells.cast(pa.large_string())
    is_real = pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and not is_key)
    return _one_zero(cells.cast(pa.float64()) if is_real or pa.types.is_null(kind) else cells)


def _one_zero(cells: Any) -> Any:
    """Return doubles with one zero, and null for NaN; other cells as they are."""
    if not pa.types.is_floating(cells.type):
        return cells
    return pc.if_else(pc.is_nan(cells), None, pc.add(cells, 0.0))


class _Scatter(query_steps.RunQuery):
    """Runs the inner query on batches, and sends its rows to the shards of their people."""

    def __init__(self, query: PersonQuery, shards: int) -> None:
        super().__init__(query.inner)
        self._whole, self._shards, self._key = query, shards, layout.fresh_key()

    def setup(self) -> None:
        """Start DuckDB."""
        super().setup()
        outer = query_engine.Engine(self._whole.outer)
        self._check = functools.lru_cache(lambda types: outer.schema_of(self._whole.checked(types)))

    def process(self, element: Any) -> Iterator[tuple[int, bytes]]:
        """Take a batch: what its types refuse is refused whatever rows it has. Drop all others."""
        if row_fields.is_columnar(element) and element.num_columns:
            made = self._engine.schema_of(self._engine.chosen(element).schema)
            self._check(made)
            none = self._whole.of_few_types(row_fields.none_of(made))
            yield from ((0, packed) for packed in _packed(none))
            for batch in super().process(element):
                yield from self._by_shard(batch)

    def _by_shard(self, batch: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        rows = self._whole.of_few_types(batch)
        identity, known = ids.identify(rows.column(self._whole.keys[0]), self._key)
        hashed = hashing.fold(tables.two_words(identity), hashing.salt(self._key, "shard"))
        shard = (hashed >> np.uint64(33)).astype(np.int64) % self._shards
        order = np.argsort(shard, kind="stable")
        order = order[known[order]]
        rows, shard = rows.take(pa.array(order)), shard[order]
        starts = np.flatnonzero(np.diff(shard, prepend=-1))
        for start, end in itertools.pairwise([*starts.tolist(), len(shard)]):
            part = rows.slice(start, end - start)
            yield from ((int(shard[start]), packed) for packed in _packed(part))


def _packed(rows: pa.RecordBatch) -> Iterator[bytes]:
    """Yield rows as bytes that every runner can send; a single row is not cut."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    if sink.tell() <= wire.MOST_BYTES or len(rows) < 2:
        yield sink.getvalue().to_pybytes()
        return
    half = len(rows) // 2
    yield from _packed(rows.slice(0, half))
    yield from _packed(rows.slice(half))


class _Group(quick_steps.QuickStep):
    """Make the rows of t of the people of a shard."""

    def __init__(self, query: PersonQuery) -> None:
        self._query = query

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[pa.RecordBatch]:
        """Take all rows of one shard."""
        of_types = collections.defaultdict(list)
        for packed in element[1]:
            part = pa.ipc.open_stream(packed).read_all()
            of_types[part.schema].append(part)
        for parts in of_types.values():
            made = self._query.grouped(pa.concat_tables(parts)).combine_chunks()
            yield from made.to_batches() or [row_fields.none_of(made.schema)]


@dataclasses.dataclass(eq=False)
class Rows(beam.PTransform[beam.PCollection[Any], beam.PCollection[pa.RecordBatch]]):
    """Filter rows and compute columns of them, row by row, in SQL (extra: sql).

        rows | dp.Rows("SELECT visitor_id, dayname(at_time) AS day, spent FROM rows WHERE spent > 0")

    The SQL is that of DuckDB, one `SELECT ... FROM rows WHERE ...`. A release of the rows that come
    out protects people as one of the rows that go in: see the module. `*` is all columns. Every
    expression but a column needs a name (`AS day`). The name of a computed column means that column,
    in WHERE too, even if the rows have another one. Times are in UTC.

    Batches of columns are much faster than dicts; the output is batches. `*` of rows that are no
    batches needs a schema, or `columns`.
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
    person's. The rows must be batches. The period of a release must be a key too.

    Args:
        query: the SQL.
        columns: the columns of rows without a schema, so that a misspelt name is refused.

    Raises:
        ValueError, TypeError: for a query that is none, with a part that is not on the list (see the
            module), or that does not fit the columns, where these are known; with one line that
            names the part.
    """

    query: str
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        super().__init__()
        self.parsed = parsed(self.query)

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[pa.RecordBatch]:
        """Apply the transform to rows."""
        query = last = self.parsed
        known_columns.check(_SUBJECT, rows, query.needs, self.columns)
        rule = "be rows that no other query makes: a person could be computed twice"
        made_before = any(known_columns.queries_of(rows))
        checks.require(not made_before, _SUBJECT, "its input", rule, "Write one query")
        names, sniffed = known_columns.known_of(rows)
        names = self.columns if names is None else names
        rule = "name its columns in place of *: those of these rows are not known"
        hint = "Or write columns=[...], or .with_output_types(pa.RecordBatch) for batches"
        is_known = names is not None or known_columns.are_batches(rows)
        _require(is_known or not query.star, rule, hint)
        distinguished((*(names or ()), *query.needs) if query.star else ())
        known = names, sniffed
        if isinstance(query, PersonQuery):
            rows, known = _grouped(rows, query, known)
            last = query.outer
        step = query_steps.RunQuery(last, known[0] or ())
        step = beam.ParDo(step).with_output_types(pa.RecordBatch)
        made = rows | "Query" >> step
        known_columns.made_by[made] = query
        names, sniffed = _after(last, *known)
        return made if names is None else known_columns.remember(made, names, sniffed)


def _grouped(
    rows: beam.PCollection[Any], query: PersonQuery, known: Known
) -> tuple[beam.PCollection[pa.RecordBatch], Known]:
    """Return the rows of t, and what is known of them."""
    guards.check_input(_SUBJECT, rows)
    rule = "be batches, for WITH: files of CSV or Parquet, a table, or what is said to be batches"
    hint = "Write .with_output_types(pa.RecordBatch)"
    columnar = known_columns.are_batches(rows)
    checks.require(columnar, _SUBJECT, "its input", rule, hint)
    _, (types, forms) = _after(query.inner, *known)
    made = [query.checked(pa.schema([*each.items()])) for each in types]
    types = [dict(zip(each.names, each.types, strict=True)) for each in made]
    scatter = beam.ParDo(_Scatter(query, shard_number.number_of(rows)))
    grouped = (
        rows
        | "ScatterPeople" >> scatter.with_output_types(tuple[int, bytes])
        | "GroupByShard" >> beam.GroupByKey()
        | "GroupRows" >> beam.ParDo(_Group(query)).with_output_types(pa.RecordBatch)
    )
    names = [*query.keys, *query.features]
    forms = {name: forms[name] for name in query.keys if name in forms}
    return grouped, (names, Sniffed(types, forms))


def grouped_here(query: PersonQuery, read: Iterable[Any]) -> tuple[list[pa.RecordBatch], int]:
    """Return the rows of t, made in this process, and of how many rows."""
    scatter = _Scatter(query, 1)
    scatter.setup()
    packed = [each for batch in read for _, each in scatter.process(batch)]
    sent = sum(len(pa.ipc.open_stream(each).read_all()) for each in packed)
    return list(_Group(query).process((0, packed))), sent


def _after(query: Query, names: Sequence[str] | None, sniffed: Sniffed) -> Known:
    """Return what is known of the rows that a query of one row makes."""
    read = names if query.star else [*query.needs]
    if read is None:
        return None, Sniffed([])
    types, forms = sniffed
    known = [{name: each[name] for name in read if name in each} for each in types]
    out, engine = [], query_engine.Engine(query)
    of_csv = [each for each in query.public if not each.path.endswith(".parquet")]
    public = {name for each in of_csv for name in each.cells.column_names}
    whole = (pa.schema([*each.items()]) for each in known if len(each) == len(read))
    for schema in dict.fromkeys(whole):
        texts = {each.name for each in schema if each.name in forms and ids.is_text(each.type)}
        made = engine.schema_of(schema, frozenset(texts | public))
        out.append(dict(zip(made.names, made.types, strict=True)))
    kept = {name: name for name in read} if query.star else {}
    plain = kept | {name: of for name, of in query.named.items() if of is not None}
    passed = {name: forms[of] for name, of in plain.items() if of in forms}
    return query.outputs(read), Sniffed(out, passed)

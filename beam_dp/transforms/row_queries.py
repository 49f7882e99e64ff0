"""Queries that filter rows, and compute columns of them, by SQL that never looks at two rows.

A query is `SELECT expressions FROM rows WHERE condition`. *What becomes of a row depends on that row
alone*, so one person changes their own rows only, and all that a release says of people holds for
the rows that come out. It holds because of what a query may be, and of how it is run:

* DuckDB's own parser gives the tree of a query, and what is not on a list is refused. On the list
  are the columns of one row, literals, casts, CASE, COALESCE, IN, BETWEEN and the functions of
  `FUNCTIONS`. Each of these keeps nothing of one row for the next, does work that grows with the
  size of its cells and no faster, and has a result that is bounded by the cells and the literals:
  where a pattern or a length decides on that, it must be a literal.
* DuckDB tells how it would run the query on the types of the columns, and what has another type
  than `_TYPES` there is refused: so no function is used on lists, JSON, bytes or time zones.
* No optimizer changes the query, and DuckDB has no file, no extension, no network and no setting
  that a query could reach.
* A row with a cell of text that is no UTF-8, or above 64 KiB, is dropped before DuckDB sees it.
* Casts, integer divisions, logarithms and roots that have no result are null. An execution in which
  anything else fails, as a sum above 64 bits, gives nothing: what DuckDB may keep of a failure
  reaches no row. The batch is run again in halves, each as an execution of its own, until the row
  that fails is alone and dropped. Of n rows, one that fails costs at most 2 log2(n) + 2 executions.
* AND and OR look at both sides for each row. DuckDB would look at one side for the rows that the
  other one does not settle, and may choose which is first by what it saw of other rows.
* A type is that of a column, or for rows that are no batches that of the row's own cells.
* JOIN finds a partner for a row in a public table, in which no two rows have the same key: so the
  row's own cells say which one, and one row stays one row, or none.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import datetime
import decimal
import functools
import importlib.util
import itertools
import json
import pathlib
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns import ids, plain_values, row_fields
from beam_dp.transforms.io import table_files

_SUBJECT = "Rows"
TABLE = "rows"
FORM = "Write SELECT visitor_id, spent * 1.2 AS spent FROM rows WHERE minutes > 5."
_EXTERNAL = "enable_external_access"
_CONFIG = {
    _EXTERNAL: "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "threads": "1",
}
_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET error_on_division_by_zero = false",
    "PRAGMA disable_optimizer",
    "SET lock_configuration = true",
    *(
        f"CREATE MACRO {name}(x) AS CASE WHEN x {domain} 0 THEN system.main.{name}(x) END"
        for name, domain in map(str.split, ("ln >", "log >", "log2 >", "log10 >", "sqrt >="))
    ),
)
_LITERALS = {  # names of functions: which of their arguments must be literals
    """+ - * / // % ^ abs sign floor ceil exp ln log log2 log10 sqrt pow mod greatest least isnan
    isinf nullif if || concat concat_ws lower upper length strlen substr substring left right
    year quarter month week isoyear yearweek isodow dayofweek day dayofyear dayname monthname hour
    minute second epoch epoch_ms last_day
    to_years to_quarters to_months to_weeks to_days to_hours to_minutes to_seconds
    """: slice(0),
    """round trunc contains starts_with ends_with strpos position trim ltrim rtrim lpad rpad replace
    translate ~~ !~~ ~~* !~~* regexp_matches regexp_full_match regexp_extract regexp_replace
    strftime try_strptime
    """: slice(1, None),
    "date_part date_trunc date_diff": slice(0, 1),
}
FUNCTIONS = {name: part for names, part in _LITERALS.items() for name in names.split()}
_TOO_MUCH = "regexp_.*|.*split.*|.*_normalize|strip_accents|reverse|.*levenshtein|jac?c?ar.*"
_SEVERAL = "json.*|->>?|variant.*|list_.*|array_.*|map.*|struct_.*|row|unnest|flatten|.*slice"
_REFUSED = {  # why functions are not on the list, and what to write instead
    "strptime": ("it fails for other text", "Write try_strptime(), which is null then"),
    "make_(date|time.*)": ("it fails for numbers", "Write CAST(concat_ws('-', y, m, d) AS DATE)"),
    "timezone.*|to_timestamp|.*timestamptz|icu_.*|collate_.*": (
        "time zones and languages keep something of one row for the next",
        "Times are in UTC: add INTERVAL 1 HOUR",
    ),
    _TOO_MUCH: ("it could take too long for a large cell", "Write regexp_extract(), or replace()"),
    "repeat|format|printf|bar|range": ("its result can be of any length", "Write lpad()"),
    _SEVERAL: ("its cells hold several values", "Take them apart before"),
    "now|today|.*current_.*|age|random|.*uuid.*": (
        "it changes by itself",
        "Write DATE '2026-11-22'",
    ),
    ".*": ("it is not on the list of functions of one row", "docs/how_to/rows.md has that list"),
}
CLASSES = {
    *("COLUMN_REF", "CONSTANT", "CAST", "TYPE", "CASE", "FUNCTION"),
    *("COMPARISON", "CONJUNCTION", "BETWEEN", "OPERATOR"),
}
_OPERATORS = {
    *("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE"),
    "COMPARE_IN",
}
_TYPES = {
    *("BOOLEAN", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE", "TIME", "INTERVAL", "NULL"),
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    *("ANY", "INVALID"),  # of what takes every type, and of columns before they have one
}
_DECIMAL = "DECIMAL_TYPE_INFO"
_ORDERS = ("<", ">", "<=", ">=", "greatest", "least")
_DIGITS = re.compile(r"\s*[-+]?[\d.,/ ]*\d[\d.,/ ]*(e[-+]?\d+)?\s*", re.IGNORECASE)
"""Text that is a number, or a date that text does not order."""
_READ_CSV = "read_csv(?, all_varchar = true, header = true)"
_PUBLIC = {
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), _READ_CSV),
    ".parquet": "read_parquet(?)",
}
"""What reads public tables, by the end of their names."""
_JOIN = "Write JOIN 'stores.csv' AS s ON rows.store = s.store, or USING (store)."
_SEVERAL = "compute {!r}, the person, of one column: of several, one person becomes many"
_PEOPLE = "join by other columns than {!r}, the person: a table of people is not public"
_LONGEST = 1 << 16  # bytes of a cell of text
_AT_ONCE = 1 << 24  # bytes of text in one execution
_PLACES = ("query_location", "query_location_length", "qualified_name")
NOTHING: tuple[Any, ...] = (None, "", [], False, {"map": []}, "STANDARD_HANDLING")
_OF_CALLS = ("filter", "distinct", "export_state", "schema", "catalog")
NO_ROWS = {
    "type": "SELECT_NODE",
    "cte_map": {"map": []},
    "aggregate_handling": "STANDARD_HANDLING",
    "from_table": {"type": "EMPTY", "alias": "", "sample": None},
}
"""The tree of a SELECT without FROM, and without what it selects."""
_RAISED = (BaseException,)
_INTEGERS = range(-(2**63), 2**63)


@dataclasses.dataclass(frozen=True)
class PublicTable:
    """A public table in which a row may have a partner.

    It is read when the query is, as a list of public keys is, and goes to the workers with it.

    Attributes:
        name: what the query calls it.
        path: its file.
        kind: INNER: rows without a partner are dropped; LEFT: they have nulls in its columns.
        on: its key: pairs of a column of rows and one of its own, which match by their text.
        cells: what it holds; those of CSV are text.
    """

    name: str
    path: str
    kind: str
    on: tuple[tuple[str, str], ...]
    cells: pa.Table

    @classmethod
    def of(cls, tree: Mapping[str, Any]) -> "tuple[Mapping[str, Any], list[PublicTable]]":
        """Return the table of rows of a FROM, and the public tables that it joins.

        Raises:
            ValueError: for another join, and for a public table that has a key twice.
        """
        if tree["type"] != "JOIN":
            return tree, []
        first, before = cls.of(tree["left"])
        right, condition = tree["right"], tree["condition"] or {}
        path: str = right.get("table_name", "")
        readers = [reader for end, reader in _PUBLIC.items() if path.endswith(end)]
        plain = tree["join_type"] in ("INNER", "LEFT") and tree["ref_type"] == "REGULAR"
        _require(plain and bool(readers), "have JOIN, or LEFT JOIN, with a public file", _JOIN)
        only(right, "type", "table_name", "alias")
        name = names_of(right)[-1]
        taken = {each.name.lower() for each in before}.union(names_of(first))
        named = name.isidentifier() and name not in taken
        _require(named, "give each table a name after AS", _JOIN)
        equal = condition["children"] if condition.get("type") == "CONJUNCTION_AND" else [condition]
        on = [(key, key) for key in tree["using_columns"]]
        on = on or [_key(each, name, names_of(first)) for each in equal]
        made = cls(name, path, tree["join_type"], tuple(on), _public(path, readers[0]))
        made._check_key()
        return first, [*before, made]

    def _check_key(self) -> None:
        """Refuse a table that lacks a column of the key, or has two rows with the same one."""
        keys = [key for _, key in self.on if self.has([self.name, key])]
        engine = connected()
        engine.register("cells", self.cells)
        by = ", ".join(f"CAST({quoted(key)} AS VARCHAR)" for key in keys)
        asked = f"SELECT count(*) FROM cells GROUP BY {by} HAVING count(*) > 1 LIMIT 1"
        rule = f"join on a key that {self.path!r} has once, and {checks.listed(keys)} stands twice"
        _require(not engine.execute(asked).fetchall(), rule, _JOIN)

    def has(self, names: Sequence[str]) -> bool:
        """Return whether a column is one of this table, by its full name; refuse unknown ones."""
        if len(names) != 2 or names[0].lower() != self.name.lower():
            return False
        there = self.cells.column_names
        rule = f"name columns of {self.path!r}, {checks.listed(there)}, and {names[1]} is none"
        known = names[1].lower() in map(str.lower, there)
        _require(known, rule, checks.near(names[1], there))
        return True

    def adds(self, name: str) -> bool:
        """Return whether a column is one of this table alone, and not of its key."""
        return name in self.cells.column_names and name not in dict(self.on).values()

    def sql(self, runs: bool = False) -> str:
        """Return what stands in FROM for it, as it is written or as it runs."""
        source = self.name if runs else f"{quoted(self.path)} AS {self.name}"
        side = "CAST({}.{} AS VARCHAR)" if runs else "{}.{}"
        on = (f"{side} = {side}".format(TABLE, quoted(a), self.name, quoted(b)) for a, b in self.on)
        return f"{self.kind} JOIN {source} ON {' AND '.join(on)}"


def names_of(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a table of FROM may be called before its columns, in lower case."""
    path: str = table.get("table_name", "")
    name = table["alias"] or pathlib.PurePath(path).name.partition(".")[0]
    return TABLE, path.lower(), name.lower()


def _key(tree: Mapping[str, Any], name: str, own: Sequence[str]) -> tuple[str, str]:
    """Return the column of rows, and that of a public table, which a condition compares."""
    sides = [tree.get(side, {}).get("column_names") or [""] for side in ("left", "right")]
    tables = [[part.lower() for part in names[:-1]] for names in sides]
    rule = f"compare columns of rows and {name} only"
    for at in (1, 0) if tree.get("type") == "COMPARE_EQUAL" and all(map(any, sides)) else ():
        if tables[at] == [name] and tables[1 - at] in ([], *([each] for each in own)):
            return sides[1 - at][-1], sides[at][-1]
    raise checks.ParameterError(_SUBJECT, "query", rule, _JOIN)


def _public(path: str, reader: str) -> pa.Table:
    """Return what a public file holds."""
    engine, problem = duckdb().connect(config={**_CONFIG, _EXTERNAL: "true"}), ""
    try:
        made: pa.Table = engine.sql(f"FROM {reader}", params=[path]).to_arrow_table()
        return made
    except duckdb().Error as error:
        problem = str(error).partition("\n")[0].rstrip(".")
    rule = f"name public files that can be read, and {path!r} cannot: {problem}"
    raise checks.ParameterError(_SUBJECT, "query", rule)


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


@dataclasses.dataclass(frozen=True)
class Query:
    """A query that looks at one row at a time.

    Attributes:
        text: its SQL as it runs: casts that fail are null, AND and OR look at both sides.
        needs: the columns that it names.
        star: whether it gives all columns.
        named: its other columns; of those that are columns as they are, which ones.
        computed: of those that are not, the SQL; "" where it reads another of them.
        no_person: why a column of the output may not be the person; those that may are not in it.
        public: the public tables that it joins.
    """

    text: str
    needs: tuple[str, ...]
    star: bool
    named: Mapping[str, str | None]
    computed: Mapping[str, str]
    no_person: Mapping[str, str]
    public: tuple[PublicTable, ...]

    @classmethod
    def of(cls, text: object) -> "Query":
        """Return a query, or refuse it.

        Raises:
            ValueError, TypeError: names what is refused; no data is known here.
        """
        node = tree_of(_SUBJECT, "query", text, FORM)
        only(node, "type", "select_list", "from_table", "where_clause")
        table, public = PublicTable.of(node["from_table"])
        is_table = table["type"] == "BASE_TABLE" and table["table_name"].lower() == TABLE
        _require(is_table, "be FROM rows, and from nothing else")
        only(table, "type", "table_name")
        stars = [item for item in node["select_list"] if item["class"] == "STAR"]
        for star in stars:
            only(star, "class", "type")
            _require(not public, "name its columns", _JOIN)
        items = [item for item in node["select_list"] if item["class"] != "STAR"]
        named: dict[str, str | None] = {}
        computed: dict[str, str] = {}
        no_person: dict[str, str] = {}
        aliases: set[str] = set()
        keys = {of for each in public for of, _ in each.on}
        read, used = {*keys}, [*_columns(node["where_clause"], public), *sorted(keys)]
        theirs = {name.lower() for each in public for name in each.cells.column_names}
        for item in items:
            found = list(_columns(item, public))
            own = len(found) == len(list(_columns(item)))  # nothing of a public table
            read |= {*found} - aliases
            column = item.get("column_names", [""])[-1]
            plain = column in found
            name = item["alias"] or (found[0] if plain else "")
            _require(bool(name), "name each expression, as in spent * 1.2 AS spent")
            other = plain or column == name or name.lower() not in theirs
            _require(other, f"not name an expression {name!r}, as a column of a public table")
            unlike = name.lower() not in map(str.lower, named)
            _require(unlike, f"give its columns different names, and {name!r} stands twice")
            named[name] = found[0] if plain else None
            if not plain:
                alone = own and not aliases & {*found}
                computed[name] = value_of(item) if alone else ""
                if not alone or len({*found}) > 1:
                    no_person[name] = _SEVERAL
            if keys & {*found}:
                no_person[name] = _PEOPLE
            aliases |= {name} - {*found}
            used += found
        # Rows may have a column of the name too, which SQL would mean.
        read |= {name for name in used if named.get(name) or name in named.values()}
        rule = "not give an expression the name of a column that another one reads"
        _require(not aliases & read, f"{rule}: {checks.listed(sorted(aliases & read))}")
        needs = tuple(name for name in dict.fromkeys(used) if name not in aliases)
        _distinguished(needs)
        _check_patterns(node)
        parts = {name: rewritten(node[name], _strict) for name in ("select_list", "where_clause")}
        if public:
            parts = rewritten(parts, lambda tree: _of_rows(tree, needs))
            parts["from_table"] = from_of(each.sql(runs=True) for each in public)
        made = bool(stars), named, computed, no_person, tuple(public)
        return cls(sql_of(node, **parts), needs, *made)

    @property
    def times(self) -> list[tuple[str, str]]:
        """The columns that it reads as dates or times, each with the SQL that does."""
        found = []
        for part in parts_of(tree_of(_SUBJECT, "query", self.text, FORM)):
            cell, is_time = part.get("child") or {}, part.get("class") == "CAST"
            if is_time:
                is_time = part["type_expr"]["type_name"].upper().startswith(("DATE", "TIME"))
            elif part.get("function_name", "").lower() == "try_strptime":
                cell, is_time = part["arguments"][0]["expression"], True
            names = cell.get("column_names", [""])
            if is_time and names[-1] in self.needs and names[:-1] in ([], [TABLE]):
                found.append((names[-1], value_of(_strict(part))))
        return found

    def outputs(self, read: Sequence[str]) -> list[str]:
        """Return the names of the columns that come out, if these are the ones that go in."""
        return [*read, *self.named] if self.star else [*self.named]

    def columns_of(self, outputs: Iterable[str]) -> list[str]:
        """Return which columns come out under these names as they are; others are computed."""
        found = [self.named.get(name, name if self.star else None) for name in outputs]
        return [name for name in found if name is not None]

    def check_person(self, name: str) -> None:
        """Refuse a person that is computed of several columns: it would make many of one.

        Of one column, as in `lower(visitor_id)`, all rows of a person stay together. A table that
        is joined by the person's column is about people, and is refused too.
        """
        rule = self.no_person.get(name, "")
        _require(not rule, rule.format(name), _JOIN if rule == _PEOPLE else FORM)

    def source_of(self, name: str) -> str:
        """Return which column a column of the output is, or the expression that computes it."""
        source = self.computed.get(name, self.named.get(name) or name)
        rule = f"compute {name!r}, the period, in one line, and of columns that are not computed"
        _require(bool(source) and source.isprintable(), rule)
        return source


def tree_of(subject: str, name: str, text: object, hint: str) -> dict[str, Any]:
    """Return the tree that DuckDB's parser gives of one SELECT, without the places of its parts.

    Args:
        subject: the name that errors begin with.
        name: what the SELECT is called in errors.
        text: the SELECT.
        hint: what errors say to write.

    Raises:
        ValueError, TypeError: for what is no SELECT, for several, and for a UNION.
    """
    if type(text) is not str:
        raise checks.ParameterTypeError(subject, name, f"be SQL, not {text!r}", hint)
    parsed = json.loads(_parsed("SELECT json_serialize_sql(?::VARCHAR)", text), object_hook=_bare)
    problem = parsed.get("error_message", "")
    rule = f"be one SELECT that can be read: {problem}"
    checks.require(not parsed["error"], subject, name, rule, hint)
    statements = parsed["statements"]
    checks.require(len(statements) == 1, subject, name, "be one SELECT", hint)
    node: dict[str, Any] = statements[0]["node"]
    plain = node["type"] == "SELECT_NODE"
    checks.require(plain, subject, name, "be one SELECT without UNION", hint)
    return node


def _bare(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in tree.items() if name not in _PLACES}


def _require(ok: bool, rule: str, hint: str = FORM) -> None:
    checks.require(ok, _SUBJECT, "query", rule, hint)


def _distinguished(names: Iterable[str]) -> None:
    """Refuse columns whose names differ in case alone: SQL would take one for the other."""
    of_lower: dict[str, str] = {}
    for name in names:
        other = of_lower.setdefault(name.lower(), name)
        rule = f"read one of {other!r} and {name!r}: SQL does not tell them apart"
        _require(other == name, rule, "Rename one of them before")


def only(node: Mapping[str, Any], *parts: str) -> None:
    """Refuse a part of a query that has more than these parts."""
    for name, value in node.items():
        _require(name in parts or value in NOTHING, f"not have {name.replace('_', ' ')}")


def from_of(joins: Iterable[str], table: str = TABLE) -> Any:
    """Return the tree of a FROM that joins public tables to rows, or to another table."""
    asked = " ".join(["SELECT 1 FROM", quoted(table), *joins])
    return tree_of(_SUBJECT, "query", asked, _JOIN)["from_table"]


def _of_rows(tree: dict[str, Any], needs: Sequence[str]) -> dict[str, Any]:
    """Return a column of rows with the name of their table, for a public one may have it too."""
    names = tree.get("column_names", [])
    plain = len(names) == 1 and names[0] in needs
    return {**tree, "column_names": [TABLE, *names]} if plain else tree


def _columns(tree: Any, public: Sequence[PublicTable] = ()) -> Iterator[str]:
    """Yield the columns of rows that an expression names; refuse what is not on the list."""
    for part in parts_of(tree):
        kind = part.get("class", "CONSTANT")
        rule = f"look at one row: it may not have a {kind.lower()}"
        _require(kind in CLASSES and part.get("type") != "SELECT_NODE", rule)
        if kind == "COLUMN_REF":
            names = part["column_names"]
            if not any(table.has(names) for table in public):
                yield names[len(names) > 1 and names[0].lower() == TABLE]
        elif kind == "OPERATOR":
            name = part["type"].removeprefix("OPERATOR_")
            _require(part["type"] in _OPERATORS, f"not have {name}: it is not on the list")
        elif kind == "FUNCTION":
            _check_call(part)


def _check_call(tree: Mapping[str, Any]) -> None:
    name = tree["function_name"].lower()
    if name not in FUNCTIONS:
        found = next(part for pattern, part in _REFUSED.items() if re.fullmatch(pattern, name))
        raise checks.ParameterError(_SUBJECT, "query", f"not call {name}: {found[0]}", found[1])
    given = arguments_of(tree)
    called = "LIKE" if "~~" in name else name
    rule = f"give {called} a literal where a cell could make the work, or the result, too large"
    _require(all(map(is_literal, given[FUNCTIONS[name]])), rule)
    every = name == "regexp_replace" and "g" in str([each.get("literal") for each in given[3:]])
    rule = "replace one match by regexp_replace: all could take too long for a large cell"
    _require(not every, rule, "Write replace(), or translate()")


def arguments_of(tree: Mapping[str, Any]) -> list[Any]:
    """Return what a function is called with; refuse a call that is more than that."""
    plain = not any(tree.get(part) for part in _OF_CALLS) and not tree["order_bys"]["orders"]
    named = any(each["name"] for each in tree["arguments"])
    _require(plain and not named, f"call {tree['function_name'].lower()} plainly")
    return [each["expression"] for each in tree["arguments"]]


def literal(kind: str, text: str) -> dict[str, Any]:
    """Return the tree of a literal."""
    made = {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": ""}
    return {**made, "literal": {"kind": kind, "text": text}}


def where(condition: Any, tree: Mapping[str, Any], other: Any = None) -> Any:
    """Return an expression where a condition holds, and something else (null) where it does not."""
    if condition is None:
        return tree
    made = {"class": "CASE", "type": "CASE_EXPR", "alias": ""}
    checked = {"when_expr": condition, "then_expr": {**tree, "alias": ""}}
    return {**made, "case_checks": [checked], "else_expr": other or literal("NULL_LITERAL", "")}


def is_literal(tree: Any) -> bool:
    return bool(tree["class"] == "CONSTANT")


def rewritten(tree: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    """Return a tree of which each part was changed, those inside it first."""
    if isinstance(tree, list):
        return [rewritten(part, change) for part in tree]
    if not isinstance(tree, dict):
        return tree
    return change({name: rewritten(part, change) for name, part in tree.items()})


def _strict(made: dict[str, Any]) -> dict[str, Any]:
    """Return an expression of which casts of columns are null where they fail.

    AND and OR, as the side of a comparison, are computed from both their sides for every row.
    """
    kind = made.get("class")
    if kind == "CAST" and not is_literal(made["child"]):
        return {**made, "try_cast": True}
    if kind == "CONJUNCTION":
        equal = {"class": "COMPARISON", "type": "COMPARE_EQUAL", "alias": made["alias"]}
        return {**equal, "left": {**made, "alias": ""}, "right": literal("BOOLEAN", "true")}
    return made


def column_name(tree: Mapping[str, Any]) -> str:
    """Return the name of a column without its table, which an expression is; "" for others."""
    [*table, name] = tree.get("column_names") or [""]
    return "" if table else name


def sql_of(node: Mapping[str, Any], **parts: Any) -> str:
    """Return the SQL of a SELECT that has these parts instead of its own."""
    statement = {"node": {**node, **parts}, "named_param_map": []}
    tree = json.dumps({"error": False, "statements": [statement]})
    return _parsed("SELECT json_deserialize_sql(?::JSON)", tree)


def reads(column: str, cells: pa.Array, expressions: Iterable[str]) -> bool:
    """Return whether some expressions of a column have a value for one of these cells."""
    engine = connected()
    engine.register(TABLE, pa.table({column: cells}))
    counts = " + ".join(f"count({each})" for each in expressions)
    try:
        [[found]] = engine.execute(f"SELECT {counts} FROM {TABLE}").fetchall()
    except duckdb().Error:  # it is refused with the types of all columns
        return True
    return bool(found)


def _check_patterns(node: Mapping[str, Any]) -> None:
    """Refuse regular expressions that are none, and what they should be replaced by."""
    for call in parts_of(node):
        if call.get("function_name", "").lower().startswith("regexp"):
            empty = {"name": "", "expression": literal("STRING", "")}
            given = [empty, *call["arguments"][1:]]
            try:
                _parser().cursor().execute(f"SELECT {value_of({**call, 'arguments': given})}")
            except duckdb().Error as error:
                _require(False, f"have patterns that can be read: {error}".partition("\n")[0])


def value_of(item: Mapping[str, Any]) -> str:
    """Return the SQL of one expression."""
    return sql_of(NO_ROWS, select_list=[{**item, "alias": ""}]).removeprefix("SELECT ")


def duckdb() -> Any:
    """Return the library; refuse where it is not installed."""
    found = importlib.util.find_spec("duckdb") is not None
    checks.require(found, _SUBJECT, "duckdb", "be installed", "Write: pip install duckdb.")
    return importlib.import_module("duckdb")  # here, for it comes with an extra


def connected() -> Any:
    """Return a DuckDB of its own that reaches nothing."""
    connection = duckdb().connect(":memory:", config=_CONFIG)
    for setting in _SETTINGS:
        connection.execute(setting)
    return connection


_parser = functools.cache(connected)
"""Returns the DuckDB that parses, and sees no row."""


def _parsed(asked: str, given: str) -> str:
    """Return what a function of the parser makes of a text."""
    [[made]] = _parser().cursor().execute(asked, [given]).fetchall()
    return str(made)


@functools.cache
def functions_of(*kinds: str) -> frozenset[str]:
    """Return the names of all functions of some kinds that DuckDB has."""
    asked = "SELECT function_name FROM duckdb_functions() WHERE function_type IN ?"
    return frozenset(name for [name] in _parser().cursor().execute(asked, [[*kinds]]).fetchall())


class _Engine:
    """Runs a query on batches."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._connection, self._planner = self._opened(), self._opened()
        self.bound = functools.lru_cache(self._bound)

    def _opened(self) -> Any:
        """Return a DuckDB that has the public tables, and reaches nothing else."""
        engine = connected()
        for each in self._query.public:
            engine.register("read", each.cells)
            engine.execute(f"CREATE TABLE {each.name} AS FROM read")
            engine.unregister("read")
        return engine

    def rows(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield what a query makes of a batch, without the rows where it fails.

        Results of literals, as paddings, are some times as large as cells, so that few bytes are
        taken at a time.
        """
        if len(batch) > 1 and sum(map(_bytes_of, batch.columns)) > _AT_ONCE:
            yield from self._halves(batch)
            return
        try:
            plain = _plain(batch)
            plain.validate(full=True)  # text that is no UTF-8 is not for DuckDB
            made = self._run(_short(plain)).to_batches()
        except (pa.ArrowException, duckdb().Error) as error:
            if isinstance(error, (duckdb().FatalException, duckdb().InternalException)):
                self._connection = self._opened()  # the old one refuses everything from now on
            made = None
        if made is not None:
            yield from made
        elif any(map(pa.types.is_dictionary, batch.schema.types)):  # of cells of other rows too
            yield from self.rows(_decoded(batch))
        elif len(batch) > 1:
            yield from self._halves(batch)

    def _halves(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
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
            checks.require(there.count(name) == 1, _SUBJECT, f"column {name!r}", rule)
        _distinguished(names)
        # Without columns a batch has no rows: SELECT 1 AS one FROM rows.
        return batch.select(list(names) or there[:1]).replace_schema_metadata()

    def _run(self, batch: pa.RecordBatch) -> pa.Table:
        """Return what a query makes of a batch, in one execution.

        Signals reach the main thread between two steps of Python, so it waits for another one.
        """
        self._connection.register(TABLE, batch)
        made: concurrent.futures.Future[pa.Table] = concurrent.futures.Future()
        threading.Thread(target=self._execute, args=(made,), daemon=True).start()
        return made.result()

    def _execute(self, made: concurrent.futures.Future[pa.Table]) -> None:
        try:
            made.set_result(self._connection.sql(self._query.text).to_arrow_table())
        except _RAISED as error:
            made.set_exception(error)

    def _bound(self, schema: pa.Schema, untyped: frozenset[str] = frozenset()) -> pa.Schema:
        """Return the schema of what comes out.

        Args:
            schema: that of what goes in.
            untyped: the columns that are text because all cells of their file are.

        Raises:
            ValueError: the query does not fit the columns. The message knows of no row.
        """
        problem, made = "", schema
        none = [pa.nulls(0, kind) for kind in schema.types]
        try:
            empty = _plain(pa.RecordBatch.from_arrays(none, schema=schema))
            self._check_plan(empty, untyped)
            made = self._run(empty).schema
        except (pa.ArrowException, duckdb().Error) as error:
            problem = str(error)
        hint = "Text is made a number by CAST(spent AS DOUBLE); numbers names those of CSV."
        text = problem.partition("\n")[0].rstrip(".")
        _require(not problem, f"fit the columns {checks.listed(schema.names)}: {text}", hint)
        names = self._query.outputs(schema.names)
        rule = f"give its columns different names, and they are {checks.listed(names)}"
        _require(made.names == names, rule, "")
        return made

    def _check_plan(self, empty: pa.RecordBatch, untyped: frozenset[str]) -> None:
        """Refuse what DuckDB would do otherwise than on values of plain types."""
        engine, text = self._planner, self._query.text.replace("'", "''")
        engine.register("0", empty)  # a public table may have any other name
        engine.execute(f'CREATE OR REPLACE TABLE {TABLE} AS SELECT * FROM "0"')
        [[plan]] = engine.execute(f"SELECT json_serialize_plan('{text}')").fetchall()
        bound = json.loads(plan)
        if bound["error"]:
            raise duckdb().BinderException(bound["error_message"])
        for part in parts_of(bound):
            if "type_info" in part:
                info = part["type_info"] or {}
                plain = part["id"] in _TYPES and info.get("type", _DECIMAL) == _DECIMAL
                rule = f"have plain values only, and {info.get('alias') or part['id']} is none"
                hint = "Plain are booleans, numbers, text, dates, times without a zone, intervals"
                _require(plain, rule, hint)
            elif part.get("type") == "OPERATOR_CAST" and not part["function_data"]["try_cast"]:
                _check_implicit(engine, part)
            elif untyped and part.get("qname", {}).get("path", [""])[-1] in _ORDERS:
                _check_order(part, untyped)


def parts_of(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield all mappings of a tree."""
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree or ():
        if isinstance(part, (dict, list)):
            yield from parts_of(part)


def _check_implicit(engine: Any, cast: Mapping[str, Any]) -> None:
    """Refuse text that DuckDB would cast by itself, and literals that it cannot cast."""
    [child], [given], made = cast["children"], cast["arguments"], cast["return_type"]
    if given["id"] != "VARCHAR" or made["id"] in ("VARCHAR", "NULL"):
        return
    kind, info = made["id"], made["type_info"]
    if child["expression_class"] == "BOUND_CONSTANT":
        digits = f"({info['width']}, {info['scale']})" if info else ""
        engine.execute(f"SELECT CAST(?::VARCHAR AS {kind}{digits})", [child["value"]["value"]])
        return
    rule = f"cast text to {kind}, as that of {child['alias'] or 'an expression'}"
    hint = f"Write CAST({child['alias'] or 'text'} AS {kind}); numbers names the numbers of CSV"
    raise checks.ParameterError(_SUBJECT, "query", rule, hint)


def _check_order(call: Mapping[str, Any], untyped: frozenset[str]) -> None:
    """Refuse an order of texts that may be numbers: 10 is before 9 there."""
    types = [each.get("return_type") or each["value"]["type"] for each in call["children"]]
    sides = [list(parts_of(each)) for each in call["children"]]
    read = [[part["alias"] for part in side if part.get("type") == "BOUND_REF"] for side in sides]
    columns = list(dict.fromkeys(itertools.chain(*read)))
    if {kind["id"] for kind in types} != {"VARCHAR"} or untyped.isdisjoint(columns):
        return
    said = " and ".join(columns)
    rule = f"say as what it compares {said}: cells of CSV are text, where 10 is before 9"
    hint = f"Write {' and '.join(f'CAST({name} AS DOUBLE)' for name in columns)}, or AS DATE"
    _require(sum(map(bool, read)) < 2, rule, hint)
    for text in (part.get("value") for part in itertools.chain(*sides)):
        is_number = isinstance(text, str) and _DIGITS.fullmatch(text) is not None
        hint = f"Write numbers without quotes, as {said} > {text}, and dates like '2026-11-24'"
        _require(not is_number, f"not order {said} by {text!r}: of text 10 is before 9", hint)


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without dictionaries, which hold cells of other rows too."""
    plain = [each.dictionary_decode() if _is_coded(each) else each for each in batch.columns]
    return pa.RecordBatch.from_arrays(plain, batch.schema.names)


def _is_coded(column: pa.Array) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def _short(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a batch that have no longer cell of text."""
    cells = [each.dictionary if _is_coded(each) else each for each in batch.columns]
    if max(map(_longest, cells)) <= _LONGEST:
        return batch
    plain = _decoded(batch)
    for name in plain.schema.names:
        if _is_text(plain.column(name)):
            fits = pc.less_equal(pc.binary_length(plain.column(name)), _LONGEST)
            plain = plain.filter(pc.fill_null(fits, True))
    return plain


def _bytes_of(cells: pa.Array) -> int:
    """Return how many bytes of text a column has, where each cell stands for itself."""
    words = cells.dictionary if _is_coded(cells) else cells
    if not _is_text(words):
        return 0
    lengths = pc.binary_length(words)
    return pc.sum(lengths.take(cells.indices) if _is_coded(cells) else lengths).as_py() or 0


def _is_text(cells: pa.Array) -> bool:
    return bool(pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type))


def _longest(cells: pa.Array) -> int:
    return (_is_text(cells) and pc.max(pc.binary_length(cells)).as_py()) or 0


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with integers of 64 bits, so that few sums are above them, and times in UTC."""
    columns = [each.cast(_plain_type(each.type)) for each in batch.columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        values = _plain_type(kind.value_type)
        return kind if values == kind.value_type else values
    if pa.types.is_integer(kind):
        return kind if kind == pa.uint64() else pa.int64()
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


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
    """Return a cell as a value that has a type in Arrow; text where it is an id of another kind."""
    known = plain_values.restored(plain_values.plain(value))
    if type(known) in (int, decimal.Decimal, uuid.UUID):
        return known if type(known) is int and known in _INTEGERS else ids.canonical(known)
    return known


def _type(cell: Any) -> pa.DataType:
    if isinstance(cell, datetime.datetime):
        return pa.timestamp("us", "UTC" if cell.tzinfo else None)
    return table_files.ARROW_TYPES.get(type(cell), pa.null())

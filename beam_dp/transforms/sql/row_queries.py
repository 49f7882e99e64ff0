"""Queries that filter rows, and compute columns of them, by SQL that never looks at two rows.

A query is `SELECT expressions FROM rows WHERE condition`. *What becomes of a row depends on that
row alone*, so one person changes their own rows only, and all that a release says of people holds
for the rows that come out. It holds because of what a query may be, and of how it is run:

* DuckDB's own parser gives the tree of a query, and what is not on a list is refused. On the list
  are the columns of one row, literals, casts, CASE, COALESCE, IN, BETWEEN and the functions of
  `FUNCTIONS`. Each of these keeps nothing of one row for the next, does work that grows with the
  size of its cells and no faster, and has a result that is bounded by the cells and the literals:
  where a pattern or a length decides on that, it must be a literal.
* DuckDB tells how it would run the query on the types of the columns, and what has another type
  than those of `query_engine` is refused: so no function is used on lists, JSON, bytes or zones.
* No optimizer changes the query, and DuckDB has no file, no extension, no network and no setting
  that a query could reach (`databases`).
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

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.io.file_format import Cast
from beam_dp.transforms.sql import databases
from beam_dp.transforms.sql.public_tables import JOIN_FORM, PublicTable, from_of
from beam_dp.transforms.sql.sql_trees import (
    FORM,
    SUBJECT,
    TABLE,
    arguments_of,
    cast_of,
    is_literal,
    literal,
    only,
    parts_of,
    require,
    rewritten,
    sql_of,
    tree_of,
    value_of,
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
_SEVERAL_VALUES = (
    "json.*|->>?|variant.*|list_.*|array_.*|map.*|struct_.*|row|unnest|flatten|.*slice"
)
_TODAY = "Write DATE '2026-11-22'"
_REFUSED = {  # why functions are not on the list, and what to write instead
    "strptime": ("it fails for other text", "Write try_strptime(), which is null then"),
    "make_(date|time.*)": ("it fails for numbers", "Write CAST(concat_ws('-', y, m, d) AS DATE)"),
    "timezone.*|to_timestamp|.*timestamptz|icu_.*|collate_.*": (
        "time zones and languages keep something of one row for the next",
        "Times are in UTC: add INTERVAL 1 HOUR",
    ),
    _TOO_MUCH: ("it could take too long for a large cell", "Write regexp_extract(), or replace()"),
    "repeat|format|printf|bar|range": ("its result can be of any length", "Write lpad()"),
    _SEVERAL_VALUES: ("its cells hold several values", "Take them apart before"),
    "now|today|.*current_.*|age|random|.*uuid.*": (
        "it changes by itself",
        _TODAY,
    ),
    "(date)?time.*_trunc": ("DuckDB names it otherwise", "Write date_trunc('hour', t)"),
    "format_.*|date_format|to_char": ("DuckDB names it otherwise", "Write strftime(t, '%Y-%m')"),
    "count.*|sum|avg|mean|min|max|median": (
        "a query looks at one row",
        "Metrics count rows and add them up. WITH groups those of a person: docs/how_to/rows.md",
    ),
    ".*": (
        "it is not on the list of functions of one row",
        'docs/how_to/rows.md has that list. If it is a column, quote it: "Amount (EUR)"',
    ),
}
CLASSES = {
    *("COLUMN_REF", "CONSTANT", "CAST", "TYPE", "CASE", "FUNCTION"),
    *("COMPARISON", "CONJUNCTION", "BETWEEN", "OPERATOR"),
}
_OPERATORS = {
    *("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE"),
    "COMPARE_IN",
}
_CASTS = re.compile("DATE|TIME|U?(TINY|SMALL|BIG|HUGE)?INT(?!ERVAL)|DOUBLE|FLOAT|REAL|DEC|NUMERIC")
"""Types of what is read in text."""
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:.*)?")
_NULLS = ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL")
_SEVERAL_COLUMNS = "compute {!r}, the person, of one column: of several, one person becomes many"
_PEOPLE = "join by other columns than {!r}, the person: a table of people is not public"


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
        node = tree_of(SUBJECT, "query", text, FORM)
        only(node, "type", "select_list", "from_table", "where_clause")
        table, public = PublicTable.of_from(node["from_table"])
        is_table = table["type"] == "BASE_TABLE" and table["table_name"].lower() == TABLE
        require(is_table, "be FROM rows, and from nothing else")
        only(table, "type", "table_name")
        stars = [item for item in node["select_list"] if item["class"] == "STAR"]
        for star in stars:
            only(star, "class", "type")
            require(not public, "name its columns", JOIN_FORM)
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
            require(bool(name), "name each expression, as in spent * 1.2 AS spent")
            free = plain or column == name or name.lower() not in theirs
            require(free, f"not name an expression {name!r}, as a column of a public table")
            unlike = name.lower() not in map(str.lower, named)
            require(unlike, f"give its columns different names, and {name!r} stands twice")
            named[name] = found[0] if plain else None
            if not plain:
                alone = own and not aliases & {*found}
                computed[name] = value_of(item) if alone else ""
                if not alone or len({*found}) > 1:
                    no_person[name] = _SEVERAL_COLUMNS
            if keys & {*found}:
                no_person[name] = _PEOPLE
            aliases |= {name} - {*found}
            used += found
        # Rows may have a column of the name too, which SQL would mean.
        read |= {name for name in used if named.get(name) or name in named.values()}
        rule = "not give an expression the name of a column that another one reads"
        require(not aliases & read, f"{rule}: {checks.listed(sorted(aliases & read))}")
        needs = tuple(name for name in dict.fromkeys(used) if name not in aliases)
        distinguished(needs)
        _check_patterns(node)
        parts = {name: rewritten(node[name], strict) for name in ("select_list", "where_clause")}
        if public:
            parts = rewritten(parts, lambda tree: _of_rows(tree, needs))
            parts["from_table"] = from_of(each.sql(runs=True) for each in public)
        made = bool(stars), named, computed, no_person, tuple(public)
        return cls(sql_of(node, **parts), needs, *made)

    @property
    def casts(self) -> list[Cast]:
        """The columns that it reads as dates, times or numbers, each way of it.

        Text that is compared with dates in quotes is taken for dates too. What only asks whether a
        cell is a number does not count.
        """
        node = tree_of(SUBJECT, "query", self.text, FORM)
        asked = [part for part in parts_of(node) if part.get("type") in _NULLS]
        skipped = [id(part) for each in asked for part in parts_of(each["children"])]
        found = []
        for part in parts_of(node):
            for made in _made_of_text(part):
                columns = {tuple(each.get("column_names", ())) for each in parts_of(made)} - {()}
                [*table, name] = columns.pop() if len(columns) == 1 else [""]
                kind = made["type_expr"]["type_name"].upper() if "type_expr" in made else "TIME"
                is_time = kind.startswith(("DATE", "TIME"))
                is_read = _CASTS.match(kind) and (is_time or id(part) not in skipped)
                if is_read and name in self.needs and [*map(str.lower, table)] in ([], [TABLE]):
                    cell = made["child"] if "child" in made else arguments_of(made)[0]
                    is_plain = "column_names" in cell
                    found.append(Cast(name, value_of(strict(made)), is_time, is_plain))
        return found

    def outputs(self, read: Sequence[str]) -> list[str]:
        """Return the names of the columns that come out, if these are the ones that go in.

        Raises:
            ValueError: for two columns of one name.
        """
        made = [*read, *self.named] if self.star else [*self.named]
        twice = {name for name in made if made.count(name) > 1}
        rule = f"give its columns different names, and {checks.listed(sorted(twice))} stands twice"
        require(not twice, rule, "Name its columns in place of *, or the expression otherwise")
        return made

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
        require(not rule, rule.format(name), JOIN_FORM if rule == _PEOPLE else FORM)

    def source_of(self, name: str) -> str:
        """Return which column a column of the output is, or the expression that computes it."""
        source = self.computed.get(name, self.named.get(name) or name)
        rule = f"compute {name!r}, the period, in one line, of columns as they are read"
        require(bool(source) and source.isprintable(), rule, "A WITH must GROUP BY the period too")
        return source


def _made_of_text(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the casts that an expression is, or that it stands for; it may be of a number too."""
    if part.get("class") == "CAST" or part.get("function_name", "").lower() == "try_strptime":
        return [part]
    if part.get("class") not in ("COMPARISON", "BETWEEN") and part.get("type") != "COMPARE_IN":
        return []
    sides = [*part.get("children", ()), *filter(_is_tree, part.values())]
    literals = [side for side in sides if is_literal(side)]
    dates = [
        _is_date(side) for side in literals if (side["literal"] or {}).get("kind") != "NULL_LITERAL"
    ]
    return [cast_of(side, "TIMESTAMP") for side in sides if dates and all(dates)]


def _is_tree(part: Any) -> bool:
    return isinstance(part, dict) and "class" in part


def _is_date(tree: Mapping[str, Any]) -> bool:
    """Return whether an expression is a date in quotes."""
    literal = tree.get("literal") or {}
    return literal.get("kind") == "STRING" and _DATE.fullmatch(literal["text"]) is not None


def distinguished(names: Iterable[str]) -> None:
    """Refuse columns whose names differ in case alone: SQL would take one for the other."""
    of_lower: dict[str, str] = {}
    for name in names:
        other = of_lower.setdefault(name.lower(), name)
        rule = f"read one of {other!r} and {name!r}: SQL does not tell them apart"
        require(other == name, rule, "Rename one of them before")


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
        require(kind in CLASSES and part.get("type") != "SELECT_NODE", rule)
        if kind == "COLUMN_REF":
            names = part["column_names"]
            rule = f"not read {names[-1]}: it changes by itself"
            today = len(names) == 1 and re.fullmatch(
                "current_(date|time|timestamp)", names[-1].lower()
            )
            require(not today, rule, _TODAY)
            if not any(table.has(names) for table in public):
                yield names[len(names) > 1 and names[0].lower() == TABLE]
        elif kind == "OPERATOR":
            name = part["type"].removeprefix("OPERATOR_")
            require(part["type"] in _OPERATORS, f"not have {name}: it is not on the list")
        elif kind == "FUNCTION":
            _check_call(part)


def _check_call(tree: Mapping[str, Any]) -> None:
    name = tree["function_name"].lower()
    if name not in FUNCTIONS:
        found = next(part for pattern, part in _REFUSED.items() if re.fullmatch(pattern, name))
        shown = name.replace("count_star", "count(*)")
        raise checks.ParameterError(SUBJECT, "query", f"not call {shown}: {found[0]}", found[1])
    given = arguments_of(tree)
    called = "LIKE" if "~~" in name else name
    rule = f"give {called} a literal where a cell could make the work, or the result, too large"
    hint = f"Write {name}('day', t)" if name.startswith("date") else FORM
    require(all(map(is_literal, given[FUNCTIONS[name]])), rule, hint)
    every = name == "regexp_replace" and "g" in str([each.get("literal") for each in given[3:]])
    rule = "replace one match by regexp_replace: all could take too long for a large cell"
    require(not every, rule, "Write replace(), or translate()")


def strict(made: dict[str, Any]) -> dict[str, Any]:
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


def _check_patterns(node: Mapping[str, Any]) -> None:
    """Refuse patterns, replacements, formats and parts of times that DuckDB cannot read."""
    text, time = literal("STRING", ""), cast_of(literal("STRING", "2026-11-22"), "TIMESTAMP")
    for call in parts_of(node):
        name = call.get("function_name", "").lower()
        if name.startswith(("regexp", "try_strptime", "strftime", "date_")):
            cell = {"name": "", "expression": time if name.startswith(("strf", "date")) else text}
            given = [cell] * len(call["arguments"])
            given[FUNCTIONS[name]] = call["arguments"][FUNCTIONS[name]]
            try:
                databases.parser().cursor().execute(
                    f"SELECT {value_of({**call, 'arguments': given})}"
                )
            except databases.duckdb().Error as error:
                rule = f"have patterns that can be read: {error}".partition("\n")[0]
                require(
                    False, rule, "Write a pattern of RE2, a format like '%Y', a part like 'month'"
                )

"""One SELECT is a whole release: the mapping that it stands for.

It is a function of the statement's text, and of the columns of public files that it joins.

Each part of a statement goes to one of three places, and none of them is new:

* JOIN, WHERE, GROUP BY and what aggregates are taken of look at one row, and WITH at the rows of one
  person. They become the `query` of the mapping: `row_queries` and `person_queries` have the lists.
* Aggregates become metrics, ROLLUP, CUBE and GROUPING SETS become `also_by`. Only they cost.
* HAVING, expressions of aggregates, ORDER BY and LIMIT become `post_process`: DuckDB runs them on
  the released table, so they cost nothing (Dwork, Roth, 2014, Proposition 2.1).

What the mapping cannot say is refused, with one line that names the part and what to write.

*Cells of text.* A column that is compared with a number, or computed with, becomes one of `numbers`:
in CSV it is read as a number. So does one that a sum, or another metric of numbers, may take as it
is, as in CASE. Where its text is needed too (of a key, of values that are counted),
the expression casts it. A column that is compared with a date or a time, or given to a function of
times, is cast to TIMESTAMP.
"""

import dataclasses
import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.io import formats
from beam_dp.transforms.sql import databases, person_queries, public_tables, row_queries, sql_trees
from beam_dp.transforms.sql.sql_trees import column_name

_SUBJECT, _NAME = "Select", "statement"
_FORM = "Write SELECT store, sum(spent) AS x FROM 'visits.csv' WHERE minutes > 5 GROUP BY store."
_NAMED = {"quantile_cont": "quantile", "var_pop": "variance", "stddev_pop": "standard_deviation"}
_METRICS = {n: n for n in ("sum", "mean", "min", "max", "median")} | {"avg": "mean"} | _NAMED
"""Aggregates of numbers, and the metrics that they are."""
_COUNTS = ("count_star", "count", "count_if", "countif")
_INSTEAD = {
    "var.*": "Write var_pop(x)",
    "stddev.*|sem": "Write stddev_pop(x)",
    ".*quantile.*|percentile.*": "Write quantile_cont(x, 0.9)",
    "approx_count.*": "Write count(DISTINCT x)",
    "bool_.*": "Write count_if(c), or avg(c) for the share",
    ".*": f"Write one of count, count_if, {', '.join(_METRICS)}",
}
"""What to write instead of aggregates that no metric is."""
_REFUSED = {
    "qualify": ("not have QUALIFY", "Write HAVING, or ORDER BY and LIMIT"),
    "sample": ("not have a sample", "Leave it out: intervals say how sure numbers are"),
    "SUBQUERY": ("have no SELECT in FROM", "Write one SELECT: WHERE filters, aggregates compute"),
    "TABLE_FUNCTION": ("call no function in FROM", "Write FROM 'visits.csv'"),
    "EMPTY": ("have FROM", "Write FROM 'visits.csv'"),
    "schema_name": ("name its file in quotes", "Write FROM 'visits.csv'"),
}
_PARTS = {
    *("type", "select_list", "from_table", "where_clause", "group_expressions", "group_sets"),
    *("having", "modifiers", "aggregate_handling", "BASE_TABLE", "table_name", "alias"),
}
_LAST = {"ORDER_MODIFIER": "ORDER BY", "LIMIT_MODIFIER": "LIMIT"}
_TESTS = "!?~~[*]?|contains|starts_with|ends_with|regexp_matches|regexp_full_match|is(nan|inf)"
_ARITHMETIC = "[-+*/%^]|//|abs|sign|floor|ceil|round|trunc|exp|ln|log(2|10)?|sqrt"
_PARTS_OF_TIMES = (
    "(iso)?year|yearweek|quarter|month|week|isodow|day(of(week|year)|name)?|monthname|hour|minute|"
    "second|epoch|last_day|date_(part|trunc|diff)|strftime"
)
_NUMBERS = "U?(TINY|SMALL|BIG|HUGE)?INT|DOUBLE|FLOAT|REAL|DEC|NUMERIC"
_TIMES = "to_.*s|date_trunc|last_day|try_strptime"
_DAYS = "d|days?|weeks?|w|mons?|months?|quarters?|yrs?|y|years?|decades?|decs?|century|centuries"

Tree = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Statement:
    """What a SELECT asks for.

    Attributes:
        mapping: the parts of the mapping that it says: `metrics`, and of `input`, `partition`,
            `also_by`, `query`, `numbers` and `post_process` those that it needs.
        became: for each part of the statement what it became.
    """

    mapping: Mapping[str, Any]
    became: tuple[str, ...]

    @classmethod
    @functools.lru_cache(16)
    def of(cls, text: str, people: tuple[str, ...], period: str = "") -> "Statement":
        """Return what a statement asks for.

        Args:
            text: the SELECT.
            people: the column of the person, or those of several owners.
            period: that of the period, which a statement may compute; "" for none.

        Raises:
            ValueError, TypeError: names the part that cannot be said, and says what to write.
        """
        clause = re.search(r"\bSELECT\s+WITH\s+(\w+)", str(text), re.IGNORECASE)
        rule = f"have no WITH {clause and clause[1]}: a release is always private"
        _require(clause is None, rule, "Leave the clause out, with its OPTIONS")
        try:
            node = sql_trees.tree_of(_SUBJECT, _NAME, text, _FORM)
            return _Reader(node, people, period).statement()
        except RecursionError:
            rule = "have fewer levels of parentheses"
        raise checks.ParameterError(_SUBJECT, _NAME, rule, "Take its parentheses apart.")


class _Reader:
    """Reads one statement."""

    def __init__(self, node: Tree, people: tuple[str, ...], period: str) -> None:
        self._with, node = person_queries.with_of(node), {**node, "cte_map": None}
        table, self._public = public_tables.PublicTable.of_from(node["from_table"])
        kinds = [table["type"], *(each["type"] for each in node["modifiers"])]
        parts = [(name, True) for name in kinds] + [*node.items(), *table.items()]
        for name in [name for name, value in parts if value not in sql_trees.NOTHING]:
            refused = _REFUSED.get(name, (f"have no {name.replace('_', ' ')}", _FORM))
            _require(name in _PARTS or name in _LAST, *refused)
        self._input: str = table["table_name"]
        self._tables = public_tables.names_of(table)
        self._node: Tree = sql_trees.rewritten(node, self._unqualified)
        self._items: list[Tree] = self._node["select_list"]
        units = [*people, *filter(None, [period])]
        calls = list(filter(_aggregate, sql_trees.parts_of(self._items)))
        self._read = {*_columns([calls, self._node["where_clause"]]), *units}
        made = {item["alias"] for item in self._items if _aggregate(item)}
        self._read |= {*_columns(self._items)} - made
        self._people, self._period = people, period
        self._outputs = {name: _reference(name) for name in units}  # the columns of the query
        self._text = {*units}  # columns whose cells are needed as they are written
        self._added: set[str] = set()  # columns of the query whose cells are numbers
        self._numbers: dict[str, None] = {}
        self._keys: dict[str, str] = {}  # by their expressions
        self._metrics: dict[str, tuple[str, Any]] = {}  # names and mappings, by what they ask for
        self._became: list[str] = []
        self._inner = self
        if self._with is not None:
            self._inner = _Reader(self._with["value"]["query_node"], people, period)
            self._text |= {*self._inner._keys_of_rows()}

    def _keys_of_rows(self) -> list[str]:
        """Return the columns of a WITH that are no aggregates."""
        return [each["alias"] or _last(each) for each in self._items if not _aggregate(each)]

    def _grouped(self) -> Tree:
        """Return the SELECT of a WITH, which takes columns of text as what they are used as."""
        node, calls = self._node, list(filter(_aggregate, self._items))
        compared = [each for each in calls if each["distinct"]] + node["group_expressions"]
        self._text |= {*_columns(compared)}
        parts = sql_trees.rewritten([self._items, node["where_clause"]], self._typed)
        added = [each for each in parts[0] if _aggregate(each) in _METRICS and not each["distinct"]]
        values = (given["expression"] for each in added for given in each["arguments"])
        for column in (column for value in values for column in _values(value)):
            self._take(column, "DOUBLE")
        joined = public_tables.from_of(each.sql() for each in self._public)
        items = [
            {**each, "alias": each["alias"] or _last(each) * (not column_name(each))}
            for each in parts[0]
        ]
        made = {"select_list": items, "where_clause": parts[1], "from_table": joined}
        by = [
            _reference(_last(each)) if _last(each) else each for each in node["group_expressions"]
        ]
        return {**node, **made, "group_expressions": by, "cte_map": {"map": []}}

    def statement(self) -> Statement:
        """Return what the statement asks for."""
        inner = self._inner
        is_file = any(inner._input.endswith(end) for end in formats.READ)
        where = self._node["where_clause"]
        for each in dict.fromkeys([inner, self]):
            said = "a PUBLIC table: nobody in it is protected"
            self._became += [f"{table.sql()}: {said}" for table in each._public]
            self._say("WHERE", each._node["where_clause"], "which rows count, each by itself")
            if each is not self:
                keys = ", ".join(inner._keys_of_rows())
                alone = f"one row per {keys}, each computed from that person's rows alone"
                self._became.append(f"WITH {self._input}: {alone}")
        by, *also = self._tables_by()
        for item in filter(_aggregate, self._items):
            self._metric(item, item["alias"])
        after = self._post_process()
        _require(bool(self._metrics), "ask for an aggregate", "Write count(*), or sum(spent)")
        as_they_are = all(column_name(tree) == name for name, tree in self._outputs.items())
        parts = {"input": inner._input if is_file else "", "partition": by, "also_by": also}
        parts["metrics"] = [mapping for _, mapping in self._metrics.values()]
        as_they_are = as_they_are and where is None and not self._public and not self._with
        parts["query"] = "" if as_they_are else self._query(where)
        parts |= {"numbers": [*inner._numbers], "post_process": after}
        if inner._numbers:
            names = ", ".join(inner._numbers)
            self._became.append(f"{names}: read as numbers where cells are text")
        return Statement({name: part for name, part in parts.items() if part}, (*self._became,))

    def _say(self, part: str, tree: Tree | None, became: str) -> None:
        if tree is not None:
            self._became.append(f"{part} {self._sql(tree)}: {became}".lstrip())

    def _sql(self, tree: Tree) -> str:
        return sql_trees.value_of(tree).replace("count_star()", "count(*)")

    def _unqualified(self, tree: Tree) -> Tree:
        """Return a part of the tree; a column without its table."""
        if tree.get("class") == "COLUMN_REF":
            names = tree["column_names"]
            if len(names) == 1:  # of two public tables it is refused below
                names = [*(each.name for each in self._public if each.adds(*names)), *names]
            names = names[len(names) > 1 and names[0].lower() in self._tables :]
            rule = f"name columns of its rows, and {'.'.join(names)} is none"
            is_public = any(each.has(names) for each in self._public)
            part = f"{'.'.join(names)} AS {names[-1]}"
            hint = f"Write spent, or rows.spent. For objects write a file with {part} first"
            _require(len(names) == 1 or is_public, rule, hint)
            return {**tree, "column_names": names}
        return tree

    def _tables_by(self) -> list[Any]:
        """Return the columns of the finest table, and an entry of `also_by` for each other one."""
        node = self._node
        given = node["group_expressions"]
        if node["aggregate_handling"] == "FORCE_AGGREGATES":  # GROUP BY ALL
            given = []
            calls = list(filter(_aggregate, sql_trees.parts_of(self._items)))
            of_rows = {*map(str.lower, _columns(calls))}
            computed: set[str] = set()
            for item in self._items:
                is_aggregated = any(map(_aggregate, sql_trees.parts_of(item)))
                if is_aggregated or computed & {*map(str.lower, _columns(item))}:
                    computed |= {item["alias"].lower()} - of_rows - {""}  # a column comes first
                else:
                    given.append(item)
        names = list(map(self._key, given))
        sets = node["group_sets"] or [range(len(names))]
        tables = [list(dict.fromkeys(names[at] for at in sorted(each))) for each in sets]
        tables.sort(key=len, reverse=True)
        for each in tables if names else ():
            self._became.append(f"GROUP BY {', '.join(each) or '()'}: a table")
        return [tables[0], *(each or "total" for each in tables[1:])]

    def _key(self, tree: Tree) -> str:
        """Return the name of a column of GROUP BY: that of SELECT, where it stands there too."""
        tree = self._item(tree)
        alias = next((item["alias"] for item in self._items if _same(item) == _same(tree)), "")
        name: str = tree["alias"] or alias or (tree.get("column_names") or [""])[-1]
        hint = f"Write SELECT {self._sql(tree)} AS day, ... GROUP BY day"
        _require(bool(name), "name each expression of GROUP BY", hint)
        is_public = "column_names" in tree and not column_name(tree)
        read = self._read if is_public else {*_columns(tree)}
        rule = f"give {self._sql(tree)} another name than {name}, which it reads"
        _require(column_name(tree) == name or name not in read, rule, hint)
        self._keys[_same(tree)] = name
        self._column(name, _of_day(tree))
        self._text |= {name, column_name(tree)}
        return name

    def _item(self, tree: Tree) -> Tree:
        """Return what a number, or the name of a column of SELECT, means in GROUP BY or ORDER BY."""
        names = {item["alias"]: item for item in self._items if item["alias"]}
        literal = tree.get("literal") or {}
        if literal.get("kind") == "INTEGER":
            at = int(literal["text"])
            rule = (
                f"name its {len(self._items)} columns by numbers from 1 on in GROUP BY and ORDER BY"
            )
            _require(0 < at <= len(self._items), rule, f"Write a name instead of {at}")
            return self._items[at - 1]
        return names.get(column_name(tree), tree)

    def _metric(self, call: Tree, alias: str = "") -> str:
        """Return the name of the metric that an aggregate is, which is released too."""
        word, tree, options = self._asked(call)
        plain = column_name(tree or {})
        if word == "sum" and _aggregate(call) == "count" and call["filter"] is None:
            counted = _last(call["arguments"][0]["expression"])
            alias = alias or f"count_{counted}" * bool(counted)
        asked = json.dumps([word, tree, options])
        if asked in self._metrics:
            return self._metrics[asked][0]
        rule = f"name {self._sql(call)}, wherever it stands"
        hint = f"Write SELECT {self._sql(call)} AS a, and a in expressions, HAVING and ORDER BY"
        _require(bool(alias or plain) or tree is None, rule, hint)
        column = None
        if tree is not None:
            alike = self._text if word in ("distinct_count", "ratio") else self._added
            outputs = {made: other for made, other in self._outputs.items() if made in alike}
            known = (made for made, other in outputs.items() if _same(other) == _same(tree))
            named = self._sql(tree) if alias in self._read else alias
            column = plain or next(known, named)
            self._column(column, tree)
            alike.add(column)
        name = alias or "_".join(filter(None, [word, column]))
        self._metrics[asked] = name, {word: column, **options, "name": name}
        self._say("", call, f"{name}, the metric {word}{f' of {column}' if column else ''}")
        return name

    def _asked(self, call: Tree) -> tuple[str, Tree | None, dict[str, Any]]:
        """Return the metric of an aggregate, what it is taken of, and its options."""
        name, kept = _aggregate(call), call["filter"]
        hint = next(hint for names, hint in _INSTEAD.items() if re.fullmatch(names, name))
        known = name in _METRICS or name in _COUNTS
        _require(known, f"not call {name}: no metric is that", hint)
        given = [each["expression"] for each in call["arguments"]]
        orders = call["order_bys"]["orders"]
        options: dict[str, Any] = {}
        if name == "quantile_cont":
            upwards = [each["expression"] for each in orders if each["type"] != "DESCENDING"]
            *given, share = [*upwards, *given]
            orders = orders[len(upwards) :]
            rule = "give quantile_cont a share above 0 and below 1"
            known = _kind(share) == "DOUBLE" and sql_trees.is_literal(share)
            p = float(share["literal"]["text"]) if known else 0.0
            _require(0 < p < 1, rule, "Write quantile_cont(x, 0.9)")
            options = {"p": p}
        plain = not orders and not call["distinct"] or name == "count"
        one = len(given) == (name != "count_star")
        _require(
            plain and one,
            f"call {name} without DISTINCT and ORDER BY, of one column or expression",
            f"Write {name}(x)".replace("_star(x)", "(*)"),
        )
        tree = given[0] if given else sql_trees.literal("INTEGER", "1")
        text = (tree.get("literal") or {}).get("kind") == "STRING" and name != "count"
        rule = f"take {name} of a column, and {self._sql(tree)} is text"
        _require(not text, rule, f'Write {name}("Amount (EUR)"): columns stand in double quotes')
        is_person = (column_name(tree),) == self._people  # of several owners any one may be null
        if call["distinct"] and is_person:
            _require(kept is None, "count people without FILTER", "Put its condition into WHERE")
            return "people_count", None, {}
        if call["distinct"]:
            return "distinct_count", sql_trees.where(kept, tree), {}
        always = sql_trees.is_literal(tree) or is_person
        if name in ("count", "count_star") and always and kept is None:
            return "count", None, {}
        if name == "count":
            exists = {"class": "OPERATOR", "type": "OPERATOR_IS_NOT_NULL", "alias": ""}
            tree = {**exists, "children": [tree]}
        if name in _COUNTS or (name == "sum" and _is_condition(tree)):
            tree = tree if name == "count_star" else sql_trees.where(tree, _number(1), _number(0))
            return "sum", sql_trees.where(kept, tree, _number(0)), {"unit": 1}
        if name in ("avg", "mean"):
            if _is_condition(tree):
                return "ratio", sql_trees.where(kept, tree), {}
            options = {"own_count": True}  # of SQL, beside a sum and a count too
        return _METRICS[name], sql_trees.where(kept, tree), options

    def _post_process(self) -> str:
        """Return the SQL of what is left for the released table; "" for nothing."""
        further: list[Tree] = []
        released = {*self._keys.values(), *(name for name, _ in self._metrics.values())}
        for item in self._items:
            if self._period and item["alias"] == self._period not in released:
                self._column(self._period, item)
                self._say("", item, f"{self._period}, the period, which is not released")
                continue
            made, name = self._on_released(item), item["alias"] or column_name(item)
            name = name or column_name(made)
            self._check_released(item, made)
            _require(bool(name), "name each expression", f"Write {self._sql(item)} AS name")
            if column_name(made) != name or name not in released:
                further.append({**made, "alias": name})
                self._say("", item, f"{name}, computed of what is released")
        having, last = self._node["having"], self._node["modifiers"]
        self._say("HAVING", having, "which released rows are kept")
        self._became += [f"{_LAST[each['type']]}: of released rows" for each in last]
        if not further and having is None and not last:
            return ""
        star = sql_trees.tree_of(_SUBJECT, _NAME, "SELECT * FROM released", "")
        where, last = self._on_released(having), self._on_released(last)
        parts = {"select_list": [*star["select_list"], *further]}
        parts |= {"where_clause": where, "modifiers": last}
        parts = sql_trees.rewritten(parts, self._of_keys)
        return sql_trees.sql_of(star, **parts)

    def _check_released(self, item: Tree, made: Tree) -> None:
        """Refuse an expression over aggregates that takes more than these and keys."""
        known = {*self._keys.values(), *(name for name, _ in self._metrics.values())}
        known |= {each["alias"] for each in self._items if each is not item}
        parts = list(sql_trees.parts_of(made))
        for call in parts:
            name = call["function_name"].lower() if call.get("class") == "FUNCTION" else "+"
            hint = next(hint for names, hint in _INSTEAD.items() if re.fullmatch(names, name))
            _require(name in row_queries.FUNCTIONS, f"not call {name}: no metric is that", hint)
        for name in filter(None, map(_last, parts)):
            rule, hint = f"group by {name}", f"Write GROUP BY {name}"
            if any(part.get("class") == "WINDOW" for part in parts):
                rule = f"take windows of what is released alone, and {name} is not"
                hint = "Write sum(count(*)) OVER ()"
            released = re.sub("_(low|high|rank_error)$", "", name)
            _require(
                {name.lower(), released.lower()} & {*map(str.lower, known)} != set(), rule, hint
            )
        is_text = (made.get("literal") or {}).get("kind") == "STRING"
        _require(not is_text, f"compute numbers, and {self._sql(item)} is text", "Leave it out")

    def _on_released(self, tree: Any) -> Any:
        """Return an expression over aggregates as one over the columns that are released."""
        if isinstance(tree, list):
            return list(map(self._on_released, tree))
        if not isinstance(tree, dict):
            return tree
        kind = tree.get("class")
        hint = "Name columns, or aggregates: count(*), sum(spent)"
        _require(kind not in ("SUBQUERY", "STAR"), f"have no {kind} there", hint)
        if "null_order" in tree:
            tree = {**tree, "expression": self._item(tree["expression"])}
        if kind is not None and _same(tree) in self._keys:
            return _reference(self._keys[_same(tree)])
        if _aggregate(tree):
            return _reference(self._metric(tree))
        return {name: self._on_released(part) for name, part in tree.items()}

    def _column(self, name: str, tree: Tree) -> None:
        """Take note of a column that the query must make."""
        known = tree if name == self._period else self._outputs.get(name, tree)
        rule, hint = f"mean one thing by {name}", "Give the expression another name after AS"
        _require(_same(known) == _same(tree), rule, hint)
        self._outputs[name] = tree

    def _query(self, where: Tree | None) -> str:
        """Return the SQL that makes the rows."""
        items = []
        for name, tree in self._outputs.items():
            made = sql_trees.rewritten(tree, self._typed)
            added = name in self._added and not column_name(tree)
            for column in _values(made) if added else ():
                self._take(column, "DOUBLE")
            items.append({**made, "alias": name * (column_name(tree) != name)})
        parts = {"select_list": items, "where_clause": sql_trees.rewritten(where, self._typed)}
        joins = [each.sql() for each in self._public]
        parts["from_table"] = public_tables.from_of(joins)
        if self._with is not None:
            made = {**self._with["value"], "query_node": self._inner._grouped()}
            parts["cte_map"] = {"map": [{**self._with, "value": made}]}
            parts["from_table"] = public_tables.from_of(joins, self._with["key"])
        return sql_trees.sql_of(sql_trees.NO_ROWS, **parts)

    def _typed(self, tree: Tree) -> Tree:
        """Return an expression that takes columns of text as what they are compared with."""
        for column, kind in _taken(tree):
            self._take(column, kind)
        return tree

    def _take(self, column: Tree, kind: str) -> None:
        """Make a column of text a number, or a time."""
        if kind == "DOUBLE" and column_name(column) not in {"", *self._text}:
            self._numbers[column_name(column)] = None
        else:  # the tree is a copy
            column |= sql_trees.cast_of(dict(column), kind)

    def _of_keys(self, tree: Tree) -> Tree:
        """Return an expression of released columns that takes keys as what they are compared with."""
        for column, kind in _taken(tree):
            if column_name(column) in self._keys.values():
                column |= sql_trees.cast_of(dict(column), kind)
        return tree


def _of_day(tree: Tree) -> Tree:
    """Return a time that is cut to a day, or to more, as the date that it is: keys are no times."""
    parts = tree["arguments"][:1] if _called(tree, "date_trunc") else []
    cuts = [str((each["expression"].get("literal") or {}).get("text")) for each in parts]
    is_day = any(re.fullmatch(_DAYS, cut, re.IGNORECASE) for cut in cuts)
    return {**sql_trees.cast_of(tree, "DATE"), "alias": tree["alias"]} if is_day else tree


def _require(ok: bool, rule: str, hint: str) -> None:
    checks.require(ok, _SUBJECT, _NAME, rule, hint)


def _aggregate(tree: Tree) -> str:
    """Return the name of the aggregate that an expression is; "" for none."""
    name: str = tree["function_name"].lower() if tree.get("class") == "FUNCTION" else ""
    return name if name in databases.functions_of("aggregate") else ""


def _called(tree: Tree, names: str) -> bool:
    """Return whether an expression is a call of one of some functions."""
    is_call = tree.get("class") == "FUNCTION"
    return is_call and re.fullmatch(names, tree["function_name"].lower()) is not None


def _same(tree: Tree) -> str:
    """Return an expression as text, without its alias: alike for equal ones."""
    return json.dumps({**tree, "alias": ""}, sort_keys=True)


def _columns(tree: Any) -> Iterator[str]:
    """Yield the column of rows that each part of a statement is; "" for all other parts."""
    return map(column_name, sql_trees.parts_of(tree))


def _last(tree: Tree) -> str:
    """Return the name of a column of rows, or of a public table; "" for others."""
    return str((tree.get("column_names") or [""])[-1])


def _reference(name: str) -> Tree:
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": [name]}


def _number(value: int) -> Tree:
    return sql_trees.literal("INTEGER", str(value))


def _is_condition(tree: Tree) -> bool:
    """Return whether an expression is true or false, as far as its form says it."""
    if tree["class"] == "CAST":
        return str(tree["type_expr"]["type_name"]).upper().startswith("BOOL")
    if tree["class"] == "OPERATOR":
        return bool(tree["type"] != "OPERATOR_COALESCE")
    return tree["class"] in ("COMPARISON", "CONJUNCTION", "BETWEEN") or _called(tree, _TESTS)


def _taken(tree: Tree) -> Iterator[tuple[Tree, str]]:
    """Yield the columns that an expression takes as numbers or times, and as which of the two."""
    operands = list(_operands(tree))
    kind = "DOUBLE" * _called(tree, _ARITHMETIC) or "TIMESTAMP" * _called(tree, _PARTS_OF_TIMES)
    kind = max([kind, *map(_kind, operands)])  # a time before a number
    for operand in operands if kind else ():
        yield from ((column, kind) for column in _values(operand))


def _values(tree: Tree) -> Iterator[Tree]:
    """Yield the columns of which one may be the value of an expression."""
    parts: list[Tree] = []
    if tree["class"] == "CASE":
        parts = [*(each["then_expr"] for each in tree["case_checks"]), tree["else_expr"]]
    elif tree["type"] == "OPERATOR_COALESCE":
        parts = tree["children"]
    elif _called(tree, "if|greatest|least|nullif"):
        parts = [each["expression"] for each in tree["arguments"]][_called(tree, "if") :]
    for part in parts:
        yield from _values(part)
    if "column_names" in tree:
        yield tree


def _operands(tree: Tree) -> Iterator[Tree]:
    """Yield the expressions that a comparison, or a call, takes as values of one kind."""
    if tree.get("class") in ("COMPARISON", "BETWEEN"):
        yield from (part for part in tree.values() if isinstance(part, dict))
    elif tree.get("type") == "COMPARE_IN":
        yield from tree["children"]
    elif _called(tree, f"{_ARITHMETIC}|{_PARTS_OF_TIMES}"):
        yield from (each["expression"] for each in tree["arguments"])


def _kind(tree: Tree) -> str:
    """Return what an expression is, as far as its form says it: a number, a time, or unknown."""
    if sql_trees.is_literal(tree):
        return "DOUBLE" * (tree["literal"]["kind"] in ("INTEGER", "NUMERIC"))
    named = str(tree["type_expr"]["type_name"]).upper() if tree.get("class") == "CAST" else ""
    if named.startswith(("DATE", "TIMESTAMP", "INTERVAL")) or _called(tree, _TIMES):
        return "TIMESTAMP"
    if not _called(tree, _ARITHMETIC):
        return "DOUBLE" * (re.match(_NUMBERS, named) is not None)
    return "TIMESTAMP" if "TIMESTAMP" in map(_kind, _operands(tree)) else "DOUBLE"

"""The tree of one SELECT, as DuckDB's parser gives it: read, checked, changed, and written as SQL."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.sql import databases

SUBJECT = "Rows"
TABLE = "rows"
FORM = "Write SELECT visitor_id, spent * 1.2 AS spent FROM rows WHERE minutes > 5."
_QUOTED = 'A column that is named like a word of SQL is quoted: "at".'
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


def require(ok: bool, rule: str, hint: str = FORM) -> None:
    """Refuse a query unless it is as it must be."""
    checks.require(ok, SUBJECT, "query", rule, hint)


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
    parsed = json.loads(
        databases.parsed_text("SELECT json_serialize_sql(?::VARCHAR)", text), object_hook=_bare
    )
    before = text.encode()[: int(parsed.get("position") or 0)].decode(errors="ignore").split()
    rule = f"be one SELECT that can be read: {parsed.get('error_message', '')}"
    rule += f", behind {' '.join(before[-3:])}" * bool(before)
    is_cast = re.search(r"\bsafe_cast\s*\(", text, re.IGNORECASE) is not None
    form = "Write TRY_CAST(x AS BIGINT)" if is_cast else f"{hint} {_QUOTED}"
    checks.require(not parsed["error"], subject, name, rule, form)
    statements = parsed["statements"]
    checks.require(len(statements) == 1, subject, name, "be one SELECT", hint)
    node: dict[str, Any] = statements[0]["node"]
    plain = node["type"] == "SELECT_NODE"
    checks.require(plain, subject, name, "be one SELECT without UNION", hint)
    return node


def _bare(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in tree.items() if name not in _PLACES}


def sql_of(node: Mapping[str, Any], **parts: Any) -> str:
    """Return the SQL of a SELECT that has these parts instead of its own."""
    statement = {"node": {**node, **parts}, "named_param_map": []}
    tree = json.dumps({"error": False, "statements": [statement]})
    return databases.parsed_text("SELECT json_deserialize_sql(?::JSON)", tree)


def value_of(item: Mapping[str, Any]) -> str:
    """Return the SQL of one expression."""
    return sql_of(NO_ROWS, select_list=[{**item, "alias": ""}]).removeprefix("SELECT ")


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def column_name(tree: Mapping[str, Any]) -> str:
    """Return the name of a column without its table, which an expression is; "" for others."""
    [*table, name] = tree.get("column_names") or [""]
    return "" if table else name


def parts_of(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield all mappings of a tree."""
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree or ():
        if isinstance(part, (dict, list)):
            yield from parts_of(part)


def rewritten(tree: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    """Return a tree of which each part was changed, those inside it first."""
    if isinstance(tree, list):
        return [rewritten(part, change) for part in tree]
    if not isinstance(tree, dict):
        return tree
    return change({name: rewritten(part, change) for name, part in tree.items()})


def only(node: Mapping[str, Any], *parts: str) -> None:
    """Refuse a part of a query that has more than these parts."""
    for name, value in node.items():
        require(name in parts or value in NOTHING, f"not have {name.replace('_', ' ')}")


def arguments_of(tree: Mapping[str, Any]) -> list[Any]:
    """Return what a function is called with; refuse a call that is more than that."""
    plain = not any(tree.get(part) for part in _OF_CALLS) and not tree["order_bys"]["orders"]
    named = any(each["name"] for each in tree["arguments"])
    require(plain and not named, f"call {tree['function_name'].lower()} plainly")
    return [each["expression"] for each in tree["arguments"]]


def literal(kind: str, text: str) -> dict[str, Any]:
    """Return the tree of a literal."""
    made = {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": ""}
    return {**made, "literal": {"kind": kind, "text": text}}


def cast_of(tree: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return an expression as a value of a type, null where it is none."""
    made = {"class": "CAST", "type": "OPERATOR_CAST", "alias": "", "child": {**tree, "alias": ""}}
    named = {"class": "TYPE", "type": "TYPE", "alias": "", "type_name": kind, "children": []}
    return {**made, "type_expr": named, "try_cast": True}


def is_literal(tree: Any) -> bool:
    """Return whether an expression is a literal."""
    return bool(tree["class"] == "CONSTANT")


def where(condition: Any, tree: Mapping[str, Any], other: Any = None) -> Any:
    """Return an expression where a condition holds, and something else (null) where it does not."""
    if condition is None:
        return tree
    made = {"class": "CASE", "type": "CASE_EXPR", "alias": ""}
    checked = {"when_expr": condition, "then_expr": {**tree, "alias": ""}}
    return {**made, "case_checks": [checked], "else_expr": other or literal("NULL_LITERAL", "")}

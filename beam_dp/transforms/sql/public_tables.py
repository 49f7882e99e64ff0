"""Public tables that a query joins to rows: no two rows of one have the same key."""

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.sql import databases
from beam_dp.transforms.sql.sql_trees import SUBJECT, TABLE, only, quoted, require, tree_of

_READ_CSV = "read_csv(?, all_varchar = true, header = true)"
_PUBLIC = {
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), _READ_CSV),
    ".parquet": "read_parquet(?)",
}
"""What reads public tables, by the end of their names."""
JOIN_FORM = "Write JOIN 'stores.csv' AS s ON rows.store = s.store, or USING (store)."


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
    def of_from(cls, tree: Mapping[str, Any]) -> "tuple[Mapping[str, Any], list[PublicTable]]":
        """Return the table of rows of a FROM, and the public tables that it joins.

        Raises:
            ValueError: for another join, and for a public table that has a key twice.
        """
        if tree["type"] != "JOIN":
            return tree, []
        first, before = cls.of_from(tree["left"])
        right, condition = tree["right"], tree["condition"] or {}
        path: str = right.get("table_name", "")
        readers = [reader for end, reader in _PUBLIC.items() if path.endswith(end)]
        plain = tree["join_type"] in ("INNER", "LEFT") and tree["ref_type"] == "REGULAR"
        require(plain and bool(readers), "have JOIN, or LEFT JOIN, with a public file", JOIN_FORM)
        only(right, "type", "table_name", "alias")
        name = names_of(right)[-1]
        taken = {each.name.lower() for each in before}.union(names_of(first))
        named = name.isidentifier() and name not in taken
        require(named, "give each table a name after AS", JOIN_FORM)
        equal = condition["children"] if condition.get("type") == "CONJUNCTION_AND" else [condition]
        on = [(key, key) for key in tree["using_columns"]]
        on = on or [_key(each, name, names_of(first)) for each in equal]
        made = cls(name, path, tree["join_type"], tuple(on), _public(path, readers[0]))
        made._check_key()
        return first, [*before, made]

    def _check_key(self) -> None:
        """Refuse a table that lacks a column of the key, or has two rows with the same one."""
        keys = [key for _, key in self.on if self.has([self.name, key])]
        engine = databases.connected()
        engine.register("cells", self.cells)
        by = ", ".join(f"CAST({quoted(key)} AS VARCHAR)" for key in keys)
        asked = f"SELECT count(*) FROM cells GROUP BY {by} HAVING count(*) > 1 LIMIT 1"
        rule = f"join on a key that {self.path!r} has once, and {checks.listed(keys)} stands twice"
        require(not engine.execute(asked).fetchall(), rule, JOIN_FORM)

    def has(self, names: Sequence[str]) -> bool:
        """Return whether a column is one of this table, by its full name; refuse unknown ones."""
        if len(names) != 2 or names[0].lower() != self.name.lower():
            return False
        there = self.cells.column_names
        rule = f"name columns of {self.path!r}, {checks.listed(there)}, and {names[1]} is none"
        known = names[1].lower() in map(str.lower, there)
        require(known, rule, checks.near(names[1], there))
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
    raise checks.ParameterError(SUBJECT, "query", rule, JOIN_FORM)


def _public(path: str, reader: str) -> pa.Table:
    """Return what a public file holds."""
    engine, problem = databases.of_files(), ""
    try:
        made: pa.Table = engine.sql(f"FROM {reader}", params=[path]).to_arrow_table()
        return made
    except databases.duckdb().Error as error:
        problem = str(error).partition("\n")[0].rstrip(".")
    rule = f"name public files that can be read, and {path!r} cannot: {problem}"
    raise checks.ParameterError(SUBJECT, "query", rule)


def from_of(joins: Iterable[str], table: str = TABLE) -> Any:
    """Return the tree of a FROM that joins public tables to rows, or to another table."""
    asked = " ".join(["SELECT 1 FROM", quoted(table), *joins])
    return tree_of(SUBJECT, "query", asked, JOIN_FORM)["from_table"]

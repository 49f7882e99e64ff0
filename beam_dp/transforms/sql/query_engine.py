"""Run a query on batches: what becomes of a row depends on that row alone.

`row_queries` has the proof.
"""

import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns import row_fields
from beam_dp.transforms.sql import databases
from beam_dp.transforms.sql.row_queries import Query, distinguished
from beam_dp.transforms.sql.sql_trees import SUBJECT, TABLE, parts_of, require
from beam_dp.transforms.stages import threads_and_memory

_TYPES = {
    *("BOOLEAN", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE", "TIME", "INTERVAL", "NULL"),
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    *("ANY", "INVALID"),  # of what takes every type, and of columns before they have one
}
_DECIMAL = "DECIMAL_TYPE_INFO"
_ORDERS = ("<", ">", "<=", ">=", "greatest", "least")
_DIGITS = re.compile(r"\s*[-+]?[\d.,/ ]*\d[\d.,/ ]*(e[-+]?\d+)?\s*", re.IGNORECASE)
"""Text that is a number, or a date that text does not order."""
_LONGEST = 1 << 16  # bytes of a cell of text
_AT_ONCE = 1 << 24  # bytes of text in one execution


class Engine:
    """Runs a query on batches."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._connection, self._planner = self._opened(), self._opened()
        self.schema_of = functools.lru_cache(self._schema_of)

    def _opened(self) -> Any:
        """Return a DuckDB that has the public tables, and reaches nothing else."""
        engine = databases.connected()
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
        except (pa.ArrowException, databases.duckdb().Error) as error:
            self._recover(error)
            made = None
        if made is not None:
            yield from made
        elif any(map(pa.types.is_dictionary, batch.schema.types)):  # of cells of other rows too
            yield from self.rows(_decoded(batch))
        elif len(batch) > 1:
            yield from self._halves(batch)

    def _recover(self, error: Exception) -> None:
        """Open what refuses everything from now on anew."""
        duckdb = databases.duckdb()
        if isinstance(error, (duckdb.FatalException, duckdb.InternalException)):
            self._connection, self._planner = self._opened(), self._opened()

    def _halves(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        half = len(batch) // 2
        yield from self.rows(batch.slice(0, half))
        yield from self.rows(batch.slice(half))

    def chosen(self, batch: Any) -> Any:
        """Return the columns that the query needs, of a batch or a table."""
        there = batch.schema.names
        needs = tuple(dict.fromkeys([*there, *self._query.needs]))
        names = needs if self._query.star else self._query.needs
        for name in names:
            rule = f"stand once in every batch; one of them has {checks.listed(there)}"
            checks.require(there.count(name) == 1, SUBJECT, f"column {name!r}", rule)
            kind = type(batch.schema.field(name).type)  # of which no code runs
            rule = "have one of Arrow's own types, and it is of an extension"
            checks.require(
                not issubclass(kind, pa.ExtensionType), SUBJECT, f"column {name!r}", rule
            )
        distinguished(names)
        # Without columns a batch has no rows: SELECT 1 AS one FROM rows.
        return batch.select(list(names) or there[:1]).replace_schema_metadata()

    def _run(self, batch: pa.RecordBatch) -> pa.Table:
        """Return what a query makes of a batch, in one execution.

        Signals reach the main thread between two steps of Python, so it waits for another one.
        """
        self._connection.register(TABLE, batch)
        return threads_and_memory.asked(self._execute).result()

    def _execute(self) -> pa.Table:
        return self._connection.sql(self._query.text).to_arrow_table()

    def _schema_of(self, schema: pa.Schema, untyped: frozenset[str] = frozenset()) -> pa.Schema:
        """Return the schema of what comes out.

        Args:
            schema: that of what goes in.
            untyped: the columns that are text because all cells of their file are.

        Raises:
            ValueError: the query does not fit the columns. The message knows of no row.
        """
        problem, made = "", schema
        try:
            empty = _plain(row_fields.none_of(schema))
            self._check_plan(empty, untyped)
            made = self._run(empty).schema
        except (pa.ArrowException, databases.duckdb().Error) as error:
            self._recover(error)
            problem = str(error)
        hint = "Text is made a number by CAST(spent AS DOUBLE); numbers names those of CSV."
        text = problem.partition("\n")[0].rstrip(".")
        require(not problem, f"fit the columns {checks.listed(schema.names)}: {text}", hint)
        names = self._query.outputs(schema.names)
        rule = f"give its columns different names, and they are {checks.listed(names)}"
        require(made.names == names, rule, "")
        return made

    def _check_plan(self, empty: pa.RecordBatch, untyped: frozenset[str]) -> None:
        """Refuse what DuckDB would do otherwise than on values of plain types."""
        engine, text = self._planner, self._query.text.replace("'", "''")
        engine.register("0", empty)  # a public table may have any other name
        engine.execute(f'CREATE OR REPLACE TABLE {TABLE} AS SELECT * FROM "0"')
        [[plan]] = engine.execute(f"SELECT json_serialize_plan('{text}')").fetchall()
        bound = json.loads(plan)
        if bound["error"]:
            raise databases.duckdb().BinderException(bound["error_message"])
        for part in parts_of(bound):
            if "type_info" in part:
                info = part["type_info"] or {}
                plain = part["id"] in _TYPES and info.get("type", _DECIMAL) == _DECIMAL
                rule = f"have plain values only, and {info.get('alias') or part['id']} is none"
                hint = "Plain are booleans, numbers, text, dates, times without a zone, intervals"
                require(plain, rule, hint)
            elif part.get("type") == "OPERATOR_CAST" and not part["function_data"]["try_cast"]:
                _check_implicit(engine, part)
            elif untyped and part.get("qname", {}).get("path", [""])[-1] in _ORDERS:
                _check_order(part, untyped)


def _check_implicit(engine: Any, cast: Mapping[str, Any]) -> None:
    """Refuse text that DuckDB would cast by itself, and literals that it cannot cast."""
    [child], [given], made = cast["children"], cast["arguments"], cast["return_type"]
    if given["id"] != "VARCHAR" or made["id"] in ("VARCHAR", "NULL"):
        return
    kind, info = made["id"], made["type_info"]
    if child["expression_class"] == "BOUND_CONSTANT":
        digits = f"({info['width']}, {info['scale']})" if info else ""
        query = f"SELECT CAST(?::VARCHAR AS {kind}{digits})"
        engine.execute(query, [child["value"]["value"]]).fetchall()  # else it takes nothing further
        return
    rule = f"cast text to {kind}, as that of {child['alias'] or 'an expression'}"
    hint = f"Write CAST({child['alias'] or 'text'} AS {kind}); numbers names the numbers of CSV"
    raise checks.ParameterError(SUBJECT, "query", rule, hint)


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
    require(sum(map(bool, read)) < 2, rule, hint)
    for text in (part.get("value") for part in itertools.chain(*sides)):
        is_number = isinstance(text, str) and _DIGITS.fullmatch(text) is not None
        hint = f"Write numbers without quotes, as {said} > {text}, and dates like '2026-11-24'"
        require(not is_number, f"not order {said} by {text!r}: of text 10 is before 9", hint)


def reads(column: str, cells: pa.Array, expressions: Iterable[str]) -> bool:
    """Return whether some expressions of a column have a value for one of these cells."""
    engine = databases.connected()
    engine.register(TABLE, pa.table({column: cells}))
    counts = " + ".join(f"count({each})" for each in expressions)
    try:
        [[found]] = engine.execute(f"SELECT {counts} FROM {TABLE}").fetchall()
    except databases.duckdb().Error:  # it is refused with the types of all columns
        return True
    return bool(found)


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
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind

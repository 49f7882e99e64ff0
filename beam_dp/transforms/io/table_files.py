"""Write released rows as a CSV, Parquet or JSON Lines file, with cells that no reader mistakes."""

import csv
import datetime
import decimal
import io
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Cells = tuple[Any, ...]

# A spreadsheet takes a cell that begins so for a formula, or for several cells. The quotes in front
# are those of `text`: with one more, a text that had them already stays another one.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠])")
LARGEST = 2**63 - 1
RECORD_KEY = b"beam_dp"
_LINES = 1 << 13


def plain(value: object) -> object:
    """Return `value` as a plain Python object: numpy scalars are unwrapped."""
    return value.item() if isinstance(value, np.generic) else value


def order(cells: Sequence[object]) -> tuple[Any, ...]:
    """Return a key that sorts rows of any types: by type first, then by value."""
    return tuple(_rank(plain(cell)) for cell in cells)


def _rank(cell: Any) -> tuple[Any, ...]:
    number = isinstance(cell, (int, float, decimal.Decimal)) and not isinstance(cell, bool)
    if number and not (isinstance(cell, float) and math.isnan(cell)):
        # 0, 0.0 and -0.0 are equal, but are written differently.
        return ("number", cell, repr(cell))
    return ("" if cell is None else type(cell).__name__, text(cell))


def text(cell: Any) -> str:
    """Return a cell as CSV text.

    Floats as `repr` writes them (they read back exactly; `inf`, `-inf`, `nan`), booleans as
    `true` and `false`, dates in ISO form, bytes in hexadecimal, None as nothing. Text that a
    spreadsheet would take for a formula gets a single quote in front: it begins with a tab, CR or
    LF, or with = + - @ (or their full-width forms), perhaps behind white space, and perhaps all of
    it behind single quotes. `unquoted` takes the quote away, so different texts stay different.
    """
    if type(cell) in (int, float):  # most are
        return repr(cell)
    match plain(cell):
        case None:
            return ""
        case bool(truth):
            return "true" if truth else "false"
        case float(number):
            return repr(number)
        case bytes(content):
            return content.hex()
        case datetime.date() as date:
            return date.isoformat()
        case str(words):
            return "'" + words if _FORMULA.match(words) else words
        case other:
            return str(other)


def unquoted(cell: Any) -> Any:
    """Return the text that `text` wrote as this cell; None for None."""
    return cell[1:] if cell and cell.startswith("'") and _FORMULA.match(cell) else cell


def ordered(table: pa.Table) -> pa.Table:
    """Return a table sorted by all its columns, nulls and NaN last.

    It works column by column: if the caller keeps no table, little more than one is in memory.
    """
    if not len(table):
        return table
    schema, columns = table.schema, []
    indexes = pc.sort_indices(table, [(name, "ascending") for name in schema.names])
    for _ in schema:
        columns.append(table.column(0).take(indexes))
        table = table.remove_column(0)
    return pa.Table.from_arrays(columns, schema=schema)


def packed(batch: pa.RecordBatch, names: Sequence[str] | None = None) -> bytes:
    """Return some columns as compressed bytes: runners hold several copies of shuffled elements."""
    batch = batch if names is None else batch.select(list(names))
    written = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(written, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    content: bytes = written.getvalue().to_pybytes()
    return content


def unpacked(part: bytes) -> pa.RecordBatch:
    """Return the batch that `packed` packed."""
    with pa.ipc.open_stream(part) as stream:
        return stream.read_next_batch()


class Rows(NamedTuple):
    """Rows of Python values.

    Attributes:
        names: the columns.
        kinds: their types, None where unknown.
        cells: the cells of each row.
    """

    names: Sequence[str]
    kinds: Sequence[Any]
    cells: list[Cells]


def write(file: BinaryIO, extension: str, rows: Rows | pa.Table, record: str = "") -> None:
    """Write rows as CSV, JSON Lines or Parquet.

    CSV has a header, and lines as RFC 4180 says (CRLF, quotes where needed), in UTF-8. JSON Lines
    have one object per row, with numbers or null, for JSON has no infinity and no NaN; another
    value without a form in JSON is a string as in CSV. Parquet has the types of the table, and the
    record in its schema.
    """
    names = rows.names if isinstance(rows, Rows) else rows.column_names
    match extension:
        case ".csv":
            _write_csv(file, itertools.chain([names], _lines(rows, text)))
        case ".jsonl":
            for line in _lines(rows, _json):
                named = dict(zip(names, line, strict=True))
                file.write(json.dumps(named, allow_nan=False).encode() + b"\n")
        case _:
            table = _table(rows) if isinstance(rows, Rows) else rows
            known = {RECORD_KEY: record.encode()} if record else {}
            noted = {**(table.schema.metadata or {}), **known}
            pq.write_table(table.replace_schema_metadata(noted or None), file)


def _lines(rows: Rows | pa.Table, form: Callable[[Any], Any]) -> Iterator[Sequence[Any]]:
    """Yield the cells of each row in a form; a few thousand rows of a table are held at a time."""
    if isinstance(rows, Rows):
        yield from ([form(cell) for cell in row] for row in rows.cells)
        return
    for batch in rows.to_batches(_LINES):
        yield from zip(*(map(form, column.to_pylist()) for column in batch.columns), strict=True)


def _write_csv(file: BinaryIO, lines: Iterator[Sequence[str]]) -> None:
    while part := list(itertools.islice(lines, _LINES)):
        written = io.StringIO(newline="")
        csv.writer(written).writerows(part)
        file.write(written.getvalue().encode(errors="backslashreplace"))


def _json(cell: Any) -> object:
    cell = plain(cell)
    if cell is None or isinstance(cell, (bool, int, str)):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return text(cell)


ARROW_TYPES = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime.date: pa.date32(),
}
"""The Arrow types of columns of one Python type."""


def _table(rows: Rows) -> pa.Table:
    """Return rows as a table with the types of their columns, as far as these are known.

    Integers saturate at 64 bits: after the noise, so it costs no privacy. A column of unknown type
    gets the type of its values; a column whose values have several types is written as text.
    """
    columns = [list(map(plain, column)) for column in zip(*rows.cells)] or [[] for _ in rows.names]
    arrays = [_array(column, kind) for column, kind in zip(columns, rows.kinds, strict=True)]
    return pa.table(arrays, names=list(rows.names))


def _array(cells: list[Any], kind: Any) -> pa.Array:
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int} and kind is not float:
        cells = [cell if cell is None else max(-LARGEST - 1, min(LARGEST, cell)) for cell in cells]
    elif kinds and kinds <= {int, float}:
        cells = [cell if cell is None else _nearest(cell) for cell in cells]
    try:
        return pa.array(cells, None if float in kinds else ARROW_TYPES.get(kind))
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if cell is None else text(cell) for cell in cells], pa.string())


def _nearest(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf

"""Write released rows as a CSV, Parquet or JSON Lines file, with cells that no reader mistakes."""

import contextlib
import csv
import datetime
import decimal
import io
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

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
    """Return a table sorted by all its columns but lists, nulls and NaN last.

    It works column by column: if the caller keeps no table, little more than one is in memory.
    """
    if not len(table):
        return table
    schema, columns = table.schema, []
    keys = [(field.name, "ascending") for field in schema if not pa.types.is_nested(field.type)]
    indexes = pc.sort_indices(table, keys)
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


def write(file: BinaryIO, extension: str, table: pa.Table, record: str = "") -> None:
    """Write a table as CSV, JSON Lines or Parquet.

    CSV has a header, and lines as RFC 4180 says (CRLF, quotes where needed), in UTF-8. JSON Lines
    have one object per row, with numbers or null, for JSON has no infinity and no NaN; another
    value without a form in JSON is a string as in CSV. Parquet has the types of the table, and the
    record in its schema.
    """
    names = table.column_names
    match extension:
        case ".csv":
            _write_csv(file, itertools.chain([names], _lines(table, text)))
        case ".jsonl":
            for line in _lines(table, _json):
                named = dict(zip(names, line, strict=True))
                file.write(json.dumps(named, allow_nan=False).encode() + b"\n")
        case _:
            known = {RECORD_KEY: record.encode()} if record else {}
            noted = {**(table.schema.metadata or {}), **known}
            pq.write_table(table.replace_schema_metadata(noted or None), file)


def _lines(table: pa.Table, form: Callable[[Any], Any]) -> Iterator[Sequence[Any]]:
    """Yield the cells of each row in a form; a few thousand rows are held at a time."""
    for batch in table.to_batches(_LINES):
        yield from zip(*(map(form, column.to_pylist()) for column in batch.columns), strict=True)


def _write_csv(file: BinaryIO, lines: Iterator[Sequence[str]]) -> None:
    while part := list(itertools.islice(lines, _LINES)):
        written = io.StringIO(newline="")
        csv.writer(written).writerows(part)
        file.write(written.getvalue().encode())


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


def table_of(names: Sequence[str], kinds: Sequence[Any], rows: Sequence[Cells]) -> pa.Table:
    """Return rows as a table with the types of their columns, as far as these are known.

    Integers saturate at 64 bits: after the noise, so it costs no privacy. A column of unknown type
    gets the type of its values; a column whose values have several types becomes text.

    Args:
        names: the columns.
        kinds: their types, None where unknown.
        rows: the cells of each row.
    """
    columns = [list(map(plain, column)) for column in zip(*rows, strict=True)] or [[]] * len(names)
    return pa.table(list(map(_array, columns, kinds)), names=list(names))


def _array(cells: list[Any], kind: Any) -> pa.Array:
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int} and kind is not float:
        cells = [cell if cell is None else max(-LARGEST - 1, min(LARGEST, cell)) for cell in cells]
    elif kinds and kinds <= {int, float}:
        cells = [cell if cell is None else _nearest(cell) for cell in cells]
        kinds = {float}
    with contextlib.suppress(pa.ArrowException, ValueError, OverflowError):
        if len(kinds) < 2 and kinds <= {*ARROW_TYPES, datetime.datetime, decimal.Decimal, list}:
            return pa.array(cells, None if float in kinds else ARROW_TYPES.get(kind))
    return pa.array(map(_words, cells), pa.string())


def _words(cell: Any) -> str | None:
    """Return a cell as text that UTF-8 can write; a writer of CSV adds the quote of a formula."""
    words = cell if isinstance(cell, str) else text(cell)
    return None if cell is None else words.encode(errors="backslashreplace").decode()


def _nearest(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf

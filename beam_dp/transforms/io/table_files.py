"""Tables that are written: rows become columns in order, and cells become text."""

import contextlib
import datetime
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

Cells = tuple[Any, ...]

# A spreadsheet takes a cell that begins so for a formula, or for several cells. A text that
# has quotes in front of such a start gets one more from `text`, so that texts stay different.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠])")
LARGEST = 2**63 - 1
LINES = 1 << 13


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
    match cell:
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
    """Return a table sorted by all its columns but lists, nulls and NaN last."""
    keys = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
    return table.sort_by([(name, "ascending") for name in keys]) if keys else table


def lines(table: pa.Table, form: Callable[[Any], Any]) -> Iterator[Sequence[Any]]:
    """Yield the cells of each row in a form; a few thousand rows are held at a time."""
    for batch in table.to_batches(LINES):
        yield from zip(*(map(form, column.to_pylist()) for column in batch.columns), strict=True)


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
    columns = [list(map(_plain, column)) for column in zip(*rows, strict=True)]
    columns = columns or [[] for _ in names]
    return pa.table(list(map(_array, columns, kinds)), names=list(names))


def _plain(cell: object) -> object:
    return cell.item() if isinstance(cell, np.generic) else cell


def _array(cells: list[Any], kind: Any) -> pa.Array:
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds and kinds <= {int, float}:
        number = float if float in kinds or kind is float else int
        cells = [cell if cell is None else number(_saturated(cell)) for cell in cells]
        kinds = {number}
    with contextlib.suppress(pa.ArrowException, ValueError, OverflowError):
        if len(kinds) < 2:
            return pa.array(cells, None if float in kinds else ARROW_TYPES.get(kind))
    return pa.array(map(_words, cells), pa.string())


def _words(cell: Any) -> str | None:
    """Return a cell as text that UTF-8 can write; a writer of CSV adds the quote of a formula."""
    words = cell if isinstance(cell, str) else text(cell)
    return None if cell is None else words.encode(errors="backslashreplace").decode()


def _saturated(number: float) -> float:
    return max(-LARGEST - 1, min(LARGEST, number)) if type(number) is int else number

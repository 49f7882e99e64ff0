"""Tables of words, as text for a terminal and as HTML for a notebook.

In HTML every cell is escaped, for keys and names can be hostile text.
"""

import textwrap
import unicodedata
from collections.abc import Sequence
from html import escape

_STYLE = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
_GAP = "  "
_NARROW = 40


def html_table(heading: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """Return a table, with a note below it.

    Args:
        heading: the names of the columns.
        rows: the cells.
        note: what to say below; lines stay lines.
    """
    head = _row("th", heading)
    body = "".join(_row("td", row) for row in rows)
    below = f'<pre style="white-space:pre-wrap">{escape(note)}</pre>' if note else ""
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{below}"


def _row(tag: str, cells: Sequence[str]) -> str:
    inside = "".join(f'<{tag} style="{_STYLE}">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{inside}</tr>"


def text_table(
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: int | None = None,
    aligned: str = "<<",
    least: int = 2,
) -> list[str]:
    """Return the lines of a table; below, the names of the columns that had no place.

    Args:
        heading: the names of the columns.
        rows: the cells.
        columns: how wide the terminal is; None: as wide as need be.
        aligned: where cells begin at the same place, "<", or end there, ">": the first ones of the
            rows, and all others.
        least: so many columns are shown on any terminal.
    """
    table = [heading, *rows]
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    taken = len(widths)
    while columns is not None and taken > least and sum(widths[:taken]) + 2 * (taken - 1) > columns:
        taken -= 1
    signs = aligned[0] + aligned[1] * len(widths)
    lines = [
        _GAP.join(_padded(*each) for each in zip(row[:taken], widths, signs)).rstrip()
        for row in table
    ]
    lost = heading[taken:]
    note = f"... and {', '.join(lost)}: the terminal is too narrow"
    return [*lines, *(wrapped(note, columns).splitlines() if lost else ())]


def _padded(cell: str, most: int, sign: str) -> str:
    room = " " * (most - width(cell))
    return cell + room if sign == "<" else room + cell


def width(text: str) -> int:
    """Return how many columns of a terminal a text of one line takes."""
    wide = sum(unicodedata.east_asian_width(sign) in ("W", "F") for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


def wrapped(line: str, columns: int | None) -> str:
    """Return a line as lines of the width of the terminal; None: as it is."""
    if columns is None:
        return line
    return textwrap.fill(
        line, max(columns, _NARROW), subsequent_indent=_GAP, break_long_words=False
    )

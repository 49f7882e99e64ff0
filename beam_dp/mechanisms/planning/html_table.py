"""A table as HTML for a notebook; every cell is escaped, for keys and names can be hostile text."""

from collections.abc import Sequence
from html import escape

NUMBERS = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
WORDS = "text-align:left"
"""The styles of cells."""


def html_table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], note: str = "", style: str = NUMBERS
) -> str:
    """Return a table, with a note below it.

    Args:
        heading: the names of the columns.
        rows: the cells.
        note: what to say below; lines stay lines.
        style: that of the cells.
    """
    head = _row("th", heading, style)
    body = "".join(_row("td", row, style) for row in rows)
    below = f'<pre style="white-space:pre-wrap">{escape(note)}</pre>' if note else ""
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{below}"


def _row(tag: str, cells: Sequence[str], style: str) -> str:
    inside = "".join(f'<{tag} style="{style}">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{inside}</tr>"

"""Tables of words as text, for a terminal or a notebook; and numbers of three digits in them."""

import math
import re
import textwrap
import unicodedata
from collections.abc import Sequence

_GAP = "  "
_NARROW = 40
_DIGITS = 3
_LARGE, _FINE = 15, 4  # powers of ten from which, and down to which, digits are written out
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-+]\d+)?(?![\w.]*\w)")


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


def short(number: float) -> str:
    """Return a number rounded to three digits: 0.116, 12.3, 1,420, 5.31e-6."""
    if not number or not math.isfinite(number):
        return f"{number:g}"
    power = math.floor(math.log10(abs(float(f"{number:.{_DIGITS - 1}e}"))))
    if power >= _LARGE or power < -_FINE:
        return re.sub(r"e([-+])0*", r"e\1", f"{number:.{_DIGITS}g}").replace("e+", "e")
    text = f"{round(number, _DIGITS - 1 - power):,.{max(_DIGITS - 1 - power, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shortened(text: str) -> str:
    """Return a text with its numbers rounded to three digits."""
    return _NUMBER.sub(lambda match: short(float(match[0])), text)

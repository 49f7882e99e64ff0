"""Text of released keys and columns for a reader: short, of one line, and without hidden signs.

Keys can be anything that people wrote. What would move a terminal's cursor, end a line or turn the
direction of writing is shown by its number, as Python writes it: `\\x1b`.
"""

import unicodedata

_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
_MORE = ".."
_WIDE = ("W", "F")


def plain(value: object, most: int = 0) -> str:
    """Return a value as text of one line, of at most `most` columns; 0: of any length."""
    text = "".join(_visible(sign) for sign in str(value))
    if not most or width(text) <= most:
        return text
    while width(text) > most - len(_MORE):
        text = text[:-1]
    return text + _MORE


def _visible(sign: str) -> str:
    hidden = unicodedata.category(sign) in _HIDDEN
    return sign.encode("unicode_escape").decode() if hidden else sign


def width(text: str) -> int:
    """Return how many columns of a terminal a text of `plain` takes."""
    return sum(map(_columns, text))


def _columns(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in _WIDE else 1

"""Numbers as a reader wants them: three digits, commas, and few powers of ten."""

import math
import re

_DIGITS = 3
_LARGE, _FINE = 15, 4  # powers of ten from which, and down to which, digits are written out
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-+]\d+)?(?![\w.]*\w)")


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

"""Check parameters: one rule, one function, one message form; NaN always fails.

Every message reads `Owner: name must be RULE, not VALUE.` Only parameters are ever
shown: no function of this module is called on data.
"""

import math
import numbers
import reprlib
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

Real = int | float | Fraction
_REAL = (numbers.Rational, np.integer, float, np.floating)
_NOT_REAL = (bool, np.bool_, np.timedelta64)  # the last is a np.integer to Python

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 80


def shown(value: object) -> str:
    """Return a parameter as a message shows it: as Python writes it, but never long.

    Of lists and other containers the first few elements are shown, of classes the name.
    """
    return f"the class {value.__name__}" if isinstance(value, type) else _SHORT.repr(value)


def require(ok: bool, message: str) -> None:
    """Raise ValueError with `message` unless `ok`."""
    if not ok:
        raise ValueError(message)


def number(owner: str, name: str, value: object) -> Fraction:
    """Return `value` as an exact rational.

    Accepts int, float, Fraction and numpy real scalars; they are converted without
    rounding, so a budget never grows on its way in.

    Raises:
        TypeError: for every other type (bool, str, None, Decimal, complex, arrays).
        ValueError: for NaN and the infinities.
    """
    if isinstance(value, _NOT_REAL) or not isinstance(value, _REAL):
        raise TypeError(
            f"{owner}: {name} must be a real number (int, float or Fraction), "
            f"not {type(value).__name__} {shown(value)}."
        )
    # Through Python ints: Fraction(np.int64(2**62)) * 4 is 0, for it keeps numpy's
    # wrapping integers, and np.longdouble holds digits that float() would round.
    if isinstance(value, (numbers.Rational, np.integer)):
        return Fraction(int(value.numerator), int(value.denominator))
    require(math.isfinite(value), f"{owner}: {name} must be finite, not {shown(value)}.")
    return Fraction(*value.as_integer_ratio())


def decimal(owner: str, name: str, value: object) -> Fraction:
    """Return `value` as the rational that a person meant: 1/100 for 0.01, not its binary fraction.

    For grids and units, where nothing is spent; else as `number`.
    """
    exact = number(owner, name, value)
    return Fraction(repr(float(exact))) if isinstance(value, (float, np.floating)) else exact


def fraction_between(
    owner: str, name: str, value: object, low: Real, high: Real, mend: str = ""
) -> Fraction:
    """Return `value` as an exact rational that lies strictly between `low` and `high`."""
    exact = number(owner, name, value)
    if not low < exact < high:
        rule = f"above {low}" if high == math.inf else f"above {low} and below {high}"
        raise ValueError(
            f"{owner}: {name} must be {rule}, not {shown(value)}.{mend and ' ' + mend}"
        )
    return exact


def positive_integer(owner: str, name: str, value: object, mend: str = "") -> int:
    """Return `value` if it is an int of at least 1 (bool and numpy integers are refused)."""
    if type(value) is not int or value < 1:
        kind = ValueError if type(value) is int else TypeError
        raise kind(
            f"{owner}: {name} must be an int of at least 1, not {shown(value)}."
            f"{mend and ' ' + mend}"
        )
    return value


def column(owner: str, name: str, value: object) -> str:
    """Return `value` if it names a column: a string that is not empty."""
    if type(value) is not str or not value:
        raise TypeError(
            f"{owner}: {name} must be the name of a column (a string), not {shown(value)}."
        )
    return value


def columns(owner: str, name: str, values: object) -> tuple[str, ...]:
    """Return `values` as a tuple of different column names."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(
            f"{owner}: {name} must be a list of column names, not {shown(values)}. "
            f'Write {name}=["day"] for one column.'
        )
    names = tuple(column(owner, name, value) for value in values)
    require(
        len(set(names)) == len(names),
        f"{owner}: {name} must name each column once, not {shown(names)}.",
    )
    return names


def one_of(owner: str, name: str, value: object, choices: Sequence[str]) -> str:
    """Return `value` if it is one of the strings in `choices`."""
    if type(value) is not str or value not in choices:
        raise ValueError(
            f"{owner}: {name} must be one of {', '.join(choices)}, not {shown(value)}."
        )
    return value

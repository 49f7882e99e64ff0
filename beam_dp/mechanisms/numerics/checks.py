"""Check parameters: one rule, one function, one message form; NaN always fails.

Every message reads `Subject: name must RULE. HINT`, and the error carries these parts, so that a
command line can say the same of its flags. Only parameters are ever shown: no function of this
module is called on data.

Options that have no effect beside another option are refused, not ignored (`refuse`).
"""

import dataclasses
import difflib
import math
import numbers
import reprlib
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Real = int | float | Fraction
_REAL = (numbers.Rational, np.integer, float, np.floating)
_NOT_REAL = (bool, np.bool_, np.timedelta64)  # numpy has timedelta64 among its integers

_NAMES = 20
_ALIKE = 0.6


def readable(value: Fraction) -> str:
    """Return `value` for people: as a decimal, or as 1/3 if that is shorter; also beyond floats."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if abs(exponent) >= 1000 and value:
        return f"about 2^{exponent}"
    decimal, exact = str(float(value)), str(value)
    return exact if "/" in exact and len(exact) < len(decimal) else decimal


class _Short(reprlib.Repr):
    def repr_Fraction(self, value: Fraction, level: int) -> str:
        return readable(value)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 80


def shown(value: object) -> str:
    """Return a parameter as a message shows it: as Python writes it, but never long.

    A fraction is shown for people. Of lists and other containers the first few elements are shown,
    of classes the name.
    """
    return f"the class {value.__name__}" if isinstance(value, type) else _SHORT.repr(value)


def listed(names: Sequence[str]) -> str:
    """Return names as a message shows them: each as Python writes it, and only the first 20."""
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return (", ".join(map(shown, names[:_NAMES])) or "none") + more


def near(name: str, names: Iterable[str]) -> str:
    """Return what a message says of names that a misspelt one may stand for; "" for none."""
    known = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), known, 3, _ALIKE)
    shown = [each if each == each.strip() else repr(each) for each in (known[at] for at in found)]
    return f"Did you mean {' or '.join(shown)}?" if found else ""


class _OfParameter(Exception):
    """The error of a wrong parameter, in parts that a command line can put into its own words.

    Attributes:
        subject: the class or function that was called.
        name: its parameter.
        rule: what the parameter must do or be, and what it is now: "be above 0, not -1".
        hint: sentences that say what to write instead; "" for none.
    """

    def __init__(self, subject: str, name: str, rule: str, hint: str = "") -> None:
        super().__init__(f"{subject}: {name} must {rule}.{hint and ' ' + hint}")
        self.subject, self.name, self.rule, self.hint = subject, name, rule, hint

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.subject, self.name, self.rule, self.hint)


class ParameterError(_OfParameter, ValueError):
    """A parameter has a value that it must not have."""


class ParameterTypeError(_OfParameter, TypeError):
    """A parameter has a type that it must not have."""


def require(ok: bool, subject: str, name: str, rule: str, hint: str = "") -> None:
    """Raise ParameterError unless `ok`; the other arguments are the parts of the error."""
    if not ok:
        raise ParameterError(subject, name, rule, hint)


def of_type(subject: str, name: str, value: object, kind: type, hint: str) -> None:
    """Refuse what is not of a type, which the message names."""
    if not isinstance(value, kind):
        rule = f"be of type {kind.__name__}, not {shown(value)}"
        raise ParameterTypeError(subject, name, rule, hint)


def number(subject: str, name: str, value: object) -> Fraction:
    """Return `value` as an exact rational.

    Accepts int, float, Fraction and numpy real scalars; they are converted without
    rounding, so a budget never grows on its way in.

    Raises:
        TypeError: for every other type (bool, str, None, Decimal, complex, arrays).
        ValueError: for NaN and the infinities.
    """
    if isinstance(value, _NOT_REAL) or not isinstance(value, _REAL):
        kind = f"{type(value).__name__} {shown(value)}"
        rule = f"be a real number (int, float or Fraction), not {kind}"
        raise ParameterTypeError(subject, name, rule)
    # Through Python ints: Fraction(np.int64(2**62)) * 4 is 0, for it keeps numpy's
    # wrapping integers, and np.longdouble holds digits that float() would round.
    if isinstance(value, (numbers.Rational, np.integer)):
        return Fraction(int(value.numerator), int(value.denominator))
    require(math.isfinite(value), subject, name, f"be finite, not {shown(value)}")
    return Fraction(*value.as_integer_ratio())


def decimal(subject: str, name: str, value: object) -> Fraction:
    """Return `value` as the rational that a person meant: 1/100 for 0.01, not its binary fraction.

    For grids and units, which spend no budget. All other types are read as by `number`.
    """
    exact = number(subject, name, value)
    return Fraction(repr(float(exact))) if isinstance(value, (float, np.floating)) else exact


def fraction_between(
    subject: str, name: str, value: object, low: Real, high: Real, hint: str = ""
) -> Fraction:
    """Return `value` as an exact rational that lies strictly between `low` and `high`."""
    exact = number(subject, name, value)
    if not low < exact < high:
        most = f"{float(high):.4g}" if high > 10**12 else f"{high}"
        rule = f"above {low}" if high == math.inf else f"above {low} and below {most}"
        raise ParameterError(subject, name, f"be {rule}, not {shown(value)}", hint)
    return exact


def positive_integer(subject: str, name: str, value: object, hint: str = "") -> int:
    """Return `value` if it is an int of at least 1 (bool and numpy integers are refused)."""
    if type(value) is not int or value < 1:
        kind = ParameterError if type(value) is int else ParameterTypeError
        raise kind(subject, name, f"be an int of at least 1, not {shown(value)}", hint)
    return value


def boolean(subject: str, name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if type(value) is not bool:
        raise ParameterTypeError(subject, name, f"be True or False, not {shown(value)}")


def sequence(subject: str, name: str, value: Any, of: str, hint: str) -> Any:
    """Return `value` if it is a list, an array or another sequence of things, but no text."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        raise ParameterTypeError(subject, name, f"be a list of {of}, not {shown(value)}", hint)
    return value


def column(subject: str, name: str, value: object) -> str:
    """Return `value` if it names a column: a string that is not empty."""
    if type(value) is not str or not value:
        rule = f"be the name of a column (a string), not {shown(value)}"
        raise ParameterTypeError(subject, name, rule)
    return value


def columns(subject: str, name: str, values: object) -> tuple[str, ...]:
    """Return `values` as a tuple of different column names."""
    alone = values if isinstance(values, str) and values else "day"
    hint = f'Write {name}=["{alone}"] for one column.'
    given = sequence(subject, name, values, "column names", hint)
    names = tuple(column(subject, name, value) for value in given)
    require(
        len(set(names)) == len(names),
        subject,
        name,
        f"name each column once, not {shown(names)}",
    )
    return names


def one_of(subject: str, name: str, value: object, choices: Sequence[str]) -> str:
    """Return `value` if it is one of the strings in `choices`."""
    if type(value) is not str or value not in choices:
        rule = f"be one of {', '.join(choices)}, not {shown(value)}"
        raise ParameterError(subject, name, rule)
    return value


def refuse(metric: Any, names: Iterable[str], because: str, hint: str) -> None:
    """Refuse each of these options of a metric that is not at its default.

    Args:
        metric: a record with defaults for these options.
        names: the options.
        because: the other option, and why these options have no effect beside it.
        hint: what to write instead.

    Raises:
        ValueError: names both options, and says how to correct the call.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(metric)}
    for name in names:
        require(
            bool(getattr(metric, name) == defaults[name]),
            type(metric).__name__,
            name,
            f"be left out {because}",
            hint,
        )

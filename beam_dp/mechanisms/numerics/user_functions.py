"""Check what users' own functions of people are given, and what they return.

A statistic is a Python function of people: it takes a tuple with one record per person (all of
that person's rows, say) and returns a number. It must be a function of these people alone: no
clock, no chance, no change to the records.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.integers import Number, is_nan

People = tuple[Any, ...]
Statistic = Callable[[People], Any]
"""A number for a tuple of people's records."""
ProfileFunction = Callable[[People], Iterable[Any]]
"""B[0], B[1], ... for a tuple of people's records; may be a generator."""


def records(subject: str, people: Iterable[Any]) -> People:
    """Return people's records as a tuple.

    Raises:
        TypeError: for text, bytes and dicts, whose items are not what a person contributed.
    """
    if isinstance(people, (str, bytes, Mapping)) or not isinstance(people, Iterable):
        raise checks.ParameterTypeError(
            subject,
            "people",
            f"be a list with one record per person, not {type(people).__name__}",
            "Write list(people.values()) for a dict of person to rows.",
        )
    return tuple(people)


def check_callable(subject: str, name: str, value: object) -> None:
    """Raise TypeError unless `value` can be called."""
    if not callable(value):
        raise checks.ParameterTypeError(
            subject, name, f"be a function of people, not {checks.shown(value)}"
        )


def plain_number(subject: str, value: object) -> Number:
    """Return what a user's function returned as a Python number; no error shows its value.

    Raises:
        TypeError: unless it is an int, float, Fraction or numpy scalar of these (bool is not).
        ValueError: for NaN.
    """
    if isinstance(value, (np.integer, np.floating)) and not isinstance(value, np.timedelta64):
        value = value.item()
    if isinstance(value, (int, float, Fraction)) and type(value) in (int, float, Fraction):
        if is_nan(value):
            raise ValueError(f"{subject} must return numbers, not NaN.")
        return value
    raise TypeError(
        f"{subject} must return real numbers (int, float or Fraction), not {type(value).__name__}."
    )


def is_infinite(value: Number) -> bool:
    """Return whether `value` is inf or -inf; integers may be larger than any float."""
    return isinstance(value, float) and math.isinf(value)


def removal_count(subject: str, name: str, value: object) -> int:
    """Return `value` if it is an int of at least 0 (bool and numpy integers are refused)."""
    if type(value) is not int or value < 0:
        kind = ValueError if type(value) is int else TypeError
        raise kind(f"{subject}: {name} must be an int of at least 0, not {checks.shown(value)}.")
    return value

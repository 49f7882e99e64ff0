"""Parameters are converted exactly, and messages show them as they are, or their beginning."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.numerics import checks


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (1, Fraction(1)),
        (-0.0, Fraction(0)),
        (0.1, Fraction(3602879701896397, 36028797018963968)),
        (Fraction(1, 3), Fraction(1, 3)),
        (10**400, Fraction(10**400)),
        (np.float16(0.1), Fraction(819, 8192)),
        (np.float32(0.1), Fraction(13421773, 134217728)),
        (np.float64(0.1), Fraction(0.1)),
        (np.int64(-7), Fraction(-7)),
        (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
        (np.longdouble(1) + np.finfo(np.longdouble).eps, 1 + Fraction(2) ** -np.finfo("g").nmant),
    ],
)
def test_numbers_are_converted_without_rounding(value: object, exact: Fraction) -> None:
    result = checks.number("Owner", "name", value)
    assert result == exact
    assert type(result) is Fraction
    assert type(result.numerator) is int and type(result.denominator) is int


def test_open_interval_may_be_endless() -> None:
    assert checks.fraction_between("Owner", "name", 10**400, 0, math.inf) == 10**400
    with pytest.raises(ValueError, match="^Owner: name must be above 0, not 0.$"):
        checks.fraction_between("Owner", "name", 0, 0, math.inf)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (Fraction(1, 1000), "0.001"),
        ([Fraction(1, 3)], "[1/3]"),
        (Fraction(10**300), "1e+300"),
        ("wrong", "'wrong'"),
        (None, "None"),
        (float, "the class float"),
        ([1, "a"], "[1, 'a']"),
    ],
)
def test_small_parameters_are_shown_as_python_writes_them_and_fractions_for_people(value, text):
    assert checks.shown(value) == text


@pytest.mark.parametrize(
    "value",
    [list(range(10**6)), "a" * 10**6, 10**4000, np.zeros(999), {n: n for n in range(10**5)}],
)
def test_large_parameters_are_not_shown_whole(value):
    assert 0 < len(checks.shown(value)) <= 100

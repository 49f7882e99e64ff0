"""Parameters are converted exactly or refused, and the message shows the rule and the value."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_numpy_integers_do_not_wrap_later() -> None:
    assert checks.number("Owner", "name", np.int64(2**62)) * 4 == 2**64


@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.fractions(), st.integers()))
def test_conversion_keeps_every_real_number(value: float | Fraction) -> None:
    assert checks.number("Owner", "name", value) == value


@pytest.mark.parametrize(
    "value",
    [
        True,
        np.bool_(True),
        "1",
        b"1",
        None,
        decimal.Decimal(1),
        1j,
        np.complex128(1),
        np.array([1.0]),
        np.array(1.0),
        [1],
        np.datetime64("2020-01-01"),
        np.timedelta64(1),
    ],
)
def test_other_types_are_refused_by_name(value: object) -> None:
    with pytest.raises(TypeError, match=rf"^Owner: name must be a real .* {type(value).__name__}"):
        checks.number("Owner", "name", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_nan_and_infinities_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="^Owner: name must be finite, not"):
        checks.number("Owner", "name", value)


@pytest.mark.parametrize("value", [0, 1, -1, 2, 0.0, -0.0])
def test_open_interval_excludes_its_ends(value: float) -> None:
    with pytest.raises(ValueError, match="^Owner: name must be above 0 and below 1, not .* Mend.$"):
        checks.fraction_between("Owner", "name", value, 0, 1, "Mend.")


def test_open_interval_may_be_endless() -> None:
    assert checks.fraction_between("Owner", "name", 10**400, 0, math.inf) == 10**400
    with pytest.raises(ValueError, match="^Owner: name must be above 0, not 0.$"):
        checks.fraction_between("Owner", "name", 0, 0, math.inf)


@pytest.mark.parametrize("value", [1, 2**63, 10**100])
def test_positive_integers_are_not_bounded(value: int) -> None:
    assert checks.positive_integer("Owner", "name", value) == value


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0, ValueError),
        (-1, ValueError),
        (1.5, TypeError),
        (1.0, TypeError),
        (True, TypeError),
        (None, TypeError),
        ("1", TypeError),
        (np.int64(1), TypeError),
    ],
)
def test_what_is_no_positive_integer_is_refused(value: object, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="^Owner: name must be an int of at least 1, not"):
        checks.positive_integer("Owner", "name", value)


@pytest.mark.parametrize("value", ["", None, 1, b"day", True])
def test_column_is_a_string_that_is_not_empty(value: object) -> None:
    with pytest.raises(TypeError, match="^Owner: name must be the name of a column"):
        checks.column("Owner", "name", value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [("day", TypeError), (None, TypeError), (["day", 1], TypeError), (["day", "day"], ValueError)],
)
def test_columns_are_a_list_of_different_names(value: object, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="^Owner: name must"):
        checks.columns("Owner", "name", value)
    assert checks.columns("Owner", "name", ["day", "hour"]) == ("day", "hour")


@pytest.mark.parametrize("value", ["Laplace", "", None, 1, True])
def test_unknown_choice_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="^Owner: name must be one of laplace, gaussian, not"):
        checks.one_of("Owner", "name", value, ("laplace", "gaussian"))
    assert checks.one_of("Owner", "name", "laplace", ("laplace", "gaussian")) == "laplace"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (Fraction(1, 1000), "Fraction(1, 1000)"),
        ("wrong", "'wrong'"),
        (None, "None"),
        (float, "the class float"),
        ([1, "a"], "[1, 'a']"),
    ],
)
def test_small_parameters_are_shown_as_python_writes_them(value, text):
    assert checks.shown(value) == text


@pytest.mark.parametrize(
    "value",
    [list(range(10**6)), "a" * 10**6, 10**4000, np.zeros(999), {n: n for n in range(10**5)}],
)
def test_large_parameters_are_not_shown_whole(value):
    assert 0 < len(checks.shown(value)) <= 100

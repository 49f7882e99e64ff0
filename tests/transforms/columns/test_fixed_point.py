"""A value in units depends on the value and the unit alone, and sums are exact."""

import decimal
import math
import timeit
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_dp.mechanisms.numerics import integers
from beam_dp.transforms.columns import fixed_point
from beam_dp.transforms.columns.fixed_point import to_units, value_to_units

MILLIONTH = Fraction(1, 10**6)
TOP = integers.WIDEST - 1
UNITS = st.sampled_from(
    [MILLIONTH, Fraction(1), Fraction(1, 3), Fraction(7, 2), Fraction(1, 1 << 20), Fraction(1000)]
)
WIDE = decimal.Context(prec=80)


def units_of(column: np.ndarray) -> list[int | None]:
    """Return units as Python integers, None where absent."""
    absent = integers.is_missing(column, integers.LOWEST)
    return [None if gone else int(value) for gone, value in zip(absent, column, strict=True)]


def of_column(column: pa.Array, unit: Fraction = MILLIONTH) -> list[int | None]:
    return units_of(to_units(column, unit))


def of_values(values: list[object], unit: Fraction = MILLIONTH) -> list[int | None]:
    return units_of(to_units(values, unit))


def true_units(value: object, unit: Fraction) -> int | None:
    """Return what a finite value must become, by rational arithmetic alone."""
    return None if value is None else max(-TOP, min(TOP, round(Fraction(value) / unit)))


NO_NUMBERS = [
    None, True, False, np.bool_(True), "3", "1_000", " 1 ", "١٢", "inf", "nan", b"3", 3j,
    np.complex128(3), float("nan"), np.float32("nan"), np.longdouble("nan"), Decimal("NaN"),
    Decimal("sNaN"), [3], (3,), {3}, np.array(3), np.array([3]), np.ma.masked, pa.scalar(3), object(),
    np.datetime64("2020-01-01"), np.datetime64("NaT"), np.timedelta64(3, "ns"),
    np.timedelta64("NaT", "s"), int, range(3), np.str_("3"), Ellipsis,
]  # fmt: skip


def test_what_is_no_number_is_absent() -> None:
    assert [value_to_units(value, MILLIONTH) for value in NO_NUMBERS] == [None] * len(NO_NUMBERS)
    assert of_values([5, *NO_NUMBERS]) == [5_000_000] + [None] * len(NO_NUMBERS)


HUGE = [10**3000, 1 << 120, 1 << 200, float("inf"), np.float32("inf"), Decimal("Infinity")]
HUGE += [Decimal("1E+999999"), Decimal("9E+999999999"), 1e300, np.longdouble("inf"), 10**40, 1e40]


@pytest.mark.parametrize("value", HUGE, ids=lambda value: type(value).__name__)
def test_the_huge_is_clamped_on_both_sides_in_bounded_time(value: Any) -> None:
    negative = value.copy_negate() if isinstance(value, Decimal) else -value
    both = [partial(value_to_units, each, MILLIONTH) for each in (value, negative)]
    # The best of five: a busy machine may take its time for one.
    assert all(min(timeit.repeat(one, number=1)) < 0.1 for one in both)
    high, low = (one() for one in both)
    assert high == -low and high >= TOP - (1 << 68)
    assert of_values([value, negative, 1]) == [high, low, 1_000_000]
    assert None not in of_values([negative])


@pytest.mark.parametrize("last", ["", "1", "9", "0" * 1_000_000 + "1", "9" * 1_000_000])
def test_what_is_behind_a_thousand_digits_decides_what_is_half_way(last: str) -> None:
    for start, whole in (("2.5", 2), ("3.5", 4)):
        value = Decimal(f"{start}{'0' * 1_100}{last}")
        found = value_to_units(value, Fraction(1))
        assert found == (whole if not last else int(start[0]) + 1)
    assert value_to_units(Decimal("7." + "9" * 1_000_000), MILLIONTH) == 8_000_000


@given(st.lists(st.none() | st.integers(-(1 << 70), 1 << 70), max_size=8), UNITS)
def test_integers_are_rounded_exactly(values: list[Any], unit: Fraction) -> None:
    assert of_values(values, unit) == [true_units(value, unit) for value in values]


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()]
INTEGERS.append(pa.uint64())


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_no_integer_is_touched_by_itself_where_all_are_small(
    kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(fixed_point, "_pack")
    column = pa.array([0, None, 127], kind)
    assert of_column(column) == [0, None, 127_000_000]


@given(st.sampled_from(INTEGERS), UNITS, st.data())
def test_integer_columns_are_exact(kind: pa.DataType, unit: Fraction, data: st.DataObject) -> None:
    signed = pa.types.is_signed_integer(kind)
    low, high = (
        (-(1 << kind.bit_width - 1), 1 << kind.bit_width - 1)
        if signed
        else (0, 1 << kind.bit_width)
    )
    values = data.draw(st.lists(st.none() | st.integers(low, high - 1), max_size=8))
    found = of_column(pa.array(values, kind), unit)
    assert found == [true_units(value, unit) for value in values]
    assert found == of_values(values, unit)
    assert found[1:] == of_column(pa.array(values, kind).slice(1), unit)


DECIMALS = [
    pa.decimal128(38, 10),
    pa.decimal128(5, -2),
    pa.decimal128(38, 38),
    pa.decimal128(20, 0),
]
DECIMALS += [pa.decimal256(76, 20), pa.decimal256(76, 0), pa.decimal256(10, -3), pa.decimal32(9, 2)]
DECIMALS += [pa.decimal64(18, 6), pa.decimal256(76, 76)]


@given(st.sampled_from(DECIMALS), UNITS, st.data())
def test_decimal_columns_are_exact(kind: pa.DataType, unit: Fraction, data: st.DataObject) -> None:
    most = 10**kind.precision - 1
    unscaled = data.draw(st.lists(st.none() | st.integers(-most, most), max_size=8))
    values = [
        None if number is None else WIDE.scaleb(WIDE.create_decimal(number), -kind.scale)
        for number in unscaled
    ]
    column = pa.array(values, kind)
    found = of_column(column, unit)
    assert found == [true_units(value, unit) for value in values]
    assert found == of_values(values, unit)
    assert of_column(column.slice(1), unit) == found[1:]


FLOATS = st.floats(width=64) | st.floats(width=32) | st.integers(-(1 << 40), 1 << 40).map(float)


def nearest(value: float | None, unit: Fraction) -> int | None:
    """Return the documented rule for floats: the multiple nearest to the double product."""
    if value is None or math.isnan(value):
        return None
    product = value * float(1 / unit)
    return max(-TOP, min(TOP, round(max(-1e300, min(1e300, product)))))


@given(st.lists(st.none() | FLOATS, max_size=8), UNITS)
def test_floats_follow_their_rule_in_every_form(values: list[Any], unit: Fraction) -> None:
    expected = [nearest(value, unit) for value in values]
    assert of_values(values, unit) == expected
    assert of_values(["x", *values], unit)[1:] == expected
    assert of_column(pa.array(values, pa.float64()), unit) == expected
    assert of_column(pa.array(values, pa.float64()).slice(1), unit) == expected[1:]
    wrapped = [None if value is None else np.float64(value) for value in values]
    assert of_values(wrapped, unit) == expected


@given(st.lists(st.none() | st.floats(width=32), max_size=8), UNITS)
def test_float32_is_widened_first(values: list[Any], unit: Fraction) -> None:
    expected = [nearest(value, unit) for value in values]
    assert of_column(pa.array(values, pa.float32()), unit) == expected
    wrapped = [None if value is None else np.float32(value) for value in values]
    assert of_values(wrapped, unit) == expected


def test_nan_and_null_are_both_absent_and_told_apart_from_zero() -> None:
    column = pa.array([1.0, None, float("nan"), 0.0])
    assert of_column(column) == of_column(column.dictionary_encode()) == [10**6, None, None, 0]
    assert of_column(column.slice(1, 2)) == [None, None]
    bitmap, garbage = pa.py_buffer(b"\x00"), pa.py_buffer(np.array([7.0, math.inf]))
    assert of_column(pa.Array.from_buffers(pa.float64(), 2, [bitmap, garbage])) == [None, None]
    garbage = pa.py_buffer(np.full(4, -1, np.int64))
    kind = pa.decimal128(5, 2)
    assert of_column(pa.Array.from_buffers(kind, 2, [bitmap, garbage])) == [None, None]

"""Every operation on exact columns equals the one on Python integers, whatever the form."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_dp.mechanisms.numerics import integers

SMALL = st.integers(-5, 5)
EDGES = st.sampled_from(
    [s * ((1 << p) + d) for p in (61, 62, 63) for d in (-1, 0, 1) for s in (1, -1)]
)
WIDE = st.integers(-(1 << 150), 1 << 150)
COLUMNS = st.lists(st.one_of(SMALL, EDGES, WIDE), max_size=7)
INT64 = st.lists(st.one_of(SMALL, st.integers(-(1 << 62) + 1, (1 << 62) - 1)), max_size=7)


def column(values: list[int], wide: bool = False) -> np.ndarray:
    """Return the values in the narrow form if they allow it and `wide` is not asked for."""
    found = np.empty(len(values), object)
    found[:] = values
    return found if wide else integers.narrow(found)


@settings(max_examples=100, deadline=None)
@given(values=COLUMNS, wide=st.booleans())
def test_the_forms_hold_the_same_values(values, wide):
    found = column(values, wide)
    assert found.tolist() == values
    assert integers.widen(found).tolist() == values
    assert integers.narrow(integers.widen(found)).tolist() == values


def test_a_narrow_column_leaves_room_for_a_sum_of_two():
    assert column([(1 << 62) - 1]).dtype == np.int64
    assert column([1 << 62]).dtype == column([-(1 << 62)]).dtype == object


@settings(max_examples=100, deadline=None)
@given(values=st.one_of(COLUMNS, INT64), data=st.data())
def test_sums_are_those_of_integers(values, data):
    """Of segments, of all up to a place, and by an index."""
    starts = sorted({0, *data.draw(st.sets(st.integers(0, max(0, len(values) - 1))))})
    starts = starts if values else []
    ends = [*starts[1:], len(values)] if values else []
    sums = integers.segment_sums(column(values), np.array(starts, np.int64))
    assert sums.tolist() == [sum(values[a:b]) for a, b in zip(starts, ends, strict=True)]
    expected = [sum(values[: place + 1]) for place in range(len(values))]
    assert integers.running_sums(column(values)).tolist() == expected
    places = [data.draw(st.integers(0, 3)) for _ in values]
    expected = [sum(v for v, at in zip(values, places, strict=True) if at == n) for n in range(4)]
    assert integers.sums_at(np.array(places, np.int64), column(values), 4).tolist() == expected


@settings(max_examples=100, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.one_of(SMALL, EDGES, WIDE), st.one_of(SMALL, EDGES)), max_size=5),
    wide=st.booleans(),
)
def test_sums_and_products_of_columns_are_those_of_integers(pairs, wide):
    left, right = column([a for a, _ in pairs]), column([b for _, b in pairs], wide)
    assert integers.add(left, right).tolist() == [a + b for a, b in pairs]
    assert integers.product(left, right).tolist() == [a * b for a, b in pairs]


def test_sums_at_the_edge_do_not_wrap():
    edge = np.full(3, (1 << 62) - 1)
    assert integers.add(edge, edge).tolist() == [(1 << 63) - 2] * 3
    assert integers.product(edge, np.full(3, 2)).tolist() == [(1 << 63) - 2] * 3
    assert integers.segment_sums(edge, np.array([0])).tolist() == [3 * ((1 << 62) - 1)]
    assert integers.running_sums(edge).tolist() == [n * ((1 << 62) - 1) for n in (1, 2, 3)]
    assert integers.sums_at(np.zeros(3, np.int64), edge, 1).tolist() == [3 * ((1 << 62) - 1)]
    many = np.full(1 << 10, 1 << 53)
    assert integers.segment_sums(many, np.array([0])).tolist() == [1 << 63]


@pytest.mark.parametrize("sentinel", [integers.LOWEST, integers.HIGHEST])
def test_no_value_stays_no_value_in_either_form(sentinel):
    narrow = np.array([sentinel, 0, -sentinel - 1, 5])
    for form in (narrow, integers.widen(narrow)):
        assert integers.is_missing(form, sentinel).tolist() == [True, False, False, False]
    assert integers.narrow(integers.widen(narrow)).dtype == object


def test_the_sentinels_are_outside_of_all_values():
    wide = integers.widen(np.array([integers.LOWEST, integers.HIGHEST]))
    assert wide[0] <= -integers.WIDEST and wide[1] >= integers.WIDEST
    mixed = integers.concatenate([np.array([integers.LOWEST, 1]), column([integers.WIDEST - 1])])
    assert integers.is_missing(mixed, integers.LOWEST).tolist() == [True, False, False]
    assert np.maximum.reduce(mixed) == integers.WIDEST - 1


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.integers(-(1 << 191), (1 << 191) - 1), max_size=6))
def test_limbs_hold_every_sum_of_values(values):
    limbs = integers.to_limbs(column(values, wide=True))
    assert limbs.dtype == np.int64 and limbs.shape == (3, len(values))
    high, *lower = limbs.astype(object)
    assert (high << 128 | (lower[0] % 2**64) << 64 | lower[1] % 2**64).tolist() == values


def test_the_magnitude_is_an_upper_bound():
    values = np.array([(1 << 53) + 1] * 9 + [-1] * 7)
    assert integers.magnitude(values) >= 9 * ((1 << 53) + 1) + 7
    assert integers.magnitude(values) <= (9 * ((1 << 53) + 1) + 7) * (1 + 1e-8)


@settings(max_examples=100, deadline=None)
@given(values=COLUMNS, power=st.integers(0, 250), wide=st.booleans())
def test_quotients_are_rounded_down_for_divisors_of_any_size(values, power, wide):
    found = integers.divide(column(values, wide), 1 << power)
    assert found.tolist() == [value // (1 << power) for value in values]


UNITS = [Fraction(1), Fraction(5), Fraction(1, 10**6), Fraction(1, 3), Fraction(0.01)]


@pytest.mark.parametrize("unit", [*UNITS, Fraction(7, 2), Fraction(1, 10**30 + 1)], ids=str)
@pytest.mark.parametrize("wide", [False, True])
def test_scale_gives_integers_or_the_nearest_floats(unit, wide):
    for numbers in ([0, 1, -7, 123456789, (1 << 53) + 1], [1 << 90, -(1 << 140), 3], [], [-1]):
        found = integers.scale(column(numbers, wide), unit).tolist()
        kind = int if unit.denominator == 1 else float
        assert found == [kind(number * unit) for number in numbers]
        assert {type(value) for value in found} <= {kind}


def test_sums_of_other_types_do_not_wrap() -> None:
    assert integers.segment_sums(np.array([2**64 - 1], np.uint64), np.array([0])) == [2**64 - 1]
    many, starts = np.full(300, 100, np.int8), np.array([0, 100])
    assert integers.segment_sums(many, starts).tolist() == [10_000, 20_000]
    assert integers.sums_at(np.zeros(300, np.int64), many > 0, 1).tolist() == [300]

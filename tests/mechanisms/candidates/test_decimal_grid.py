"""DecimalGrid: what prints with few digits comes out as itself; look-ups and weights are exact."""

import bisect
import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import DecimalGrid, default_values, values_between
from beam_dp.mechanisms.numerics.integers import Number

UNIT = Fraction(1, 10**6)


@functools.cache
def listed() -> list[Number]:
    """Return the values of the default grid, one by one."""
    return list(default_values(UNIT))


def rounded_up(grid: Candidates, value: float) -> Number:
    """Return the candidate of a value; the top for what is above it."""
    return grid[min(grid.index(value), grid.size - 1)]


def decimals(low: int, digits: int, decades: int) -> list[Fraction]:
    """Return the grid by its definition: all multiples of 10^low of so few digits up to the top."""
    step, top = Fraction(10) ** low, 10**decades
    found = {0}
    for power in range(decades + 1):
        found |= {m * 10**power for m in range(10**digits) if m * 10**power <= top}
    return sorted({sign * m * step for m in found for sign in (1, -1)})


@pytest.mark.parametrize(("low", "digits", "decades"), [(-2, 2, 4), (0, 1, 3), (3, 3, 5)])
def test_it_holds_all_decimals_of_few_digits_and_nothing_else(low, digits, decades):
    grid = DecimalGrid(low, digits, decades)
    values = decimals(low, digits, decades)
    assert [grid[i] for i in range(grid.size)] == [float(value) for value in values]
    least = min(b - a for a, b in itertools.pairwise(values))
    assert float(grid.gap) == pytest.approx(float(least))


@pytest.mark.parametrize("value", [5, 0.25, 1950, -3.14, 0.000001, 1e18, 0])
def test_numbers_that_people_use_come_out_as_themselves(value):
    grid = default_values(UNIT)
    assert grid[grid.index(value)] == value
    assert grid.indexes(np.array([value]))[0] == grid.index(value)
    assert grid.nearest(value) == value
    assert rounded_up(grid, value) == value


def test_what_lies_between_is_rounded_up():
    grid = default_values(UNIT)
    found = [rounded_up(grid, value) for value in (12345, 1.00001, -12345, 2e18)]
    assert found == [12350, 1.001, -12340, 1e18]


def test_all_look_ups_are_those_of_bisection():
    grid, random = default_values(UNIT), np.random.default_rng(1)
    every = np.array(listed())
    assert (np.diff(every) > 0).all() and len(every) == grid.size == 380_001
    floats = random.choice([-1, 1], 500) * 10 ** random.uniform(-9, 22, 500)
    near = np.nextafter(random.choice(every, 500), random.choice([-9e99, 9e99], 500))
    # Ints from 2^53 on need not be floats.
    ints = [[wide, -wide, 5, wide - 1] for wide in (2**53 + 1, 2**62, 10**18)]
    for values in (floats, near, random.choice(every, 500), [math.inf, -math.inf], *ints):
        array = np.asarray(values)
        expected = [bisect.bisect_left(listed(), value) for value in array.tolist()]
        assert grid.indexes(array).tolist() == expected
        assert [grid.index(value) for value in array[:4].tolist()] == expected[:4]
    assert grid.indexes([math.nan])[0] == grid.size


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "unit", [1, Fraction(1, 100), 5, Fraction(1, 3), 2**200, Fraction(1, 2**200)]
)
def test_the_default_grid_begins_at_the_unit(unit):
    exact = Fraction(unit)
    grid = default_values(exact)
    first = Fraction(grid[grid.index(1e-300)])
    assert first <= exact * (1 + Fraction(1, 2**50))
    # Every multiple of the unit is rounded up by a thousandth at most.
    for multiple in (1, 2, 3, 7, 99, 12345, 10**9 + 1):
        rounded = Fraction(rounded_up(grid, float(multiple * exact)))
        assert abs(rounded - multiple * exact) <= multiple * exact / 999
    power = exact.denominator == 1 and str(unit).strip("0") == "1"
    assert not power or Fraction(grid.gap) == exact


def test_weights_are_looked_up_from_both_sides():
    grid = DecimalGrid(0, 1, 2)
    before = grid.weight_before(np.arange(grid.size + 1))
    weights = [2**32 // m for m in (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 9, 8, 7, 6, 5, 4, 3, 2, 1)]
    assert np.diff(before).tolist() == [*weights, 2**32, *weights[::-1]]
    for i in range(grid.size):
        assert grid.index_at(int(before[i])) == grid.index_at(int(before[i + 1]) - 1) == i


def test_other_candidates_weigh_one_each():
    for grid in (Candidates.of([1, 5, 9]), Candidates.linear(0, 10**18, 1)):
        assert grid.weight_before(np.array([0, 2, grid.size])).tolist() == [0, 2, grid.size]
        assert grid.index_at(2) == 2


BOUNDS = [(0, 120), (-5, 5), (Fraction(1, 4), None), (None, 7), (1_000_000, 1_000_100), (5, 1e9)]


def between(low, high) -> Candidates:
    """Return the candidates between two bounds."""
    ends = (None if end is None else Fraction(end) for end in (low, high))
    return values_between(UNIT, *ends)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_known_bounds_are_the_ends_and_decimals_between_are_kept(low, high):
    grid, every = between(low, high), np.array(listed())
    values = grid.floors
    assert (np.diff(values) > 0).all() and len(values) == grid.size
    first, last = (-1e18 if low is None else low), (1e18 if high is None else high)
    assert (grid[0], grid[-1]) == (values[0], values[-1]) == (first, last)
    inside = every[(every >= first) & (every <= last)]
    assert np.isin(inside, values).all()
    assert Fraction(float(np.diff(values).min())) == grid.gap
    assert rounded_up(grid, first) == first and rounded_up(grid, 2e18) == last
    before = grid.weight_before(np.arange(grid.size + 1))
    assert before[0] == 0 and (np.diff(before) > 0).all()
    for i in (0, 1, grid.size // 2, grid.size - 1):
        assert grid.index_at(int(before[i])) == grid.index_at(int(before[i + 1]) - 1) == i


def test_two_bounds_have_even_steps_between():
    narrow = between(1_000_000, 1_000_100)
    assert {1_000_000.1, 1_000_050, 1_000_099.9} <= set(narrow)
    assert narrow.size == 1001
    wide = between(0, 120).floors
    assert np.isin([0.1, 77.7, 119.9, 0.000001, 0.01234], wide).all()


def test_half_of_the_weight_between_two_bounds_is_that_of_the_distance():
    grid = between(0, 100)
    half, whole = grid.weight_before(np.array([grid.index(50.0), grid.size])).tolist()
    # The upper half has half of that, and of the logarithm's one octave of more than twenty.
    assert 0.25 < 1 - half / whole < 0.33

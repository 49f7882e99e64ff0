"""FinerGrid: its numbers by definition, look-ups by bisection, weights and slots of cells."""

import bisect
import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.candidates.decimal_grid import (
    DecimalGrid,
    FinerGrid,
    default_values,
)

UNIT = Fraction(1, 10**6)
WHOLE = FinerGrid(default_values(UNIT))
SMALL = [
    FinerGrid(DecimalGrid(0, 1, 3)),
    FinerGrid(DecimalGrid(-2, 1, 4)),
    FinerGrid(DecimalGrid(-2, 1, 4, lower=Fraction(7, 2))),
]


def indexes_of(grid: FinerGrid) -> list[int]:
    """Return the indexes that have a weight."""
    weights = np.diff(grid.weight_before(np.arange(grid.size + 1)))
    return np.flatnonzero(weights).tolist()


def between(grid: DecimalGrid) -> list[float]:
    """Return the grid by its definition, of whole multiples of 10^low."""
    found, unit = [grid[0]], Fraction(10) ** grid.low
    for low, high in itertools.pairwise(Fraction(repr(value)) for value in grid):
        gap = high - low
        power = next(power for power in range(-30, 30) if Fraction(10) ** (power + 1) > gap)
        step = max(Fraction(10) ** (power - 4), unit)
        even = gap == Fraction(10) ** power and low % gap == 0
        steps = range(1, int(gap / step) if even else 1)
        found += [*(float(low + j * step) for j in steps), float(high)]
    return found


@pytest.mark.parametrize("grid", SMALL, ids=repr)
def test_it_has_all_numbers_of_four_digits_more_and_nothing_else(grid):
    places = indexes_of(grid)
    values = grid._values(np.array(places)).tolist()
    assert values == between(grid.grid) == sorted(set(values))
    assert [grid[i] for i in places[::97]] == values[::97]
    mirrored = grid.mirrored()
    assert (-mirrored._values(np.array(indexes_of(mirrored)))[::-1]).tolist() == values


@pytest.mark.parametrize("grid", SMALL, ids=repr)
def test_look_ups_are_those_of_bisection(grid):
    places = indexes_of(grid)
    values = grid._values(np.array(places)).tolist()
    random = np.random.default_rng(2)
    asked = [*random.uniform(-1500, 3000, 300), *random.choice(values, 100), 1e9, -1e9]
    expected = [
        places[at] if at < len(places) else grid.size
        for at in (bisect.bisect_left(values, each) for each in asked)
    ]
    assert grid.indexes(np.array(asked)).tolist() == expected
    assert [grid.index(each) for each in asked[::7]] == expected[::7]
    assert grid.index(Fraction(50)) == grid.indexes(np.array([50]))[0] == grid.index(50.0)
    assert grid.indexes(np.array([np.nan]))[0] == grid.size


@pytest.mark.parametrize("value", [5, 0.25, 34.8173, -3.141592, 1234567.8, 99.99, 0, 1e18, -1e18])
def test_numbers_of_eight_digits_come_out_as_themselves(value):
    assert WHOLE[WHOLE.index(value)] == value
    assert WHOLE.indexes(np.array([value]))[0] == WHOLE.index(value)


def test_neighbours_are_far_nearer_than_those_of_four_digits():
    values = np.round(np.random.default_rng(3).lognormal(3, 2, 2000), 6)
    found = WHOLE._values(WHOLE.indexes(values))
    assert (found >= values).all() and (found - values <= 1e-7 * values).all()


@pytest.mark.parametrize("grid", [*SMALL, WHOLE], ids=repr)
def test_a_cell_weighs_as_its_candidate_and_most_is_the_candidates_own(grid):
    cells = np.unique(np.random.default_rng(4).integers(0, grid.grid.size, 20))
    coarse = np.diff(grid.grid.weight_before(np.arange(grid.grid.size + 1)))
    for cell in cells.tolist():
        ends = np.arange(cell * 10_000, (cell + 1) * 10_000 + 1)
        for before, whole in (
            (grid.weight_before, int(coarse[cell]) << 14),
            (grid.slots_before, grid.slots),
        ):
            weights = np.diff(before(ends))
            filled = np.flatnonzero(weights)
            assert weights.sum() == whole and (weights >= 0).all()
            own = filled[-1]
            assert grid[cell * 10_000 + int(own)] == grid.grid[cell]
            others = weights[filled[:-1]]
            assert len(set(others.tolist())) <= 1
            assert others.sum() <= max(whole / 4, 10_000)


@pytest.mark.parametrize("grid", [*SMALL, WHOLE], ids=repr)
def test_a_weight_and_a_slot_fall_on_the_index_that_has_them(grid):
    random = np.random.default_rng(5)
    for before, at in (
        (grid.weight_before, grid.index_at),
        (grid.slots_before, grid.index_of_slot),
    ):
        [whole] = before(np.array([grid.size])).tolist()
        for amount in [0, whole - 1, *random.integers(0, whole, 60).tolist()]:
            first, last = before(np.array([at(amount), at(amount) + 1])).tolist()
            assert first <= amount < last


def test_it_is_pickled_as_a_few_numbers():
    again = pickle.loads(pickle.dumps(WHOLE))
    assert again == WHOLE and len(pickle.dumps(WHOLE)) < 400

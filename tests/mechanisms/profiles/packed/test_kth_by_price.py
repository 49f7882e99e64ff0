"""The k-th largest row of several owners (its neighbours are in `test_by_price`)."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.profiles.packed import kth_by_price


def of(owners, items, k, removals, counts=None):
    ones = np.ones(len(items), np.int64) if counts is None else counts
    return kth_by_price.profile(owners, items, ones, k, removals, -math.inf)


def test_the_loss_of_the_largest_is_the_fractional_cover():
    """A triangle is covered by 3/2 of its people, so that one removal leaves some of it."""
    triangle = np.array([[0, 1, 2], [1, 2, 0]])
    assert of(triangle, np.full(3, 5), 1, 3) == [5, 5, -math.inf, -math.inf]
    star = np.array([[0, 0, 0], [1, 2, 3]])
    assert of(star, np.array([3, 2, 1]), 1, 2) == [3, -math.inf, -math.inf]


@pytest.mark.sampled(3)
def test_it_is_the_cover_of_the_rows_above_by_an_independent_solver():
    generator = np.random.default_rng(1)
    for _ in range(20):
        owners, items = generator.integers(0, 8, (3, 20)), generator.integers(0, 9, 20)
        found = of(owners, items, 1, 4)
        for k, level in enumerate(found):
            losses = {}
            for y in [-math.inf, *range(9)]:
                above = owners[:, items > y]
                lines = np.array([[-float(p in row) for p in range(8)] for row in above.T])
                cover = linprog(np.ones(8), lines, -np.ones(len(lines))).fun if len(lines) else 0
                losses[y] = math.ceil(float(cover) - 1 / 32)
            assert level == min(y for y, loss in losses.items() if loss <= k)


def test_people_with_very_many_rows_each_are_counted_whole():
    """Five people with 1,000 rows each: whoever is left has a fourth largest row."""
    owners = np.stack([np.repeat(np.arange(5), 1_000), np.repeat(np.arange(5), 1_000)])
    found = of(owners, np.repeat(np.arange(5), 1_000), 4, 6)
    assert found == [4, 3, 2, 1, 0, -math.inf, -math.inf]


def test_counts_stand_for_rows():
    generator = np.random.default_rng(2)
    owners, items = generator.integers(0, 8, (2, 12)), generator.integers(0, 5, 12)
    counts = generator.integers(1, 4, 12)
    repeated = of(np.repeat(owners, counts, axis=1), np.repeat(items, counts), 5, 4)
    assert of(owners, items, 5, 4, counts) == repeated


def test_nobodys_rows_and_no_rows():
    nobody = np.full((2, 3), -1)
    assert of(nobody, np.arange(3), 1, 2) == [-math.inf] * 3
    with pytest.raises(ValueError, match="k"):
        of(nobody, np.arange(3), 0, 2)

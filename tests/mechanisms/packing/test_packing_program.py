"""The packing program: bounds that hold for every guess, and meet at a solution."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.packing.packing_program import Packing

PRICES = [Fraction(1, 64), Fraction(17, 32), Fraction(1), Fraction(3, 2), Fraction(5)]


def some_packing(generator, roles=3, people=6, most=10, single=False):
    """Return a small program in which every value has a row and every row an owner."""
    size = int(generator.integers(1, most + 1))
    values = np.sort(np.unique(generator.integers(0, 4, size), return_inverse=True)[1])
    values = np.arange(size) if single else values
    owners = np.full((size, roles), -1)
    for row in owners:
        count = generator.integers(1, roles + 1)
        row[:count] = np.sort(generator.permutation(people)[:count])
    weights = generator.integers(1, 9, int(values.max()) + 1)
    return Packing(owners, values, weights, PRICES[generator.integers(0, len(PRICES))])


def value_of(packing):
    """Return E / D by an independent solver."""
    rows, size = len(packing.values), len(packing.weights)
    lines = np.zeros((size + packing.people, rows))
    lines[packing.values, np.arange(rows)] = 1
    for row, owners in enumerate(packing.owners):
        lines[size + owners[owners >= 0], row] = 1
    limits = [*(packing.weights / float(packing.price)), *[1.0] * packing.people]
    return -float(linprog(-np.ones(rows), lines, limits).fun)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("wild", [0.0, 1.0, np.nan, np.inf, -np.inf, 1e300])
def test_bounds_hold_for_every_guess(wild, single):
    """To 1e-9, to which the other solver is right."""
    generator = np.random.default_rng(2)
    for _ in range(60):
        packing = some_packing(generator, single=single)
        removed = generator.normal(0.5, 1, packing.people)
        packed = generator.exponential(0.5, len(packing.values))
        removed[0] = packed[-1] = wild
        high, stays, people = packing.upper(removed)
        value = value_of(packing)
        assert float(packing.lower(packed)) <= value + 1e-9
        assert value <= float(high) + 1e-9
        assert value <= float(stays / packing.price + people) + 1e-9


def test_the_bounds_of_a_solution_meet():
    """Two values of one row each and a common owner: at a price of 1 she pays for one of them."""
    owners = np.array([[0, 1], [0, 2]])
    packing = Packing(owners, np.arange(2), np.ones(2, np.int64), Fraction(1))
    assert packing.lower(np.array([0.5, 0.5])) == 1
    assert packing.lower(np.array([1.0, 1.0])) == 1  # the load above the price is subtracted
    assert packing.upper(np.array([1.0, 0, 0])) == (1, 0, 1)
    heavy = Packing(owners, np.arange(2), np.array([1, 1 << 50]), Fraction(8))
    assert heavy.room.tolist() == [1 / 8, 1]
    assert heavy.lower(np.array([1.0, 7 / 8])) == 1
    shared = Packing(owners, np.zeros(2, np.int64), np.ones(1, np.int64), Fraction(1))
    assert 0.999 < shared.lower(np.array([1.5, 0.5])) <= 1  # cut to what the value has


def test_weights_a_million_times_apart_cost_no_precision():
    """Half of everything is sure to be there, to 2^-40 of the price."""
    generator = np.random.default_rng(3)
    owners = np.sort(generator.integers(0, 400, (1_000, 3)), axis=1)
    weights = np.append(generator.integers(1, 20, 999), 1 << 32)
    packing = Packing(owners, np.arange(1_000), weights, Fraction(1 << 20))
    assert packing.bits >= 40
    low = packing.lower(packing.room / 2)
    assert abs(float(low) - packing.room.sum() / 2) < 1_000 * 2.0**-40

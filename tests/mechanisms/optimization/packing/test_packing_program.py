"""The packing program: its exact value, and bounds that hold for every guess."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.optimization.packing.packing_program import Packing

PRICES = [Fraction(1, 64), Fraction(17, 32), Fraction(1), Fraction(3, 2), Fraction(5)]


def some_packing(generator, roles=3, people=6, most=10):
    """Return a small program in which every value has a row and every row an owner."""
    size = int(generator.integers(1, most + 1))
    values = np.sort(np.unique(generator.integers(0, 4, size), return_inverse=True)[1])
    owners = np.full((size, roles), -1)
    for row in owners:
        count = generator.integers(1, roles + 1)
        row[:count] = np.sort(generator.permutation(people)[:count])
    return Packing(owners, values, PRICES[generator.integers(0, len(PRICES))])


def value_of(packing):
    """Return E by an independent solver."""
    rows = len(packing.values)
    lines = np.zeros((packing.size + packing.people, rows))
    lines[packing.values, np.arange(rows)] = 1
    for row, owners in enumerate(packing.owners):
        lines[packing.size + owners[owners >= 0], row] = 1
    limits = [*[1.0] * packing.size, *[float(packing.price)] * packing.people]
    return -float(linprog(-np.ones(rows), lines, limits).fun)


def test_the_value_is_that_of_an_independent_solver():
    generator = np.random.default_rng(1)
    for _ in range(60):
        packing = some_packing(generator)
        value, removed = packing.solved()
        assert abs(float(value) - value_of(packing)) < 1e-9
        stays, people = packing.upper(removed)
        assert abs(float(stays + packing.price * people - value)) < 1e-9


@pytest.mark.parametrize("wild", [0.0, 1.0, np.nan, np.inf, -np.inf, 1e300])
def test_bounds_hold_for_every_guess(wild):
    generator = np.random.default_rng(2)
    for _ in range(60):
        packing = some_packing(generator)
        removed = generator.normal(0.5, 1, packing.people)
        packed = generator.exponential(0.5, len(packing.values))
        removed[0] = packed[-1] = wild
        stays, people = packing.upper(removed)
        value = packing.solved()[0]
        assert packing.lower(packed) <= value <= stays + packing.price * people


def test_the_bounds_of_a_solution_meet():
    """Two values of one row each and a common owner: at a price of 1 she pays for one of them."""
    owners = np.array([[0, 1], [0, 2]])
    packing = Packing(owners, np.arange(2), Fraction(1))
    assert packing.lower(np.array([0.5, 0.5])) == 1
    assert packing.lower(np.array([1.0, 1.0])) == 1  # the load above the price is subtracted
    assert packing.upper(np.array([1.0, 0, 0])) == (0, 1)
    assert packing.lower(np.array([1.5, 0.5])) == Fraction(1, 2)  # more than 1 is nothing

"""Noise scaled to a private bound: its grid, its costs, and the theorem by sums."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget, check_total
from beam_dp.mechanisms.ratio.mechanisms import GridLaplace, shares
from tests.laws import laplace

BUDGET = Budget(Fraction(1), Fraction(1, 1000))


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), 1, Fraction(9, 8), 10**6])
def test_the_grid_is_finer_than_the_noise(epsilon) -> None:
    grid = GridLaplace(Fraction(epsilon))
    assert grid.resolution & (grid.resolution - 1) == 0
    assert grid.rate == Fraction(epsilon) / grid.resolution <= Fraction(1, 1000)


def test_neighbouring_steps_are_at_most_the_resolution_apart() -> None:
    grid = GridLaplace(Fraction(1))
    for bound in (Fraction(1, 3), Fraction(1), Fraction(7, 5)):
        for start in (Fraction(k, 977) for k in range(-300, 300, 7)):
            for move in (bound, bound * Fraction(999, 1000), -bound):
                steps = [
                    grid.steps(value.as_integer_ratio(), bound.as_integer_ratio())
                    for value in (start, start + move)
                ]
                assert abs(steps[0] - steps[1]) <= grid.resolution


def test_a_budget_of_rho_is_spent_as_epsilon() -> None:
    budget = Budget.zcdp(Fraction(1, 3), Fraction(1, 1000))
    first, second = shares("Test", budget, Fraction(1, 10))
    whole = first.epsilon + second.epsilon
    assert whole**2 / 2 <= Fraction(1, 3) < (whole + Fraction(1, 2**60)) ** 2 / 2
    check_total(budget, [("both", Budget(whole, first.delta), 1)])


def delta_of(tail: int, scale: float = 1.0) -> float:
    """Return the exact delta of a small mechanism at its epsilon, the largest over neighbours.

    f(x) = x^2 of a count x >= 0, LS(x) = 2 x + 1; the bound is 2 (x + DLap(r) + tail) + 1.
    """
    rate, grid, span = 0.7, GridLaplace(Fraction(1, 2)), 60
    first, resolution = laplace(rate, span), 8
    second = laplace(0.5 / resolution / scale, 1200)
    worst = 0.0
    for x, other in itertools.permutations(range(9), 2):
        if abs(x - other) > 1:
            continue
        total = 0.0
        for noisy in range(-span // 2, span // 2):
            bound = max(1, 2 * (noisy + tail) + 1)
            ends = [(2 * v * v * resolution + bound) // (2 * bound) for v in (x, other)]
            mine, theirs = first[noisy - x + span], first[noisy - other + span]
            moved = ends[1] - ends[0]
            shifted = np.roll(second, moved)
            shifted[:moved] = 0.0 if moved > 0 else shifted[:moved]
            shifted[len(shifted) + min(moved, 0) :] = 0.0
            excess = mine * second - math.exp(rate + 0.5) * theirs * shifted
            total += float(excess[400:-400].clip(0).sum())
        worst = max(worst, total)
    assert grid.epsilon == Fraction(1, 2)
    return worst


def test_the_theorem_by_sums_over_all_outcomes() -> None:
    """P[bound < LS] is P[X < -tail], and the whole release has at most that as its delta."""
    q = math.exp(-0.7)
    for tail in (0, 2, 5):
        assert 0 < delta_of(tail) <= q ** (tail + 1) / (1 + q) + 1e-12


def test_the_printed_hypothesis_is_refuted() -> None:
    """The article's: P[g <= LS] >= 1 - delta. A bound that is mostly too low keeps it."""
    q = math.exp(-0.7)
    above = q**8 / (1 + q)  # P[X > 7]: how often 2 (x + X - 7) + 1 is above 2 x + 1
    assert delta_of(-7) > 10 * above


def test_too_little_noise_is_seen() -> None:
    q = math.exp(-0.7)
    assert delta_of(5, scale=0.5) > q**6 / (1 + q)  # the broken twin: half of the noise


def test_the_costs_are_the_budget() -> None:
    assert shares("Test", BUDGET, 0.25) == (
        Budget(Fraction(1, 4), Fraction(1, 1000)),
        Budget(Fraction(3, 4)),
    )

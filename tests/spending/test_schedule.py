"""A schedule allows no run more than what keeps all of them within their limit, and hardly less."""

import itertools
import math
from fractions import Fraction

import pytest

import beam_dp as dp
from beam_dp.spending import schedule

CASES = [(30, 3.0, 1e-6), (7, 0.01, 1e-9), (3, 5.0, 0.01), (10, 0.01, 0.1)]


def of(runs: int, epsilon: float, delta: float) -> dict[str, list[str]]:
    lines = schedule.schedule(runs, dp.Budget(epsilon, delta)).splitlines()[1:4]
    return {name: [*rest] for name, *rest in map(str.split, lines)}


def spent(runs: int, each: float, total: float) -> float:
    """Return the delta of so many runs of randomized response, one outcome after the other."""
    odds = 1 / (1 + math.exp(-each))
    masses = {0: 1.0}
    for _ in range(runs):
        after: dict[int, float] = {}
        for (loss, mass), (way, chance) in itertools.product(
            masses.items(), ((1, odds), (-1, 1 - odds))
        ):
            after[loss + way] = after.get(loss + way, 0.0) + mass * chance
        masses = after
    return math.fsum(m * max(0.0, -math.expm1(total - loss * each)) for loss, m in masses.items())


@pytest.mark.parametrize(("runs", "epsilon", "delta"), CASES)
def test_runs_by_the_distribution_of_losses_spend_delta_and_hardly_less(runs, epsilon, delta):
    each = float(of(runs, epsilon, delta)["PLD"][0])
    assert spent(runs, each, epsilon) <= delta * (1 + 1e-6)
    assert spent(runs, each * 1.002, epsilon) > delta
    assert each >= 0.999 * epsilon / runs


@pytest.mark.parametrize(("runs", "epsilon", "delta"), CASES)
def test_a_ledger_takes_as_many_runs_as_were_asked_for(runs, epsilon, delta):
    rows = of(runs, epsilon, delta)
    total = dp.Budget(epsilon, delta)
    for name, (each, rho, word, limit) in rows.items():
        assert runs * Fraction(each) <= Fraction(limit) or word == "rho"
        if name == "zCDP":
            assert runs * Fraction(rho) <= Fraction(limit) <= total.to_zcdp().amount
            assert Fraction(each) ** 2 / 2 <= Fraction(rho)
        assert (word == "rho") == (rho != "-") == (name == "zCDP")


def test_without_a_delta_there_is_the_sum_only():
    said = schedule.schedule(7, dp.Budget(1))
    assert "0.1428" in said and "zCDP  " not in said and said.endswith("by zCDP and PLD")


@pytest.mark.parametrize("runs", [0, -1, 2.5, "7", True, schedule.MOST_RUNS + 1])
def test_a_wrong_number_of_runs_is_refused(runs):
    with pytest.raises((TypeError, ValueError), match="runs must be"):
        schedule.schedule(runs, dp.Budget(1))


def test_so_large_an_epsilon_that_nothing_is_private_is_refused():
    """Its odds would have a million bits."""
    with pytest.raises(ValueError, match="total_epsilon must be at most 100"):
        schedule.schedule(500, dp.Budget(1e6, 1e-6))

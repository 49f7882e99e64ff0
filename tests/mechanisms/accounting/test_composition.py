"""Runs together: the sum is exact, zCDP and the PLD are proved and tighter for many runs."""

import math
import sys
from fractions import Fraction

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.composition import Cost, composed
from beam_dp.mechanisms.accounting.zcdp import zcdp_epsilon
from beam_dp.mechanisms.numerics.checks import ParameterError

LIMIT = Budget(100, 1e-6)
TENTH = Fraction(1, 10)


def run(budget: Budget, times: int = 1) -> Cost:
    """A run that makes its whole of equal releases."""
    return Cost(budget, ((budget.scaled(Fraction(1, times)), times),))


def exact_delta(epsilon: float, times: int, total: float) -> float:
    """Return delta at `total` of so many randomized responses of epsilon: by their binomial law.

    Kairouz, Oh, Viswanath 2015, Theorem 3.3 in its plainest form: the loss is (2 j - times) epsilon
    where j of them answered truly.
    """
    likely, other = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    losses = ((2 * j - times) * epsilon for j in range(times + 1))
    chances = (math.comb(times, j) * likely**j * other ** (times - j) for j in range(times + 1))
    pairs = zip(losses, chances, strict=True)
    return sum(p * max(0.0, 1 - math.exp(total - loss)) for loss, p in pairs)


def test_the_sum_is_exact_and_the_only_way_of_costs_that_are_not_planned() -> None:
    together = composed([run(Budget(TENTH, 1e-9))] * 10, LIMIT, planned=False)
    assert together.ways == {"sum": 1}
    assert together.delta == 10 * Fraction(1e-9) and together.amount == 1


def test_a_delta_beyond_the_limit_leaves_the_sum_no_epsilon() -> None:
    together = composed([run(Budget(1, 1e-6))] * 2, LIMIT, planned=False)
    assert together.amount == math.inf


def test_a_limit_of_rho_adds_up_rho() -> None:
    costs = [run(Budget.zcdp(TENTH)), run(Budget(TENTH, 1e-9), times=2)]
    together = composed(costs, Budget.zcdp(1, 1e-6), planned=True)
    assert together.ways == {"sum": TENTH + 2 * Fraction(1, 20) ** 2 / 2}
    assert together.delta == Fraction(1e-9)


def test_a_run_in_rho_has_no_sum_of_epsilons_but_planned_ones_are_converted() -> None:
    costs = [run(Budget.zcdp(TENTH))] * 3
    assert composed(costs, LIMIT, planned=False).amount == math.inf
    together = composed(costs, LIMIT, planned=True)
    assert together.way == "zCDP" and together.amount == zcdp_epsilon(3 * TENTH, 1e-6)
    assert together.delta == LIMIT.delta


@pytest.mark.parametrize(("epsilon", "times"), [(1.0, 1), (0.1, 40), (0.5, 7), (1.0, 12)])
def test_the_pld_of_equal_pure_releases_is_the_binomial_law_rounded_up(
    epsilon: float, times: int
) -> None:
    together = composed([run(Budget(epsilon * times), times)], LIMIT, planned=True)
    found = float(together.ways["PLD"])
    assert exact_delta(epsilon, times, found) <= 1e-6
    assert exact_delta(epsilon, times, found * 0.995 - 1e-3) > 1e-6
    assert found <= epsilon * times * (1 + 1e-4)


def test_the_tightest_way_counts() -> None:
    many = composed([run(Budget(TENTH))] * 100, LIMIT, planned=True)
    assert many.way == "PLD" and many.amount < many.ways["zCDP"] < many.ways["sum"] == 10
    pure = composed([run(Budget(TENTH))] * 2, Budget(1), planned=True)
    assert pure.way == "sum" and pure.ways["zCDP"] == pure.ways["PLD"] == math.inf


def test_deltas_of_releases_are_taken_from_that_of_the_limit() -> None:
    ways = composed([run(Budget(TENTH, 1e-8))] * 100, LIMIT, planned=True).ways
    assert ways["zCDP"] == math.inf and ways["PLD"] == math.inf
    ways = composed([run(Budget(TENTH, 1e-9))] * 100, LIMIT, planned=True).ways
    without = composed([run(Budget(TENTH))] * 100, LIMIT, planned=True).ways
    assert without["zCDP"] < ways["zCDP"] < 10 and without["PLD"] < ways["PLD"] < 10


def test_a_delta_that_floats_cannot_hold_is_not_counted_by_floats() -> None:
    together = composed([run(Budget(TENTH))] * 10, Budget(1, 1e-15), planned=True)
    assert together.ways["PLD"] == math.inf and together.amount == 1


def test_planned_costs_need_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    with pytest.raises(ParameterError, match="pip install dp-accounting"):
        composed([run(Budget(1))], LIMIT, planned=True)
    assert composed([run(Budget(1))], LIMIT, planned=False).amount == 1


def test_costs_beyond_all_use_have_a_sum_alone() -> None:
    for budget in (Budget(800), Budget(1, Fraction(999, 1000))):
        found = composed([Cost(budget, ((budget, 7),))], Budget(10_000, Fraction(1, 2)), True)
        assert found.ways["PLD"] == math.inf

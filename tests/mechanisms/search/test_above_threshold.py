"""AboveThreshold: its failure formula, its exact distribution, and its gate.

What it has in common with other searches is in test_searches.py; that a gate costs no more is
audited exactly in tests/audit/test_search_audit.py.
"""

import decimal
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import AboveThreshold
from tests import laws
from tests.mechanisms.search.test_searches import chances, profile_of

BUDGETS = [Budget(0.5), Budget(1), Budget(4), Budget.zcdp(0.5)]


def failure(first: float, second: float, tau: int, theta: int, queries: int) -> float:
    """Return the failure on the step profile by its definition, summed over rho one by one."""
    r = np.arange(math.ceil(60 / first) + theta)
    right = (1 - np.exp(-second * (tau + r))) ** queries * np.exp(
        -second * np.maximum(r - theta, 0)
    )
    return float(1 - (-math.expm1(-first)) * (np.exp(-first * r) @ right))


@pytest.mark.parametrize("n", [2, 1000, 2**20])
@pytest.mark.parametrize(("epsilon", "beta"), [(0.3, 1e-6), (1, 0.05), (5, 0.5)])
def test_the_failure_formula_is_at_most_beta(n, epsilon, beta):
    found = AboveThreshold(Budget(epsilon), beta)._thresholds(n)
    tau = found.shift + 1 - found.theta
    assert failure(float(found.first), float(found.second), tau, found.theta, n - 1) <= beta


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(10**400)])
@pytest.mark.parametrize("n", [2, 2**2000])
def test_the_budget_is_never_exceeded(epsilon, n):
    pure = AboveThreshold(Budget(epsilon))._thresholds(n)
    assert 0 < pure.first and 0 < pure.second and pure.first + pure.second <= epsilon
    rho = AboveThreshold(Budget.zcdp(epsilon))._thresholds(n)
    assert 0 < rho.first and 0 < rho.second
    assert (rho.first + 2 * rho.second) ** 2 <= 8 * epsilon


def test_distribution_sums_the_definition():
    # By 40-digit decimals from the definition, for every candidate, to 1e-12 of each chance.
    search = AboveThreshold(Budget(0.8), 0.3)
    losses = [9, 9, 7, 4, 4, 1, 0]
    chosen = search._thresholds(len(losses))
    with decimal.localcontext(prec=40):
        first = decimal.Decimal(chosen.first.numerator) / chosen.first.denominator
        second = decimal.Decimal(chosen.second.numerator) / chosen.second.denominator
        expected = [decimal.Decimal(0)] * len(losses)
        for r in range(600):
            left = (1 - (-first).exp()) * (-first * r).exp()
            for i, loss in enumerate(losses[:-1]):
                stop = (-second * max(loss - chosen.theta + r, 0)).exp()
                expected[i] += left * stop
                left *= 1 - stop
            expected[-1] += left
    found = laws.distribution(search, *profile_of(losses, 10))
    assert found == pytest.approx([float(p) for p in expected], rel=1e-12, abs=0)


def test_the_last_loss_is_never_asked():
    search = AboveThreshold(Budget(1), 0.3)
    assert laws.distribution(search, *profile_of([5, 3, 3], 6)) == laws.distribution(
        search, *profile_of([5, 3, 0], 6)
    )


@pytest.mark.parametrize("budget", BUDGETS)
def test_who_passes_the_gate_stops_at_no_other_candidate_of_that_loss(budget):
    """With any number of people, and all of them above every candidate but the last."""
    gated, plain = AboveThreshold(budget, gate=True), AboveThreshold(budget)
    false_stop = []
    for search in (gated, plain):
        found = [chances(search, [people] * 63 + [0]) for people in range(0, 120, 3)]
        # (Of all runs: where nobody passes, that it is 3% of those who do says little.)
        false_stop.append(max(math.fsum(chance[1:-1]) for chance in found))
    assert false_stop[0] <= 0.03
    assert false_stop[1] > 0.2  # the broken twin: without the gate


@pytest.mark.parametrize("budget", BUDGETS)
def test_all_other_answers_are_within_the_shift_but_for_beta(budget):
    """Over all profiles of four candidates, in steps of a quarter of the shift."""
    search = AboveThreshold(budget, 0.2, gate=True)
    shift = search.shift(4)
    steps = sorted({0, 1, shift // 2, shift, shift + 1, 3 * shift})
    for losses in itertools.combinations_with_replacement(reversed(steps), 4):
        rounded = [*losses[:-1], 0]
        before = [math.inf, *rounded[:-1]]
        rows = list(zip(chances(search, losses), rounded, before, strict=True))[1:]
        assert math.fsum(p for p, loss, last in rows if loss > shift or last < 1) <= 0.2 + 1e-9


def test_where_the_gate_is_the_whole_plateau_and_where_all_are_one():
    search = AboveThreshold(Budget(1), gate=True)
    profile, candidates = profile_of([200, 3, 0, 0], 201)
    # 200 people end at the gate with a chance below e^-50.
    assert 0 not in {search.choose(profile, candidates) for _ in range(50)}
    # A plateau of all is left with 0.14%: in more than half of 20 draws with less than 1e-26.
    assert sum(search.choose(Profile([0]), candidates) == 0 for _ in range(20)) >= 10
    assert search.choose(Profile([9, 9]), Candidates.of([7])) == 7


@pytest.mark.parametrize("rarity", [1.0, 5.0, 20.0])
def test_a_stop_beyond_the_reach_is_that_rare(rarity):
    for gate in (False, True):
        search = AboveThreshold(Budget(1), 0.3, gate=gate)
        tail_bound = search.tail_bound(8, rarity)
        assert math.fsum(chances(search, [tail_bound + 1] * 7 + [0])[:-1]) <= math.exp(-rarity)
        assert search.tail_bound(1, rarity) == 0

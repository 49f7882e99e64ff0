"""ExponentialMechanism: its tau, its weights and its groups."""

import math

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.search import ExponentialMechanism
from tests import laws
from tests.mechanisms.search.test_searches import profile_of


def test_tau_is_the_smallest_one():
    for n in (2, 3, 100, 2**40):
        for epsilon in (0.3, 1, 4):
            tau = (ExponentialMechanism(Budget(epsilon)).shift(n) + 1) // 2

            def failure(tau, n=n, epsilon=epsilon):
                p = math.exp(-epsilon * tau / 2)
                two, step = (n - 2) * p, (n - 1) * p * p
                return max(two / (2 + two), step / (1 + step))

            assert failure(tau) <= 0.05
            assert tau == 1 or failure(tau - 1) > 0.05


def test_distribution_is_the_definition():
    losses = [9, 9, 7, 4, 4, 1, 0, 0]
    search = ExponentialMechanism(Budget(0.7), 0.3)
    tau = (search.shift(len(losses)) + 1) / 2
    strict = [math.inf, *losses[:-1]]
    scores = [max(a - tau, tau - b, -tau) for a, b in zip(losses, strict, strict=True)]
    weights = [math.exp(-0.35 * score) for score in scores]
    expected = [weight / sum(weights) for weight in weights]
    assert laws.distribution(search, *profile_of(losses, 10)) == pytest.approx(expected, rel=1e-12)


def test_the_top_candidate_counts_as_the_rounded_value():
    # f lies above the top: rounded up it is the top, whose loss is then 0.
    search = ExponentialMechanism(Budget(1), 0.3)
    above, candidates = profile_of([6, 5, 3], 7)
    rounded, _ = profile_of([6, 5, 0], 7)
    assert laws.distribution(search, above, candidates) == laws.distribution(
        search, rounded, candidates
    )
    lone, _ = profile_of([6, 6, 6], 6)
    assert laws.distribution(search, lone, candidates) == pytest.approx(
        laws.distribution(search, profile_of([6, 6, 0], 6)[0], candidates)
    )

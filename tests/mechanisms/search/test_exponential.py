"""ExponentialMechanism: its tau, its weights and its groups."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import LazyUniform, Noise
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import ExponentialMechanism, exponential
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


def test_a_uniform_at_the_border_of_two_groups_is_refined():
    # Weights 1 and 1: the first 64 bits 0111...1 of U leave its side of 1/2 open until the end of
    # the enclosure is known; weights 1 and e^-1 with U just at their border need more bits.
    class Border(Noise):
        def uniform(self):
            share = Fraction(1) / (1 + Fraction(math.exp(-1)))
            return LazyUniform(self, int(share * 2**50), 50)

    sizes, scores = np.array([1, 1]), np.array([0, 2])
    found = {exponential.draw_run(sizes, scores, Fraction(1, 2), Border()) for _ in range(50)}
    assert found <= {0, 1}


def test_a_huge_set_is_grouped_in_no_more_than_two_groups_per_plateau():
    profile = Profile([1000 - 4 * k for k in range(100)])
    groups = exponential._groups(profile, Candidates.linear(0, 2**64, 1), 90)
    assert len(groups) <= 2 * 101
    assert sum(group.size for group in groups) == 2**64 + 1

"""Each person their own epsilon: ratios of exact output probabilities, and what goes out noisy."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms import preprocessing
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.preprocessing import Personalised, Preprocessed, noisy, proportional
from tests.mechanisms.preprocessing import brute

VALUES = [3, 90, 14, 60, -40]
EPSILONS = (Fraction(1), Fraction(1, 2), Fraction(1), Fraction(1, 4), Fraction(1, 2))


def steps(values, deltas):
    """Return g of the mean on the grid of whole numbers, rounded down, with whole Delta_i."""
    return math.floor(preprocessing.individual(brute.mean, values, deltas))


def charged(mechanism, deltas, g=steps):
    """Return the worst log-ratio of the Laplace densities per person, over all subsets."""
    worst = [Fraction(0)] * len(VALUES)
    for mask in range(1, 1 << len(VALUES)):
        here = [i for i in range(len(VALUES)) if mask >> i & 1]
        whole = g([VALUES[i] for i in here], [deltas[i] for i in here])
        for person in here:
            rest = [i for i in here if i != person]
            less = g([VALUES[i] for i in rest], [deltas[i] for i in rest])
            worst[person] = max(worst[person], abs(whole - less) / mechanism.scale)
    return worst


def test_the_laplace_mechanism_charges_nobody_more_than_their_epsilon():
    deltas = proportional(EPSILONS, 40)
    assert deltas == (40, 20, 40, 10, 20)
    mechanism = Personalised(deltas, EPSILONS)
    assert mechanism.scale == 40 and mechanism.guarantee == EPSILONS
    found = charged(mechanism, deltas)
    assert all(a <= b for a, b in zip(found, EPSILONS, strict=True))
    assert any(a == b for a, b in zip(found, EPSILONS, strict=True))


def test_the_mean_itself_would_charge_more():
    mechanism = Personalised(proportional(EPSILONS, 10), EPSILONS)
    found = charged(mechanism, (1,) * 5, lambda values, _: brute.mean(values) if values else 0)
    assert any(a > b for a, b in zip(found, EPSILONS, strict=True))


def test_the_exponential_mechanism_charges_nobody_more_than_their_epsilon():
    candidates = range(-50, 101, 30)
    deltas = proportional(EPSILONS, 8)
    mechanism = Personalised(deltas, EPSILONS)

    def scores(people):
        values, prices = [VALUES[i] for i in people], [deltas[i] for i in people]

        def score(candidate):
            def near(some):
                return -sum(abs(value - candidate) // 4 for value in some)

            return int(preprocessing.general(near, values, prices, 0))

        return [score(candidate) for candidate in candidates]

    everybody = list(range(len(VALUES)))
    whole = mechanism.distribution(scores(everybody))
    for person in everybody:
        rest = mechanism.distribution(scores([i for i in everybody if i != person]))
        ratios = [abs(math.log(a / b)) for a, b in zip(whole, rest, strict=True)]
        assert max(ratios) <= EPSILONS[person] + 1e-9


def test_draws_follow_the_distribution():
    # 4000 draws, 3 outcomes: Hoeffding, 2 * 3 * exp(-2 * 4000 * 0.06^2) = 2e-12.
    mechanism = Personalised((1, 1), (Fraction(1), Fraction(1, 2)))
    expected = mechanism.distribution([0, 2, 5])
    drawn = np.bincount([mechanism.exponential([0, 2, 5]) for _ in range(4000)], minlength=3) / 4000
    assert abs(drawn - expected).max() < 0.06
    flipped = mechanism.distribution([5, 2, 0])  # the broken twin: low scores win
    assert abs(drawn - flipped).max() > 0.06


def test_laplace_noise_has_the_scale():
    # P(X = 0) = tanh(1 / (2 b)) = 0.245; 4000 draws: 2 exp(-2 * 4000 * 0.06^2) = 6e-13.
    mechanism = Personalised((2, 1), (1, 1))
    drawn = mechanism.laplace(np.full(4000, 7))
    assert abs((drawn == 7).mean() - math.tanh(1 / 4)) < 0.06
    assert abs((drawn == 7).mean() - math.tanh(1 / 2)) > 0.06  # a scale that forgets Delta


def test_noise_of_a_release_has_the_scale_of_delta():
    # As above, with b = 2 and 4000 groups of one person.
    statistic = Preprocessed("mean", 2)
    drawn = noisy(statistic, np.ones(4000, np.int64), np.arange(4001), Budget(1.0))
    assert abs((drawn == 1).mean() - math.tanh(1 / 4)) < 0.06
    gaussian = noisy(statistic, np.ones(4000, np.int64), np.arange(4001), Budget.zcdp(0.5))
    # Variance 2^2 / (2 * 0.5) = 4: P(X = 0) is 1 / sum_k e^(-k^2 / 8).
    assert (
        abs((gaussian == 1).mean() - 1 / sum(math.exp(-k * k / 8) for k in range(-60, 61))) < 0.06
    )


@pytest.mark.parametrize(
    ("arguments", "kind", "rule"),
    [
        (((0, 0), (1, 1)), ValueError, "must not all be 0"),
        (((1,), (1, 1)), ValueError, "one per person"),
        (((1.5,), (1,)), TypeError, "must be ints"),
        (((-1,), (1,)), ValueError, "at least 0"),
        (((1,), (0,)), ValueError, "epsilons must be above 0"),
    ],
)
def test_bad_parameters_are_refused(arguments, kind, rule):
    with pytest.raises(kind, match=rule):
        Personalised(*arguments)


@pytest.mark.parametrize(
    ("arguments", "kind", "rule"),
    [
        (("mode", 1), ValueError, "statistic must be one of"),
        (("mean", 0), ValueError, "sensitivity must be an int of at least 1"),
        (("mean", 1.0), TypeError, "sensitivity must be an int"),
        (("mean", 1, 0.5), TypeError, "empty must be an int"),
        (("variance", 1, 3), ValueError, "empty must be 0 for a variance"),
        (("mean", 1, 0, 0), ValueError, "resolution must be above 0"),
        (("mean", 1, 0, 1, 0.5), ValueError, "trim must be from 0 to below 1/2"),
    ],
)
def test_bad_releases_are_refused(arguments, kind, rule):
    with pytest.raises(kind, match=rule):
        Preprocessed(*arguments)

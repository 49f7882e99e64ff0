"""The exact privacy audit of every search, and of the shift that it guarantees.

No draw is made: the laws of `tests.laws` are compared over ALL non-increasing
loss profiles with up to 6 candidates and losses up to 6, and all neighbours in one direction
(l <= l' <= l + 1), which are all pairs that adding one person can make of such profiles.
"""

import functools
import itertools
import math

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.search import (
    AboveThreshold,
    ExponentialMechanism,
    NoisyBinarySearch,
)
from tests.mechanisms.search.test_searches import chances as distribution

LOSSES = 6
SIZES = range(1, 7)
ALPHAS = (1.5, 2, 4, 16, 64)
ROUNDING = 1e-9


def all_losses(n: int) -> list[tuple[int, ...]]:
    """Return every non-increasing sequence of n losses from 0 to 6."""
    return list(itertools.combinations_with_replacement(range(LOSSES, -1, -1), n))


def neighbours(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers (in `all_losses`) of all pairs l, l' with l <= l' <= l + 1."""
    number = {losses: i for i, losses in enumerate(all_losses(n))}
    pairs = []
    for losses, i in number.items():
        for more in itertools.product((0, 1), repeat=n):
            j = number.get(tuple(a + b for a, b in zip(losses, more, strict=True)))
            if j is not None:
                pairs.append((i, j))
    first, second = np.array(pairs).T
    return first, second


PAIRS = {n: neighbours(n) for n in SIZES}


def distributions(search, n: int) -> np.ndarray:
    """Return one row of output probabilities per profile of `all_losses`."""
    return np.array([distribution(search, losses) for losses in all_losses(n)])


def log_ratios(search, n: int) -> tuple[float, float]:
    """Return the largest ln P_x'/P_x and ln P_x/P_x' over all x' = x + one person."""
    logs = np.log(distributions(search, n))
    first, second = PAIRS[n]
    change = logs[second] - logs[first]
    return float(change.max()), float(-change.min())


def worst_renyi(search, n: int) -> float:
    """Return the largest D_alpha / alpha over all neighbours, both ways, for all ALPHAS."""
    logs = np.log(distributions(search, n))
    worst = 0.0
    for one, other in (PAIRS[n], PAIRS[n][::-1]):
        for alpha in ALPHAS:
            terms = alpha * logs[one] + (1 - alpha) * logs[other]
            top = terms.max(axis=1)  # keeps exp within floats
            sums = np.log(np.exp(terms - top[:, None]).sum(axis=1)) + top
            divergence = sums / (alpha - 1)
            worst = max(worst, float(divergence.max()) / alpha)
    return worst


def worst_failure(search, rows: list[tuple[int, ...]], shift: int) -> float:
    """Return the largest probability to leave B[shift] <= y <= f over these profiles.

    f is rounded up onto the candidates, so the last loss is 0.
    """
    worst = 0.0
    for losses in rows:
        rounded = [*losses[:-1], 0]
        strict = [math.inf, *rounded[:-1]]
        chances = distribution(search, losses)
        bad = [p for p, a, b in zip(chances, rounded, strict, strict=True) if a > shift or b < 1]
        worst = max(worst, sum(bad))
    return worst


PURE = [(0.5, 0.5), (1.0, 0.3), (4.0, 0.3)]


GATED = functools.partial(AboveThreshold, gate=True)


@pytest.mark.parametrize("make", [AboveThreshold, GATED])
@pytest.mark.parametrize(("epsilon", "beta"), PURE)
def test_above_threshold_spends_epsilon_one_way_and_its_second_part_the_other(epsilon, beta, make):
    search = make(Budget(epsilon), beta)
    for n in SIZES[1:]:
        chosen = search._thresholds(n)
        adding, removing = log_ratios(search, n)
        assert chosen.first + chosen.second <= epsilon
        assert adding <= float(chosen.first + chosen.second) + ROUNDING
        assert removing <= float(chosen.second) + ROUNDING
        # Both bounds are attained once there is a candidate to pass over at a loss below theta
        # and another one to stop at (the last candidate is never asked).
        if n >= 3 + search.gate and chosen.theta >= 1 and search._first_theta(n) < LOSSES:
            assert adding >= 0.9 * epsilon
            assert removing >= 0.9 * float(chosen.second)


@pytest.mark.parametrize(("epsilon", "beta"), PURE)
@pytest.mark.parametrize("make", [ExponentialMechanism, NoisyBinarySearch])
def test_the_other_searches_spend_at_most_epsilon(make, epsilon, beta):
    search = make(Budget(epsilon), beta)
    for n in SIZES:
        assert max(log_ratios(search, n)) <= epsilon + ROUNDING


def test_binary_search_attains_epsilon():
    # Every answer is "down" at losses above theta: each of the m moves by epsilon / m.
    assert max(log_ratios(NoisyBinarySearch(Budget(2), 0.3), 4)) >= 0.9 * 2


@pytest.mark.parametrize("make", [AboveThreshold, ExponentialMechanism, NoisyBinarySearch])
def test_the_audit_of_epsilon_notices_half_of_the_noise(make):
    # The broken twin: built for twice the epsilon.
    assert max(log_ratios(make(Budget(2), 0.3), 6)) > 1 + ROUNDING


def test_the_audit_of_epsilon_notices_the_missing_noise_of_the_threshold():
    # The broken twin: rho = 0, all of epsilon for nu.
    def without_rho(losses, theta=2):
        left, chances = 1.0, []
        for loss in losses[:-1]:
            stop = math.exp(-max(loss - theta, 0))
            chances.append(left * stop)
            left *= 1 - stop
        return [*chances, left]

    before, after = without_rho((3, 3, 3, 3, 3, 3)), without_rho((4, 4, 4, 4, 4, 4))
    assert math.log(after[-1] / before[-1]) > 1 + ROUNDING


@pytest.mark.parametrize("rho", [0.1, 2.0])
@pytest.mark.parametrize("make", [AboveThreshold, GATED, ExponentialMechanism, NoisyBinarySearch])
def test_every_search_spends_at_most_rho(make, rho):
    search = make(Budget.zcdp(rho), 0.3)
    assert search.cost == Budget.zcdp(rho)
    for n in SIZES:
        assert worst_renyi(search, n) <= rho + ROUNDING


@pytest.mark.parametrize("make", [AboveThreshold, ExponentialMechanism, NoisyBinarySearch])
def test_the_audit_of_rho_notices_half_of_the_noise(make):
    # The broken twin: built for four times the rho.
    assert worst_renyi(make(Budget.zcdp(2.0), 0.3), 6) > 0.5 + ROUNDING


GUARANTEED = [
    AboveThreshold(Budget(4), 0.05),
    AboveThreshold(Budget.zcdp(2), 0.3),
    ExponentialMechanism(Budget(4), 0.05),
    ExponentialMechanism(Budget.zcdp(2), 0.3),
    NoisyBinarySearch(Budget(4), 0.05),
    NoisyBinarySearch(Budget.zcdp(2), 0.3),
]


@pytest.mark.parametrize("search", GUARANTEED)
def test_the_shift_is_kept_but_for_beta_on_all_profiles(search):
    for n in SIZES:
        assert search.shift(n) < LOSSES  # so that losses above the shift are among them
        assert worst_failure(search, all_losses(n), search.shift(n)) <= search.beta + ROUNDING

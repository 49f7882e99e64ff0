"""The exact audit of clip and noise together, and of how rarely a clip is too high or too low.

No draw is made. The chance of a clip comes from `AboveThreshold.distribution`, that of the noise
from the formula of the discrete Laplace distribution, at the rates which the release asks for.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.releases.clipped import CLIP_BETA, ClippedSum
from beam_dp.mechanisms.releases.released import OVERSHOOT
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.thresholds import guarded_thresholds
from tests.doubles import ZeroNoise

GRID = (1, 2, 4)
VALUES = (-5, -2, 0, 1, 3)
ROUNDING = 1e-9
OUTPUTS = np.arange(-60, 61)


class Rates(ZeroNoise):
    """Zero noise that remembers the rates of the discrete Laplace noise asked for."""

    def __init__(self):
        object.__setattr__(self, "asked", [])

    def discrete_laplace(self, rate, size):
        self.asked.append(rate)
        return super().discrete_laplace(rate, size)


def noise_rate(cost: Budget, clip: int) -> float:
    """Return the rate that a release asks for at this clip."""
    noise = Rates()
    AdditiveNoise(cost).add(np.zeros(1, np.int64), np.array([clip]), noise)
    return float(noise.asked[0])


def clip_chances(search: AboveThreshold, numbers: tuple[int, ...]) -> list[float]:
    """Return the probability of each clip, from the largest magnitude of each person."""
    largest = sorted((abs(number) for number in numbers), reverse=True)
    return search.distribution(Profile([*largest, 0]), Candidates.of(GRID))


def clipped(numbers: tuple[int, ...], clip: int) -> int:
    return sum(max(-clip, min(number, clip)) for number in numbers)


def log_noise(total: int, rate: float) -> np.ndarray:
    """Return ln P(total + X = v) for each v of OUTPUTS, X discrete Laplace."""
    q = math.exp(-rate)
    return math.log((1 - q) / (1 + q)) - rate * np.abs(OUTPUTS - total)


def crowds(theta: int) -> list[tuple[int, ...]]:
    """Return databases: crowds around the threshold of the search, and a few people more."""
    few = [
        people
        for size in range(3)
        for people in itertools.combinations_with_replacement(VALUES, size)
    ]
    sizes = sorted({0, 1, max(0, theta - 1), theta, theta + 1, theta + 2})
    return [(value,) * size + people for size in sizes for value in (3, -5) for people in few]


def worst_ratio(search: AboveThreshold, cost: Budget, factor: float = 1.0) -> tuple[float, float]:
    """Return the largest log ratio of (clip, noisy sum) when a person is added, and removed.

    `factor` scales the noise: a broken twin draws too little.
    """
    adding = removing = -math.inf
    for people in crowds(search._thresholds(len(GRID)).theta):
        before = clip_chances(search, people)
        for person in VALUES:
            after = clip_chances(search, (*people, person))
            for clip, small, large in zip(GRID, before, after, strict=True):
                rate = noise_rate(cost, clip) / factor
                one = math.log(small) + log_noise(clipped(people, clip), rate)
                other = math.log(large) + log_noise(clipped((*people, person), clip), rate)
                adding = max(adding, float((other - one).max()))
                removing = max(removing, float((one - other).max()))
    return adding, removing


SEARCHES = [
    AboveThreshold(Budget(1.5), 0.3, 0.3),
    AboveThreshold(Budget(0.4), 0.3),
    AboveThreshold(Budget(3.0), 0.05, 1e-3),
    ClippedSum(0, True, GRID, Fraction(1), Budget(2.0), Budget(1.0)).search,
]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_clip_and_noisy_sum_together_spend_at_most_their_budgets(search, epsilon):
    whole = float(search.budget.epsilon) + epsilon
    adding, removing = worst_ratio(search, Budget(epsilon))
    assert max(adding, removing) <= whole + ROUNDING
    assert max(adding, removing) >= 0.9 * whole  # the budget is used, the audit reaches the worst


def test_the_audit_notices_noise_for_half_of_the_clip_and_an_unpaid_clip():
    search = SEARCHES[0]
    assert max(worst_ratio(search, Budget(1.0), 0.5)) > 2.5 + ROUNDING
    assert max(worst_ratio(search, Budget(1.0))) > 1.0 + 0.1


def test_a_shared_clip_and_two_noisy_sums_spend_the_clip_once():
    # One person in two partitions: the clip is chosen on each person's largest number in any, and
    # the sums are drawn independently given the clip, so their log ratios add up.
    search, cost = SEARCHES[0], Budget(0.5)
    worst, per_partition = 0.0, 0.0
    others = [(3, 3), (0, 3), (-5, 1), (1, 0)]
    pairs = itertools.combinations_with_replacement(others, 2)
    theta = search._thresholds(len(GRID)).theta
    for crowd, people in itertools.product(range(theta + 3), pairs):
        database = [(3, 0)] * crowd + list(people)
        for person in [(3, 3), (-5, 3), (1, -2), (0, 1)]:
            larger = [*database, person]
            chances = [
                clip_chances(search, tuple(max(map(abs, numbers)) for numbers in everybody))
                for everybody in (database, larger)
            ]
            for clip, small, large in zip(GRID, *chances, strict=True):
                ratio = math.log(large / small)
                sums = [
                    [
                        clipped(tuple(numbers[place] for numbers in everybody), clip)
                        for place in (0, 1)
                    ]
                    for everybody in (database, larger)
                ]
                rate = noise_rate(cost, clip)
                moves = [
                    float(np.abs(log_noise(a, rate) - log_noise(b, rate)).max())
                    for a, b in zip(*sums, strict=True)
                ]
                worst = max(worst, abs(ratio) + sum(moves))
                per_partition = max(per_partition, abs(ratio) + moves[0])
    assert worst <= 1.5 + 2 * 0.5 + ROUNDING
    assert worst > 0.9 * 2.5 > per_partition  # and both sums are needed for it


CASES = [
    (Budget(epsilon) if rho is None else Budget.zcdp(rho), n, beta, overshoot)
    for epsilon, rho in ((0.1, None), (1.0, None), (6.0, None), (None, 0.02), (None, 0.5))
    for n in (2, 3, 10, 64)
    for beta, overshoot in ((CLIP_BETA, OVERSHOOT), (0.05, 0.01))
]


def steps(n: int, height: int) -> list[tuple[int, ...]]:
    """Return losses of `height` up to each place, and 0 from there on."""
    return [(height,) * place + (0,) * (n - place) for place in range(n)]


def distribution(search: AboveThreshold, losses: tuple[int, ...]) -> list[float]:
    """Return the output probabilities for a profile that has these losses."""
    n = len(losses)
    values = [
        next((i for i, loss in enumerate(losses) if loss <= k), n) for k in range(max(losses) + 1)
    ]
    return search.distribution(Profile(values), Candidates.of(range(n)))


@pytest.mark.parametrize(("budget", "n", "beta", "overshoot"), CASES)
def test_a_clip_is_above_everybody_as_rarely_as_promised(budget, n, beta, overshoot):
    search = AboveThreshold(budget, beta, overshoot)
    # The worst profiles never stop it before the first loss of 0.
    chances = [
        math.fsum(distribution(search, losses)[losses.index(0) + 1 :])
        for losses in [
            *steps(n, 10 * search.shift(n) + 100),
            *steps(n, 1),
            *steps(n, search.shift(n)),
        ]
    ]
    assert max(chances) <= overshoot * (1 + ROUNDING)
    chosen = guarded_thresholds(budget.amount, budget.is_zcdp, n, beta, overshoot)
    if chosen.theta > 0:  # theta is the least that does it: one less costs a factor e^eps1
        assert max(chances) > overshoot * math.exp(-chosen.first) * (1 - 1e-6)


@pytest.mark.parametrize(("budget", "n", "beta", "overshoot"), CASES)
def test_a_clip_cuts_more_than_its_shift_as_rarely_as_promised(budget, n, beta, overshoot):
    search = AboveThreshold(budget, beta, overshoot)
    shift = search.shift(n)

    def below(height: int) -> float:
        return max(
            math.fsum(
                p
                for p, loss in zip(distribution(search, losses), losses, strict=True)
                if loss > shift
            )
            for losses in steps(n, height)
        )

    assert below(shift + 1) <= beta * (1 + ROUNDING)
    if n > 2:
        # The broken twin: a shift a third smaller is not kept.
        shift = shift * 2 // 3
        assert below(shift + 1) > beta


@pytest.mark.parametrize("budget", [Budget(1.0), Budget.zcdp(0.5)], ids=str)
def test_guarded_thresholds_spend_what_the_plain_ones_spend(budget):
    for n in (2, 30, 1000):
        chosen = guarded_thresholds(budget.amount, budget.is_zcdp, n, CLIP_BETA, OVERSHOOT)
        if budget.is_zcdp:
            assert (chosen.first + 2 * chosen.second) ** 2 <= 8 * budget.amount
        else:
            assert chosen.first + chosen.second <= budget.amount

"""The noise of a histogram: what looks cost, and how rarely noise is beyond a number.

Laws are summed here from their formulas. Where noise is drawn it comes from the system, and the
false alarm of a test is at most 1e-10.
"""

import collections
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.noisy_histogram import (
    Choice,
    HistogramNoise,
    Looks,
    _stay_interval,
    coarser,
)
from beam_dp.mechanisms.noise.sampling import Noise
from tests.doubles import Asked, ZeroNoise

PAIRS = [
    (Fraction(1, 4), Fraction(2, 5)),
    (Fraction(1, 8), Fraction(3)),
    (Fraction(1), Fraction(1001, 1000)),
    (Fraction(1, 100), Fraction(1, 50)),
    (Fraction(5), Fraction(20)),
]
"""(coarse, fine) rates."""


def laplace(rate: float, reach: int) -> np.ndarray:
    """Return P(X = k) for k from -reach to reach, X discrete Laplace."""
    return math.tanh(rate / 2) * np.exp(-rate * np.abs(np.arange(-reach, reach + 1)))


def gaussian(variance: float, reach: int) -> np.ndarray:
    """Return P(X = k) for k from -reach to reach, X discrete Gaussian."""
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    return weights / weights.sum()


def stay(coarse: float, fine: float) -> float:
    """Return the chance w that a look stays as it is."""
    return math.exp(coarse - fine) * (math.expm1(-coarse) / math.expm1(-fine)) ** 2


@pytest.mark.parametrize(("coarse", "fine"), PAIRS)
def test_less_noise_and_some_more_have_the_law_of_more_noise(coarse, fine):
    reach = math.ceil(40 / coarse)  # e^-40 is left out
    little, much = laplace(float(fine), reach), laplace(float(coarse), reach)
    w = stay(float(coarse), float(fine))
    assert 0 < w < 1
    size = 1 << (4 * reach + 1).bit_length()
    both = np.fft.irfft(np.fft.rfft(little, size) * np.fft.rfft(much, size), size)
    made = w * little + (1 - w) * both[reach : 3 * reach + 1]
    assert np.abs(made - much).max() <= 1e-15


@pytest.mark.parametrize(("coarse", "fine"), PAIRS)
@pytest.mark.parametrize("bits", [1, 24, 100])
def test_the_chance_to_stay_is_enclosed(coarse, fine, bits):
    low, high = _stay_interval(fine, coarse, bits)
    assert 0 <= high - low <= Fraction(1, 1 << bits)
    assert float(low) <= stay(float(coarse), float(fine)) * (1 + 1e-12) + 1e-15
    assert float(high) >= stay(float(coarse), float(fine)) * (1 - 1e-12) - 1e-15
    finer = _stay_interval(fine, coarse, bits + 60)
    assert low <= finer[1] and finer[0] <= high  # both enclose the same number


class Coins(ZeroNoise):
    """Noise of 1000 in place of the Laplace noise, where coins of the system come up tails."""

    def words(self, size):
        """Return words of the system."""
        return Noise().words(size)

    def discrete_laplace(self, rate, size):
        """Return what shows that it was added."""
        return np.full(size, 1000)


def test_a_bucket_stays_with_that_chance_on_its_own():
    # Bernstein: of n buckets the share that stays is off by more than t with 2 e^(-2 n t^2) at most.
    size = 6_000
    found = coarser(np.zeros((2, size // 2), np.int64), Budget(0.4), Budget(0.25), Coins())
    assert found.shape == (2, size // 2) and set(np.unique(found)) == {0, 1000}
    stays = (found == 0).reshape(-1)
    tolerance = math.sqrt(math.log(2e10) / (2 * size))
    assert abs(stays.mean() - stay(0.25, 0.4)) < tolerance
    pairs = (stays[::2] & stays[1::2]).mean()
    assert abs(pairs - stay(0.25, 0.4) ** 2) < tolerance * math.sqrt(2)


RATES = [1e-6, 1e-3, 0.1, 0.4, 1.0, 3.0, 50.0]
CHANCES = [0.05, 3e-3, 1e-5, 3e-3 / 252, 1e-9]


def tail(law: np.ndarray, buckets: int, level: float) -> float:
    """Return P(sum > level) of so many independent noises of a symmetric law."""
    total = law
    for _ in range(buckets - 1):
        total = np.convolve(total, law)
    reach = (len(total) - 1) // 2
    return float(total[np.arange(-reach, reach + 1) > level].sum())


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("rate", RATES)
def test_one_laplace_noise_is_beyond_as_rarely_as_said(rate, chance):
    level = HistogramNoise(Budget(rate)).beyond(1, chance)
    exact = math.exp(-rate * (math.floor(level) + 1)) / (1 + math.exp(-rate))
    assert exact <= chance * (1 + 1e-9)
    # One less is too little: the bound is not far above what is needed.
    assert math.exp(-rate * math.floor(level - 1)) / (1 + math.exp(-rate)) > chance * (1 - 1e-9)


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("buckets", [2, 4])
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.4, 1.0, 3.0, 50.0])
def test_sums_of_laplace_noise_are_beyond_as_rarely_as_said(rate, buckets, chance):
    level = HistogramNoise(Budget(rate)).beyond(buckets, chance)
    reach = math.ceil(60 / rate) + 2
    exact = tail(laplace(rate, reach), buckets, level)
    assert exact <= chance
    if rate <= 1:  # and not far above what is needed
        assert tail(laplace(rate, reach), buckets, level - buckets - 1) > chance


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("buckets", [1, 2, 4])
@pytest.mark.parametrize("rho", [1e-4, 1e-3, 0.0171 * 0.4, 0.1, 0.5, 2.0, 20.0])
def test_sums_of_gaussian_noise_are_beyond_as_rarely_as_said(rho, buckets, chance):
    level = HistogramNoise(Budget.zcdp(rho)).beyond(buckets, chance)
    variance = 1 / (2 * rho)
    law = gaussian(variance, math.ceil(12 * math.sqrt(variance)) + 3)
    assert tail(law, buckets, level) <= chance * (1 + 1e-9)
    if variance > 20:  # and not far above what is needed
        assert tail(law, buckets, level - buckets - 1) > chance


def test_every_bucket_has_noise_for_one_person():
    people = np.arange(24).reshape(2, 3, 4)
    noise = Asked()
    assert (HistogramNoise(Budget(Fraction(2, 5))).add(people, noise) == people).all()
    assert (HistogramNoise(Budget.zcdp(Fraction(1, 8))).add(people, noise) == people).all()
    assert noise.asked == [("laplace", Fraction(2, 5), 24), ("gaussian", Fraction(4), 24)]
    many = np.full((1, 1, 3), 1 << 60)
    assert (HistogramNoise(Budget(1.0)).add(many, ZeroNoise()) == many).all()
    assert HistogramNoise(Budget(1.0)).add(np.zeros((0, 1, 4), np.int64), Noise()).shape == (
        0,
        1,
        4,
    )


def test_the_smallest_budgets_need_more_than_64_bits():
    tiny = Fraction(1, 1 << 45)
    whole = HistogramNoise(Budget(tiny)).add(np.full((1, 1, 40), 5), Noise())
    first = coarser(whole, Budget(tiny), Budget(tiny * Fraction(5, 8)), Noise())
    assert first.shape == whole.shape and np.abs(first.astype(float)).max() > 1 << 40


# --------------------------------------------------------------------------------- two looks

COSTS = (Budget(1), Budget(2))
RHOS = (Budget.zcdp(Fraction(1, 50)), Budget.zcdp(Fraction(1, 25)))


class Scripted(Noise):
    """Noise that is told what to draw; the rates that are asked for must be the two looks'."""

    def __init__(self, fine, added, more):
        vars(self).update(values={2: fine, 1: more}, added=added)

    def discrete_laplace(self, rate, size):
        return np.array([self.values[rate]] * size, np.int64)

    def bernoullis_below(self, bound, size):
        return np.array([not self.added] * size)


def outcomes(count, kind, enough):
    """Return the exact distribution of (look, released count) for a histogram of one bucket.

    Every draw of noise up to 18 / 36 is played through the code, with its probability.
    """
    found = collections.Counter()
    chance = 1 - stay(1, 2)
    fine, more = laplace(2, 18), laplace(1, 36)

    def drawn(noise):
        choice = kind(COSTS).draw(np.array([count]), lambda first: first.sum() >= enough, noise)
        return choice.look, int(choice.noisy[0])

    for k, p in enumerate(fine):
        found[drawn(Scripted(k - 18, False, 0))] += p * (1 - chance)
        for d, q in enumerate(more):
            found[drawn(Scripted(k - 18, True, d - 36))] += p * chance * q
    return found


def worst(kind, enough, counts=(3, 4)):
    """Return the largest log-ratio between neighbours, less what the look costs."""
    one, other = (outcomes(count, kind, enough) for count in counts)
    excess = []
    for look, value in one.keys() | other.keys():
        if abs(value - 3.5) <= 7:
            p, q = one[look, value], other[look, value]
            excess.append(abs(math.log(p / q)) - (1 + look) if p and q else math.inf)
    return max(excess)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("enough", [-1, 1, 3, 4, 9])
def test_no_outcome_tells_more_than_its_look_costs(enough):
    assert worst(Looks, enough) == pytest.approx(0, abs=1e-9)  # and the cost is tight


class Fresh(Looks):
    """The broken twin: a second look with fresh noise, at the price of the second alone."""

    def draw(self, people, is_enough, noise):
        first, again = (people + noise.discrete_laplace(rate, 1) for rate in (1, 2))
        return Choice(first, 0) if is_enough(first) else Choice(again, 1)


class Peeking(Looks):
    """The broken twin: the fine counts decide whether the coarse ones are enough."""

    def draw(self, people, is_enough, noise):
        fine = people + noise.discrete_laplace(2, 1)
        coarse = coarser(fine, self.costs[1], self.costs[0], noise)
        return Choice(coarse, 0) if is_enough(fine) else Choice(fine, 1)


class Revealing(Looks):
    """The broken twin: the fine counts come out at the price of the coarse ones."""

    def draw(self, people, is_enough, noise):
        drawn = super().draw(people, is_enough, noise)
        return Choice(people + noise.discrete_laplace(2, 1), drawn.look)


def test_broken_looks_are_noticed():
    assert worst(Peeking, 4) > 0.5 and worst(Revealing, 4) > 0.5
    with pytest.raises(AssertionError):
        assert worst(Fresh, 1) == pytest.approx(0, abs=1e-9)


def gauss(variance, shift, size=400):
    """Return the logarithms of the probabilities."""
    logs = -((np.arange(-size, size + 1) - shift) ** 2) / (2 * float(variance))
    return logs - np.logaddexp.reduce(logs)


@pytest.mark.parametrize("alpha", [1.01, 2, 5, 20])
@pytest.mark.parametrize("enough", [-60, -5, 0, 1, 12])
def test_zcdp_looks_and_what_follows_cost_rho(alpha, enough):
    rho, first, second = Fraction(1, 10), Fraction(1, 5), Fraction(2, 5)
    recording = Asked()
    drawn = Looks(RHOS).draw(np.array([0]), lambda _: False, recording)
    assert drawn.look == 1 and len(recording.variances) == 2
    (p1, q1), (p2, q2) = ((gauss(v, 0), gauss(v, 1)) for v in recording.variances)
    first_moments = np.exp(alpha * p1 + (1 - alpha) * q1)
    again = float(np.exp(alpha * p2 + (1 - alpha) * q2).sum())
    stops = np.arange(-400, 401) >= enough

    def rest(share):
        return math.exp(alpha * (alpha - 1) * float(rho * (1 - share)))

    after = np.where(stops, rest(first), again * rest(second))
    moment = float((first_moments * after).sum())
    assert math.log(moment) / (alpha - 1) <= float(rho) * alpha * (1 + 1e-9)
    wrong = np.where(stops, rest(first), again * rest(second - first))  # forgets the first look
    moment = float((first_moments * wrong).sum())
    assert enough < 0 or math.log(moment) / (alpha - 1) > float(rho) * alpha

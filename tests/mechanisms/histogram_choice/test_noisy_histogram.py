"""The noise of a histogram, and how rarely it is beyond a number.

Laws are summed here from their formulas. Where noise is drawn it comes from the system, and the
false alarm of a test is at most 1e-10.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise, beyond
from beam_dp.mechanisms.noise.sampling import Noise
from tests.doubles import Asked, ZeroNoise
from tests.laws import laplace


def gaussian(variance: float, span: int) -> np.ndarray:
    """Return P(X = k) for k from -span to span, X discrete Gaussian."""
    weights = np.exp(-(np.arange(-span, span + 1.0) ** 2) / (2 * variance))
    return weights / weights.sum()


RATES = [1e-6, 1e-3, 0.1, 0.4, 1.0, 3.0, 50.0]
CHANCES = [0.05, 3e-3, 1e-5, 3e-3 / 252, 1e-9]


def tail(law: np.ndarray, buckets: int, level: float) -> float:
    """Return P(sum > level) of so many independent noises of a symmetric law."""
    total = law
    for _ in range(buckets - 1):
        total = np.convolve(total, law)
    span = (len(total) - 1) // 2
    return float(total[np.arange(-span, span + 1) > level].sum())


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("rate", RATES)
def test_one_laplace_noise_is_beyond_as_rarely_as_said(rate, chance):
    level = beyond(Budget(rate), 1, chance)
    exact = math.exp(-rate * (math.floor(level) + 1)) / (1 + math.exp(-rate))
    assert exact <= chance * (1 + 1e-9)
    # One less is too little: the bound is not far above what is needed.
    assert math.exp(-rate * math.floor(level - 1)) / (1 + math.exp(-rate)) > chance * (1 - 1e-9)


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("buckets", [2, 4])
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.4, 1.0, 3.0, 50.0])
def test_sums_of_laplace_noise_are_beyond_as_rarely_as_said(rate, buckets, chance):
    level = beyond(Budget(rate), buckets, chance)
    span = math.ceil(60 / rate) + 2
    exact = tail(laplace(rate, span), buckets, level)
    assert exact <= chance
    if rate <= 1:  # and not far above what is needed
        assert tail(laplace(rate, span), buckets, level - buckets - 1) > chance


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("buckets", [1, 2, 4])
@pytest.mark.parametrize("rho", [1e-4, 1e-3, 0.0171 * 0.4, 0.1, 0.5, 2.0, 20.0])
def test_sums_of_gaussian_noise_are_beyond_as_rarely_as_said(rho, buckets, chance):
    level = beyond(Budget.zcdp(rho), buckets, chance)
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
    noisy = HistogramNoise(Budget(tiny)).add(np.full((1, 1, 40), 5), Noise())
    assert noisy.shape == (1, 1, 40) and np.abs(noisy.astype(float)).max() > 1 << 40

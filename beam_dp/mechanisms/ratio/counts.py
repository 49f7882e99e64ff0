"""Ratios of two noisy counts: the naive ratio, and that of Kulesza, Suresh and Wang.

With noise X, Y on two counts and small relative errors, a first-order expansion at p = a / b gives

    naive  (a + X) / (b + Y) - p               ~  (X - p Y) / b,
    parts  (a + X) / (a + X + z + Y) - p       ~  ((1 - p) X - p Y) / b.

For independent Laplace noise of scale s, E|c X + d Y| = s (c^2 + c d + d^2) / (c + d); for Gaussian
noise it is s sqrt(2 / pi) sqrt(c^2 + d^2).
"""

import functools
import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.ratio.base import HUGE, Counts, Estimates, Mechanism, add_noise, estimates

_HALF = Fraction(1, 2)
_COARSE = 0.5  # from this rate on it matters that the noise is discrete
_FAR = 60  # e^-30 of the noise is beyond this
_GRID = 64


class Naive(Mechanism):
    """Add noise to a and to b, each for half of the budget, and divide.

    One person moves a and b by at most `rows` each, so epsilon / 2 for each is epsilon in all (and
    rho / 2 each is rho), between neighbours of both kinds. It is there to compare with.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._adder  # refuses half of a budget that is too small, before there is data

    @functools.cached_property
    def _adder(self) -> AdditiveNoise:
        return AdditiveNoise(self.budget.scaled(_HALF))

    def _draw(self, ones: Counts, totals: Counts, noise: Noise, alpha: Fraction) -> Estimates:
        noisy_ones = add_noise(self._adder, self.rows, ones, noise)
        noisy_totals = add_noise(self._adder, self.rows, totals, noise)
        # The corners of [a - t, a + t] x [b - t, b + t] are (a -+ t, b +- t), and z = b - a there.
        far = self._adder.bound(self.rows, alpha / 2)
        return estimates(noisy_ones, integers.add(noisy_totals, -noisy_ones), (far, 2 * far))

    def _expected(self, ratio: float, total: float) -> float:
        return mean_combination(self._adder.budget, self.rows, 1.0, ratio) / total


class KuleszaSureshWang(Mechanism):
    """Add noise to a and to z = b - a, and release a / (a + z): the default, pure epsilon-DP.

    Between add-remove neighbours the parts move by at most `rows` together (L1, and so L2): noise
    for the *whole* budget on each part is private: half of the naive noise. Between substitution
    neighbours each part may move by `rows`, so each gets half of the budget: twice the noise.

    With p = a / b the mean absolute error is about rows (1 - p (1 - p)) / (epsilon b), and less for
    epsilon / rows above 1, where the noise is mostly 0.

    Source: Kulesza, Suresh, Wang, "Mean Estimation in the Add-Remove Model of Differential Privacy"
    (ICML 2024, arXiv 2312.06658), the transformed noise: for values in [0, 1], noise on the sum of
    x_i and on that of 1 - x_i. Here the noise is discrete; their hourglass noise is not used.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._adder  # refuses half of a budget that is too small, before there is data

    @functools.cached_property
    def _adder(self) -> AdditiveNoise:
        return AdditiveNoise(self.budget.scaled(_HALF) if self.substitution else self.budget)

    def _draw(self, ones: Counts, totals: Counts, noise: Noise, alpha: Fraction) -> Estimates:
        noisy_ones = add_noise(self._adder, self.rows, ones, noise)
        noisy_zeros = add_noise(self._adder, self.rows, integers.add(totals, -ones), noise)
        far = self._adder.bound(self.rows, alpha / 2)
        return estimates(noisy_ones, noisy_zeros, (far, far))

    def _expected(self, ratio: float, total: float) -> float:
        return mean_combination(self._adder.budget, self.rows, 1 - ratio, ratio) / total


def mean_combination(budget: Budget, rows: int, c: float, d: float) -> float:
    """Return E|c X + d Y| for independent noise of sensitivity `rows`; 0 <= c, d <= 1, not both 0.

    Continuous Laplace noise of scale s: with c > d, the density of c X + d Y is
    (c^2 Lap_c - d^2 Lap_d) / (c^2 - d^2), so the mean is s (c^3 - d^3) / (c^2 - d^2). The discrete
    noise that is drawn has a smaller mean for large rates, which is estimated by its standard
    deviation below rate 1/2 (within 2%), and by summation above (with c and d to 1 / 64).
    """
    if rows > HUGE:
        return math.inf
    if budget.is_zcdp:
        return rows * AdditiveNoise(budget).mean_error * math.hypot(c, d)
    rate = float(min(budget.amount / rows, Fraction(HUGE)))
    if rate < _COARSE:
        return (c * c + c * d + d * d) / (c + d) / (2 * math.sinh(rate / 2))
    return _discrete_mean(rate, round(c * _GRID), round(d * _GRID)) / _GRID


@functools.lru_cache(maxsize=1 << 12)
def _discrete_mean(rate: float, c: int, d: int) -> float:
    """Return E|c X + d Y| for discrete Laplace noise of a rate of at least 1/2, by summation."""
    numbers = np.arange(-_FAR, _FAR + 1.0)
    weights = np.tanh(rate / 2) * np.exp(-rate * np.abs(numbers))  # (1 - q) / (1 + q) q^|k|
    sizes = np.abs(c * numbers[:, None] + d * numbers)
    return float(weights @ sizes @ weights)

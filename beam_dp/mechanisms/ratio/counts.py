"""Ratios of two noisy counts: the naive one, and that of Kulesza, Suresh and Wang.

With noise X, Y on two counts and small relative errors, a first-order expansion at p = a / b gives

    naive  (a + X) / (b + Y) - p               ~  (X - p Y) / b,
    parts  (a + X) / (a + X + z + Y) - p       ~  ((1 - p) X - p Y) / b.

For independent Laplace noise of scale s, E|c X + d Y| = s (c^2 + c d + d^2) / (c + d); for Gaussian
noise it is s sqrt(2 / pi) sqrt(c^2 + d^2).
"""

import dataclasses
import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms import exact
from beam_dp.mechanisms.additive import AdditiveNoise
from beam_dp.mechanisms.noise import Noise
from beam_dp.mechanisms.ratio.neighbours import (
    Counts,
    Estimates,
    Mechanism,
    add_noise,
    estimates,
    quotient,
)

_HALF = Fraction(1, 2)


@dataclasses.dataclass(frozen=True)
class Naive(Mechanism):
    """Add noise to a and to b, each for half of the budget, and divide.

    One person moves a and b by at most `rows` each, so epsilon / 2 for each is epsilon in all (and
    rho / 2 each is rho), between neighbours of both kinds. The comparison for the others.
    """

    @property
    def _adder(self) -> AdditiveNoise:
        return AdditiveNoise(self.budget.scaled(_HALF))

    def _draw(self, ones: Counts, totals: Counts, noise: Noise, alpha: Fraction) -> Estimates:
        noisy_ones = add_noise(self._adder, self.rows, ones, noise)
        noisy_totals = add_noise(self._adder, self.rows, totals, noise)
        values = quotient(noisy_ones, exact.add(noisy_totals, -noisy_ones))
        # a / b at the corners of [a - t, a + t] x [b - t, b + t]; z = b - a there.
        far = self._adder.bound(self.rows, alpha / 2)
        zeros = exact.add(noisy_totals, -noisy_ones)
        low = quotient(noisy_ones - far, zeros + 2 * far, empty=0.0)
        high = quotient(noisy_ones + far, zeros - 2 * far, empty=1.0)
        return Estimates(values, np.maximum(values - low, high - values))

    def _expected(self, ratio: float, total: float) -> float:
        return self.rows / total * mean_combination(self._adder, 1.0, ratio)


@dataclasses.dataclass(frozen=True)
class KuleszaSureshWang(Mechanism):
    """Add noise to a and to z = b - a, and release a / (a + z): the default, pure epsilon-DP.

    Between add-remove neighbours the parts move by at most `rows` together (L1, and so L2): noise
    for the *whole* budget on each is private, half of the naive noise. Between substitution
    neighbours each part may move by `rows`, so each gets half of the budget: twice the noise.

    With p = a / b the mean absolute error is about rows (1 - p (1 - p)) / (epsilon b).

    Source: Kulesza, Suresh, Wang, "Mean Estimation in the Add-Remove Model of Differential Privacy"
    (ICML 2024, arXiv 2312.06658), the transformed noise: for values in [0, 1], noise on the sum of
    x_i and on that of 1 - x_i. Here the noise is discrete; their hourglass noise is not used.
    """

    @property
    def _adder(self) -> AdditiveNoise:
        return AdditiveNoise(self.budget.scaled(_HALF) if self.substitution else self.budget)

    def _draw(self, ones: Counts, totals: Counts, noise: Noise, alpha: Fraction) -> Estimates:
        noisy_ones = add_noise(self._adder, self.rows, ones, noise)
        noisy_zeros = add_noise(self._adder, self.rows, exact.add(totals, -ones), noise)
        far = self._adder.bound(self.rows, alpha / 2)
        return estimates(noisy_ones, noisy_zeros, (far, far))

    def _expected(self, ratio: float, total: float) -> float:
        return self.rows / total * mean_combination(self._adder, 1 - ratio, ratio)


def mean_combination(adder: AdditiveNoise, c: float, d: float) -> float:
    """Return E|c X + d Y| for independent noise X, Y of sensitivity 1, c and d >= 0, not both 0.

    Laplace: with c > d, |c X + d Y| has the mean (c^3 - d^3) / (c^2 - d^2) times the scale, as the
    density of c X + d Y is (c^2 Lap_c - d^2 Lap_d) / (c^2 - d^2).
    """
    if adder.budget.is_zcdp:
        return adder.mean_error * math.hypot(c, d)
    return adder.scale * (c * c + c * d + d * d) / (c + d)

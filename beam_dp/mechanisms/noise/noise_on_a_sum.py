"""Add integer noise for a sensitivity, and bound its tail."""

import dataclasses
import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.interval_widths import gaussian_bound, laplace_bound
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers


@dataclasses.dataclass(frozen=True)
class AdditiveNoise:
    """Integer noise for a sensitivity in units: discrete Laplace, or Gaussian for zCDP.

    Discrete Laplace noise of rate epsilon / sensitivity is epsilon-DP, discrete Gaussian noise of
    variance sensitivity^2 / (2 rho) is rho-zCDP (Canonne, Kamath, Steinke 2020, Theorem 4), for
    integers that one person moves by at most the sensitivity.
    """

    budget: Budget

    @property
    def name(self) -> str:
        """The distribution, for the plan."""
        return "discrete Gaussian" if self.budget.is_zcdp else "discrete Laplace"

    def add(self, numbers: np.ndarray, sensitivity: int, noise: Noise) -> np.ndarray:
        """Return the numbers with independent noise for a sensitivity of at least 1."""
        return integers.add(numbers, self._draw(sensitivity, len(numbers), noise))

    def _draw(self, sensitivity: int, size: int, noise: Noise) -> np.ndarray:
        if self.budget.is_zcdp:
            return noise.discrete_gaussian(sensitivity**2 / (2 * self.budget.amount), size)
        return noise.discrete_laplace(self.budget.amount / sensitivity, size)

    def bound(self, sensitivity: int, alpha: Fraction) -> int:
        """Return a bound that the noise exceeds with probability alpha at most."""
        if self.budget.is_zcdp:
            return gaussian_bound(sensitivity**2 / (2 * self.budget.amount), alpha)
        return laplace_bound(self.budget.amount / sensitivity, alpha)

    @property
    def scale(self) -> float:
        """The scale of the noise for sensitivity 1."""
        if self.budget.is_zcdp:
            return math.sqrt(1 / (2 * self.budget.amount))
        return float(1 / self.budget.amount)

    @property
    def mean_error(self) -> float:
        """The mean absolute noise for sensitivity 1 (to the accuracy of the continuous one)."""
        return self.scale * (math.sqrt(2 / math.pi) if self.budget.is_zcdp else 1.0)

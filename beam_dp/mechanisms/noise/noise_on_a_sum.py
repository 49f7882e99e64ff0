"""The noise of one number that adds up over people, or one draw of noise for several of them."""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.interval_widths import gaussian_bound, laplace_bound
from beam_dp.mechanisms.noise.noise_on_several_sums import OneDraw
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers

_LARGE = 1 << 30  # a clip of so many units is near to one of any number


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


@dataclasses.dataclass(frozen=True)
class JointNoise:
    """Noise of some numbers.

    Each number pays what its noise would cost alone. The sum of these costs buys one draw for all
    of them (`OneDraw`), in which each has less noise than alone. A number that is alone has the
    noise of `AdditiveNoise`.

    Attributes:
        budget: what all numbers together pay.
        signed: for each number, whether a person moves it both ways.
        group: tells draws of one run apart, of which each is for other numbers; 0: of one alone.
        partitions: how many partitions share the draw too: 1, or all of them.
    """

    budget: Budget
    signed: tuple[bool, ...]
    group: int = 0
    partitions: int = 1

    @property
    def _sides(self) -> tuple[bool, ...]:
        """For each number of each partition, whether a person moves it both ways."""
        return tuple(np.repeat(self.signed, self.partitions).tolist())

    @property
    def _alone(self) -> AdditiveNoise | None:
        """The noise of one number; None: one draw is for all."""
        return AdditiveNoise(self.budget) if len(self._sides) == 1 else None

    @property
    def name(self) -> str:
        """The distribution, for the plan."""
        return self._alone.name if self._alone else f"joint noise for {len(self._sides)} numbers"

    def add(
        self, totals: Sequence[np.ndarray], clips: Sequence[int], noise: Noise
    ) -> list[np.ndarray]:
        """Return each number with its noise, in some partitions; in all that share a draw.

        Args:
            totals: for each number, that of every partition, in units.
            clips: the clip of each number.
            noise: the randomness.
        """
        if adder := self._alone:
            return [adder.add(totals[0], clips[0], noise)]
        size = len(totals[0])
        whole = self.partitions in (1, size)
        checks.require(whole, "JointNoise", "totals", "be of all partitions, which share a draw")
        if not size:
            return list(totals)
        drawn = integers.concatenate(self._law(clips).draw(noise, size // self.partitions))
        parts = np.split(drawn, len(clips))
        return [integers.add(*pair) for pair in zip(totals, parts, strict=True)]

    def _law(self, clips: Sequence[int]) -> OneDraw:
        together = tuple(clip for clip in clips for _ in range(self.partitions))
        return OneDraw(self.budget, together, self._sides)

    def bound(self, place: int, clips: Sequence[int], alpha: Fraction) -> int:
        """Return a bound that the noise of a number exceeds with probability alpha at most.

        Args:
            place: its place among the numbers.
            clips: the clips of all numbers.
            alpha: the chance that the noise is further from 0.
        """
        if self._alone:
            return self._alone.bound(clips[place], alpha)
        return self._law(clips).bound(place * self.partitions, alpha)

    def scale(self, place: int) -> float:
        """Return the scale of a number's noise for a clip of 1: Laplace's, or Gauss's deviation."""
        if self._alone:
            return self._alone.scale
        deviation = self._large.law.deviation(place * self.partitions) / _LARGE
        return deviation if self.budget.is_zcdp else deviation / math.sqrt(2)

    def mean_error(self, place: int) -> float:
        """Return the mean absolute noise for a clip of 1, about."""
        if self._alone:
            return self._alone.mean_error
        return self._large.law.mean_error(place * self.partitions) / _LARGE

    @property
    def _large(self) -> OneDraw:
        return self._law([_LARGE] * len(self.signed))

"""Release g with an epsilon for each person: noise of one scale, a sensitivity for each.

With noise of scale b (steps of the grid) and Delta_i = floor(b e_i), person i pays Delta_i / b <=
e_i for a number that they move by at most Delta_i (Cummings, Durfee 2020, Proposition 7.3). Here
e_i is the rest of epsilon_i after the private choice of the bound R on people's numbers and, for
extremes, of the number n of people. These cost everybody the same, a third and a sixth of the
smallest epsilon. So each person pays epsilon_i in all, whatever the rows of the others are.

For a person of the largest epsilon, Delta is R (sums) or 2 R / n (extremes), or the user's
sensitivity. g is

* for sums, the sum of x_i cut to [-Delta_i, Delta_i];
* for the maximum, the least y + sum of Delta_i over all x_i > y, for y = empty or some x_i: the
  preprocessed max(empty, largest value), see `preprocessing.largest`. The minimum mirrors it.
"""

import dataclasses
import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.noise.tails import laplace_bound
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.releases.preprocessed import FINE, PreprocessedRelease, grid
from beam_dp.mechanisms.releases.released import Description, Released
from beam_dp.mechanisms.summaries.partition_view import PartitionView


@dataclasses.dataclass(frozen=True, kw_only=True)
class PersonEpsilonRelease(PreprocessedRelease):
    """One statistic per partition (see the module), with an epsilon for each person.

    Attributes:
        epsilons: the epsilon that each tier pays for g, per partition, in rising order.
    """

    epsilons: tuple[Fraction, ...]

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one number per partition; the arguments are those of `PreprocessedRelease`."""
        bound = self._bound(view)
        if bound is None and self.sensitivity is None:
            return self._unshown(view.size)
        levels = self._levels(view, noise)
        lines = view.lines(0)
        order = np.argsort(lines.indexes, kind="stable")
        numbers = integers.widen(lines.items[order])
        tiers = np.minimum(lines.counts[order], len(self.epsilons)) - 1
        offsets = np.searchsorted(lines.indexes[order], np.arange(view.size + 1))
        values = np.full(view.size, 0.0)
        for partition, level in enumerate(levels.tolist()):
            own = slice(offsets[partition], offsets[partition + 1])
            delta = self._largest(level, bound)
            values[partition] = self._drawn(numbers[own], tiers[own], delta, noise)
        return Released.within(values, np.full(view.size, math.inf))

    def _largest(self, level: int, bound: int | None) -> Fraction:
        """Return Delta in units for a person of the largest epsilon."""
        if self.statistic == "sum" and self.sensitivity is None:
            assert bound is not None
            return Fraction(bound)
        return self._delta(level, bound)

    def _drawn(
        self, numbers: np.ndarray, tiers: np.ndarray, delta: Fraction, noise: Noise
    ) -> float:
        """Return g plus noise in the user's scale."""
        coarse, resolution = grid(delta, 1)
        per_unit = Fraction(resolution, 1 << coarse)
        width = math.ceil(delta * per_unit) / self.epsilons[-1]
        steps = np.array([math.floor(width * each) for each in self.epsilons], object)
        empty = round(self.empty / self.unit * per_unit)
        exactly = cut(self.statistic, (numbers >> coarse) * resolution, steps[tiers], empty)
        drawn = int(noise.discrete_laplace(1 / width, 1)[0])
        step = self.unit / per_unit
        return float((exactly + drawn) * step)

    def describe(self) -> Description:
        """Describe it in units of Delta, the sensitivity of a person of the largest epsilon."""
        rate = self.epsilons[-1]
        scale = f"{float(1 / rate):.4g} Delta"
        parts = ", ".join(f"{float(epsilon / rate):.3g}" for epsilon in self.epsilons)
        bound = laplace_bound(rate / FINE, self.alpha) / FINE
        how = "given sensitivity" if self.sensitivity is not None else "private sensitivity"
        return Description(
            f"preprocessing for a {how} and an epsilon per person, then noise",
            scale,
            self.shift,
            f"{scale} + |f - g|",
            f"by epsilon, a person moves g by at most {parts} times Delta; noise within "
            f"{bound:.4g} Delta for 95%",
        )


def cut(statistic: str, numbers: np.ndarray, sensitivities: np.ndarray, empty: int) -> int:
    """Return g of one partition, in steps; person i moves it by at most their sensitivity.

    Args:
        statistic: "sum", "maximum" or "minimum".
        numbers: Python integers, one per person.
        sensitivities: Delta_i, Python integers of at least 0.
        empty: f of nobody, which is 0 for sums.
    """
    if statistic == "sum":
        return int(np.sum(np.clip(numbers, -sensitivities, sensitivities), initial=0))
    if statistic == "minimum":
        return -cut("maximum", -numbers, sensitivities, -empty)
    above = numbers > empty
    order = np.argsort(-numbers[above], kind="stable")
    values, prices = numbers[above][order], sensitivities[above][order]
    paid = np.append(np.array([0], object), np.cumsum(prices))
    return int(min(np.append(values, np.array([empty], object)) + paid))

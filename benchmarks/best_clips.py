"""The best fixed clip: what somebody would err by who knew the best bound for these very data.

For a clip C the release cuts what each person adds to [-C, C] and spends the whole budget on noise
of the scale C L0 / epsilon (Laplace) or C sqrt(L0 / (2 rho)) (Gaussian). Cutting moves the number
by a known B(C), so the error is |B + noise|, whose 95% quantile and mean have formulas. The best
clip is the least of them over a fine grid: no mechanism can know it, for it depends on the data.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy import stats

import beam_dp as dp

GRID = 600
QUANTILE = 0.95


@dataclasses.dataclass(frozen=True)
class Scale:
    """The noise of a budget for a sensitivity of 1 in each of so many partitions.

    Attributes:
        size: the scale of Laplace noise, or the standard deviation of Gaussian noise.
        gaussian: which of the two.
    """

    size: float
    gaussian: bool

    @classmethod
    def laplace(cls, epsilon: float, max_partitions: int) -> Scale:
        """Return Laplace noise."""
        return cls(max_partitions / epsilon, False)

    @classmethod
    def normal(cls, rho: float, max_partitions: int) -> Scale:
        """Return Gaussian noise."""
        return cls(math.sqrt(max_partitions / (2 * rho)), True)

    @classmethod
    def options(
        cls, budget: dp.Budget, max_partitions: int, part: float = 1.0
    ) -> tuple[Scale, ...]:
        """Return what a part of a budget may be spent on; with delta, either kind of noise.

        Args:
            budget: the whole.
            max_partitions: the most partitions of a person.
            part: of it, what this number gets.
        """
        laplace = (
            () if budget.is_zcdp else (cls.laplace(part * float(budget.amount), max_partitions),)
        )
        if not (budget.is_zcdp or budget.delta):
            return laplace
        return *laplace, cls.normal(part * float(budget.to_zcdp().amount), max_partitions)

    def quantile(self, bias: np.ndarray, clip: np.ndarray) -> np.ndarray:
        """Return the 95% quantile of |bias + noise| for noise of a clip.

        Laplace: for e >= |B|, P(|B + X| > e) = e^(-e / b) cosh(B / b); this is 5% at
        e = b ln(20 cosh(B / b)), which is at least |B| + b ln 10, so that e >= |B| holds.
        """
        scale = clip * self.size
        if not self.gaussian:
            ratio = bias / scale
            return scale * (math.log(0.5 / (1 - QUANTILE)) + np.logaddexp(ratio, -ratio))
        low, high = np.zeros_like(scale), abs(bias) + 3 * scale
        for _ in range(50):
            middle = (low + high) / 2
            beyond = stats.norm.sf((middle - bias) / scale) + stats.norm.sf((middle + bias) / scale)
            low = np.where(beyond > 1 - QUANTILE, middle, low)
            high = np.where(beyond > 1 - QUANTILE, high, middle)
        return high

    def mean(self, bias: np.ndarray, clip: np.ndarray) -> np.ndarray:
        """Return the mean of |bias + noise|.

        Laplace: |B| + b e^(-|B| / b); Gaussian: that of the folded normal distribution.
        """
        scale = clip * self.size
        ratio = abs(bias) / scale
        if not self.gaussian:
            return abs(bias) + scale * np.exp(-ratio)
        folded = math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2)
        return scale * (folded + ratio * (1 - 2 * stats.norm.sf(ratio)))

    def drawn(self, draws: int, seed: int) -> np.ndarray:
        """Return seeded draws for a sensitivity of 1, to measure with."""
        generator = np.random.default_rng(seed)
        draw = generator.normal if self.gaussian else generator.laplace
        return draw(0.0, self.size, draws)


def clips(amounts: np.ndarray, size: int = GRID) -> np.ndarray:
    """Return a fine grid of clips: quantiles of the amounts, and steps of equal ratio."""
    amounts = abs(amounts[amounts != 0])
    if not len(amounts):
        return np.ones(1)
    spaced = np.quantile(amounts, np.linspace(0.0, 1.0, size // 2))
    ratios = np.geomspace(amounts.min(), amounts.max(), size // 2)
    few = np.sort(amounts)[-size:]
    return np.unique(np.concatenate([spaced, ratios, few]))


def biases(amounts: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Return by how much cutting at each clip moves the sum."""
    total = np.zeros(len(grid))
    for sign in (1, -1):
        ordered = np.sort(np.maximum(sign * amounts, 0.0))
        sums = np.append(np.cumsum(ordered[::-1])[::-1], 0.0)
        first = np.searchsorted(ordered, grid, "right")
        total -= sign * (sums[first] - (len(ordered) - first) * grid)
    return total


def quantile_error(amounts: np.ndarray, scale: Scale) -> float:
    """Return the 95% error of a sum of people's amounts by the best fixed clip."""
    grid = clips(amounts)
    return float(scale.quantile(biases(amounts, grid), grid).min())


def errors_apart(place: np.ndarray, amounts: np.ndarray, truth: np.ndarray, scale: Scale) -> float:
    """Return the mean error over partitions by the best clip that all of them share.

    Args:
        place: the partition of each amount.
        amounts: what one person adds to one partition, of what is not dropped.
        truth: the number of each partition.
        scale: the noise.
    """
    partitions = len(truth)
    best = math.inf
    for clip in clips(amounts, 120)[::-1]:
        bias = np.bincount(place, np.clip(amounts, -clip, clip), partitions) - truth
        best = min(best, float(scale.mean(bias, np.full(partitions, clip)).mean()))
    return best


def best_clip(amounts: np.ndarray, scale: Scale) -> tuple[float, float]:
    """Return the clip of the least 95% error of a sum, and by how much it moves the sum."""
    grid = clips(amounts)
    moved = biases(amounts, grid)
    best = int(np.argmin(scale.quantile(moved, grid)))
    return float(grid[best]), float(moved[best])


def mean_error(totals: np.ndarray, counts: np.ndarray, scale: Scale, draws: int = 40_000) -> float:
    """Return the 95% error of a mean: the sum by its best clip, over the count by its own.

    Args:
        totals: the sum of each person's values.
        counts: the number of each person's values.
        scale: the noise of half of the budget, for the sum and for the count.
        draws: how often both noises are drawn.
    """
    (clip, moved), (cap, lost) = best_clip(totals, scale), best_clip(counts, scale)
    above = totals.sum() + moved + clip * scale.drawn(draws, 1)
    below = counts.sum() + lost + cap * scale.drawn(draws, 2)
    found = above / np.maximum(below, 1.0) - totals.sum() / counts.sum()
    return float(np.quantile(abs(found), QUANTILE))

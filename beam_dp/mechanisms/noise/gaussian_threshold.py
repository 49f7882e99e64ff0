"""Decide which partitions may be named under zCDP: a noisy number of people above a threshold.

`TruncatedGeometric` is optimal for (epsilon, delta), and what is (epsilon, delta)-DP is also
delta-approximate epsilon^2/2-zCDP. But that is a poor use of rho: the threshold is then about
ln(1 / delta) over the root of 2 rho. With Gaussian noise the root of ln(1 / delta) stands in its
place. For somebody in 16 partitions (epsilon 1, half of it for one metric, delta 10^-6) a partition
is kept half of the time with 144 people in place of 353.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.partition_selection import TruncatedGeometric, halfway
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.noise.tails import gaussian_bound
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.intervals import root_below

_SELDOM = Fraction(1, 1000)
_MOST_DELTA = Fraction(1, 4)


class Selection(Protocol):
    """A private decision for each partition, by the number of its people."""

    @property
    def pre_threshold(self) -> int:
        """The fewest people that a named partition may have."""
        ...

    @property
    def delta(self) -> Fraction:
        """The chance that a partition with one person more than none is kept, at most."""
        ...

    @property
    def threshold(self) -> int:
        """The fewest people with which a partition is kept, as `certainty` says."""
        ...

    @property
    def name(self) -> str:
        """The mechanism, for the plan."""
        ...

    @property
    def certainty(self) -> str:
        """From how many people on a partition is kept, and how surely."""
        ...

    def keep(self, people: npt.NDArray[np.int64], noise: Noise) -> npt.NDArray[np.bool_]:
        """Decide on many partitions at once."""
        ...


@dataclasses.dataclass(frozen=True)
class GaussianThreshold:
    """Keep a partition whose number of people, plus discrete Gaussian noise, is above a threshold.

    With n people let m = max(0, n - pre_threshold + 1). A partition with m = 0 is never kept; else
    it is kept where m + X > 1 + t, X discrete Gaussian of variance 1 / (2 rho), and t so large that
    P(X > t) <= delta.

    *Privacy.* The decision is delta-approximate rho-zCDP when one person is added or removed, who
    moves m by 0 or 1. From m >= 1 to m + 1: the noisy number is rho-zCDP for sensitivity 1
    (Canonne, Kamath, Steinke 2020, Theorem 4), and the decision a function of it. From m = 0 to 1:
    let E be the event that the partition is not kept. Its chance is 1 for m = 0 and at least
    1 - delta for m = 1, and given E the outcomes are alike (Bun and Steinke 2016, Definition 8.1).
    A person in k partitions costs k times as much rho and delta (their Lemma 8.2).

    Args:
        rho: above 0; larger lowers the threshold.
        delta: above 0 and at most 1/4; larger lowers the threshold.
        pre_threshold: the fewest people a named partition may have.

    Raises:
        ValueError: for a parameter out of range.

    Source: the threshold for Gaussian noise as in Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin
    2020, arXiv 2002.09745, for one partition at a time.
    """

    rho: Fraction
    delta: Fraction
    pre_threshold: int = 1

    def __post_init__(self) -> None:
        owner = "GaussianThreshold"
        rho = checks.fraction_between(owner, "rho", self.rho, 0, math.inf)
        delta = checks.fraction_between(owner, "delta", self.delta, 0, 1)
        checks.require(delta <= _MOST_DELTA, owner, "delta", f"be at most 1/4, not {delta}")
        checks.positive_integer(owner, "pre_threshold", self.pre_threshold)
        object.__setattr__(self, "rho", rho)
        object.__setattr__(self, "delta", delta)

    @property
    def variance(self) -> Fraction:
        """The variance of the noise."""
        return 1 / (2 * self.rho)

    @property
    def slack(self) -> int:
        """How far above one person the noisy number must be: t, by symmetry of the noise."""
        return gaussian_bound(self.variance, 2 * self.delta)

    @property
    def threshold(self) -> int:
        """The fewest people with which a partition is kept in 999 of 1,000 draws."""
        return self.pre_threshold + 1 + self.slack + gaussian_bound(self.variance, 2 * _SELDOM)

    @property
    def name(self) -> str:
        """The mechanism, for the plan."""
        return "selection by Gaussian noise"

    @property
    def certainty(self) -> str:
        """From how many people on a partition is kept, and how surely."""
        half = self.pre_threshold + self.slack
        return f"kept nearly always from {self.threshold} people on, half of the time with {half}"

    def keep(self, people: npt.NDArray[np.int64], noise: Noise) -> npt.NDArray[np.bool_]:
        """Decide on many partitions at once.

        Args:
            people: how many people each partition has; one dimension.
            noise: where the randomness comes from, `Noise()`.
        """
        # Raised before the shift, so that no number can wrap.
        shift = self.pre_threshold - 1
        counted = np.maximum(np.asarray(people, np.int64), shift) - shift
        present = np.flatnonzero(counted)
        drawn = noise.discrete_gaussian(self.variance, len(present))
        kept = np.zeros(len(counted), np.bool_)
        kept[present] = integers.add(counted[present], drawn) > 1 + self.slack
        return kept

    def __reduce__(self) -> tuple[Callable[..., "GaussianThreshold"], tuple[Any, ...]]:
        # Through the constructor, so that a pickle with other numbers in it is checked.
        return GaussianThreshold, (self.rho, self.delta, self.pre_threshold)


@functools.lru_cache(maxsize=64)
def best_selection(cost: Budget, pre_threshold: int) -> Selection:
    """Return the selection that a cost per partition pays for, by public parameters.

    An (epsilon, delta) pays for the truncated geometric one. A rho with a delta pays for both: for
    it with epsilon = root of 2 rho, and for Gaussian noise; that is taken which keeps a partition
    half of the time with fewer people.

    Args:
        cost: what a decision on one partition may cost; its delta is above 0.
        pre_threshold: the fewest people a named partition may have.
    """
    if not cost.is_zcdp:
        return TruncatedGeometric(cost.amount, cost.delta, pre_threshold)
    epsilon = root_below(2 * cost.amount)
    if cost.delta <= _MOST_DELTA:
        gaussian = GaussianThreshold(cost.amount, cost.delta, pre_threshold)
        if gaussian.slack <= halfway(epsilon, cost.delta):
            return gaussian
    return TruncatedGeometric(epsilon, cost.delta, pre_threshold)

"""Choose how many partitions of a person count, from a noisy histogram of people.

What adds up needs no such bound (`metrics.clipped_sum`). Ranks, extremes, different values and
others pay for every partition of a person, and so there must be a most.

*The ladder* is 1, 2, 3, 4, 6, 8, ..., 1024. A person with rows in k partitions stands on one step:
the lowest edge that is at least k; who has more than the last edge stands on the last. k is counted
after rows of partitions that are not public were dropped, from this person's rows alone. So adding
or removing one person changes one count of the ladder by 1 and no other count: the sensitivity is 1
in L1 and in L2, whatever the number of steps and however many rows or partitions the person has.

*The choice* is post-processing of released counts and public parameters: it costs nothing.

A larger bound L cuts fewer pairs of a person and a partition, and needs more noise per partition.
With the noisy counts x on the steps B_1 < B_2 < ... of the ladder and the middle m_b of the step b,

    lost(L) = sum over b <= top, B_b > L of max(x_b, 0) (m_b - L)

estimates the pairs that L cuts, which are lost(L) / P per partition. L is the step up to `top` at
which a partition errs least, as if each pair counted for one unit; its error is
sqrt(bias^2 + noise^2), with the mean absolute noise. A few public partitions may instead share one
draw of noise, with nobody cut: that is done where it errs less.

`top` is the highest step that shows people (`clip.Evidence`). Where none shows, there are few
people, and L is a guess (`FEW`).

*The number of partitions P.* It is public for public partitions. For selected ones it is between
B_top (somebody has rows in nearly so many) and the pairs that L leaves, divided by the people that
a partition needs before its number is worth something (`USABLE` times its noise): the geometric
mean of the two is taken.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.histogram_choice.clip import Evidence
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise

LADDER = (1, *(edge for power in range(1, 10) for edge in (2**power, 3 * 2 ** (power - 1))), 1024)
"""1, 2, 3, 4, 6, 8, 12, ..., 768, 1024: two steps per octave."""
SHARE = Fraction(2, 25)
"""The part of the whole budget that the histogram costs."""
FEW, FEW_OF_MANY, MANY = 3, 1, 200
"""The bound where no step shows people: 3; 1 where there are MANY partitions or more."""
USABLE = 30
"""A partition is worth asking for from so many people on, times its noise."""
_TAIL = 0.6  # beyond what shows, counts are taken to fall at least so fast
_DEVIATIONS = 1.65  # of the sum of noisy counts: 95% on one side


def edges_up_to(limit: int | None) -> tuple[int, ...]:
    """Return the steps of the ladder where nobody can have more than `limit` partitions.

    Args:
        limit: a public number, at least 1; it is the last step if it is below 1024. None: unknown.
    """
    last = min(LADDER[-1], limit or LADDER[-1])
    return (*(edge for edge in LADDER if edge < last), last)


def people_per_step(partitions: np.ndarray, edges: tuple[int, ...]) -> np.ndarray:
    """Return how many people stand on each step.

    Args:
        partitions: the number of partitions of each person, at least 1.
        edges: the steps.
    """
    steps = np.searchsorted(edges, np.minimum(partitions, edges[-1]))
    return np.bincount(steps, minlength=len(edges)).astype(np.int64)


def partitions_of(table: Table) -> np.ndarray:
    """Return the number of partitions of each person of a reduced table.

    Args:
        table: holds every pair of its people, the lines of a person and of a pair together, as
            `Bounder.reduce` returns them. Pairs beyond the last step may be missing.
    """
    if not len(table):
        return np.zeros(0, np.int64)
    new_person = changes(table.person)
    pairs = np.cumsum(new_person | changes(table.partition))
    before = pairs[new_person] - 1
    return np.asarray(np.diff(before, append=pairs[-1]), np.int64)


@dataclasses.dataclass(frozen=True)
class Look:
    """The noisy counts that were released, and what they cost.

    Attributes:
        counts: people per step, with noise.
        cost: what was spent: epsilon or rho alone.
    """

    counts: np.ndarray
    cost: Budget

    @property
    def noise(self) -> HistogramNoise:
        """The noise of each count."""
        return HistogramNoise(self.cost)

    @property
    def scale(self) -> float:
        """The scale of the noise: of Laplace's, or the deviation of Gauss's."""
        return AdditiveNoise(self.cost).scale

    @property
    def top(self) -> int:
        """The highest step that shows people; -1: none does."""
        found = Evidence(self.noise, len(self.counts)).highest(self.counts[None, None])
        return int(found[0, 0])


def draw(counts: np.ndarray, cost: Budget, noise: Noise) -> Look:
    """Look at how many people stand on each step; see `noisy_histogram`."""
    return Look(HistogramNoise(cost).add(counts, noise), cost)


@dataclasses.dataclass(frozen=True)
class BoundChoice:
    """The chosen bound, with what its histogram says about the people beyond: all of it released.

    Attributes:
        bound: the most partitions that a person keeps, L.
        edges: the steps of the ladder.
        look: the noisy counts.
        top: the index of the highest step that shows people; -1: none shows.
    """

    bound: int
    edges: tuple[int, ...]
    look: Look
    top: int

    @property
    def pairs_lost(self) -> float:
        """A bound on the pairs (person, partition) that L cuts, with a chance of about 95%.

        Everybody is taken to be at the upper edge of their step. People with more partitions than
        the last edge count as if they had so many. Up to `top`: the noisy counts, none below 0, and
        1.65 deviations of their weighted sum. Beyond (assumed, not proved): at most the noisy count
        and its noise scale, and at most 0.6 of the bound before. Where no step shows people nothing
        can be said: inf.
        """
        weights = [max(edge - self.bound, 0) for edge in self.edges]
        if not any(weights):
            return 0.0
        if self.top < 0:
            return math.inf
        seen = range(self.top + 1)
        counts: list[float] = np.maximum(self.look.counts, 0.0).tolist()
        total = sum(counts[step] * weights[step] for step in seen)
        square = sum(weights[step] ** 2 for step in seen)
        total += _DEVIATIONS * math.sqrt(2) * self.look.noise.scale * math.sqrt(square)
        bound = counts[self.top] + self.look.scale
        for step in range(self.top + 1, len(self.edges)):
            bound = max(0.0, min(float(self.look.counts[step]) + self.look.scale, _TAIL * bound))
            total += bound * weights[step]
        return total

    @property
    def pairs_lost_estimate(self) -> float:
        """The pairs that L cuts, with everybody in the middle of their step."""
        return lost_pairs(self.look.counts, self.edges, self.top, self.bound)

    @property
    def lost_share(self) -> float:
        """`pairs_lost` over the pairs that L keeps, with everybody in the middle of their step."""
        lost = self.pairs_lost
        if not lost:
            return 0.0
        everything = lost_pairs(self.look.counts, self.edges, self.top, 0)
        kept = everything - self.pairs_lost_estimate
        return lost / kept if kept > 0 else math.inf

    def told(self) -> dict[str, object]:
        """Return the choice for a record of the release, in plain values."""
        return {
            "steps": list(self.edges),
            "noisy_people": [float(count) for count in self.look.counts],
            "noise_scale": self.look.scale,
            "highest_step_shown": self.edges[self.top] if self.top >= 0 else None,
            "pairs_lost_estimate": self.pairs_lost_estimate,
        }


def choose(
    look: Look, edges: tuple[int, ...], noise: Callable[[int], float], partitions: int | None
) -> BoundChoice:
    """Return the bound for a released histogram; see the module's docstring.

    Args:
        look: the noisy counts.
        edges: the steps.
        noise: gives the mean absolute noise per partition and unit at a bound.
        partitions: the public number of partitions; None: unknown.
    """
    top = look.top
    if top < 0:
        few = FEW_OF_MANY if partitions is not None and partitions >= MANY else FEW
        return BoundChoice(max(edge for edge in edges if edge <= few), edges, look, top)
    errors = []
    for bound in edges[: top + 1]:
        cut = lost_pairs(look.counts, edges, top, bound)
        among = partitions or _partitions(look, edges, top, noise(bound))
        errors.append(math.hypot(cut / among, noise(bound)))
    return BoundChoice(edges[int(np.argmin(errors))], edges, look, top)


def lost_pairs(counts: np.ndarray, edges: Sequence[int], top: int, bound: int) -> float:
    """Return the estimate of the pairs that a bound cuts, from the steps up to `top`."""
    below = (0, *edges[:-1])
    return sum(
        max(float(counts[step]), 0.0) * ((below[step] + 1 + edges[step]) / 2 - bound)
        for step in range(top + 1)
        if edges[step] > bound
    )


def _partitions(look: Look, edges: Sequence[int], top: int, noise: float) -> float:
    """Return a guess of the number of partitions that are worth asking for."""
    pairs = lost_pairs(look.counts, edges, top, 0)
    return max(float(edges[top]), math.sqrt(edges[top] * pairs / (USABLE * noise)))

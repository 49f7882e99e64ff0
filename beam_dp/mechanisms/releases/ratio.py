"""Release a ratio a / b per partition.

One person has rows in a set S of at most r partitions. *Add-remove*: only these change, so that
each may cost a part 1 / r of the cost c that the ratio may spend in all.

*Substitution*: the person has rows in S before and in S' after, both of at most r partitions. That
is a substitution in each partition that is in S and in S', and a person more or fewer in each of
the others. With the default method a person more or fewer costs half as much: it moves a or b - a,
by at most L together, where a substitution moves both, and each has noise for half of the budget.
So parts of c / r are enough for the default: (|S and S'| + (|S| + |S'| - 2 |S and S'|) / 2) c / r =
(|S| + |S'|) c / (2 r) <= c. The noise of the other methods costs as much for one person more or
fewer as for a substitution, and min(2 r, all partitions) may change: each partition gets that part
of c. Then no method is better than the default.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.releases.released import (
    Description,
    Release,
    Released,
    Spending,
    counted,
)
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_METHODS = {"kulesza_suresh_wang": "noise on both counts (Kulesza, Suresh, Wang)"}


@dataclasses.dataclass(frozen=True)
class RatioRelease(Release):
    """A ratio a / b per partition.

    Attributes:
        mechanism: how the ratio is drawn; it knows its budget and the most rows of one person.
        ones: what one person adds to a.
        all: what one person adds to b.
        by_person: whether the people above 0 are counted instead of summing.
        alpha: the chance that the noise strays further than the interval says.
        cost: what one of the partitions that a person can have rows in may cost.
        method: as in the metric, for the plan.
    """

    mechanism: ratio.Mechanism
    ones: Measure
    all: Measure
    by_person: bool
    alpha: Fraction
    cost: Budget
    method: str

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of a and b."""
        return (self.ones, self.all)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The cost of a and b together."""
        return (Spending(self.cost),)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one ratio per partition; there is no clip."""
        ones, everything = self._counts(view, 0), self._counts(view, 1)
        drawn = self.mechanism.release(ones, everything, noise, self.alpha)
        return Released.within(drawn.values, drawn.errors)

    def with_lost(self, released: Released, share: float) -> Released:
        """Return the ratios where pairs were cut: with `share` of them, it moves by no more."""
        more = np.full(len(released.values), share)
        return Released.between(released.values, released.below + more, released.above + more)

    def _counts(self, view: PartitionView, measure: int) -> np.ndarray:
        if self.by_person:
            return view.people(measure)
        return np.array(view.totals(measure), np.int64)

    def describe(self) -> Description:
        """Describe the method, and the most rows of one person."""
        how = _METHODS.get(self.method, self.method.replace("_", " "))
        rows = counted(self.mechanism.rows, "row", "rows")
        mechanism = f"ratio, {how}, at most {rows} per person"
        return Description(mechanism, "-", 0, "shrinks with the number of rows")


def mechanism_of(
    method: str, share: Budget, rows: int, neighbours: str, reach: int, changed: int
) -> ratio.Mechanism:
    """Return how the ratio of one partition is drawn (see the module).

    Args:
        method: as in `Ratio`.
        share: what all partitions of one person may cost.
        rows: the most rows of one person in a partition.
        neighbours: as in `Ratio`.
        reach: the most partitions that a person has rows in.
        changed: the most partitions that other rows of one person change, at least `reach`.
    """
    if neighbours == ratio.SUBSTITUTION and method != ratio.DEFAULT:
        reach = changed
    return ratio.mechanism(method, share.scaled(Fraction(1, reach)), rows, neighbours)

"""Release ratios of partitions, and how their cost is shared by the partitions of one person.

One person has rows in at most r partitions, S. *Add-remove*: only these change, so that each may
cost a part 1 / r of what the ratio may spend, c in all.

*Substitution*: the person has rows in S before and in S' after, both of at most r partitions. That
is a substitution in each partition of both, and a person more or fewer in each of the others. A
person more or fewer is half as much for the default: it moves a or b - a, by at most L together,
where a substitution moves both, and each has noise for half of the budget. So parts of c / r are
enough for it: (|S and S'| + (|S| + |S'| - 2 |S and S'|) / 2) c / r = (|S| + |S'|) c / (2 r) <= c.
The noise of the other methods costs as much for one person more or fewer as for a substitution, and
min(2 r, all partitions) may change: each gets that part. Then none is better than the default.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.releases.released import Released
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.partition_view import Cells


@dataclasses.dataclass(frozen=True)
class RatioRelease:
    """A ratio a / b per partition.

    Attributes:
        mechanism: how it is drawn; it knows its budget and the most rows of one person.
        ones: what one person adds to a.
        all: what one person adds to b.
        by_person: count the people above 0 instead of summing.
        alpha: the chance that the error bound fails.
        cost: what one partition may cost, of all that a person can have rows in.
    """

    mechanism: ratio.Mechanism
    ones: Measure
    all: Measure
    by_person: bool
    alpha: Fraction
    cost: Budget

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Both."""
        return (self.ones, self.all)

    @property
    def shift(self) -> int:
        """Nobody is passed over."""
        return 0

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one ratio per partition; there is no clip."""
        ones, everything = self._counts(cells, first), self._counts(cells, first + 1)
        drawn = self.mechanism.release(ones, everything, noise, self.alpha)
        return Released(drawn.values, drawn.errors)

    def _counts(self, cells: Cells, place: int) -> np.ndarray:
        if self.by_person:
            return cells.people(place)
        return np.array(cells.totals(place), np.int64)


def mechanism_of(
    method: str, neighbours: str, share: Budget, rows: int, reach: int, changed: int
) -> ratio.Mechanism:
    """Return how the ratio of one partition is drawn (see the module).

    Args:
        method: as in `Ratio`.
        neighbours: as in `Ratio`.
        share: what all partitions of one person may cost.
        rows: the most rows of one person in a partition.
        reach: the most partitions that a person has rows in.
        changed: the most partitions that other rows of one person change, at least `reach`.
    """
    default = ratio.METHODS[1]
    if neighbours == ratio.SUBSTITUTION and changed > reach and method != default:
        if method == "auto":
            method = default
        else:
            reach = changed
    return ratio.mechanism(method, share.scaled(Fraction(1, reach)), rows, neighbours)

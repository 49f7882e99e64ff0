"""Numbers of people per public bin: `Histogram`, and how it is released.

*Privacy.* Each person of a partition is in one bin at most (`PersonBins`), whatever the number of
bins. So adding or removing a person changes one of the counts, by 1: in the L1 and in the L2 norm,
the whole histogram of a partition moves by at most 1. Independent discrete Laplace noise of rate
epsilon on every bin is therefore epsilon-DP for all bins together (Dwork, McSherry, Nissim, Smith,
2006, example 3), and discrete Gaussian noise of variance 1 / (2 rho) is rho-zCDP (Canonne, Kamath,
Steinke, 2020, Theorem 4). A count alone cannot be released better: at pure epsilon this noise is
optimal for every loss that grows with the error (Ghosh, Roughgarden, Sundararajan, 2009). Of
several partitions the vector of all bins is clipped by its norm, which is that of the partitions
that a person has a value in (`clipped_sum`).

*Intervals.* Of each bin the true number is within t of the released one, but for a chance of alpha,
where t is the tail of the noise: of discrete Laplace noise P(|noise| > t) = 2 q^(t + 1) / (1 + q)
with q = e^-epsilon. For all B bins together, the chance is at most B alpha.
"""

import dataclasses
import itertools
import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.additive.additive_release import (
    Total,
    clipped_totals,
    people_release,
)
from beam_dp.mechanisms.metrics.base import Context, OfNumbers
from beam_dp.mechanisms.metrics.released import Release
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.summaries.histograms import OPERATIONS, PersonBins
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_SUBJECT = "Histogram"
_HINT = 'Write dp.Histogram("age", edges=[0, 18, 30, 65]).'
_MOST_BINS = 1000  # there are three output columns per bin
Edge = Fraction | float


@dataclasses.dataclass(frozen=True)
class Histogram(OfNumbers):
    """Count the people per public bin of one number per person.

    A bin holds the numbers from one edge to below the next: of [0, 18, 30, 65] the first one has
    the ages 0 to 17. Whoever has a number below the first edge, or from the last edge on, is in no
    bin; with `-math.inf` or `math.inf` as the outermost edge there is a bin for them. Each person
    of a partition is in one bin at most, so all bins together cost as much as one number of people,
    and each has the same noise, however many there are.

    A bin has the columns `histogram_<column>_<from>_<to>`, `..._low` and `..._high`; with a name,
    `<name>_<from>_<to>`. In a name -5 is written `minus_5`, and 0.5 `0_5`. Each interval holds with
    95% alone, not all of them together.

    Attributes:
        column: the value column; rows without a valid value do not count.
        edges: two or more public numbers, rising.
        person_value: what a person with several rows counts as: the "mean" of their values, the
            "sum", the "max" or the "min".
        unit: the grid of values.
    """

    word: ClassVar[str] = "histogram"
    whole: ClassVar[bool] = True

    edges: Sequence[checks.Real]
    _: dataclasses.KW_ONLY
    person_value: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(_SUBJECT, "person_value", self.person_value, tuple(OPERATIONS))
        given = checks.sequence(_SUBJECT, "edges", self.edges, "numbers", _HINT)
        edges = tuple(map(_edge, given))
        _check_edges(edges)
        object.__setattr__(self, "edges", edges)

    @property
    def number_names(self) -> tuple[str, ...]:
        """The name of each bin."""
        bins = itertools.pairwise(map(_word, self.edges))
        return tuple(f"{self.output}_{low}_{high}" for low, high in bins)

    def build(self, context: Context, share: Budget) -> Release:
        """Return the counts plus noise; a partition's share is for all of its bins."""
        [column] = self.columns()
        finite = [edge for edge in self.edges if isinstance(edge, Fraction)]
        count = context.field(column, "count")
        people = people_release(context, share, count, box=False)
        bins = PersonBins(
            source=context.field(column, OPERATIONS[self.person_value]),
            # A multiple of the unit is below an edge if it is at most the last one below.
            thresholds=tuple(math.ceil(edge / column.detail) - 1 for edge in finite),
            count=count,
            mean=self.person_value == "mean",
            people=people.measure,
            norm=people.measure.norm,
        )
        first = int(self.edges[0] != -math.inf)  # else a bin holds the numbers below all edges
        per_bin = PeoplePerBin(people.measure, bins, first, size=len(self.edges) - 1)
        return dataclasses.replace(people, contribution=per_bin)


def _edge(value: object) -> Edge:
    """Return an edge as the decimal that it was written as; the infinities as they are."""
    if isinstance(value, (float, np.floating)) and math.isinf(value):
        return float(value)
    exact = checks.decimal(_SUBJECT, "every edge", value)
    rule = "be a number that floats can hold, below 1.8e308, or infinite"
    checks.require(abs(exact) <= sys.float_info.max, _SUBJECT, "every edge", rule)
    return exact


def _check_edges(edges: tuple[Edge, ...]) -> None:
    """Refuse edges that bound no bin, do not rise, or are too many."""
    enough = 2 <= len(edges) <= _MOST_BINS + 1
    rule = f"be 2 to {_MOST_BINS + 1} numbers, not {len(edges)}"
    checks.require(enough, _SUBJECT, "edges", rule, _HINT)
    rising = all(low < high for low, high in itertools.pairwise(edges))
    checks.require(rising, _SUBJECT, "edges", "rise: each is above the one before", _HINT)


def _word(edge: checks.Real) -> str:
    """Return an edge as a part of a column's name."""
    whole = isinstance(edge, Fraction) and edge.denominator == 1
    text = str(int(edge)) if whole else str(float(edge))
    return text.replace("-", "minus_", 1).replace(".", "_")


@dataclasses.dataclass(frozen=True)
class PeoplePerBin(Total):
    """A row of numbers of people per partition, one per bin; see the module.

    Attributes:
        bins: who is in which bucket.
        first: the first bucket that is a bin; those before and after the bins are not released.
    """

    bins: PersonBins
    first: int

    @property
    def measures(self) -> tuple[PersonBins, ...]:
        """The people per bucket."""
        return (self.bins,)

    @property
    def where(self) -> str:
        """What the noise is on."""
        return f" on each of {self.size} bins, with nobody in two"

    def clipped(
        self, view: PartitionView, index: int, clip: int | Fraction, grid: int
    ) -> np.ndarray:
        """Return the people of each bin of each partition, in one row."""
        buckets, steps = len(self.bins.thresholds) + 1, self.measure.steps
        width = len(self.measure.thresholds) + 1 if self.measure.norm else 1
        cells = view.clipped_cells(0, buckets, width, index)
        whole, shares = (part[:, self.first : self.first + self.size].ravel() for part in cells)
        return clipped_totals(whole, shares, clip, grid, steps)

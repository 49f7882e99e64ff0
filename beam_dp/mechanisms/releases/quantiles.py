"""Release quantiles: of people by a search of ranks, of rows by the k-th largest row."""

import dataclasses
import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.integers import scale
from beam_dp.mechanisms.profiles.from_summaries import KthRow
from beam_dp.mechanisms.profiles.kth_largest import rank_of_quantile
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.releases.released import (
    Description,
    Release,
    Released,
    Spending,
    people,
)
from beam_dp.mechanisms.search import RankProfile, RankSearch, Search, increments
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView


@dataclasses.dataclass(frozen=True)
class RankRelease(Release):
    """A quantile in which every person counts once, by `RankSearch`.

    With probability 1 - beta the rank of the released y is within `shift` people of p n: `shift` is
    the error bound.

    Attributes:
        relation: who owns which values, in units.
        unit: what one unit is worth.
        search: the search, with its budget.
        candidates: the public outputs.
    """

    relation: Relation
    unit: Fraction
    search: RankSearch
    candidates: Candidates

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation alone."""
        return (self.relation,)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What the search costs."""
        return (Spending(self.search.cost),)

    @property
    def shift(self) -> int:
        """How far the rank may be off, in people."""
        return self.search.shift(self.candidates.size)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no clip."""
        values = []
        for lines in view.owned(0):
            indexes = self.candidates.indexes(scale(lines.items, self.unit).astype(np.float64))
            # Values above the last candidate count as the last candidate.
            indexes = np.minimum(indexes, self.candidates.size - 1)
            profile = RankProfile(*increments(lines.people, indexes, lines.counts))
            values.append(self.search.choose_from(profile, self.candidates, noise))
        return Released(np.array(values, np.float64), np.full(len(values), float(self.shift)))

    def describe(self) -> Description:
        """Describe whose ranks are searched."""
        mechanism = "rank search, each person counts once"
        return Description(mechanism, "-", self.shift, people(self.shift))


@dataclasses.dataclass(frozen=True)
class RowQuantile(Release):
    """A quantile in which every row counts once: a noisy number of rows, then the k-th largest.

    A part of the cost buys a noisy number n of rows with a value (`ClippedSum`), the rest the k-th
    largest row with k = `rank_of_quantile(n, p)`, which is monotone once k is fixed. The error
    bound is the shift of the search, in people, for that k; the error of n is not in it. The error
    bound is infinite where n does not show more people than its clip may have cut: then k says
    nothing.

    Attributes:
        count: the number of rows, with a clip for each partition.
        rows: the profile of the k-th largest row, for k = 1.
        p: the share of rows below the quantile.
        search: the search, with its budget.
        candidates: the public outputs.
        cost: what one partition costs, the count and the search together.
        blank: release NaN for the lowest candidate, as in `DirectRelease`.
    """

    count: ClippedSum
    rows: KthRow
    p: Fraction
    search: Search
    candidates: Candidates
    cost: Budget
    blank: bool = False

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The measures of the count, then the relation."""
        return (*self.count.measures, *self.rows.measures)

    @property
    def shift(self) -> int:
        """How many people the search may pass over."""
        return self.search.shift(self.candidates.size)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The count and the search together."""
        return (Spending(self.cost),)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no shared clip."""
        counted = self.count.draw(view, noise)
        lines = view.owned(len(self.count.measures))
        values = []
        for rows, owned in zip(counted.values.tolist(), lines, strict=True):
            nth = dataclasses.replace(self.rows, k=rank_of_quantile(rows, self.p))
            profile = Profile(nth.levels(owned))
            chosen = self.search.choose(profile, self.candidates, noise)
            lowest = self.blank and chosen == self.candidates[0]
            values.append(math.nan if lowest else chosen)
        errors = np.where(np.isfinite(counted.errors), float(self.shift), math.inf)
        return Released(np.array(values, np.float64), errors)

    def describe(self) -> Description:
        """Describe the count and the search."""
        mechanism = "noisy number of rows, then the k-th largest"
        return Description(mechanism, "-", self.shift, people(self.shift))

"""Release quantiles and extremes by ranks of people, and quantiles of rows by the k-th largest."""

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
from beam_dp.mechanisms.releases.shifted_inverse import DirectRelease, as_array
from beam_dp.mechanisms.releases.two_phase import TwoPhase
from beam_dp.mechanisms.search import RankProfile, Search, increments
from beam_dp.mechanisms.search.ranks.node import Answer, Node
from beam_dp.mechanisms.search.ranks.splitting import SplitSearch
from beam_dp.mechanisms.search.ranks.tail import TailSearch
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Lines, Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView


@dataclasses.dataclass(frozen=True)
class RankRelease(Release):
    """Quantiles in which every person counts once, by `SplitSearch`; one or several of a column.

    Each comes with the number of people by which its rank may be off. NaN: too few people.

    Attributes:
        relation: who owns which values, in units.
        unit: what one unit is worth.
        search: the search, with its budget.
        candidates: the public outputs.
        alone: whether one number per partition is released, and not a row of numbers.
    """

    relation: Relation
    unit: Fraction
    search: SplitSearch
    candidates: Candidates
    alone: bool = True

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation alone."""
        return (self.relation,)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What all searches of a partition cost together."""
        return (Spending(self.search.cost),)

    @property
    def shift(self) -> int:
        """How far the rank of the first one may be off, in people, where many are."""
        return self.search.usual_errors[0]

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value or one row of values per partition; there is no clip."""
        drawn = [self._answers(lines, noise) for lines in view.owned(0)]
        shape = (view.size, len(self.search.shares))
        values = [answer.value(self.candidates) for row in drawn for answer in row]
        people = [answer.error for row in drawn for answer in row]
        kept = shape[:1] if self.alone else shape
        number, rank = (np.array(each, np.float64).reshape(kept) for each in (values, people))
        return Released.ranked(number, rank)

    def _answers(self, lines: Lines, noise: Noise) -> list[Answer]:
        indexes = self.candidates.indexes(scale(lines.items, self.unit).astype(np.float64))
        # Values above the last candidate count as the last candidate.
        indexes = np.minimum(indexes, self.candidates.size - 1)
        profile = RankProfile(*increments(lines.people, indexes, lines.counts))
        return self.search.answers(Node.of(profile, self.candidates.size), self.candidates, noise)

    def describe(self) -> Description:
        """Describe whose ranks are searched."""
        mechanism = "rank search, each person counts once"
        several = f"{len(self.search.shares)} of a column for the price of {self.search.levels}"
        reason = "" if self.alone else several
        return Description(mechanism, "-", self.shift, people(self.shift), reason)


@dataclasses.dataclass(frozen=True)
class LargestOfLines:
    """The largest number of each person, where rows are kept for other ways of release.

    Attributes:
        relation: who owns which values, in units.
        unit: what one unit is worth.
    """

    relation: Relation
    unit: Fraction
    sign = 1

    def tally(self, lines: Lines, candidates: Candidates) -> tuple[np.ndarray, np.ndarray]:
        """Return the candidates with somebody's largest number, and how many people these are."""
        indexes = candidates.indexes(scale(lines.items, self.unit).astype(np.float64))
        largest = np.zeros(int(lines.people.max(initial=-1)) + 1, np.int64)
        np.maximum.at(largest, lines.people, np.minimum(indexes, candidates.size - 1))
        occupied, people = np.unique(largest, return_counts=True)
        return occupied, people.astype(np.int64)


@dataclasses.dataclass(frozen=True)
class ExtremeRelease(Release):
    """The largest number of one per person, or the k-th largest, by `TailSearch`.

    With a chance of at most `stray`, or twice that where the largest is below 0 (the smallest above
    it), the released value is above all data; else the largest number is above the candidate before
    it. Of the k-th largest the error of its rank is released.
    NaN: too few people.

    Attributes:
        measure: one number per person, in buckets of the candidates; the sign says whether they
            are mirrored, for the smallest.
        search: the search, with its budget, in whole people.
        candidates: the public outputs, mirrored where the numbers are.
        ranked: whether the error is one of the rank.
    """

    measure: Measure | LargestOfLines
    search: TailSearch
    candidates: Candidates
    ranked: bool = False

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The measure alone, or the relation."""
        lines = self.measure
        return (lines.relation if isinstance(lines, LargestOfLines) else lines,)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What the search costs."""
        return (Spending(self.search.cost),)

    @property
    def shift(self) -> int:
        """How far the rank may be off, in people."""
        return self.search.rank_error(self.candidates)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no clip."""
        drawn = [
            self.search.choose_at(
                Node.of(RankProfile(occupied, numbers, 1), self.candidates.size),
                self.candidates,
                noise,
            )
            for occupied, numbers in self._tallies(view)
        ]
        sign = self.measure.sign
        values = as_array([answer.value(self.candidates) * sign + 0 for answer in drawn])
        if self.ranked:
            return Released.ranked(values, np.array([answer.error for answer in drawn], np.float64))
        below = np.array([self._step(answer.candidate) for answer in drawn], np.float64)
        return Released.at_least(values, below, sign)

    def _tallies(self, view: PartitionView) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the candidates of people's largest numbers, and how many people have each."""
        if isinstance(self.measure, LargestOfLines):
            return [self.measure.tally(lines, self.candidates) for lines in view.owned(0)]
        return view.tallies(0)

    def _step(self, index: int | None) -> float:
        """Return how far the candidate before is; the truth is above that one."""
        return float(self.candidates[index] - self.candidates[index - 1]) if index else math.inf

    def describe(self) -> Description:
        """Describe how many people the release passes over."""
        floor = self.search.floor(self.candidates)
        reason = f"NaN where fewer than about {floor} people are"
        mechanism = "walk from the outside, each person counts once"
        return Description(mechanism, "-", self.shift, people(self.shift), reason)


PASSED = Fraction(7, 10)
"""Measured: what a search from below passes over, by its shift."""
_MISSED = Fraction(5, 8)  # the same, of a search that hardly ever ends above


@dataclasses.dataclass(frozen=True)
class NearKth(DirectRelease):
    """The k-th largest row, as a number between the k'-th largest and that without some people.

    A person may have many rows, so a walk by people says nothing of rows. A search from below ends
    `PASSED` of its shift too low in the middle; k' is smaller than k by so much (`centred`). The
    error is a number of people, by which the rank may be off.
    """

    @staticmethod
    def centred(k: int, shift: int) -> int:
        """Return the k' to search for."""
        return max(1, k - math.floor(PASSED * shift))

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no clip."""
        values = super().draw(view, noise).values
        return Released.ranked(values, np.where(np.isnan(values), math.inf, float(self.shift)))


@dataclasses.dataclass(frozen=True)
class RowQuantile(Release):
    """A quantile in which every row counts once: a noisy number of rows, then the k-th largest.

    A part of the cost buys a noisy number n of rows with a value (`ClippedSum`; where rows have
    several owners `TwoPhase`, from the same lines), the rest the k-th largest row with k =
    `rank_of_quantile(n, p)`, which is monotone once k is fixed. The search passes over some people
    on its way up; so a smaller k is searched, by `_MISSED` of its shift. The error is a number of
    people: how far the search may end from there, on either side; the error of n is not in it. It
    is infinite where the interval of n reaches 0: then k says nothing.

    Attributes:
        count: the number of rows, with a clip or a price for each partition.
        rows: the profile of the k-th largest row, for k = 1.
        p: the share of rows below the quantile.
        search: the search, with its budget.
        candidates: the public outputs.
        cost: what one partition costs, the count and the search together.
        blank: release NaN for the lowest candidate, as in `DirectRelease`.
    """

    count: ClippedSum | TwoPhase
    rows: KthRow
    p: Fraction
    search: Search
    candidates: Candidates
    cost: Budget
    blank: bool = False

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The measures of the count, then the relation, unless it is one of them."""
        return tuple(dict.fromkeys((*self.count.measures, *self.rows.measures)))

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
        lines = view.owned(self.measures.index(self.rows.relation))
        values, errors = [], []
        for rows, owned in zip(counted.values.tolist(), lines, strict=True):
            k = rank_of_quantile(rows, self.p)
            less = min(k - 1, math.floor(_MISSED * self.shift))
            errors.append(max(less, self.shift - less))
            profile = Profile(dataclasses.replace(self.rows, k=k - less).levels(owned))
            chosen = self.search.choose(profile, self.candidates, noise)
            lowest = self.blank and chosen == self.candidates[0]
            values.append(math.nan if lowest else chosen)
        people = np.where(counted.low > 0, np.array(errors, np.float64), math.inf)
        return Released.ranked(np.array(values, np.float64), people)

    def describe(self) -> Description:
        """Describe the count and the search."""
        mechanism = "noisy number of rows, then the k-th largest"
        return Description(mechanism, "-", self.shift, people(self.shift))

"""Numbers of values that are only compared: different ones, the most frequent, their squares."""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, Spending
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.histogram_choice.clip_choice import share_of_few
from beam_dp.mechanisms.histogram_choice.clipping_loss import ClippingLoss
from beam_dp.mechanisms.metrics.additive.additive_release import (
    AdditiveRelease,
    ClippedTotals,
    Limits,
    Total,
    clipped_sum,
    each_partition,
)
from beam_dp.mechanisms.metrics.additive.shared_clip import row_clips
from beam_dp.mechanisms.metrics.base import Context, OfColumn
from beam_dp.mechanisms.metrics.profiled import Profiled, TwoPhaseDistinct
from beam_dp.mechanisms.metrics.released import Profiler, Release
from beam_dp.mechanisms.metrics.sums import Clippable
from beam_dp.mechanisms.noise.noise_on_a_sum import JointNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.profiles.from_summaries import (
    DistinctItems,
    MostFrequentItem,
    SquaresByItem,
)
from beam_dp.mechanisms.profiles.packed import packed_values
from beam_dp.mechanisms.search import coverage_search
from beam_dp.mechanisms.search.coverage_search import PARTS, CoverageSearch
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Lines, Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_MOST_ROWS = 1 << 62
_STEPS = 1 << 30  # of a whole share: many values of a person have little each
_SEARCH = Fraction(3, 20)
"""The search for a clip has so much of what the histogram leaves, and more for few partitions."""


@dataclasses.dataclass(frozen=True)
class CappedValues(Total):
    """A number that is computed from who has how many rows of which value, each person clipped.

    *Different values, of a clip C that is given.* The statistic is the most values that can be
    covered when every person covers at most C of theirs (a maximum flow, `packed_values.covered`):
    one person more raises it by 0 to C, and it is never above the true number. Of the people who
    have a value, only one must have room for it, so the true number is above it by at most what
    people lose.

    *The rows of the most frequent value.* Let c_iv be the rows of person i with value v, and s_i
    the largest of them, on which the clip C is chosen as in `AdditiveRelease`. The statistic is M,
    the maximum over v of sum_i min(c_iv, C).

    Theorem. A person more raises M by 0 to C, and the true number f, the maximum over v of
    sum_i c_iv, is from M to M + sum_i max(s_i - C, 0).

    Proof. The person raises each sum by min(c_iv, C), from 0 to C, and so their maximum. For every
    v, sum_i c_iv - sum_i min(c_iv, C) = sum_i max(c_iv - C, 0), from 0 to sum_i max(s_i - C, 0);
    so again for their maxima. What people above C lose is thus at most what they lose in a sum of
    the s_i, which `AdditiveRelease` estimates by the same histogram.

    Attributes:
        relation: who has which values.
        distinct: whether different values are counted; else rows of the most frequent one.
    """

    relation: Relation
    distinct: bool

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The histogram that the clip is chosen on, and the rows of the values."""
        return (*super().measures, self.relation)

    def clipped(
        self, view: PartitionView, index: int, clip: int | Fraction, grid: int
    ) -> np.ndarray:
        """Return the statistic per partition, each person clipped."""
        count: Callable[[Lines, Any], int] = _values if self.distinct else _most_rows
        owned = view.owned(len(super().measures))
        return np.array([count(lines, clip) for lines in owned], np.int64)


@dataclasses.dataclass(frozen=True)
class CoveredValues(Total):
    """The number of different values, each covered by the people who have it, in part.

    Person i has n_il different values in partition l. C clips the norm T_i of these numbers, as of
    a sum (`AdditiveRelease`), in which they add b_il. They cover w_il = b_il / n_il of each of
    their values, rounded down on the grid of the b_il. The statistic is the sum over all values of
    min(1, sum of the w_il of those who have it).

    Theorem. One person more raises it by 0 to b_il. The true number is from the statistic to the
    statistic + what people above C lose in that sum, n_il - b_il, and less than n_il steps of the
    grid for rounding, a part of n_il / (`_STEPS` C).

    Proof. Each of the n_il values rises by 0 to w_il, and n_il w_il <= b_il. The statistic counts
    no value above 1. Of a value it lacks at most 1 - w_il for anyone who has it, so at most the sum
    of n_il (1 - w_il) in all.

    So a value that many people have counts in full at any clip.

    Attributes:
        relation: who has which values, each line with the norm of its person as its count.
    """

    relation: Relation

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The numbers of values that people have, and who has which."""
        return (*super().measures, self.relation)

    def clipped(
        self, view: PartitionView, index: int, clip: int | Fraction, grid: int
    ) -> np.ndarray:
        """Return the statistic per partition, each person clipped."""
        owned = view.owned(len(super().measures))
        totals = [self._covered(lines, clip, grid) for lines in owned]
        return integers.narrow(np.array(totals, object))

    def coverage(self, view: PartitionView) -> np.ndarray:
        """Return how many values of these partitions are covered at each octave."""
        places, lines = view.lines(len(super().measures))
        words = np.stack([places.view(np.uint64), lines.item.view(np.uint64)])
        values = ordering.numbered(words) if len(places) else places
        return coverage_search.coverage(values, lines.count, self.measure.fine)

    def _covered(self, lines: Lines, clip: int | Fraction, grid: int) -> int:
        """Return what people cover, of lines whose counts are the norms of their people."""
        if not len(lines.items):
            return 0
        steps, whole = self.measure.steps, self.measure.fine * grid
        parts, above = np.full(len(lines.items), whole), lines.counts > math.floor(clip)
        if above.any():
            own = np.bincount(lines.people)[lines.people[above]]  # n of each person
            shares = integers.product(own, integers.alone(steps * self.measure.fine))
            shares = integers.narrow(shares // lines.counts[above])
            parts[above] = integers.product(shares, integers.alone(clip * grid // steps)) // own
        codes = ordering.numbered(lines.items.view(np.uint64)[None])
        covered = integers.sums_at(codes, parts, int(codes.max()) + 1)
        return sum(np.minimum(covered, whole).tolist())


@dataclasses.dataclass(frozen=True)
class CoveringRelease(AdditiveRelease):
    """Different values by a clip that is chosen twice: by norms, and by what it covers.

    The histogram of norms takes every value of a person for their own. So the clip C that it
    chooses is an upper end: where people share values, a far smaller clip D covers nearly as many,
    and `CoverageSearch` finds it. In the theorem of `AdditiveRelease` D is a clip that was
    released. Clips from D to C cover more: an interval has the most that they may
    (`CoverageSearch.steepest`), and what people lose beyond C by the histogram. That is far where
    people share all their values, as a few who have many may own them. Nothing is given back.

    Attributes:
        search: chooses the clip by what it covers.
    """

    search: CoverageSearch = dataclasses.field(kw_only=True)

    contribution: CoveredValues

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The noise, the search, and the histogram that chooses the largest clip."""
        noise, *clip = super().spends
        return (noise, Spending(self.search.cost, "coverage", once=True), *clip)

    def octave(
        self, histogram: np.ndarray, covered: np.ndarray, partitions: int, noise: Noise
    ) -> int:
        """Draw the octave of the clip; -1: it is that of the histogram.

        Args:
            histogram: what was drawn to choose the largest clip.
            covered: `CoveredValues.coverage` of all partitions together.
            partitions: how many there are.
            noise: the randomness.
        """
        index = self._chosen(histogram, partitions)
        if noise.is_off or index < 0:
            return -1
        parts = PARTS * self.measure.thresholds[index] // self.measure.fine
        octaves = (parts - 1).bit_length()
        root, cost = self._root_and_cost(histogram, partitions)
        found = self.search.choose(covered, root, cost, octaves, noise)
        return -1 if found is None else found

    def _root_and_cost(self, histogram: np.ndarray, partitions: int) -> tuple[int, float]:
        """Return R, and what a unit of the clip costs in noise, over R."""
        root = 1 if self.measure.norm == 1 else math.isqrt(partitions - 1) + 1
        return root, partitions * self.mean_error(histogram) / root

    def clip_at(self, index: int, view: PartitionView) -> int | Fraction:
        """Return the clip: that of the octave, if one was drawn."""
        if view.octave < 0:
            return super().clip_at(index, view)
        return Fraction(self.measure.fine << view.octave, PARTS)

    def _loss(self, clipped: ClippedTotals, bound: float, noise: JointNoise) -> ClippingLoss:
        loss = dataclasses.replace(super()._loss(clipped, bound, noise), covers=True)
        largest = self.measure.thresholds[clipped.index]
        if clipped.histogram is None or clipped.clip >= largest:
            return loss
        root, cost = self._root_and_cost(clipped.histogram, clipped.partitions)
        wider = float((largest - clipped.clip) * self.unit)
        uncovered = root * self.search.steepest(cost) * wider
        return dataclasses.replace(loss, lost=0.0, uncovered=uncovered)


@dataclasses.dataclass(frozen=True)
class DistinctCount(Clippable, OfColumn):
    """Count the different values of a column over all people.

    By default a clip C is chosen privately, noise of its size is added, and a value that several
    people have needs one of them, or parts of several. Of one partition C is a number of values
    per person, of several it clips a person's numbers of values in all partitions together. It is
    chosen by how many values it covers (`TwoPhaseDistinct`, `CoveringRelease`). With a given `clip` a
    person has at most so many values in each partition, and pays in each of them. A `search` looks
    at the relaxed removal loss instead: a value counts only if no T people can remove it.

    *Rows with several owners.* By default in two phases, for any number of owners: the rows of each
    value are removed together, by parts of people, at a threshold per removal (`profiles.packed`).
    Linear programs at low thresholds take long; two phases look at few, and high ones.

    Attributes:
        column: the column; its values are only compared. Rows without one do not count.
        clip: as in `Count`.
        search: as in `Count`. A search is never above the true number but for beta / 2, and below
            it by about the values of as many people as the plan shows.
    """

    word: ClassVar[str] = "distinct"
    _prefix: ClassVar[str] = "distinct"
    whole: ClassVar[bool] = True

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return it by a norm, or in two phases for one partition, unless a clip is given."""
        relation = Relation(context.index(self.source))
        values = context.field(self.source, "distinct")  # read in any case: P may not be known yet
        measure = Measure(values, thresholds=row_clips(None))
        if self.clip is not None:
            return _capped(context, share, measure, self.given_clip, relation, distinct=True)
        if context.partitions == 1:
            return TwoPhaseDistinct.of(relation, context.each(share), context.alpha)
        made = clipped_sum(context, share, dataclasses.replace(measure, steps=_STEPS))
        covered = CoveredValues(made.measure, dataclasses.replace(relation, by_norm=True))
        part = max(_SEARCH, share_of_few(context.partitions))
        search, noise = made.noise_cost.split((part, 1 - part))
        noise = noise.like(noise.amount, made.noise_cost.delta)  # the search has none of delta
        own = {"contribution": covered, "noise_cost": noise, "search": CoverageSearch(search)}
        return CoveringRelease(**{**vars(made), **own})

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed by parts."""
        return DistinctItems(Relation(context.index(self.source), context.others), removals)


@dataclasses.dataclass(frozen=True)
class MaxFrequency(Clippable, OfColumn):
    """Release how many rows the most frequent value of a column has.

    By default a number C of rows per person and value is chosen privately, each person counts for
    at most C rows of a value, and noise of that size is added (`CappedValues`). Of rows with
    several owners it is what the rows of one value pack when nobody counts for more than a
    threshold (`profiles.packed`). A `search` looks at the profile in which people
    are removed for each value apart (`profiles.frequency`).

    Attributes:
        column: the column; its values are only compared. Rows without one do not count.
        clip: as in `Count`.
        search: as in `Count`. A search is never above the true number but for beta / 2, and below
            it by about the rows of as many people as the plan shows.
    """

    word: ClassVar[str] = "frequency"
    whole: ClassVar[bool] = True

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the number of rows, each person counted for at most so many of each value."""
        rows, relation = context.field(self.source, "mode"), Relation(context.index(self.source))
        measure = Measure(rows, thresholds=row_clips(context.max_rows_per_partition))
        return _capped(context, share, measure, self.given_clip, relation, distinct=False)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed for each value apart, or by packings."""
        return MostFrequentItem(Relation(context.index(self.source), context.others), removals)


@dataclasses.dataclass(frozen=True)
class SumOfSquares(Profiled, OfColumn):
    """Release the sum over all values of their squared numbers of rows (the self-join size, F2).

    What its numbers mean is as of `Max` with `search="two_phase"`, for the profile in which people
    are removed for each value apart: good where few popular values make up most of the sum.

    Attributes:
        column: the column; its values are only compared.
        search: "two_phase" for a clip and noise (see `TwoPhase`), or a search over the removal
            loss, which errs to one side, and by more.
    """

    word: ClassVar[str] = "squares"
    whole: ClassVar[bool] = True

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed for each value apart."""
        return SquaresByItem(Relation(context.index(self.source)), removals)


def _capped(
    context: Context,
    share: Budget,
    measure: Measure,
    given: Fraction | None,
    relation: Relation,
    distinct: bool,
) -> Release:
    """Return the release by a clip, which is chosen from the thresholds if none is given."""
    if given is not None:
        measure = dataclasses.replace(measure, thresholds=(max(1, math.ceil(given)),))
    limits = Limits(bounded=context.max_rows_per_partition is not None)
    return each_partition(context, share, CappedValues(measure, relation, distinct), limits)


def _values(lines: Lines, cap: int) -> int:
    return packed_values.covered(lines.people, lines.items, cap)


def _most_rows(lines: Lines, cap: int) -> int:
    """Return the most rows of a value, of each person at most `cap`."""
    if not len(lines.items):
        return 0
    codes = ordering.numbered(lines.items.view(np.uint64)[None])
    rows = np.zeros(int(codes.max()) + 1, np.int64)
    np.add.at(rows, codes, np.minimum(lines.counts, min(cap, _MOST_ROWS)))
    return int(rows.max())

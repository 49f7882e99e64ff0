"""Counts and sums: of rows, people and numbers, and of values that are only compared."""

import abc
import dataclasses
from fractions import Fraction
from typing import ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.defaults import VALUE_CLIPS
from beam_dp.mechanisms.metrics.base import Context, Metric, OfColumn, OfNumbers, OfPeople
from beam_dp.mechanisms.metrics.clipped import (
    ClippedValues,
    clipped_sum,
    people_of,
    row_clips,
)
from beam_dp.mechanisms.metrics.profiled import Profiled, TwoPhaseDistinct
from beam_dp.mechanisms.metrics.released import Profiler, Release
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.profiles.from_summaries import (
    DistinctItems,
    MostFrequentItem,
    OneNumberEach,
    RowsOfSeveralOwners,
    SquaresByItem,
)
from beam_dp.mechanisms.search.choose import CLIP, TWO_PHASE, SearchKind
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation

_LARGEST_CLIP = 1 << 200
_COARSE = Fraction(1, 1000)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clippable(Profiled):
    """A metric that is released by a privately chosen clip and noise, or searched for, one-sided.

    Attributes:
        clip: None: chosen privately, once for all partitions. Or a number, if you know without the
            data that nobody counts for more in a partition: then nothing is spent on a choice, and
            whoever has more counts for that much. The interval holds the truth if nobody has.
        search: "clip" for a clip and noise; of rows with several owners in two phases. A search
            over the removal loss is one-sided: never above the true value but for 5%, and below it
            by the contributions of about `shift` people. "two_phase": see `TwoPhase`.
        candidates: the public outputs of a search; None: a geometric grid that is wide enough for
            anything.
        beta: how often a search may be above the true value, or too far below it.

    Options that have no effect are refused: a clip beside a search, and `candidates` and `beta`
    without one.
    """

    several_owners: ClassVar[bool] = True
    words: ClassVar[tuple[str, ...]] = (CLIP, TWO_PHASE)

    clip: checks.Real | None = None
    search: SearchKind = CLIP

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.search == CLIP:
            because = "without a search, as a clip is chosen and noise is added"
            mend = "Write search=dp.AboveThreshold beside it, or leave it out."
            options.refuse(self, ("candidates", "beta"), because, mend)
        else:
            because = "with a search for the output, which clips nobody"
            options.refuse(self, ("clip",), because, "Leave one of the two out.")
        if self.clip is not None:
            mend = "Write clip=100, or leave it out to have it chosen privately."
            checks.fraction_between(type(self).__name__, "clip", self.clip, 0, _LARGEST_CLIP, mend)

    @property
    def pooled(self) -> bool:
        """Whether its noise is drawn together with that of others: by clip and noise."""
        return self.search == CLIP

    @property
    def given_clip(self) -> Fraction | None:
        """The clip, exactly; None: it is chosen."""
        return None if self.clip is None else checks.decimal("Clippable", "clip", self.clip)

    @abc.abstractmethod
    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise."""

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise, or by its removal profile."""
        by_profile = self.search != CLIP or context.several_owners
        return super().build(context, share) if by_profile else self.clipped(context, share)

    def for_several_owners(self) -> Metric:
        """Return it as it is released where rows have several owners: by its removal profile."""
        because = "where rows have several owners, which are released by their removal profile"
        options.refuse(self, ("clip",), because, "Leave it out.")
        return self


class Count(Clippable):
    """Count the rows of each partition.

    No bound on rows per person is needed. With `ContributionBounds(rows_per_partition=...)` the
    clip is searched up to it only.
    """

    word: ClassVar[str] = "rows"
    shown_as: ClassVar[str] = "number of rows"
    whole: ClassVar[bool] = True

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the number of rows, each person clipped."""
        clips = row_clips(context.depth)
        return clipped_sum(context, share, ROWS, clips, given=self.given_clip)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the total without the people who have most."""
        if context.several_owners:
            return RowsOfSeveralOwners(Relation(-1, context.others), removals)
        return OneNumberEach(Measure(ROWS, keep=removals + 1), self.exact_unit)


@dataclasses.dataclass(frozen=True)
class Sum(Clippable, OfNumbers):
    """Sum a column; rows without a valid value add nothing.

    Numbers may have both signs. Every row's number is rounded to a multiple of `unit` first, then
    summed exactly. With a search, people whose total is below 0 count as 0. Where rows have
    several owners, numbers below 0 are taken as 0, sums of rows with the same owners are rounded
    down to multiples of 0.001 if the unit is a finer power of ten, and are at most 2^32 of these:
    4,294,967 by default.

    Attributes:
        column: the value column.
        unit: the grid of values; integers and decimals that are multiples of it are exact.
    """

    word: ClassVar[str] = "sum"
    own_epsilons: ClassVar[tuple[str, ...]] = ("sum",)

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the sum, each person clipped."""
        return clipped_sum(
            context,
            share,
            context.field(self.source, "sum"),
            VALUE_CLIPS,
            self.exact_unit,
            self.given_clip,
            signed=True,
            anchored=False,
        )

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the total without the people who have most."""
        unit = self.exact_unit
        if context.several_owners:
            coarse = _coarse(unit)
            relation = Relation(-1, context.others, context.index(self.source))
            return RowsOfSeveralOwners(relation, removals, unit * coarse, coarse=coarse)
        field = context.field(self.source, "sum")
        return OneNumberEach(Measure(field, keep=removals + 1), unit)

    def of_people(self) -> OfPeople:
        """Return the sum of people's totals, which only people with an epsilon of their own use."""
        return OfPeople("sum", "sum")


def _coarse(unit: Fraction) -> int:
    """Return how many units of a sum of shared rows are one: up to 0.001, a power of ten."""
    factor = 1
    while unit * factor * 10 <= _COARSE:
        factor *= 10
    return factor


class PeopleCount(Metric):
    """Count the people of each partition, by noise alone: one person changes the number by 1."""

    word: ClassVar[str] = "people"
    shown_as: ClassVar[str] = "number of people"
    monotone: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    @property
    def pooled(self) -> bool:
        """Whether its noise is drawn together with that of others: yes."""
        return True

    def build(self, context: Context, share: Budget) -> Release:
        """Return the number plus noise."""
        return people_of(context, share)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the number without k people, for those who search it themselves."""
        return OneNumberEach(Measure(PEOPLE, keep=removals + 1), self.exact_unit)


@dataclasses.dataclass(frozen=True)
class DistinctCount(Clippable, OfColumn):
    """Count the different values of a column over all people.

    By default a number C of values per person is chosen privately, each person pays
    for at most C of theirs, and noise of that size is added; a value that several people have
    needs only one who pays. Of one partition C is chosen by what it makes of the
    number (`TwoPhaseDistinct`), else by how many values people have. A `search` looks at the
    relaxed removal loss instead: only values that more than T people are needed to remove count.

    *Rows with several owners.* By default in two phases, for any number of owners: the rows of each
    value are removed together, by parts of people, at a price per removal (`profiles.packed`).
    Programs at low prices are hard: the profile, which looks at few and high ones, is released in
    two phases.

    Attributes:
        column: the column; its values are only compared. Rows without one do not count.
        clip: as in `Count`.
        search: as in `Count`. A search is never above the true number but for beta / 2, and below
            it by about the values of as many people as the plan shows.
    """

    word: ClassVar[str] = "distinct"
    whole: ClassVar[bool] = True
    priced: ClassVar[bool] = False

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return it in two phases for one partition, unless a clip is given."""
        relation = Relation(context.index(self.source))
        if self.clip is None and context.partitions == 1:
            return TwoPhaseDistinct.of(relation, context.each(share), context.alpha)
        values = context.field(self.source, "distinct")
        made = clipped_sum(context, share, values, row_clips(None), given=self.given_clip)
        return ClippedValues(**vars(made), relation=relation, distinct=True)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed by parts."""
        return DistinctItems(Relation(context.index(self.source), context.others), removals)

    @property
    def _prefix(self) -> str:
        return "distinct"


@dataclasses.dataclass(frozen=True)
class MaxFrequency(Clippable, OfColumn):
    """Release how many rows the most frequent value of a column has.

    By default a number C of rows per person and value is chosen privately, each person counts for
    at most C rows of a value, and noise of that size is added (`ClippedValues`). Of rows with
    several owners it is what the rows of one value pack when nobody counts for more than a price
    (`profiles.packed`). A `search` looks at the profile in which people
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
        rows, clips = context.field(self.source, "mode"), row_clips(context.depth)
        made = clipped_sum(context, share, rows, clips, given=self.given_clip)
        return ClippedValues(**vars(made), relation=Relation(context.index(self.source)))

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

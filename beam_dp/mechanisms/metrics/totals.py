"""Counts and sums: of rows, people and numbers, and of values that are only compared."""

import abc
import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.defaults import VALUE_CLIPS
from beam_dp.mechanisms.metrics.base import Command, Context, Metric, OfColumn, OfNumbers, OfPeople
from beam_dp.mechanisms.metrics.clipped import (
    ClippedValues,
    Clipping,
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
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.worker_limits import LINES, VALUES

_CLIPS = ("shared", "partition")
_LARGEST_CLIP = 1 << 200
_COARSE = Fraction(1, 1000)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sided(Profiled):
    """A metric that has two sides: by a privately chosen clip and noise, or one-sided.

    Attributes:
        one_sided: release by the shifted inverse mechanism: never above the true value but for
            5%, and below it by the contributions of about `shift` people. Else clip and noise.
        clip: choose the clip once for all partitions ("shared"), or "partition": in each, which
            suits partitions of thousands of people whose contributions differ by magnitudes. Or a
            number, if you know without the data that nobody counts for more in a partition: then
            nothing is spent on a choice, and whoever has more counts for that much. The interval
            holds the truth if nobody has.
        candidates: the public clips, of which such are used as are at least a factor of 2 apart,
            the largest among them; or the public outputs if one-sided; None: a geometric
            grid that is wide enough for anything.
        clip_share: the part of the metric's budget that chooses the clip; None: two fifths for
            one partition, or a fourth where that shows enough; an eighth where partitions are
            selected privately; and 0.8 / sqrt(partitions x those of a person), from 1/32 to two
            fifths, where they are public (`histogram_choice.clip`).
        search: how a one-sided release searches.
        beta: how often a one-sided release may be above the true value, or too far below it.

    Options that have no effect are refused: of the clip with `one_sided=True`, and of the search
    without.
    """

    several_owners: ClassVar[bool] = True

    one_sided: bool = False
    clip: str | checks.Real = "shared"
    clip_share: checks.Real | None = None
    search: SearchKind = AboveThreshold

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        mend = 'Write clip=100, or clip="shared" to have it chosen privately.'
        if isinstance(self.clip, str):
            rule = f'be a number above 0, "shared" or "partition", not {checks.shown(self.clip)}'
            checks.require(self.clip in _CLIPS, owner, "clip", rule, mend)
        else:
            checks.fraction_between(owner, "clip", self.clip, 0, _LARGEST_CLIP, mend)
        if self.clip_share is not None:
            checks.fraction_between(owner, "clip_share", self.clip_share, 0, 1)
        checks.boolean(owner, "one_sided", self.one_sided)
        self._check_side()

    def _check_side(self) -> None:
        """Refuse options of the clip in a one-sided release, and those of the search in others."""
        if self.one_sided:
            checks.require(
                self.search != TWO_PHASE,
                type(self).__name__,
                "search",
                'not be "two_phase" with one_sided=True: two phases err to both sides',
                "Leave both out: two phases are the default where rows have several owners.",
            )
            because = "with one_sided=True, which searches for the output and clips nobody"
            options.refuse(self, options.CLIP, because, "Leave one of the two out.")
            return
        because = "with one_sided=False, which chooses a clip and does not search for the output"
        # Two phases are what is meant: with one owner by default, with several if asked for.
        searched = options.SEARCH[1:] if self.search == TWO_PHASE else options.SEARCH
        options.refuse(self, searched, because, "Write one_sided=True beside it, or leave it out.")
        if not isinstance(self.clip, str):
            because = "with a clip, which leaves none to choose"
            refuse = ("candidates", "clip_share")
            options.refuse(self, refuse, because, 'Write clip="shared", or leave it out.')
        if self.candidates is not None and self.candidates.size == 1:
            because = "with candidates of one value, which leave no clip to choose"
            options.refuse(self, options.CLIP, because, "Give several candidates, or leave it out.")

    @property
    def pooled(self) -> bool:
        """Whether its noise is drawn together with that of others: by clip and noise."""
        return not self.one_sided

    @property
    def clipping(self) -> Clipping:
        """How its clip is chosen, or which it is."""
        owner, clip, share = type(self).__name__, self.clip, self.clip_share
        if not isinstance(clip, str):
            clip = checks.decimal(owner, "clip", clip)
        share = None if share is None else checks.number(owner, "clip_share", share)
        return Clipping(clip, share, self.candidates)

    @abc.abstractmethod
    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise."""

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise, or one-sided; of several owners by its profile."""
        by_profile = self.one_sided or context.several_owners
        return super().build(context, share) if by_profile else self.clipped(context, share)

    @property
    def way(self) -> SearchKind:
        """How its profile is released: in two phases, if no search is asked for."""
        return self.search if self.one_sided else TWO_PHASE

    def from_below(self, owner: str, chosen: Mapping[str, Any]) -> Metric:
        """Return it one-sided, as `Profiled` says."""
        because = f"in {owner}, which searches for the output and clips nobody"
        options.refuse(self, options.CLIP, because, "Leave it out.")
        return super().from_below(owner, {**chosen, "one_sided": True})

    def for_several_owners(self) -> Metric:
        """Return it as it is released where rows have several owners: by its removal profile."""
        because = "where rows have several owners, which are released by their removal profile"
        options.refuse(self, options.CLIP, because, "Leave it out.")
        return self


class Count(Sided):
    """Count the rows of each partition.

    No bound on rows per person is needed. With `ContributionBounds(rows_per_partition=...)` the
    clip is searched up to it only.
    """

    word: ClassVar[str] = "rows"
    shown_as: ClassVar[str] = "number of rows"
    whole: ClassVar[bool] = True
    command: ClassVar[Command] = Command(
        "", "number of rows", help_from_below="number of rows, one-sided"
    )

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the number of rows, each person clipped."""
        clips = row_clips(context.depth)
        return clipped_sum(context, share, ROWS, clips, clipping=self.clipping)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the total without the people who have most."""
        if context.several_owners:
            return RowsOfSeveralOwners(Relation(-1, context.others), removals)
        return OneNumberEach(Measure(ROWS, keep=removals + 1), self.exact_unit)


@dataclasses.dataclass(frozen=True)
class Sum(Sided, OfNumbers):
    """Sum a column; rows without a valid value add nothing.

    Numbers may have both signs. Every row's number is rounded to a multiple of `unit` first, then
    summed exactly. A one-sided sum takes people whose total is below 0 as 0. Where rows have
    several owners, numbers below 0 are taken as 0, sums of rows with the same owners are rounded
    down to multiples of 0.001 if the unit is a finer power of ten, and are at most 2^32 of these:
    4,294,967 by default.

    Attributes:
        column: the value column.
        unit: the grid of values; integers and decimals that are multiples of it are exact.
    """

    word: ClassVar[str] = "sum"
    own_epsilons: ClassVar[tuple[str, ...]] = ("sum",)
    command: ClassVar[Command] = Command(
        "COLUMN",
        "sum of a column, clipped at a privately chosen bound",
        "sum of a column, one-sided; people whose total is below 0 count as 0",
    )

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the sum, each person clipped."""
        return clipped_sum(
            context,
            share,
            context.field(self.source, "sum"),
            VALUE_CLIPS,
            self.exact_unit,
            self.clipping,
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
    command: ClassVar[Command] = Command("", "number of people")

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
class DistinctCount(Sided, OfColumn):
    """Count the different values of a column over all people.

    By default in two phases: a number C of values per person is chosen privately, each person pays
    for at most C of theirs, and noise of that size is added; a value that several people have
    needs only one who pays. Where C is for one partition, it is chosen by what it makes of the
    number (`TwoPhaseDistinct`), else by how many values people have. `one_sided=True` searches the
    relaxed removal loss instead: only values that more than T people are needed to remove count.

    *Rows with several owners.* By default in two phases, for any number of owners: the rows of each
    value are removed together, by parts of people, at a price per removal (`profiles.packed`).
    Programs at low prices are hard: the profile, which looks at few and high ones, is released in
    two phases.

    Attributes:
        column: the column; its values are only compared. Rows without one do not count.
        one_sided: never above the true number but for beta / 2, and below it by about the values
            of as many people as the plan shows.
        clip: as in `Count`, and refused with `one_sided=True`.
        clip_share: as in `Count`, and refused with `one_sided=True`. Without `one_sided=True`,
            `search` and `beta` are refused, as there is nothing that they could change.
        search: how a one-sided release searches.
    """

    word: ClassVar[str] = "distinct"
    whole: ClassVar[bool] = True
    priced: ClassVar[bool] = False
    most_rows: ClassVar[int] = VALUES
    command: ClassVar[Command] = Command(
        "COLUMN",
        "number of different values of a column",
        "number of different values of a column, one-sided",
    )

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return it in two phases where the clip is one partition's own, and nobody gave any."""
        clipping, alone = self.clipping, context.partitions == 1
        relation = Relation(context.index(self.source))
        chosen = isinstance(clipping.clip, str) and clipping.candidates is None
        if chosen and (alone or not clipping.shared):
            each = context.each(share)
            return TwoPhaseDistinct.of(relation, each, clipping.share, context.alpha)
        values = context.field(self.source, "distinct")
        made = clipped_sum(context, share, values, row_clips(None), clipping=clipping)
        return ClippedValues(**vars(made), relation=relation, distinct=True)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed by parts."""
        return DistinctItems(Relation(context.index(self.source), context.others), removals)

    @property
    def _prefix(self) -> str:
        return "distinct"


@dataclasses.dataclass(frozen=True)
class MaxFrequency(Sided, OfColumn):
    """Release how many rows the most frequent value of a column has.

    By default a number C of rows per person and value is chosen privately, each person counts for
    at most C rows of a value, and noise of that size is added (`ClippedValues`). Of rows with
    several owners it is what the rows of one value pack when nobody counts for more than a price
    (`profiles.packed`). `one_sided=True` searches the removal loss, by the profile in which people
    are removed for each value apart (`profiles.frequency`).

    Attributes:
        column: the column; its values are only compared. Rows without one do not count.
        one_sided: never above the true number but for beta / 2, and below it by about the rows of
            as many people as the plan shows.
        clip: as in `Count`, and refused with `one_sided=True`.
        clip_share: as in `Count`, and refused with `one_sided=True`. Without `one_sided=True`,
            `search` and `beta` are refused, as there is nothing that they could change.
        search: how a one-sided release searches.
    """

    word: ClassVar[str] = "frequency"
    whole: ClassVar[bool] = True
    most_rows: ClassVar[int] = LINES
    command: ClassVar[Command] = Command(
        "COLUMN",
        "rows of the most frequent value of a column",
        "rows of the most frequent value of a column, one-sided",
    )

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the number of rows, each person counted for at most so many of each value."""
        rows, clips = context.field(self.source, "mode"), row_clips(context.depth)
        made = clipped_sum(context, share, rows, clips, clipping=self.clipping)
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
    most_rows: ClassVar[int] = LINES
    command: ClassVar[Command] = Command("COLUMN", "sum of squared rows over all values")

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed for each value apart."""
        return SquaresByItem(Relation(context.index(self.source)), removals)

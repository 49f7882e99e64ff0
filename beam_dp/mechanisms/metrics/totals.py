"""Counts and sums: of rows, people and numbers, and of values that are only compared."""

import dataclasses
from fractions import Fraction
from typing import ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Role
from beam_dp.mechanisms.metrics.base import UNIT, Command, Metric, OfPeople, check_unit
from beam_dp.mechanisms.metrics.clipped import Sided, clipped_sum, row_clips, value_clips
from beam_dp.mechanisms.metrics.part import Context
from beam_dp.mechanisms.metrics.profiled import Profiled
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.exact_statistics import Exact, additive, occurrences, total
from beam_dp.mechanisms.profiles.from_summaries import (
    DistinctItems,
    MostFrequentItem,
    OneNumberEach,
    RowsOfSeveralOwners,
    SquaresByItem,
)
from beam_dp.mechanisms.releases.clipped import ClippedDistinct, ClippedFrequency, people_of
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.releases.two_phase import TwoPhaseDistinct
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.worker_limits import LINES, VALUES

_COARSE = Fraction(1, 1000)


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

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return additive(len)


@dataclasses.dataclass(frozen=True)
class Sum(Sided):
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
    command: ClassVar[Command] = Command(
        "COLUMN",
        "sum of a column, clipped at a privately chosen bound",
        "sum of a column, one-sided; people whose total is below 0 count as 0",
    )

    column: str
    _: dataclasses.KW_ONLY
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unit("Sum", self.unit)

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the sum, each person clipped."""
        return clipped_sum(
            context,
            share,
            context.field(self.source, "sum"),
            value_clips(),
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

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return additive(total)

    def of_people(self) -> OfPeople:
        """Return the sum of people's totals, which only people with an epsilon of their own use."""
        return OfPeople("sum", "sum")

    def takes_own_epsilons(self) -> bool:
        """Return that each person may have an epsilon of their own."""
        return True


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
        return people_of(context.noise(share), alpha=context.alpha, jointly=context.jointly)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the number without k people, for those who search it themselves."""
        return OneNumberEach(Measure(PEOPLE, keep=removals + 1), self.exact_unit)

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(len, additive(lambda record: 1).profile)


@dataclasses.dataclass(frozen=True)
class DistinctCount(Sided):
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
    role: ClassVar[Role] = Role.ITEM
    whole: ClassVar[bool] = True
    priced: ClassVar[bool] = False
    most_rows: ClassVar[int] = VALUES
    command: ClassVar[Command] = Command(
        "COLUMN",
        "number of different values of a column",
        "number of different values of a column, one-sided",
    )

    column: str

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
        return ClippedDistinct(**vars(made), relation=relation)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the relaxed profile of owners; with one owner, of as many as can matter."""
        most = 0 if context.several_owners else removals + 1
        relation = Relation(context.index(self.source), context.others, most=most)
        return DistinctItems(relation, removals)

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(lambda people: len(occurrences(people)))

    @property
    def _prefix(self) -> str:
        return "distinct"


@dataclasses.dataclass(frozen=True)
class MaxFrequency(Sided):
    """Release how many rows the most frequent value of a column has.

    By default a number C of rows per person and value is chosen privately, each person counts for
    at most C rows of a value, and noise of that size is added (`ClippedFrequency`). Of rows with
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
    role: ClassVar[Role] = Role.ITEM
    whole: ClassVar[bool] = True
    most_rows: ClassVar[int] = LINES
    command: ClassVar[Command] = Command(
        "COLUMN",
        "rows of the most frequent value of a column",
        "rows of the most frequent value of a column, one-sided",
    )

    column: str

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the number of rows, each person counted for at most so many of each value."""
        rows, clips = context.field(self.source, "mode"), row_clips(context.depth)
        made = clipped_sum(context, share, rows, clips, clipping=self.clipping)
        return ClippedFrequency(**vars(made), relation=Relation(context.index(self.source)))

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed for each value apart, or by packings."""
        return MostFrequentItem(Relation(context.index(self.source), context.others), removals)

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(lambda people: max(occurrences(people).values(), default=0))


@dataclasses.dataclass(frozen=True)
class SumOfSquares(Profiled):
    """Release the sum over all values of their squared numbers of rows (the self-join size, F2).

    What its numbers mean is as of `Max` with `search="two_phase"`, for the profile in which people
    are removed for each value apart: good where few popular values make up most of the sum.

    Attributes:
        column: the column; its values are only compared.
        search: "two_phase" for a clip and noise (see `TwoPhase`), or a search over the removal
            loss, which errs to one side, and by more.
    """

    word: ClassVar[str] = "squares"
    role: ClassVar[Role] = Role.ITEM
    whole: ClassVar[bool] = True
    most_rows: ClassVar[int] = LINES
    command: ClassVar[Command] = Command("COLUMN", "sum of squared rows over all values")

    column: str

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed for each value apart."""
        return SquaresByItem(Relation(context.index(self.source)), removals)

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(lambda people: sum(n * n for n in occurrences(people).values()))

"""Counts and sums: `Count`, `Sum` and `PeopleCount`."""

import dataclasses
from fractions import Fraction
from typing import ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import UNIT, Command, Metric, OfPeople, check_unit
from beam_dp.mechanisms.metrics.clipped import Sided, clipped_sum, row_clips, value_clips
from beam_dp.mechanisms.metrics.part import Context
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.exact_statistics import Exact, additive, total
from beam_dp.mechanisms.profiles.from_summaries import OneNumberEach, RowsOfSeveralOwners
from beam_dp.mechanisms.releases.clipped import people_of
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation

_COARSE = Fraction(1, 1000)


class Count(Sided):
    """Count the rows of each partition.

    No bound on rows per person is needed. With `ContributionBounds(rows_per_partition=...)` the
    clip is searched up to it only.
    """

    word: ClassVar[str] = "rows"
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

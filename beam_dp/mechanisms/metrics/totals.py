"""Counts, sums and means: `Count`, `Sum`, `PeopleCount` and `Mean`."""

import dataclasses
from fractions import Fraction
from typing import ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import UNIT, Command, Metric, OfPeople, check_unit
from beam_dp.mechanisms.metrics.clipped import (
    ClippedRequest,
    Sided,
    SidedRequest,
    row_clips,
    value_clips,
)
from beam_dp.mechanisms.metrics.profiled import ProfileRequest, Searching
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.exact_statistics import Exact, additive, total
from beam_dp.mechanisms.profiles.from_summaries import OneNumberEach, RowsOfSeveralOwners
from beam_dp.mechanisms.releases.clipped import people_of
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.releases.request import Context, Request
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation

_COARSE = Fraction(1, 1000)


class Count(Sided):
    """Count the rows of each partition.

    No bound on rows per person is needed. With `ContributionBounds(rows_per_partition=...)` the
    clip is searched up to it only.
    """

    monotone: ClassVar[bool] = True
    several_owners: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    command: ClassVar[Command] = Command(
        "", "number of rows", help_from_below="number of rows, one-sided"
    )

    def requests(self) -> tuple[Request, ...]:
        """Return the number of rows, by clip and noise or from below."""
        return (self.profile_request() if self.one_sided else RowsRequest(None, self._clipping),)

    def profile_request(self) -> ProfileRequest:
        """Return the number of rows by its removal profile."""
        return RowsFromBelow(None, Searching.of(self))

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return additive(len)


class RowsRequest(ClippedRequest):
    """The number of rows."""

    word: ClassVar[str] = "rows"
    owner: ClassVar[str] = "Count"

    def source(self, context: Context) -> int:
        """Return the number of rows of a person."""
        return ROWS

    def default_clips(self, context: Context) -> tuple[int, ...]:
        """Return powers of two, up to the bound on rows."""
        return row_clips(context.depth)


class RowsFromBelow(SidedRequest):
    """The number of rows by its removal profile."""

    word: ClassVar[str] = "rows"
    owner: ClassVar[str] = "Count"

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the total without the people who have most."""
        if context.several_owners:
            return RowsOfSeveralOwners(Relation(-1, context.others), removals)
        return OneNumberEach(Measure(ROWS, keep=removals + 1), self.unit)


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

    monotone: ClassVar[bool] = True
    several_owners: ClassVar[bool] = True
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

    def requests(self) -> tuple[Request, ...]:
        """Return the sum, by clip and noise or from below."""
        [column] = self.columns()
        return (self.profile_request() if self.one_sided else SumRequest(column, self._clipping),)

    def profile_request(self) -> ProfileRequest:
        """Return the sum by its removal profile."""
        return SumFromBelow(self.columns()[0], Searching.of(self))

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return additive(total)

    def of_people(self) -> OfPeople:
        """Return the sum of people's totals, which only people with an epsilon of their own use."""
        return OfPeople("sum", "sum")

    def takes_own_epsilons(self) -> bool:
        """Return that each person may have an epsilon of their own."""
        return True


class SumRequest(ClippedRequest):
    """The sum of a column."""

    word: ClassVar[str] = "sum"
    owner: ClassVar[str] = "Sum"
    in_its_unit: ClassVar[bool] = True
    signed: ClassVar[bool] = True
    anchored: ClassVar[bool] = False

    def source(self, context: Context) -> int:
        """Return the sum of a person's values."""
        return context.field(self.column, "sum")

    def default_clips(self, context: Context) -> tuple[int, ...]:
        """Return powers of two, from one unit on."""
        return value_clips()


class SumFromBelow(SidedRequest):
    """The sum of a column by its removal profile; people below 0 count as 0."""

    word: ClassVar[str] = "sum"
    owner: ClassVar[str] = "Sum"
    in_its_unit: ClassVar[bool] = True

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the total without the people who have most."""
        if context.several_owners:
            coarse = _coarse(self.unit)
            relation = Relation(-1, context.others, context.index(self.column))
            unit = self.unit * coarse
            return RowsOfSeveralOwners(relation, removals, unit, coarse=coarse)
        field = context.field(self.column, "sum")
        return OneNumberEach(Measure(field, keep=removals + 1), self.unit)


def _coarse(unit: Fraction) -> int:
    """Return how many units of a sum of shared rows are one: up to 0.001, a power of ten."""
    factor = 1
    while unit * factor * 10 <= _COARSE:
        factor *= 10
    return factor


class PeopleCount(Metric):
    """Count the people of each partition, by noise alone: one person changes the number by 1."""

    monotone: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    command: ClassVar[Command] = Command("", "number of people")

    def requests(self) -> tuple[Request, ...]:
        """Return the number of people."""
        return (PeopleRequest(),)

    def profile_request(self) -> ProfileRequest:
        """Return the number of people by its removal profile."""
        return PeopleFromBelow(None, Searching())

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(len, additive(lambda record: 1).profile)

    @property
    def _prefix(self) -> str:
        return "people_count"


@dataclasses.dataclass(frozen=True)
class PeopleRequest(Request):
    """The number of people."""

    word: ClassVar[str] = "people"
    pooled: ClassVar[bool] = True

    def build(self, context: Context, share: Budget) -> Release:
        """Return the number plus noise."""
        return people_of(context.noise(share), alpha=context.alpha, jointly=context.jointly)


class PeopleFromBelow(ProfileRequest):
    """The number of people by its removal profile, for those who search it themselves."""

    word: ClassVar[str] = "people"

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the number without k people."""
        return OneNumberEach(Measure(PEOPLE, keep=removals + 1), self.unit)

"""Counts, sums and means: `Count`, `Sum`, `PeopleCount` and `Mean`."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import UNIT, Command, Metric, OfPeople, check_unit
from beam_dp.mechanisms.metrics.clipped import (
    ClippedRequest,
    Clipping,
    Sided,
    SidedRequest,
    check_clip,
    row_clips,
    value_clips,
)
from beam_dp.mechanisms.metrics.profiled import ProfileRequest, Searching
from beam_dp.mechanisms.metrics.spread import preprocessed
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.numerics.exact_statistics import Exact, additive, total
from beam_dp.mechanisms.profiles.from_summaries import OneNumberEach, RowsOfSeveralOwners
from beam_dp.mechanisms.releases.released import PeopleRelease, Release, Released
from beam_dp.mechanisms.releases.request import ColumnRequest, Context, Request
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation

_COARSE = Fraction(1, 1000)
_SUM_AND_COUNT = (2, 1)
"""The weights of the two parts of a mean: of a sum at a clip of several means the noise counts for
more than that of the number of rows, at a clip of few rows."""


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

    def build(self, context: Context, share: Budget) -> Release:
        """Return the number plus noise."""
        return PeopleRelease(context.each(share), PEOPLE, context.alpha)


class PeopleFromBelow(ProfileRequest):
    """The number of people by its removal profile, for those who search it themselves."""

    word: ClassVar[str] = "people"

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the number without k people."""
        return OneNumberEach(Measure(PEOPLE, keep=removals + 1), self.unit)


@dataclasses.dataclass(frozen=True)
class Mean(Metric):
    """Release the mean of a column: a noisy sum over a noisy number of rows or people.

    Where `Sum(column)` and `Count()` are asked for too (`PeopleCount()` with per="person"), the mean
    is the quotient of what these release, and costs nothing more: its part of the budget goes to
    them. A row, or a person, without a value then counts like one with the value 0. Otherwise, and
    with `own_count=True`, the count is one of rows, or people, that have a value, and is paid for;
    the sum is shared with `Sum(column)` all the same. The interval joins, by squares, how far the interval of each moves the quotient; it is
    open where that of the count reaches 0. A noisy count below 1 is taken as 1.

    Attributes:
        column: the value column; rows without a valid value do not count.
        per: "row" for the mean over rows, "person" for the mean over people of their totals.
        unit: the grid of values.
        clip: as in `Sum`; a number is the most that the values of a person add up to.
        clip_share: as in `Sum`.
        own_count: whether rows (people) that have a value are counted for the mean alone, where a
            count of all of them is asked for too.
        method: "clip" as above, or "preprocessing": the mean of one number per person (the mean of
            their values; their total with per="person") as in `Preprocessing`. It errs less where
            few people have by far the largest numbers.
    """

    splits_alpha: ClassVar[bool] = False
    command: ClassVar[Command] = Command(
        "COLUMN[:person]", "mean of a column over rows; or over people's totals"
    )

    column: str
    _: dataclasses.KW_ONLY
    per: str = "row"
    unit: checks.Real = UNIT
    clip: str | checks.Real = "shared"
    clip_share: checks.Real | None = None
    own_count: bool = False
    method: str = "clip"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("Mean", "per", self.per, ("row", "person"))
        check_clip("Mean", self.clip, self.clip_share)
        check_unit("Mean", self.unit)
        if type(self.own_count) is not bool:
            rule = f"be True or False, not {checks.shown(self.own_count)}"
            raise checks.ParameterTypeError("Mean", "own_count", rule)
        options.check_method(self, "clip", ("clip", "clip_share", "own_count"))

    def requests(self) -> tuple[Request, ...]:
        """Return a sum and a number of rows or people, or the preprocessed mean."""
        if self.is_preprocessed:
            return preprocessed(self).requests()
        [column] = self.columns()
        clipping = Clipping.of(self)
        if self.per == "person":
            return SumRequest(column, clipping), PeopleWithValueRequest(column)
        return SumRequest(column, clipping), RowsWithValueRequest(column, clipping.of_rows)

    def beside(self, asked: Sequence[Metric]) -> Metric:
        """Return the quotient of a sum and a count that are asked for, if they are."""
        if self.is_preprocessed or self.own_count or isinstance(self, MeanOfReleased):
            return self
        kind = PeopleCount if self.per == "person" else Count
        plain = (RowsRequest, PeopleRequest)
        asked_sums = [each for m in asked if type(m) is Sum for each in m.requests()]
        counts = [each for m in asked if type(m) is kind for each in m.requests()]
        counts = [each for each in counts if isinstance(each, plain)]
        own, _ = self.requests()
        sums = [each for each in asked_sums if own == each] or self._others(asked_sums)
        return (
            MeanOfReleased(**vars(self), released=(sums[0], counts[0])) if sums and counts else self
        )

    def _others(self, sums: Sequence[Request]) -> list[Request]:
        """Return the sums of the column by another clip; none where the mean asks for its own."""
        if Clipping.of(self) != Clipping():
            return []
        return [s for s in sums if isinstance(s, SumRequest) and s.column == self.columns()[0]]

    def request_weights(self) -> tuple[int, ...]:
        """Return the weights of the sum, whose clip is far above a mean, and of the count."""
        return (1,) if self.is_preprocessed else _SUM_AND_COUNT

    def combine(self, released: Sequence[Released]) -> Released:
        """Return the quotient and its interval; of a preprocessed mean what was released.

        Let the interval of the sum alone move the quotient by a, and that of the count alone by b:
        together they are taken to move it by sqrt(a^2 + b^2). For two independent Laplace or
        Gaussian noises, each within its interval but for alpha, that fails less often than alpha,
        whatever their scales: at equal ones with x = ln(1 / alpha), by e^-y (1 + y / 2), y =
        sqrt(2) x. Where the count may be 0 nothing is known.
        """
        if self.is_preprocessed:
            return super().combine(released)
        total, count = released
        rows = np.maximum(count.values.astype(float), 1.0)
        sums = total.values.astype(float)
        mean = sums / rows
        with np.errstate(divide="ignore", invalid="ignore"):
            known = (count.low > 0) & np.isfinite(count.high)
            ends = [sums / count.low, mean, sums / count.high]
            below = np.hypot(total.below / rows, mean - np.min(ends, axis=0))
            above = np.hypot(total.above / rows, np.max(ends, axis=0) - mean)
        nothing = np.full(len(mean), np.inf)
        return Released.between(mean, below, above).where(known, Released.within(mean, nothing))

    def of_people(self) -> OfPeople:
        """Return the mean of people's means, or of their totals."""
        return OfPeople("mean", "sum" if self.per == "person" else "mean")


@dataclasses.dataclass(frozen=True)
class MeanOfReleased(Mean):
    """A mean that is the quotient of a sum and a count which are released anyway.

    Attributes:
        released: the requests of the sum and of the count.
    """

    _: dataclasses.KW_ONLY
    released: tuple[Request, Request]

    @property
    def _prefix(self) -> str:
        return "mean"

    def requests(self) -> tuple[Request, ...]:
        """Return what is released anyway."""
        return self.released


class RowsWithValueRequest(ClippedRequest):
    """The number of rows that have a value."""

    word: ClassVar[str] = "valid"
    shown_as: ClassVar[str] = "rows"

    def source(self, context: Context) -> int:
        """Return the number of a person's rows with a value."""
        return context.field(self.column, "count")

    def default_clips(self, context: Context) -> tuple[int, ...]:
        """Return powers of two, up to the bound on rows."""
        return row_clips(context.depth)


class PeopleWithValueRequest(ColumnRequest):
    """The number of people who have a value."""

    word: ClassVar[str] = "valid"
    shown_as: ClassVar[str] = "people"

    def build(self, context: Context, share: Budget) -> Release:
        """Return the number plus noise."""
        field = context.field(self.column, "count")
        return PeopleRelease(context.each(share), field, context.alpha)

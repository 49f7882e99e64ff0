"""The mean of a column: a noisy sum over a noisy number of rows or people."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import UNIT, Command, Metric, OfPeople, check_unit
from beam_dp.mechanisms.metrics.clipped import ClippedRequest, Clipping, check_clip, row_clips
from beam_dp.mechanisms.metrics.spread import preprocessed
from beam_dp.mechanisms.metrics.totals import (
    Count,
    PeopleCount,
    PeopleRequest,
    RowsRequest,
    Sum,
    SumRequest,
)
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.releases.released import PeopleRelease, Release, Released
from beam_dp.mechanisms.releases.request import ColumnRequest, Context, Request

_SUM_AND_COUNT = (3, 2)
"""The weights of the two parts of a mean: of a sum at a clip of several means the noise counts for
more than that of the number of rows, at a clip of few rows."""


@dataclasses.dataclass(frozen=True)
class Mean(Metric):
    """Release the mean of a column: a noisy sum over a noisy number of rows or people.

    Where `Sum(column)` and `Count()` are asked for too (with per="person", `PeopleCount()`), the
    mean is the quotient of what these release, and costs nothing more: its part of the budget goes
    to them. A row, or a person, without a value then counts like one with the value 0. Otherwise,
    and with `own_count=True`, the count is one of rows, or people, that have a value, and is paid
    for; the sum is shared with `Sum(column)` all the same.

    The interval joins, by squares, how far the interval of each moves the quotient; it is open
    where that of the count reaches 0. Where the sum or the count that it is made of has a given
    `clip`, the mean promises what these do: the true mean is in the interval if nobody counts for
    more than the clip. A noisy count below 1 is taken as 1.

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
    early: ClassVar[bool] = True

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

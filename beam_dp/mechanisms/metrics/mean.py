"""Means and variances of a column: a centre, noisy sums of distances from it, a noisy count.

People add to a sum S and to a number N of rows (or people). The mean of the rows is
c + (S - c N) / N for every c. A person whose values are near c moves the sum of the distances from
c, S - c N, by little: it has a small clip and little noise. S has neither where values are far from
0, as years or ratings are. c is a median of people's own means, chosen privately
(`planning.adaptive`). The middle of public ends would cost nothing, but errs more: by 2.5
times for ratings, and by 6 for clicks, which are far from the middle of 0 and 1.

Whatever c is, the release is private and c costs nothing more than its choice; a c that is far off
costs accuracy only.

With S1 and S2 the sums of the distances of N values from c, and of their squares, the variance of
the rows is S2 / N - (S1 / N)^2 for every c. Near the middle of the values all three are small for
each person.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.decimal_grid import VALUE_CLIPS
from beam_dp.mechanisms.metrics.additive.additive_release import (
    AdditiveRelease,
    Limits,
    clipped_sum,
    people_release,
)
from beam_dp.mechanisms.metrics.additive.shared_clip import row_clips
from beam_dp.mechanisms.metrics.base import (
    CentreRequest,
    Context,
    Ends,
    JointNoisePart,
    Metric,
    MetricPart,
    OfNumbersBetween,
    OfRowsOrPeople,
    PeopleStatistic,
    ends_of_totals,
    joined,
    units_between,
)
from beam_dp.mechanisms.metrics.released import Release, Released
from beam_dp.mechanisms.metrics.sums import Count, PeopleCount, Sum
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search.choose import CLIP
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure

_SQUARE_CLIPS = tuple(1 << power for power in range(120))
_WIDEST = 1 << 59
UnitEnds = tuple[int | None, int | None]
_DISTANCES_AND_ROWS = (2, 1)
"""The weights of the two numbers of a mean (`Mean`)."""
_SQUARES_AND_REST = (1, 2, 1)
"""The weights of sums, squares and rows: the squares matter most. With 4 for these, spreads of skewed
values err a tenth less, but groups with several rows, and rare ones, are seen too late."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mean(OfNumbersBetween, OfRowsOrPeople):
    """Release the mean of a column over its rows, as SQL does, or over people.

    A noisy sum of distances from a centre is divided by a noisy number of rows (people) that have a
    value, each by one clip (`clipped_sum`); no bound on values or rows is asked for. The centre is
    a median of people's own means, which a part of the metric's budget chooses (`CENTRE`). Where
    the mean has noise of its own, two thirds of what is left are for the sum: D / N, with clips C
    and K, and noise of x C on D and of y K on N, is off by about (C / N) (x - r y), r = (D / C) /
    (N / K), and r is small near the centre. (Three quarters err a little less, and leave more
    intervals open where rows are few.)

    Where `Sum(column)` and `Count()` are asked for too (with per="person", `PeopleCount()`), all
    three are made of two numbers: the count N, and the sum D of distances from the centre c. The
    sum is D + c N, the mean c + D / N, and the mean's part of the budget goes to both. A row, or a
    person, without a value then counts like one with the value 0. With `own_count=True` the mean
    and the sum are made of D and of the number of rows (people) that have a value. With `low` or
    `high` the mean is released by itself.

    The interval is about the rows that bounds leave. It joins, by squares, how far the interval of
    each part moves the quotient. Where that of the count reaches 0, there are too few rows: the
    mean is NaN. It is NaN too where no centre was found and too few people show how far values are
    from 0. Where too few show how far they are from a chosen centre, it is that centre, with an
    open interval. The mean is from `low` to `high`. Totals of people may be beyond: over people
    only a `low` of 0 or more, and a `high` of 0 or less, are ends of the mean.

    Attributes:
        column: the value column; rows without a valid value do not count.
        per: "row" for the mean over rows, "person" for the mean over people of their totals.
        unit: the grid of values.
        low: an end of values that you know without the data: values below count as that, and the
            centre and the mean over rows are not below it.
        high: the same above.
        own_count: whether rows (people) that have a value are counted for the mean, where a sum
            and a count are asked for too.
    """

    splits_alpha: ClassVar[bool] = False
    is_quotient: ClassVar[bool] = True

    own_count: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.boolean("Mean", "own_count", self.own_count)

    def parts(self) -> tuple[MetricPart, ...]:
        """Return a sum of distances and a number of rows or people."""
        [column] = self.columns()
        count = PeopleWithValue(column) if self.by_person else RowsWithValue(column)
        return Distances(column, self.ends, self.by_person), count

    def part_weights(self) -> tuple[int, ...]:
        """Return the weights of the two numbers."""
        return _DISTANCES_AND_ROWS

    def replaced(self, asked: Sequence[Metric]) -> Sequence[tuple[Metric, Metric]]:
        """Return the mean and the sums that are made of distances and of a count, if they are."""
        kind = PeopleCount if self.by_person else Count
        sums = [
            metric
            for metric in asked
            if type(metric) is Sum and metric.columns() == self.columns() and metric.is_plain
        ]
        counts = [each for each in asked if type(each) is kind and _is_clipped(each)]
        if not sums or not (counts or self.own_count) or self.ends != (None, None):
            return ()
        [column] = self.columns()
        [count] = self.parts()[1:] if self.own_count else counts[0].parts()
        released = DistancesOfSum(column, self.ends, self.by_person, self.own_count), count
        made = [(total, SumOfReleased(**vars(total), released=released)) for total in sums]
        return (*made, (self, MeanOfReleased(**vars(self), released=released)))

    def combine(self, released: Sequence[Released]) -> Released:
        """Return the quotient and its interval."""
        found = over_rows(np.divide, released)
        value = released[0].origin + found.values
        ends = ends_of_totals(self.ends) if self.by_person else self.ends
        return Released.between(value, found.below, found.above).inside(*ends)

    def of_people(self) -> PeopleStatistic:
        """Return the mean of people's means, or of their totals."""
        return PeopleStatistic("mean", "sum" if self.by_person else "mean")


def _is_clipped(count: Metric) -> bool:
    """Return whether a number of rows, or people, is released by clip and noise."""
    return bool(getattr(count, "search", CLIP) == CLIP)


def over_rows(function: Callable[..., np.ndarray], parts: Sequence[Released]) -> Released:
    """Return a function of sums and of a number of rows, the last, where these are above 0."""
    found, count = joined(function, parts), parts[-1]
    known = (count.low > 0) & np.isfinite(count.high)
    values = np.where(count.low > 0, found.values, np.nan)
    return found.where(known, Released.between(values, np.inf, np.inf))


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfReleased(Metric):
    """A metric beside others, which are made of the same numbers.

    Attributes:
        released: the distances and the count.
    """

    released: tuple[MetricPart, MetricPart]

    @property
    def _prefix(self) -> str:
        return self.word

    def part_weights(self) -> tuple[int, ...]:
        """Return equal weights: both numbers are released, or make one that is."""
        return 1, 1

    def parts(self) -> tuple[MetricPart, ...]:
        """Return what all of them are made of."""
        return self.released


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeanOfReleased(OfReleased, Mean):
    """A mean beside a sum and a count."""

    word: ClassVar[str] = "mean"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SumOfReleased(OfReleased, Sum):
    """A sum beside a mean and a count."""

    def combine(self, released: Sequence[Released]) -> Released:
        """Return the sum of distances and of centres, with its interval."""
        centre = released[0].origin
        places = max(0, math.ceil(-math.log10(self.exact_unit)))

        def total(distances: np.ndarray, count: np.ndarray) -> np.ndarray:
            # 0 times an open end is no number.
            found = distances + centre * count if centre else distances
            return np.round(found, places)

        return joined(total, released)


@dataclasses.dataclass(frozen=True)
class Distances(JointNoisePart):
    """The sum of the distances of a column's values from a centre.

    Attributes:
        ends: between which values are cut, if they are.
        by_person: take the centre off once for each person, not for each row.
    """

    word: ClassVar[str] = "sum"
    power: ClassVar[int] = 1

    ends: Ends
    by_person: bool

    @property
    def asked_centre(self) -> CentreRequest:
        """How its centre is chosen."""
        return CentreRequest(self.column, self.ends, self.by_person)

    def build(self, context: Context, share: Budget) -> AdditiveRelease:
        """Return the release; the centre is 0 until one is chosen."""
        ends = units_between(self.ends, self.exact_unit)
        centre, limits = self._centre(context)
        measure = self._measure(context, centre, ends)
        return clipped_sum(
            context,
            share,
            measure,
            self.exact_unit**self.power,
            anchored=False,
            folded=not measure.sign,
            widest=self._widest(centre, ends),
            limits=limits,
        )

    def _measure(self, context: Context, centre: int, ends: UnitEnds) -> Measure:
        """Return what a person adds: sums of values, and of how many the centre is taken off."""
        return Measure(
            context.field(self.column, "sum", *ends),
            sign=0,
            thresholds=VALUE_CLIPS,
            counted=self._counted(context),
            once=self.by_person and centre != 0,  # else totals would be cut to 1
            centre=centre,
        )

    def _centre(self, context: Context) -> tuple[int, Limits]:
        """Return the centre, and what is released where nobody shows how far values are from it."""
        found = context.centres.get(self.asked_centre, 0)
        return found or 0, Limits(if_nobody=math.nan if found is None else 0.0)

    def _widest(self, centre: int, ends: UnitEnds) -> int | None:
        """Return how much a value can add, in units; None: the ends are not known."""
        low, high = ends
        if low is None or high is None or max(-low, high) >= _WIDEST - 1:
            return None
        return int(max(1, abs(low - centre), abs(high - centre)) ** self.power)

    def _counted(self, context: Context) -> int:
        """Return what counts the values that the centre is taken off."""
        return context.field(self.column, "count")


@dataclasses.dataclass(frozen=True)
class DistancesOfSum(Distances):
    """The sum of the distances of rows, or people, of which a sum is made too.

    Attributes:
        of_values: whether the centre is taken off for those with a value only; else for all.
    """

    of_values: bool

    def _centre(self, context: Context) -> tuple[int, Limits]:
        """Return the same; a sum of all rows lacks those that a bound cuts."""
        centre, limits = super()._centre(context)
        return centre, dataclasses.replace(
            limits, bounded=context.max_rows_per_partition is not None
        )

    def _counted(self, context: Context) -> int:
        counted = super()._counted(context)  # the centre is chosen by it
        if self.of_values:
            return counted
        return PEOPLE if self.by_person else ROWS


class SquaredDistances(Distances):
    """The sum of the squared distances of a column's values from a centre."""

    word: ClassVar[str] = "sum of squares"
    power: ClassVar[int] = 2

    def _measure(self, context: Context, centre: int, ends: UnitEnds) -> Measure:
        """Return what a person adds: sums of squares about the same centre."""
        return Measure(
            context.field(self.column, "squares", *ends),
            thresholds=_SQUARE_CLIPS,
            counted=self._counted(context),
            centre=centre,
            totals=context.field(self.column, "sum", *ends),
        )


class RowsWithValue(JointNoisePart):
    """The number of rows that have a value."""

    word: ClassVar[str] = "number of rows"
    whole: ClassVar[bool] = True

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release; its interval is about the rows that bounds leave."""
        count = context.field(self.column, "count")
        measure = Measure(count, thresholds=row_clips(context.max_rows_per_partition))
        return clipped_sum(context, share, measure, limits=Limits())


class PeopleWithValue(JointNoisePart):
    """The number of people who have a value."""

    word: ClassVar[str] = "number of people"
    whole: ClassVar[bool] = True

    def build(self, context: Context, share: Budget) -> Release:
        """Return the number plus noise."""
        return people_release(context, share, context.field(self.column, "count"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variance(OfNumbersBetween):
    """Release the variance of a column over its rows, as SQL does.

    Noisy sums of distances from a centre, and of their squares, are divided by a noisy number of
    rows, each by one clip (`clipped_sum`); no bound on values or rows is asked for. The centre is
    chosen privately, as for a `Mean`.
    The interval joins, by squares, how far the interval of each part moves the variance, of the
    rows that bounds leave. Where the number of rows may be 0, or too few people show how far values
    are from the centre, it is NaN.

    Attributes:
        column: the value column.
        low: an end that you know without the data: values below count as that.
        high: values above count as that.
    """

    splits_alpha: ClassVar[bool] = False
    truth_within: ClassVar[tuple[float, float]] = (0.0, np.inf)
    root: ClassVar[bool] = False
    """Whether the root is released."""

    def of_people(self) -> PeopleStatistic:
        """Return the variance of people's means, or its root."""
        return PeopleStatistic("standard_deviation" if self.root else "variance", "mean")

    def parts(self) -> tuple[MetricPart, ...]:
        """Return three numbers of rows."""
        column = self.columns()[0]
        about = column, self.ends, False
        return Distances(*about), SquaredDistances(*about), RowsWithValue(column)

    def part_weights(self) -> tuple[int, ...]:
        """Return the weights of the three numbers."""
        return _SQUARES_AND_REST

    def combine(self, released: Sequence[Released]) -> Released:
        """Return the variance and its interval, without an end where that would be [0, 0]."""
        found = over_rows(self._spread, released)
        point = (found.values == 0) & (found.above == 0) & (released[1].above > 0)
        return dataclasses.replace(found, above=np.where(point, np.inf, found.above))

    def _spread(self, sums: np.ndarray, squares: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the variance, or its root, of sums and squares of distances from one centre."""
        count = np.maximum(rows, 1.0)
        spread = squares / count - (sums / count) ** 2
        spread = np.maximum(spread, 0.0)
        return np.asarray(np.sqrt(spread) if self.root else spread)


class StandardDeviation(Variance):
    """Release the standard deviation of a column over its rows: the root of the variance."""

    root: ClassVar[bool] = True

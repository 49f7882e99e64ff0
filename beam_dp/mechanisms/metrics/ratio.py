"""The share of rows, or of people, that have a given value: `Ratio`.

Of a ratio a / b per partition of bounded people (`RatioRelease`): one person has rows in a set S of
at most r partitions. Only these change, so that each may cost a part 1 / r of the cost c that the
ratio may spend in all.
"""

import dataclasses
import datetime
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.accounting.budget import Budget, Spending
from beam_dp.mechanisms.bounding.table import Column, Role
from beam_dp.mechanisms.metrics.additive.additive_release import (
    AdditiveRelease,
    Limits,
    clipped_sum,
)
from beam_dp.mechanisms.metrics.additive.shared_clip import row_clips
from beam_dp.mechanisms.metrics.base import (
    Context,
    JointNoisePart,
    MetricPart,
    OfRowsOrPeople,
    joined,
)
from beam_dp.mechanisms.metrics.released import Description, Release, Released, counted
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.partition_view import PartitionView

Comparison = int | str | float | bool | datetime.date | Callable[[Any], bool]
"""What a column can be compared with: a value, or a function that says whether a value counts."""

CLIP = "clip"
"""The method that needs no bound on rows."""
_SCALARS = (int, str, float, bool, datetime.date)
_TRUTH = {"true": "1", "false": "0"}
_WHOLE = re.compile(r"-?(0|[1-9]\d*)\.0")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ratio(OfRowsOrPeople):
    """Release which share of the rows, or of the people, has a given value in a column.

    A noisy number of rows that have the value is divided by itself and a noisy number of those that
    have another. Each number has a clip of its own (`clipped_sum`), so that rare values have little
    noise; no bound on rows is asked for. The output and its interval are in [0, 1]. Rows without a
    value count on neither side. NaN where so few rows are there that they may be none. With
    probability 95% the true share, of the rows that bounds leave, is within its interval, as far as
    the histograms of rows show who has many.

    Attributes:
        column: the column. Its values are compared as in `DistinctCount`, and as files of text
            write them: True, 1, 1.0, "1", "1.0" and "true" are one value. NaN is none.
        equals: the value that counts; 1: a column of 0 and 1, or of booleans. If it is not in the
            data at all ("yes" is not 1), the share is about 0. Or a picklable function of one
            Python value; where it raises, the value does not count.
        per: "row": of rows, as in SQL. "person": of people with any such row.
        method: "clip" as above; or a ratio of bounded people (`mechanisms.ratio`), which of rows
            needs `ContributionBounds(rows_per_partition=...)`, and is 1/2 where nothing is there:
            "kulesza_suresh_wang", "naive", or "local_sensitivity" (needs a delta; the better of
            that and the first, by noisy counts that have been paid for).
    """

    word: ClassVar[str] = "ratio"
    truth_within: ClassVar[tuple[float, float]] = (0.0, 1.0)

    equals: Comparison = 1
    method: str = CLIP

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("Ratio", "method", self.method, (CLIP, *ratio.METHODS))
        usable = type(self.equals) in _SCALARS and self.equals == self.equals
        if not usable and not callable(self.equals):
            raise checks.ParameterTypeError(
                "Ratio",
                "equals",
                "be a number, a string, a date, a boolean or a function, not "
                f"{checks.shown(self.equals)}",
                "Write equals=1.",
            )

    @property
    def output(self) -> str:
        """The name of its output column: with the value that counts, but for 1 and functions."""
        value = "1" if callable(self.equals) else as_written(str(self.equals))
        if self.name or value == "1":
            return super().output
        return dataclasses.replace(self, column=f"{self.column}_{value}", equals=1).output

    def columns(self) -> tuple[Column, ...]:
        """Return the column, with what it is compared with."""
        return (Column(self.column, Role.FLAG, self.equals),)

    def parts(self) -> tuple[MetricPart, ...]:
        """Return the two numbers of rows or people, or the ratio of bounded people."""
        if not self._is_clipped:
            return super().parts()
        [column] = self.columns()
        return Share(column, self.by_person), Others(column, self.by_person)

    def build(self, context: Context, share: Budget) -> Release:
        """Return the ratio of bounded people; of rows, with the bound on them."""
        rows = 1 if self.by_person else context.max_rows_per_partition
        checks.require(
            rows is not None,
            "Ratio",
            "bounds.rows_per_partition",
            "be given where every row counts",
            'Write bounds=dp.ContributionBounds(..., rows_per_partition=10), or per="person".',
        )
        return RatioRelease(
            mechanism=ratio.METHODS[self.method](context.each(share), rows or 1),
            ones=Measure(context.field(self.source, "max" if self.by_person else "sum")),
            all=Measure(context.field(self.source, "count")),
            by_person=self.by_person,
            alpha=context.alpha,
            method=self.method,
        )

    @property
    def wants_delta(self) -> bool:
        """Whether its method spends a delta."""
        return self.method == "local_sensitivity"

    @property
    def _is_clipped(self) -> bool:
        return self.method == CLIP

    def combine(self, released: Sequence[Released]) -> Released:
        """Return the share and its interval.

        With a rows of the kind and r others it is a / (a + r); where all may be noise, it is NaN.
        """
        if not self._is_clipped:
            return super().combine(released)
        ones, rest = (np.maximum(each.values.astype(float), 0.0) for each in released)
        noise = np.hypot(*(each.values - each.low for each in released))
        nothing = Released.between(np.full(len(noise), np.nan), np.inf, np.inf)
        seen = joined(_quotient, [each.moved_inside(0.0, np.inf) for each in released])
        return seen.where(ones + rest > noise, nothing)


def _quotient(part: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return part / (part + rest); 1/2 where both are 0, 0 where the rest is infinite."""
    part, rest = np.maximum(part, 0.0), np.maximum(rest, 0.0)
    share = np.where(np.isinf(part), 1.0, part / (part + rest))
    return np.where(part + rest > 0, share, 0.5)


@dataclasses.dataclass(frozen=True)
class Share(JointNoisePart):
    """The number of rows with the value that is asked for, or of people who have such rows.

    Attributes:
        by_person: count the people instead of the rows.
    """

    word: ClassVar[str] = "with the value"
    others: ClassVar[bool] = False

    by_person: bool

    def build(self, context: Context, share: Budget) -> AdditiveRelease:
        """Return the release of the number, as `RowsWithValue` and `PeopleWithValue` are.

        Others are all less those of the kind, in which a person who has any counts as 1. Where nobody
        is shown to be of a kind, people with one row may be.
        """
        ones, every = (context.field(self.column, name) for name in ("sum", "count"))
        measure = Measure(
            ones,
            thresholds=(1,) if self.by_person else row_clips(context.max_rows_per_partition),
            once=self.by_person,
        )
        if self.others:
            measure = dataclasses.replace(measure, sign=-1, counted=every, centre=1)
        given, limits = Fraction(1) if self.by_person else None, Limits(sure=self.by_person)
        return clipped_sum(context, share, measure, given=given, widest=1, limits=limits)


class Others(Share):
    """The number of rows with another value, or of people who have only these."""

    word: ClassVar[str] = "with another value"
    others: ClassVar[bool] = True


def as_written(text: str) -> str:
    """Return the value of a word, one text for all words that are equal: true and 1.0 are 1."""
    text = _TRUTH.get(text.lower(), text)
    return text.removesuffix(".0") if _WHOLE.fullmatch(text) else text


@dataclasses.dataclass(frozen=True)
class RatioRelease(Release):
    """A ratio a / b per partition.

    Attributes:
        mechanism: how the ratio is drawn; it knows its budget and the most rows of one person.
        ones: what one person adds to a.
        all: what one person adds to b.
        by_person: whether the people above 0 are counted instead of summing.
        alpha: the chance that the noise exceeds its tail bound.
        method: as in the metric, for the plan.
    """

    mechanism: ratio.Mechanism
    ones: Measure
    all: Measure
    by_person: bool
    alpha: Fraction
    method: str

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of a and b."""
        return (self.ones, self.all)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The cost of a and b together."""
        return (Spending(self.mechanism.budget),)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one ratio per partition; there is no clip."""
        kept = 0 if self.by_person else 1  # of a histogram of one bucket: people, and totals
        ones, everything = (view.histogram(at, 1)[kept][:, 0].astype(np.int64) for at in (0, 1))
        drawn = self.mechanism.release(ones, everything, noise, self.alpha)
        return Released.between(drawn.values, drawn.errors, drawn.errors)

    def with_lost(self, released: Released, share: float) -> Released:
        """Return the ratios where pairs were cut: each moves by at most that `share`."""
        return Released.between(released.values, released.below + share, released.above + share)

    def describe(self) -> Description:
        """Describe the method, and the most rows of one person."""
        how = self.method.replace("_", " ")
        if self.method == ratio.DEFAULT:
            how = "noise on both counts (Kulesza, Suresh, Wang)"
        rows = counted(self.mechanism.rows, "row", "rows")
        mechanism = f"ratio, {how}, at most {rows} per person"
        return Description(mechanism, "shrinks with the number of rows")

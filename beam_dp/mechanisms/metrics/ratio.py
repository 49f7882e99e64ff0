"""The share of rows, or of people, that have a given value: `Ratio`."""

import dataclasses
import datetime
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.metrics.base import Command, Metric
from beam_dp.mechanisms.metrics.clipped import ClippedRequest, Clipping, row_clips
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.releases.clipped import STEPS, ClippedShare, ClippedSum
from beam_dp.mechanisms.releases.ratio import RatioRelease, mechanism_of
from beam_dp.mechanisms.releases.released import Release, Released
from beam_dp.mechanisms.releases.request import ColumnRequest, Context, Request
from beam_dp.mechanisms.summaries.histograms import Measure

Comparison = int | str | float | bool | datetime.date | Callable[[Any], bool]
"""What a column can be compared with: a value, or a function that says whether a value counts."""

CLIP = "clip"
"""The method that weighs people, and needs no bound on rows."""
_SCALARS = (int, str, float, bool, datetime.date)
_TRUTH = {"true": "1", "false": "0"}


@dataclasses.dataclass(frozen=True)
class Ratio(Metric):
    """Release which share of the rows, or of the people, has a given value in a column.

    The rows that have the value and those that have another are counted with one draw of noise, and
    no bound on rows is asked for: a person with more rows than a privately chosen clip weighs less,
    and keeps their own share (`ClippedShare`). The output and its interval are in [0, 1]. Rows
    without a value count on neither side. NaN where so few rows are there that they may be none.
    With probability 95% the true share, of the rows that bounds leave, is within its interval, as
    far as the histogram of rows shows who has many.

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
        neighbours: "add-remove", as everywhere; "substitution" also covers one person with other
            rows, in other partitions too, for the noise that this needs, by a ratio of bounded
            people. What is released beside it is not covered so; private partitions, which show
            themselves, are refused.
    """

    command: ClassVar[Command] = Command(
        "COLUMN[=VALUE][:person]",
        "share of the rows with VALUE (default 1); of people",
    )

    column: str
    _: dataclasses.KW_ONLY
    equals: Comparison = 1
    per: str = "row"
    method: str = CLIP
    neighbours: str = ratio.ADD_REMOVE

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("Ratio", "per", self.per, ("row", "person"))
        checks.one_of("Ratio", "method", self.method, (CLIP, *ratio.METHODS))
        known = (ratio.ADD_REMOVE, ratio.SUBSTITUTION)
        checks.one_of("Ratio", "neighbours", self.neighbours, known)
        usable = type(self.equals) in _SCALARS and self.equals == self.equals
        if not usable and not callable(self.equals):
            raise checks.ParameterTypeError(
                "Ratio",
                "equals",
                "be a number, a string, a date, a boolean or a function, not "
                f"{checks.shown(self.equals)}",
                "Write equals=1.",
            )

    def columns(self) -> tuple[Column, ...]:
        """Return the column, with what it is compared with."""
        return (Column(self.column, Role.FLAG, self.equals),)

    def requests(self) -> tuple[Request, ...]:
        """Return the two numbers of rows or people, or the ratio of bounded people."""
        [column] = self.columns()
        by_person = self.per == "person"
        if self._is_clipped:
            asked = column, Clipping(), by_person
            return ShareRequest(*asked), OthersRequest(*asked)
        default = ratio.DEFAULT if self.method == CLIP else self.method
        return (RatioRequest(column, by_person, default, self.neighbours),)

    @property
    def _is_clipped(self) -> bool:
        return self.method == CLIP and self.neighbours == ratio.ADD_REMOVE

    def request_weights(self) -> tuple[int, ...]:
        """Return the weights of the two numbers: the first one pays for the clip of both."""
        return (2, 1) if self._is_clipped and self.per == "row" else (1,) * len(self.requests())

    def combine(self, released: Sequence[Released]) -> Released:
        """Return the share and its interval.

        With a rows of the kind and r others, the interval of a alone moves a / (a + r) by so much,
        and that of r alone by so much: both are joined by their squares, as for a mean.
        """
        if not self._is_clipped:
            return super().combine(released)
        numbers = [np.maximum(each.values.astype(float), 0.0) for each in released]
        lows = [np.maximum(each.low, 0.0) for each in released]
        (ones, rest), (one, other) = numbers, released
        share = _quotient(ones, rest)
        below = np.hypot(
            share - _quotient(lows[0], rest), share - _quotient(ones, np.maximum(other.high, 0.0))
        )
        above = np.hypot(
            _quotient(np.maximum(one.high, 0.0), rest) - share, _quotient(ones, lows[1]) - share
        )
        noise = np.hypot(*(each.values - each.low for each in released))
        known = ones + rest > noise
        nothing = np.full(len(share), np.nan)
        seen = Released.between(share, below, above)
        return seen.where(known, Released.within(nothing, nothing))

    @property
    def truth_within(self) -> tuple[float, float]:
        """A share is from 0 to 1."""
        return 0.0, 1.0

    @property
    def takes_auto_bound(self) -> bool:
        """Whether the bound may be chosen privately: not where people are replaced."""
        return self.neighbours != ratio.SUBSTITUTION

    def check_plan(self, budget: Budget, alone: bool, selected: bool) -> None:
        """Refuse substitution where partitions are selected by the people in them."""
        checks.require(
            not selected or self.neighbours != ratio.SUBSTITUTION,
            "Ratio",
            "neighbours",
            'be "add-remove" where partitions are private, not "substitution": which of '
            "them appear is not covered by it",
            "Give PublicPartitions([...]).",
        )

    @classmethod
    def from_command(cls, column: str | None, **words: Any) -> Metric:
        """Return the share of rows with a value, as files write it, which is in its name."""
        given = words.pop("value", None)
        if given is None:
            return cls(str(column), equals="1", **words)
        plain = cls(f"{column}_{given}", **words)
        return dataclasses.replace(
            plain, column=str(column), equals=as_written(str(given)), name=plain.output
        )


def _quotient(part: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return part / (part + rest); 1/2 where both are 0, 0 where the rest is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(np.isinf(part), 1.0, part / (part + rest))
    return np.where(part + rest > 0, share, 0.5)


@dataclasses.dataclass(frozen=True)
class ShareRequest(ClippedRequest):
    """The rows, or people, of a kind among those that have a value.

    Attributes:
        by_person: count the people instead of the rows.
        rest: whether the others are meant.
    """

    word: ClassVar[str] = "share"
    shown_as: ClassVar[str] = "with the value"
    owner: ClassVar[str] = "Ratio"
    rest: ClassVar[bool] = False

    by_person: bool

    @property
    def unit(self) -> Fraction:
        """A row in steps."""
        return Fraction(1, STEPS)

    def source(self, context: Context) -> int:
        """Return the number of a person's rows that have a value."""
        return context.field(self.column, "count")

    def default_clips(self, context: Context) -> tuple[int, ...]:
        """Return powers of two, up to the bound on rows; 1 for people."""
        rows = (1,) if self.by_person else row_clips(context.depth)
        return tuple(STEPS * clip for clip in rows)

    def release(self, context: Context, made: ClippedSum) -> ClippedSum:
        """Return the release of a part of these rows."""
        part = context.field(self.column, "max" if self.by_person else "sum")
        known = {field.name: getattr(made, field.name) for field in dataclasses.fields(ClippedSum)}
        known |= {"sure": self.by_person, "bounded": False}
        return ClippedShare(**known, part=part, rest=self.rest)


class OthersRequest(ShareRequest):
    """The rows, or people, of another kind."""

    word: ClassVar[str] = "others"
    shown_as: ClassVar[str] = "others"
    rest: ClassVar[bool] = True

    @property
    def borrows(self) -> Request | None:
        """Those of the kind, which choose the clip of both; people need none."""
        return None if self.by_person else ShareRequest(self.column, self.clipping, self.by_person)


@dataclasses.dataclass(frozen=True)
class RatioRequest(ColumnRequest):
    """A ratio a / b.

    Attributes:
        by_person: count the people instead of the rows.
        method: as in `Ratio`.
        neighbours: as in `Ratio`.
    """

    word: ClassVar[str] = "ratio"

    by_person: bool
    method: str
    neighbours: str

    @property
    def wants_delta(self) -> bool:
        """Whether its method spends a delta."""
        return self.method == "local_sensitivity"

    @property
    def takes_delta_beside_rho(self) -> bool:
        """Whether it does so under zCDP too."""
        return self.wants_delta

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release; of rows, with the bound on them."""
        rows = 1 if self.by_person else context.depth
        checks.require(
            rows is not None,
            "Ratio",
            "bounds.rows_per_partition",
            "be given where every row counts",
            'Write bounds=dp.ContributionBounds(..., rows_per_partition=10), or per="person".',
        )
        ones, everything = ("max", "count") if self.by_person else ("sum", "count")
        changed = min(2 * context.reach, context.partitions or 2 * context.reach)
        neighbours = self.neighbours, context.reach, changed
        return RatioRelease(
            mechanism=mechanism_of(self.method, share, rows or 1, *neighbours),
            ones=Measure(context.field(self.column, ones)),
            all=Measure(context.field(self.column, everything)),
            by_person=self.by_person,
            alpha=context.alpha,
            cost=context.each(share),
            method=self.method,
        )


def as_written(text: str) -> str:
    """Return the value of a word, as files write it: true is 1."""
    return _TRUTH.get(text.lower(), text)

"""The share of rows, or of people, that have a given value: `Ratio`."""

import dataclasses
import datetime
from collections.abc import Callable
from typing import Any, ClassVar

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.metrics.base import Command, Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.releases.ratio import RatioRelease, mechanism_of
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.releases.request import ColumnRequest, Context, Request
from beam_dp.mechanisms.summaries.histograms import Measure

Comparison = int | str | float | bool | datetime.date | Callable[[Any], bool]
"""What a column can be compared with: a value, or a function that says whether a value counts."""

_SCALARS = (int, str, float, bool, datetime.date)
_TRUTH = {"true": "1", "false": "0"}


@dataclasses.dataclass(frozen=True)
class Ratio(Metric):
    """Release which share of the rows, or of the people, has a given value in a column.

    The output is in [0, 1], by noise on the rows that have the value and on those that have another
    (`mechanisms.ratio`). With probability 95% the true share is within its interval. Rows
    without a value count on neither side; 1/2 where nothing is there.

    Attributes:
        column: the column. Its values are compared as in `DistinctCount`, and as files of text
            write them: True, 1, 1.0, "1", "1.0" and "true" are one value. NaN is none.
        equals: the value that counts; 1: a column of 0 and 1, or of booleans. If it is not in the
            data at all ("yes" is not 1), the share is about 0. Or a picklable function of one
            Python value; where it raises, the value does not count.
        per: "row": of rows, which needs `ContributionBounds(rows_per_partition=...)`, whose bound
            the noise is scaled with; keep it small. "person": of people with any such row.
        method: "kulesza_suresh_wang", "naive", "local_sensitivity" (needs a delta), or "auto" (the
            best by noisy counts that have been paid for; with a delta).
        neighbours: "add-remove", as everywhere; "substitution" also covers one person with other
            rows, in other partitions too, for the noise that this needs. What is released beside it
            is not covered so; private partitions, which show themselves, are refused.
    """

    command: ClassVar[Command] = Command(
        "COLUMN[=VALUE][:person]",
        "share of the rows with VALUE (default 1), which needs "
        "--bounds rows_per_partition=N; of people",
    )

    column: str
    _: dataclasses.KW_ONLY
    equals: Comparison = 1
    per: str = "row"
    method: str = "kulesza_suresh_wang"
    neighbours: str = ratio.ADD_REMOVE

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("Ratio", "per", self.per, ("row", "person"))
        checks.one_of("Ratio", "method", self.method, ratio.METHODS)
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
        """Return the ratio."""
        [column] = self.columns()
        return (RatioRequest(column, self.per == "person", self.method, self.neighbours),)

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
        value = as_written(str(given))
        return cls(str(column), equals=value, name=f"ratio_{column}_{given}", **words)


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
        return self.method in ("auto", "local_sensitivity")

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

"""The metric `Ratio`: which share of the rows, or of the people, has a given value in a column."""

import dataclasses
import datetime
from collections.abc import Callable, Sequence
from typing import Any

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks

Comparison = int | str | float | bool | datetime.date | Callable[[Any], bool]
"""What a column can be compared with: a value, or a function that says whether a value counts."""

_SCALARS = (int, str, float, bool, datetime.date)


@dataclasses.dataclass(frozen=True)
class Ratio(Metric):
    """Release which share of the rows, or of the people, has a given value in a column.

    The output is in [0, 1], by noise on the rows that have the value and on those that have another
    (`mechanisms.ratio`). With probability 95% it is within `<name>_error` of the true share. Rows
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
            raise TypeError(
                "Ratio: equals must be a number, a string, a date, a boolean or a function, not "
                f"{checks.shown(self.equals)}. Write equals=1."
            )

    @property
    def flags(self) -> tuple[tuple[str, Comparison], ...]:
        """The column, and what it is compared with."""
        return ((self.column, self.equals),)


def check_selected(asked: Sequence[Metric]) -> None:
    """Refuse ratios for substitution where partitions are selected by the people in them."""
    checks.require(
        all(getattr(metric, "neighbours", "") != ratio.SUBSTITUTION for metric in asked),
        'Ratio: neighbours must be "add-remove" where partitions are private, not "substitution": '
        "which of them appear is not covered by it. Give PublicPartitions([...]).",
    )

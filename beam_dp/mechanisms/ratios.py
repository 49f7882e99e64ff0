"""The metric `Ratio`, and its release."""

import dataclasses
import datetime
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms import checks, ratio
from beam_dp.mechanisms.budget import Budget
from beam_dp.mechanisms.cells import Cells
from beam_dp.mechanisms.metrics import Metric
from beam_dp.mechanisms.noise import Noise
from beam_dp.mechanisms.releases import Released
from beam_dp.mechanisms.statistics import Measure

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
        column: the column. Its values are compared as in `DistinctCount`: True, 1, 1.0 and "1" are
            one value.
        equals: the value that counts; 1: a column of 0 and 1, or of booleans. Or a picklable
            function of one Python value; where it raises, the value does not count.
        per: "row": of rows, which needs `ContributionBounds(rows_per_partition=...)`, whose bound
            the noise is scaled with; keep it small. "person": of people with any such row.
        method: "kulesza_suresh_wang", "naive", "local_sensitivity" (needs a delta), or "auto" (the
            best by noisy counts that have been paid for; with a delta).
        neighbours: "add-remove", as everywhere; "substitution" also covers one person with other
            rows, for the noise that this needs. What is released beside it is not covered so.
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


@dataclasses.dataclass(frozen=True)
class RatioRelease:
    """A ratio a / b per partition.

    Attributes:
        mechanism: how it is drawn; it knows its budget and the most rows of one person.
        ones: what one person adds to a.
        all: what one person adds to b.
        by_person: count the people above 0 instead of summing.
        alpha: the chance that the error bound fails.
    """

    mechanism: ratio.Mechanism
    ones: Measure
    all: Measure
    by_person: bool
    alpha: Fraction

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Both."""
        return (self.ones, self.all)

    @property
    def cost(self) -> Budget:
        """What one partition costs."""
        return self.mechanism.budget

    @property
    def shift(self) -> int:
        """Nobody is passed over."""
        return 0

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one ratio per partition; there is no clip."""
        ones, everything = self._counts(cells, first), self._counts(cells, first + 1)
        drawn = self.mechanism.release(ones, everything, noise, self.alpha)
        return Released(drawn.values, drawn.errors)

    def _counts(self, cells: Cells, place: int) -> np.ndarray:
        if self.by_person:
            return cells.people(place)
        return np.array(cells.totals(place), np.int64)

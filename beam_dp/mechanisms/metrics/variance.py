"""Variances and standard deviations: three numbers of one draw of noise, or preprocessing.

With S1 and S2 the sums of the distances of N values from a centre c, and of their squares, the
variance of the rows is S2 / N - (S1 / N)^2 for every c. Near the middle of the values all three are
small for each person: see `metrics.mean` for c, which costs as much here.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.metrics.base import Command, ends_of
from beam_dp.mechanisms.metrics.mean import (
    Distances,
    RowsWithValue,
    SquaredDistances,
    check_ends,
)
from beam_dp.mechanisms.metrics.part import Ends, Part
from beam_dp.mechanisms.metrics.spread import Preprocessing
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.releases.released import Released

_WIDEST = 1 << 59
_OF_ROWS = (1, 2, 1)
"""The weights of the three numbers: the squares matter most."""


@dataclasses.dataclass(frozen=True)
class Variance(Preprocessing):
    """Release the variance of a column over its rows, as SQL does.

    Noisy sums of distances from a centre, and of their squares, are divided by a noisy number of
    rows; all three share one draw of noise, and no bound on values or rows is asked for. The centre
    is chosen privately, as for a `Mean`.
    The interval joins, by squares, how far the interval of each part moves the variance, of the
    rows that bounds leave. Where the number of rows may be 0, there are too few: NaN.

    Attributes:
        column: the value column; values beyond 2^59 units (5.8e11 at a millionth) count as that.
        sample: divide by n - 1 instead of n.
        low: an end that you know without the data: values below count as that.
        high: values above count as that.
        method: "clip" as above, or "preprocessing": the variance of one number per person, by
            `Preprocessing`, which has no interval.
    """

    command: ClassVar[Command | None] = Command("COLUMN", "variance of a column over rows")
    splits_alpha: ClassVar[bool] = False

    column: str
    _: dataclasses.KW_ONLY
    sample: bool = False
    low: checks.Real | None = None
    high: checks.Real | None = None
    method: str = "clip"

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        if type(self.sample) is not bool:
            raise checks.ParameterTypeError(
                owner, "sample", f"be True or False, not {checks.shown(self.sample)}"
            )
        checks.require(self.empty == 0, owner, "empty", "be 0, the variance of nobody")
        check_ends(self)
        options.check_method(self, "clip", ("low", "high"))
        if not self.is_preprocessed:
            because = 'without method="preprocessing", which is of people: rows count here'
            of_people = ("person_value", "last_by", "sensitivity")
            options.refuse(self, of_people, because, 'Write method="preprocessing" beside it.')

    def by_preprocessing(self) -> "Variance":
        """Return the variance of one number per person."""
        return dataclasses.replace(self, method=options.PREPROCESSING)

    @property
    def statistic(self) -> str:
        """What is preprocessed."""
        return "sample_variance" if self.sample else "variance"

    @property
    def truth_within(self) -> tuple[float, float]:
        """A variance is not below 0; how far a preprocessed one is from the truth is not known."""
        return -np.inf if self.is_preprocessed else 0.0, np.inf

    def parts(self) -> tuple[Part, ...]:
        """Return three numbers of rows, or the preprocessed variance."""
        if self.is_preprocessed:
            return super().parts()
        column = self.columns()[0]
        about = column, self._ends, False
        return Distances(*about), SquaredDistances(*about), RowsWithValue(column)

    @property
    def _ends(self) -> Ends:
        """Where values are cut: 2^59 units away from 0 at most, so that squares have room."""
        owner, widest = type(self).__name__, _WIDEST * checks.decimal("Variance", "unit", self.unit)
        low, high = ends_of(owner, self.low, self.high)
        lowest = -widest if low is None else max(-widest, min(low, widest - 1))
        return lowest, widest if high is None else max(1 - widest, min(high, widest))

    def part_weights(self) -> tuple[int, ...]:
        """Return the weights of the three numbers."""
        return (1,) if self.is_preprocessed else _OF_ROWS

    def combine(self, released: Sequence[Released]) -> Released:
        """Return the variance and its interval; of a preprocessed one what was released."""
        if self.is_preprocessed:
            return super().combine(released)
        sums, squares, count = released
        found = self._shown(sums.values, squares.values, count.values)
        moved = [self._shown(ends, squares.values, count.values) for ends in (sums.low, sums.high)]
        moved += [
            self._shown(sums.values, ends, count.values) for ends in (squares.low, squares.high)
        ]
        moved += [
            self._shown(sums.values, squares.values, ends) for ends in (count.low, count.high)
        ]
        pairs = [np.array(pair) for pair in zip(moved[::2], moved[1::2], strict=True)]
        with np.errstate(invalid="ignore"):  # inf - inf, where nothing is known
            below = [np.maximum(found - pair.min(axis=0), 0.0) for pair in pairs]
            above = [np.maximum(pair.max(axis=0) - found, 0.0) for pair in pairs]
        known = (count.low > 0) & np.isfinite(count.high)
        whole = (np.sqrt((np.array(side) ** 2).sum(axis=0)) for side in (below, above))
        open_ended = np.full(len(found), np.inf)
        unknown = Released.within(np.where(count.low > 0, found, np.nan), open_ended)
        return Released.between(found, *whole).where(known, unknown)

    def _shown(self, sums: np.ndarray, squares: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the variance, or its root, of sums and squares of distances from one centre."""
        count = np.maximum(rows.astype(float), 1.0)
        with np.errstate(invalid="ignore", over="ignore"):
            spread = squares.astype(float) / count - (sums.astype(float) / count) ** 2
            if self.sample:
                spread = spread * count / np.maximum(count - 1.0, 1.0)
        spread = np.maximum(spread, 0.0)
        return np.asarray(np.sqrt(spread) if self.root else spread)


class StandardDeviation(Variance):
    """Release the standard deviation of a column over its rows: the root of the variance.

    A `sensitivity` is that of the variance.
    """

    command: ClassVar[Command | None] = Command("COLUMN", "the root of the variance")

    @property
    def _prefix(self) -> str:
        return "standard_deviation"

    @property
    def root(self) -> bool:
        """Whether the root is released."""
        return True

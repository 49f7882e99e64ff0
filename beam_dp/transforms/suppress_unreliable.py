"""What is unreliable is suppressed: which released numbers are of little use, by one rule.

All of it is computed from released numbers and public parameters, so it costs nothing (Dwork, Roth,
2014, Proposition 2.1).
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.ratio import Ratio
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.program import Program

_HALF, _QUARTER = 0.5, 0.25
_SUBJECT = "SuppressUnreliable"


@dataclasses.dataclass(frozen=True)
class SuppressUnreliable:
    """Suppress values that are unreliable: they are empty.

    That is what a table would mark as doubtful, and what is beyond further limits:

    Args:
        beyond: an end of the interval is further than this share of the number away from it (of a
            `Ratio`: of 0.5), as 0.25. Numbers with a rank error have no interval, and stay.
        below: the least released number in an output column, {"people_count": 100}. Where a
            partition has less, all its numbers are empty.

    Raises:
        TypeError, ValueError: for other numbers; when the pipeline is built, for other columns.
    """

    beyond: checks.Real | None = None
    below: Mapping[str, checks.Real] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.beyond is not None:
            checks.fraction_between(_SUBJECT, "beyond", self.beyond, 0, 1, "Write beyond=0.25.")
        hint = 'Write below={"people_count": 100}.'
        checks.of_type(_SUBJECT, "below", self.below, Mapping, hint)
        for name, least in self.below.items():
            checks.fraction_between(_SUBJECT, f"below[{name!r}]", least, -math.inf, math.inf)

    def check(self, metrics: Sequence[Metric]) -> None:
        """Refuse columns that are not released."""
        names = [output.name for metric in metrics for output in metric.outputs]
        for name in self.below:
            rule = f"name output columns ({', '.join(names)}), not {name!r}"
            checks.require(name in names, _SUBJECT, "below", rule)


def doubtful(
    value: npt.ArrayLike,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    *,
    share: npt.ArrayLike = False,
    one_sided: npt.ArrayLike = False,
    beyond: float = math.inf,
) -> np.ndarray:
    """Return which numbers with an interval may be of little use, by one rule for all outputs.

    These are missing ones; those whose interval is as wide as they are far from 0, or open (shares:
    as wide as 0.25, which is all shares from low to middling); and those with an end further away
    than `beyond` times the number. A number with a rank error is doubtful where that is not finite:
    `quantiles.usable_error` makes it so above a tenth of the people.

    Args:
        value: the numbers; NaN where there is none.
        low: the lower ends; NaN or infinite where nothing is known.
        high: the upper ends.
        share: whether they are from 0 to 1, where the width is compared with 0.25, and an end that
            may not be `beyond` a part of the number with 0.5.
        one_sided: whether one side may be open, on which few people are.
        beyond: the most that an end may be away, in parts of the number.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        sides = np.abs(np.array([low, high], float) - value)
        known = np.isfinite(sides)
        sides = np.where(known, sides, 0.0)
        size = np.where(share, _HALF, np.abs(value))
        is_open = known.sum(axis=0) < np.where(one_sided, 1, 2)
        widest = np.where(share, _QUARTER, size)
        is_good = (sides.sum(axis=0) < widest) & (sides.max(axis=0) <= beyond * size)
    return np.asarray(is_open | ~is_good)


def step_of(
    program: Program, rule: SuppressUnreliable | None, nonnegative: bool
) -> Callable[[Sequence[np.ndarray]], tuple[np.ndarray, ...]]:
    """Return what turns released columns into those that leave."""
    open_ones = (step.users for step in program.steps if step.release.one_sided)
    one_sided = {metric.output for users in open_ones for metric in users}
    return functools.partial(
        kept,
        metrics=program.request.metrics,
        rule=rule,
        nonnegative=nonnegative,
        one_sided=one_sided,
    )


def _nonnegative(columns: Sequence[np.ndarray], metrics: Sequence[Metric]) -> list[np.ndarray]:
    """Return columns with 0 in place of what is below; an interval below moves with its number."""
    columns, first = list(columns), 0
    for metric in metrics:
        for at in range(first, first + len(metric.outputs), 3) if not metric.is_ranked else ():
            value, _, high = (each.astype(float) for each in columns[at : at + 3])
            with np.errstate(invalid="ignore"):  # of an end that is not known
                columns[at + 2] = np.where(high <= 0, high - value, high)
        first += len(metric.outputs)
    columns = [column.copy() for column in columns]
    for column in columns:
        column[column < 0 if column.dtype != object else [(n or 0) < 0 for n in column]] = 0
    return columns


def kept(
    columns: Sequence[np.ndarray],
    metrics: Sequence[Metric],
    rule: SuppressUnreliable | None,
    nonnegative: bool,
    one_sided: set[str],
) -> tuple[np.ndarray, ...]:
    """Return output columns without what is unreliable; whole numbers that are suppressed are None.

    Args:
        columns: the output columns of all metrics.
        metrics: the metrics.
        rule: what is suppressed; None: nothing.
        nonnegative: whether what is below 0 becomes 0.
        one_sided: the outputs of which one side may be open.
    """
    columns = _nonnegative(columns, metrics) if nonnegative else list(columns)
    if rule is None:
        return tuple(columns)
    names = [output.name for metric in metrics for output in metric.outputs]
    numbers = [column.astype(np.float64) for column in columns]
    few = np.zeros(len(numbers[0]), bool)
    for name, least in rule.below.items():
        few |= ~(numbers[names.index(name)] >= float(least))
    beyond = math.inf if rule.beyond is None else float(rule.beyond)
    first = 0
    for metric in metrics:
        size = 2 if metric.is_ranked else 3
        for at in range(first, first + len(metric.outputs), size):
            if metric.is_ranked:
                lost = few | ~np.isfinite(numbers[at]) | ~np.isfinite(numbers[at + 1])
            else:
                share, may_be_open = isinstance(metric, Ratio), metric.output in one_sided
                limits = numbers[at : at + size]
                lost = few | doubtful(*limits, share=share, one_sided=may_be_open, beyond=beyond)
            for place in range(at, at + size):
                whole = columns[place].dtype != np.float64
                columns[place] = columns[place].astype(object if whole else np.float64)
                columns[place][lost] = None  # NaN in floats
        first += len(metric.outputs)
    return tuple(columns)

"""What every metric has: its output column, the columns it reads, its share of the budget."""

import dataclasses
import math
import sys
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import WIDE
from beam_dp.mechanisms.search.choose import check_search

UNIT = Fraction(1, 1_000_000)
"""The default grid of values: integers and decimals of up to six places are exact on it."""

_LEAST_UNIT = Fraction(1, 1 << 200)
_CLIPS = ("shared", "partition")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Metric:
    """What every metric has.

    Attributes:
        name: the output column; its error bound is in `<name>_error`.
        weight: its part of the budget, relative to the other metrics'.
    """

    name: str = ""
    weight: checks.Real = 1

    def __post_init__(self) -> None:
        owner = type(self).__name__
        checks.fraction_between(owner, "weight", self.weight, 0, math.inf)
        if self.name:
            checks.column(owner, "name", self.name)
        for column in self.columns:
            checks.column(owner, "column", column)

    @property
    def columns(self) -> tuple[str, ...]:
        """The value columns it reads."""
        return tuple(value for name, value in vars(self).items() if name == "column")

    @property
    def items(self) -> tuple[str, ...]:
        """Those of them whose values are only compared with each other."""
        return ()

    @property
    def flags(self) -> tuple[tuple[str, Any], ...]:
        """Those of them whose values are only compared with a given one, and that one."""
        return ()

    @property
    def orders(self) -> tuple[str, ...]:
        """The columns that say which of a person's rows is the last."""
        return ()

    @property
    def tiers(self) -> tuple[str, tuple[checks.Real, ...]] | None:
        """The column of people's own epsilons and the public ones, where they have such."""
        return None

    @property
    def output(self) -> str:
        """The name of its output column."""
        return self.name or "_".join((self._prefix, *self.columns))

    @property
    def _prefix(self) -> str:
        return type(self).__name__.lower()


def shown(value: object) -> str:
    """Return what a message shows of a metric: its class and output; of all else, a short form."""
    if isinstance(value, Metric):
        return f"{type(value).__name__} (output column {value.output})"
    return checks.shown(value)


def check_metrics(owner: str, metrics: object) -> tuple[Metric, ...]:
    """Return `metrics` as a tuple; refuse what is no metric, and equal output names."""
    if not isinstance(metrics, (list, tuple)) or not metrics:
        raise TypeError(
            f"{owner}: metrics must be a list of metrics, not {shown(metrics)}. "
            'Write metrics=[dp.Count(), dp.Sum("spent")].'
        )
    for metric in metrics:
        check_metric(owner, metric)
    names = [metric.output for metric in metrics]
    checks.require(
        len(set(names)) == len(names),
        f"{owner}: metrics must have different names, not {names}. "
        'Give one of them another: dp.Sum("spent", name="spent_again").',
    )
    return tuple(metrics)


def check_metric(owner: str, metric: object) -> Metric:
    """Return `metric` if it is an object of one of the metric classes."""
    if isinstance(metric, type) or not isinstance(metric, Metric):
        raise TypeError(
            f"{owner}: a metric must be one like dp.Count(), not {checks.shown(metric)}."
        )
    return metric


def check_unit(owner: str, unit: checks.Real) -> None:
    """Refuse a grid of values that floats cannot hold."""
    exact = checks.fraction_between(owner, "unit", unit, 0, math.inf)
    checks.require(
        _LEAST_UNIT <= exact <= 1 / _LEAST_UNIT,
        f"{owner}: unit must be from 2^-200 to 2^200, not {unit!r}: floats must hold what is "
        "released. Write unit=0.01.",
    )


def check_clip(owner: str, clip: str, share: checks.Real | None) -> None:
    """Refuse what says no way to choose a clip, and shares outside of (0, 1)."""
    checks.one_of(owner, "clip", clip, _CLIPS)
    if share is not None:
        checks.fraction_between(owner, "clip_share", share, 0, 1)


def check_candidates(owner: str, candidates: object) -> None:
    """Refuse what is neither None nor Candidates that floats can hold."""
    if candidates is None:
        return
    if not isinstance(candidates, Candidates):
        raise TypeError(
            f"{owner}: candidates must be Candidates, not {checks.shown(candidates)}. "
            "Write Candidates.linear(0, 100, 1)."
        )
    checks.require(
        -sys.float_info.max <= candidates[0] and candidates[-1] <= sys.float_info.max,
        f"{owner}: candidates must be numbers that floats can hold, below 1.8e308.",
    )


def check_places(owner: str, candidates: Candidates | None) -> None:
    """Refuse candidates whose places do not fit in an array, for what is released by ranks."""
    checks.require(
        candidates is None or candidates.size < WIDE,
        f"{owner}: candidates must be fewer than 2^62, as each person or vote has a place among "
        "them. Take a coarser grid: Candidates.linear(0, 100, 0.001).",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Searched(Metric):
    """A metric that searches a loss or ranks.

    Attributes:
        candidates: the public outputs; None: wide enough for anything.
        beta: how often the guarantee may fail.
    """

    candidates: Candidates | None = None
    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        check_candidates(owner, self.candidates)
        if "unit" in vars(self):
            check_unit(owner, vars(self)["unit"])
        if "search" in vars(self):
            check_search(owner, vars(self)["search"])

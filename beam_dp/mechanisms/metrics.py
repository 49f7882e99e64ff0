"""The statistics a user can ask for: frozen records, each with the column it reads."""

import dataclasses
import math
import sys
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms import checks, unused
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.grids import WIDE
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.searching import TWO_PHASE, SearchKind, check_search

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Additive(Metric):
    """A metric that adds up: by a privately chosen clip and noise, or one-sided.

    Attributes:
        one_sided: release by the shifted inverse mechanism: never above the true value but for
            5%, and below it by the contributions of about `shift` people. Else clip and noise.
        clip: choose the clip once for all partitions ("shared"), or "partition": in each, which
            suits partitions of thousands of people whose contributions differ by magnitudes.
        candidates: the public clips, or the public outputs if one-sided; None: a geometric
            grid that is wide enough for anything.
        clip_share: the part of the metric's budget that chooses the clip; None: a third, or
            an eighth where there is one partition only.
        search: how a one-sided release searches.
        beta: how often a one-sided release may be above the true value, or too far below it.

    Options that have no effect are refused: of the clip with `one_sided=True`, and of the search
    without.
    """

    one_sided: bool = False
    clip: str = "shared"
    candidates: Candidates | None = None
    clip_share: checks.Real | None = None
    search: SearchKind = AboveThreshold
    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        check_clip(owner, self.clip, self.clip_share)
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        check_search(owner, self.search)
        check_candidates(owner, self.candidates)
        unused.check_side(self)


@dataclasses.dataclass(frozen=True)
class Count(_Additive):
    """Count the rows of each partition.

    No bound on rows per person is needed. With `ContributionBounds(rows_per_partition=...)` the
    clip is searched up to it only.
    """


@dataclasses.dataclass(frozen=True)
class Sum(_Additive):
    """Sum a column; rows without a valid value add nothing.

    Numbers may have both signs. Every row's number is rounded to a multiple of `unit` first, then
    summed exactly. A one-sided sum takes people whose total is below 0 as 0. Where rows have two
    owners, numbers below 0 are taken as 0, sums of a pair of owners are rounded down to multiples
    of 0.001 if the unit is a finer power of ten, and are at most 2^32 of these: 4,294,967 by
    default.

    Attributes:
        column: the value column.
        unit: the grid of values; integers and decimals that are multiples of it are exact.
    """

    column: str
    _: dataclasses.KW_ONLY
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unit("Sum", self.unit)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Extreme(Metric):
    """The largest or smallest number of a column, by its removal profile.

    Attributes:
        candidates: the public outputs; None: anything, and 0 and numbers 0.025% apart, of both
            signs, to 10^19 for a search.
        search: "two-phase" for a clip and noise (see `TwoPhase`), or the search over the removal
            loss, which errs to one side, and by more where people are many.
        beta: how often the guarantee of a search may fail.
        unit: the grid of values.
        method: "search", or "preprocessing": the extreme of one number per person, cut so that
            nobody moves it far, and noise (see `Preprocessing`; the error is a distance then).
    """

    candidates: Candidates | None = None
    search: SearchKind = TWO_PHASE
    beta: float = 0.05
    unit: checks.Real = UNIT
    method: str = "search"

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        check_unit(owner, self.unit)
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        check_search(owner, self.search)
        check_candidates(owner, self.candidates)
        unused.check_method(self, "search", "candidates", "search", "beta")


@dataclasses.dataclass(frozen=True)
class Max(_Extreme):
    """Release the largest value, or one that few people exceed.

    With probability 95% it is within `max_<column>_error` of a number between the maximum and that
    without some people, whose number the plan shows. With `search=dp.AboveThreshold` it is, with
    probability 1 - beta, at most the maximum (rounded up to the candidates), and at most
    `max_<column>_error` people have more. NaN where people are too few for the budget and no
    candidates were given.

    Attributes:
        column: the value column.
    """

    column: str


@dataclasses.dataclass(frozen=True)
class Min(_Extreme):
    """Release a value that nearly nobody is below: the mirror of `Max`.

    Attributes:
        column: the value column.
    """

    column: str


@dataclasses.dataclass(frozen=True)
class PeopleCount(Metric):
    """Count the people of each partition: plain noise, for one person changes it by 1."""

    @property
    def _prefix(self) -> str:
        return "people_count"


@dataclasses.dataclass(frozen=True)
class Mean(Metric):
    """Release the mean of a column: a noisy sum over a noisy number of rows or people.

    The sum is shared with `Sum(column)` if that is asked for too, and so is the count of rows with
    a value. The error bound is that of the quotient of the two intervals: infinite where the
    count's interval reaches 0. A noisy count below 1 is taken as 1.

    Attributes:
        column: the value column; rows without a valid value do not count.
        per: "row" for the mean over rows, "person" for the mean over people of their totals.
        unit: the grid of values.
        clip: as in `Sum`.
        clip_share: as in `Sum`.
        method: "clip" as above, or "preprocessing": the mean of one number per person (the mean of
            their values; their total with per="person") as in `Preprocessing`. It errs less where
            few people have by far the largest numbers.
    """

    column: str
    _: dataclasses.KW_ONLY
    per: str = "row"
    unit: checks.Real = UNIT
    clip: str = "shared"
    clip_share: checks.Real | None = None
    method: str = "clip"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("Mean", "per", self.per, ("row", "person"))
        check_clip("Mean", self.clip, self.clip_share)
        check_unit("Mean", self.unit)
        unused.check_method(self, "clip", "clip", "clip_share")


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

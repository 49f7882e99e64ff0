"""What a metric is: what the planner, the transforms and the command line may ask of it.

A metric is a frozen record of what a user wants. It says which columns it reads. A metric of one
number builds its release itself (`build`); one of several says which they are (`parts`), and makes
its output of what was released for them (`combine`). All else that differs between metrics stands
here as a question with a default answer, so that nobody has to know which metrics there are:
`metrics.REGISTRY` is the only list of them.
"""

import dataclasses
import math
import re
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics.part import Context, Ends, MetricPart
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.exact_statistics import Exact
from beam_dp.mechanisms.numerics.numbers import WIDE
from beam_dp.mechanisms.numerics.options import PREPROCESSING
from beam_dp.mechanisms.releases.released import Release, Released
from beam_dp.mechanisms.releases.shifted_inverse import Profiler

UNIT = Fraction(1, 1_000_000)
"""The default grid of values: integers and decimals of up to six places are exact on it."""

CENTRE = Fraction(3, 20)
"""The part of the budget of a metric that chooses a centre for it."""
_LEAST_UNIT = Fraction(1, 1 << 200)
_FARTHEST = Fraction(10) ** 200


class Command(NamedTuple):
    """How a metric is asked for on a command line.

    Attributes:
        form: what stands behind the flag, like "COLUMN:K"; "" for nothing. `[...]` may be left out.
        help: what is released, in a few words.
        help_from_below: the same where it is released from below; "" for the same words.
    """

    form: str
    help: str
    help_from_below: str = ""


class OfPeople(NamedTuple):
    """A statistic of one number per person.

    Attributes:
        statistic: as `preprocessing` calls it.
        person_value: what the values of a person become.
    """

    statistic: str
    person_value: str


class Output(NamedTuple):
    """An output column.

    Attributes:
        name: its name.
        whole: whether it holds whole numbers.
    """

    name: str
    whole: bool = False


def interval_outputs(name: str, whole: bool) -> tuple[Output, ...]:
    """Return the columns of a number and of the ends of the interval of the truth."""
    return Output(name, whole), Output(f"{name}_low"), Output(f"{name}_high")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Metric(MetricPart):
    """What every metric has, and what may be asked of it.

    Attributes:
        name: the output column. With probability 95% the true number, of all rows, is between
            `<name>_low` and `<name>_high` (a histogram has three columns per bin); quantiles and
            k-th largest rows have a `<name>_rank_error` instead.
        weight: its part of the budget, relative to the other metrics'.
    """

    monotone: ClassVar[bool] = False
    """Whether it has a removal profile: it never grows when people are removed."""
    several_owners: ClassVar[bool] = False
    """Whether its loss is proved where rows have several owners."""
    sign: ClassVar[int] = 1
    """-1 where its removal profile is that of its negative."""
    role: ClassVar[Role] = Role.VALUE
    """What the values of its column are for, if it has one."""
    splits_alpha: ClassVar[bool] = True
    """Whether its interval fails where that of any part does, so that each gets a share of the
    chance to fail."""
    functions: ClassVar[tuple[str, ...]] = ()
    """Its fields that hold a function of the user, which is sent to workers."""
    command: ClassVar[Command | None] = None
    """How a command line asks for it; None: it does not."""

    name: str = ""
    weight: checks.Real = 1

    def __post_init__(self) -> None:
        owner = type(self).__name__
        checks.fraction_between(owner, "weight", self.weight, 0, math.inf)
        if self.name:
            checks.column(owner, "name", self.name)
        if "column" in vars(self):
            checks.column(owner, "column", vars(self)["column"])

    @property
    def output(self) -> str:
        """The name of its output column; it says where people count, and not rows."""
        column, per = vars(self).get("column"), vars(self).get("per")
        people = ("per_person",) if per == "person" else ()
        return self.name or "_".join(
            (self._prefix, *(() if column is None else (column,)), *people)
        )

    @property
    def _prefix(self) -> str:
        return re.sub("(?<!^)([A-Z])", r"_\1", type(self).__name__).lower()

    def columns(self) -> tuple[Column, ...]:
        """Return the columns that it reads: by default `column`, if it has one."""
        if "column" not in vars(self):
            return ()
        unit = vars(self).get("unit")
        exact = None if unit is None else checks.decimal(type(self).__name__, "unit", unit)
        return (Column(vars(self)["column"], self.role, exact),)

    def parts(self) -> tuple[MetricPart, ...]:
        """Return the numbers that must be released for it: by default itself, whatever its name."""
        return (dataclasses.replace(self, name="", weight=1),)

    def part_weights(self) -> tuple[int, ...]:
        """Return the weight of each part among those of the metric: by default all are equal."""
        return (1,) * len(self.parts())

    def build(self, context: Context, share: Budget) -> Release:
        """Return its release, as `MetricPart` says; only of a metric that is a part of itself."""
        raise TypeError(f"{type(self).__name__}: its parts are released.")

    def beside(self, asked: Sequence["Metric"]) -> "Metric":
        """Return it as it is released beside all that is asked for: by default the same."""
        return self

    @property
    def takes_auto_bound(self) -> bool:
        """Whether the bound on partitions may be chosen privately beside it.

        That costs every person the same part of the whole budget, when they are added or removed.
        """
        return True

    @property
    def truth_within(self) -> tuple[float, float]:
        """The least and the largest number that the truth can be: a count is not below 0."""
        return 0.0 if self.whole else -math.inf, math.inf

    @property
    def is_ranked(self) -> bool:
        """Whether its error is a number of people, by which the rank of its value may be off."""
        return False

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The output columns: its number, and the interval of the truth, or the error of a rank."""
        if self.is_ranked:
            return Output(self.output), Output(f"{self.output}_rank_error")
        return interval_outputs(self.output, self.is_whole)

    def combine(self, released: Sequence[Released]) -> Released:
        """Return its numbers, from what was released for its parts."""
        [only] = released
        return only

    def output_columns(self, released: Released) -> tuple[np.ndarray, ...]:
        """Return what stands in its output columns; intervals end where the truth cannot be."""
        if self.is_ranked:
            return released.values, released.rank
        ends = (released.low, released.high)
        return (released.values, *(np.clip(end, *self.truth_within) for end in ends))

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return what makes its removal profile B[0..removals]; only of a monotone metric."""
        raise TypeError(f"{type(self).__name__}: has no removal profile.")

    def exactly(self) -> Exact:
        """Return it as an exact function of a few people's records; only of a monotone metric."""
        raise TypeError(f"{type(self).__name__}: has no removal profile.")

    def for_several_owners(self, owner: str) -> "Metric":
        """Return it as it is released where rows have several owners."""
        return self

    def of_people(self) -> OfPeople | None:
        """Return what it computes of one number per person, if preprocessing can release that."""
        return None

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are whole.

        Given outputs need not be; and where clips are given, but none is seen to hold anybody,
        there is no number: NaN.
        """
        return self.whole and vars(self).get("candidates") is None

    @property
    def is_preprocessed(self) -> bool:
        """Whether it has several methods, and asks for preprocessing."""
        return vars(self).get("method") == PREPROCESSING

    def takes_own_epsilons(self) -> bool:
        """Return whether each person may have an epsilon of their own."""
        return False

    def check_plan(self, budget: Budget, alone: bool, selected: bool) -> None:
        """Refuse what it cannot be released with.

        Args:
            budget: the whole.
            alone: whether it is the only metric.
            selected: whether partitions are selected privately.

        Raises:
            ValueError: with what to write instead.
        """


def takes(metric: Metric | type[Metric], option: str) -> bool:
    """Return whether a metric, or a class of them, has this option."""
    return option in {field.name for field in dataclasses.fields(metric)}


def shown(value: object) -> str:
    """Return what a message shows of a metric: its class and output; of all else, a short form."""
    if isinstance(value, Metric):
        return f"{type(value).__name__} (output column {value.output})"
    return checks.shown(value)


def check_metrics(owner: str, metrics: object) -> tuple[Metric, ...]:
    """Return `metrics` as a tuple; refuse what is no metric, and equal output names."""
    if not isinstance(metrics, (list, tuple)) or not metrics:
        raise checks.ParameterTypeError(
            owner,
            "metrics",
            f"be a list of metrics, not {shown(metrics)}",
            'Write metrics=[dp.Count(), dp.Sum("spent")].',
        )
    for metric in metrics:
        if isinstance(metric, type) or not isinstance(metric, Metric):
            raise checks.ParameterTypeError(
                owner, "a metric", f"be one like dp.Count(), not {checks.shown(metric)}"
            )
    names = [metric.output for metric in metrics]
    checks.require(
        len(set(names)) == len(names),
        owner,
        "metrics",
        f"have different names, not {names}",
        'Give one of them another: dp.Sum("spent", name="spent_again").',
    )
    return tuple(metrics)


def check_not_preprocessed(owner: str, metric: Metric) -> None:
    """Refuse a preprocessed metric where its removal loss is needed."""
    checks.require(
        not metric.is_preprocessed,
        owner,
        "method",
        'not be "preprocessing": what is preprocessed is not monotone, and has no removal loss',
        "Leave it out.",
    )


def check_unit(owner: str, unit: checks.Real) -> None:
    """Refuse a grid of values that floats cannot hold."""
    exact = checks.fraction_between(owner, "unit", unit, 0, math.inf)
    checks.require(
        _LEAST_UNIT <= exact <= 1 / _LEAST_UNIT,
        owner,
        "unit",
        f"be from 2^-200 to 2^200, not {unit!r}: floats must hold what is released",
        "Write unit=0.01.",
    )


def ends_of(owner: str, low: checks.Real | None, high: checks.Real | None) -> Ends:
    """Return the ends of the values that a user knows without the data, exactly.

    Args:
        owner: the name that errors begin with.
        low: values below count as that; None: no end.
        high: values above count as that; None: no end.

    Raises:
        TypeError, ValueError: unless they are finite and `low` is below `high`.
    """
    ends = []
    for name, end in (("low", low), ("high", high)):
        if end is not None:
            checks.fraction_between(owner, name, end, -_FARTHEST, _FARTHEST, f"Write {name}=0.")
            end = checks.decimal(owner, name, end)
        ends.append(end)
    lower, upper = ends
    checks.require(
        lower is None or upper is None or lower < upper,
        owner,
        "high",
        f"be above low={float(lower or 0):g}, not {float(upper or 0):g}",
        "Write low=0, high=100.",
    )
    return lower, upper


def joined(function: Callable[..., np.ndarray], parts: Sequence[Released]) -> Released:
    """Return a function of released numbers, with the interval of the truth.

    Let the interval of a sum alone move a quotient by a, and that of a count alone by b: together
    they are taken to move it by sqrt(a^2 + b^2). For two independent Laplace or Gaussian noises,
    each within its interval but for alpha, that fails less often than alpha, whatever their scales:
    at equal ones with x = ln(1 / alpha), by e^-y (1 + y / 2), y = sqrt(2) x. (Noise of one draw is
    not independent, but near a centre that of the count matters little.)

    Args:
        function: takes the values of all parts.
        parts: what was released for them.
    """
    values = [part.values.astype(float) for part in parts]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = function(*values)
        below = above = np.zeros(len(found))
        for place, part in enumerate(parts):
            before, after = values[:place], values[place + 1 :]
            ends = [function(*before, end, *after) for end in (part.low, part.high)]
            below = np.hypot(below, np.maximum(found - np.min(ends, axis=0), 0.0))
            above = np.hypot(above, np.maximum(np.max(ends, axis=0) - found, 0.0))
    return Released.between(found, below, above)


def check_candidates(owner: str, candidates: object) -> None:
    """Refuse what is neither None nor Candidates that floats can hold."""
    if candidates is None:
        return
    if not isinstance(candidates, Candidates):
        raise checks.ParameterTypeError(
            owner,
            "candidates",
            f"be Candidates, not {checks.shown(candidates)}",
            "Write Candidates.linear(0, 100, 1).",
        )
    checks.require(
        -sys.float_info.max <= candidates[0] and candidates[-1] <= sys.float_info.max,
        owner,
        "candidates",
        "be numbers that floats can hold, below 1.8e308",
    )


def check_indexes(owner: str, candidates: Candidates | None) -> None:
    """Refuse candidates whose indexes do not fit in an array, for what is released by ranks."""
    checks.require(
        candidates is None or candidates.size < WIDE,
        owner,
        "candidates",
        "be fewer than 2^62, as each person or vote has an index among them",
        "Take a coarser grid: Candidates.linear(0, 100, 0.001).",
    )

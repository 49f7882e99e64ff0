"""What a metric is: what the planner, the transforms and the command line may ask of it.

A metric is a frozen record of what a user wants. It says which columns it reads. A metric of one
number builds its release itself (`build`); one of several says which they are (`parts`), and makes
its output of what was released for them (`combine`). All else that differs between metrics stands
here as a question with a default answer, so that nobody has to know which metrics there are:
`metrics.REGISTRY` is the only list of them.

*Parts* are what metrics are made of: one number per partition, before any budget is known. A part
is a frozen record. Two metrics whose parts are equal share one release, which is paid once. The
planner (`planning.compile`) lets each part build its release from its share of the budget and the
`Context` of the pipeline. Most metrics are one part: themselves, without name and weight.
"""

import abc
import dataclasses
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.table import Column, Field, Role
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics.released import ALPHA, Profiler, Release, Released
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.integers import WIDE
from beam_dp.mechanisms.summaries.person_value import PERSON_VALUES

Ends = tuple[Fraction | None, Fraction | None]
"""The ends of the values of a column, as far as they are known."""
UNIT = Fraction(1, 1_000_000)
"""The default grid of values: integers and decimals of up to six places are exact on it."""
CENTRE = Fraction(3, 20)
"""The part of the budget of a metric that chooses a centre for it."""
REMOVALS = 2_000_000
"""K, the most removals that a search may look at. A profile of so many takes some 100 MB and
seconds of a worker, for one partition."""
_LEAST_UNIT = Fraction(1, 1 << 200)
_FARTHEST = Fraction(10) ** 200


@dataclasses.dataclass(frozen=True)
class Context:
    """The public parameters of a pipeline, for all its releases.

    Attributes:
        columns: all columns that are read, in the order of a table.
        fields: what is aggregated per person and partition; building a release adds fields.
        max_partitions: the most partitions of a person that count where each of them pays for
            itself.
        bound: the most partitions that a person can have rows in, as the user said; None: unknown.
        max_rows_per_partition: the most rows per person and partition; None: unknown.
        partitions: how many partitions there are; None: unknown.
        alpha: the chance that the noise exceeds its tail bound.
        asker: the class of the metric whose part is built, for messages.
        output: the output column of that metric, for messages.
        centres: the centres that were chosen, in units; None: too few people have a value.
        clip_cost: what the choice of the clip of a norm costs; None: a part of its number's share.
    """

    columns: tuple[Column, ...]
    fields: list[Field] = dataclasses.field(default_factory=list)
    max_partitions: int = 1
    bound: int | None = None
    max_rows_per_partition: int | None = None
    partitions: int | None = None
    alpha: Fraction = ALPHA
    asker: str = ""
    output: str = ""
    centres: "Mapping[CentreRequest, int | None]" = dataclasses.field(default_factory=dict)
    clip_cost: Budget | None = None

    @property
    def others(self) -> tuple[int, ...]:
        """The indexes of the columns of further owners, of rows that have several."""
        return tuple(i for i, column in enumerate(self.columns) if column.role is Role.OWNER)

    def index(self, column: Column | None) -> int:
        """Return the index of a column among all columns that are read; -1 for None."""
        return -1 if column is None else self.columns.index(column)

    def field(self, column: Column | None, operation: str, *ends: int | None) -> int:
        """Return the index of a field over a column; a new field is added to `fields`.

        Args:
            column: the column.
            operation: as in `Field`.
            ends: between which values are cut, in units, if they are.
        """
        field = Field(self.index(column), operation, *ends)
        if field not in self.fields:
            self.fields.append(field)
        return self.fields.index(field)

    def each(self, share: Budget) -> Budget:
        """Return what one partition may cost, from what all partitions of a person may cost."""
        return share.scaled(Fraction(1, self.max_partitions))

    def check_removals(self, removals: int) -> int:
        """Return K, or refuse a search that would look at more people than a worker can hold.

        K depends on the budget and the candidates only; in the data, far fewer people matter.

        Raises:
            ValueError: names the metric and the number, and says how to correct the call.
        """
        checks.require(
            removals <= REMOVALS,
            self.asker,
            "budget",
            f"be larger: the search for output column {self.output} would look at the "
            f"{removals} most important people of each partition, and at most {REMOVALS} "
            "can be held",
            "Give it more epsilon (rho) or weight, fewer candidates, or fewer partitions "
            "per person: bounds=dp.ContributionBounds(partitions=1); or release from "
            "below, which looks at fewer: search=dp.AboveThreshold.",
        )
        return removals


def units_between(ends: Ends, unit: Fraction) -> tuple[int | None, int | None]:
    """Return two ends in units, rounded inwards, as far as they are given."""
    low, high = ends
    return (
        None if low is None else math.ceil(low / unit),
        None if high is None else math.floor(high / unit),
    )


def ends_of_totals(ends: Ends) -> Ends:
    """Return the ends that a total of values cannot pass: a low from 0 on, a high up to 0."""
    low, high = ends
    return low if low is not None and low >= 0 else None, (
        high if high is not None and high <= 0 else None
    )


@dataclasses.dataclass(frozen=True)
class CentreRequest:
    """A centre that is chosen privately before sums of distances from it are taken.

    Attributes:
        column: the column.
        ends: between which values are cut, if they are.
        by_person: the centre of people's totals, not of their means.
    """

    column: Column
    ends: Ends
    by_person: bool

    @property
    def span(self) -> Ends:
        """Between which ends the centre is."""
        return ends_of_totals(self.ends) if self.by_person else self.ends


class MetricPart(abc.ABC):
    """One number per partition: a frozen record of all parameters of a release but its budget.

    Attributes:
        word: its name in the account, and in the plan of a metric that has several parts.
        whole: whether it counts something.
    """

    word: ClassVar[str]
    whole: ClassVar[bool] = False

    @abc.abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """Return the columns that it reads: the one that it is about, if there is one, first."""

    @abc.abstractmethod
    def build(self, context: Context, share: Budget) -> Release:
        """Return the release.

        Args:
            context: the parameters of the pipeline.
            share: what the release may cost, over all partitions of a person.

        Raises:
            ValueError: for a share or a context that does not allow the release.
        """

    @property
    def source(self) -> Column | None:
        """The column that it is about; None: it is about rows or people alone."""
        return next(iter(self.columns()), None)

    @property
    def exact_unit(self) -> Fraction:
        """What one unit of the number is worth, in the user's scale; counts are in ones."""
        source = None if self.whole else self.source
        return Fraction(source.detail if source and source.role is Role.VALUE else 1)

    @property
    def is_rounded(self) -> bool:
        """Whether its number is rounded to a whole one."""
        return self.whole

    @property
    def asked_centre(self) -> CentreRequest | None:
        """The centre that must be chosen before; None: none."""
        return None

    @property
    def wants_delta(self) -> bool:
        """Whether its release spends a delta."""
        return False


@dataclasses.dataclass(frozen=True)
class JointNoisePart(MetricPart):
    """One of several parts of a metric, by clips; of one partition they share a draw of noise.

    Attributes:
        column: the column that it is about.
    """

    column: Column

    def columns(self) -> tuple[Column, ...]:
        """Return the column."""
        return (self.column,)


class PeopleStatistic(NamedTuple):
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
    splits_alpha: ClassVar[bool] = True
    """Whether its interval fails where that of any part does, so that each gets a share of the
    chance to fail."""
    own_epsilons: ClassVar[tuple[str, ...]] = ()
    """The statistics of people for which each of them may have an epsilon of their own."""
    takes_auto_bound: ClassVar[bool] = True
    """Whether the bound on partitions may be chosen privately beside it, which costs every person
    the same part of the whole budget, when they are added or removed."""
    is_quotient: ClassVar[bool] = False
    """Whether its parts are a total and the number it is divided by, which may be less exact."""
    functions: ClassVar[tuple[str, ...]] = ()
    """Its fields that hold a function of the user, which is sent to workers."""

    name: str = ""
    weight: checks.Real = 1

    def __post_init__(self) -> None:
        subject = type(self).__name__
        checks.fraction_between(subject, "weight", self.weight, 0, math.inf)
        if self.name not in ("", None):
            checks.column(subject, "name", self.name)

    @property
    def output(self) -> str:
        """The name of its output column."""
        return self.name or self._prefix

    @property
    def _prefix(self) -> str:
        return re.sub("(?<!^)([A-Z])", r"_\1", type(self).__name__).lower()

    def columns(self) -> tuple[Column, ...]:
        """Return the columns that it reads: by default none."""
        return ()

    def parts(self) -> tuple[MetricPart, ...]:
        """Return the numbers that must be released for it: by default itself, whatever its name."""
        return (dataclasses.replace(self, name="", weight=1),)

    def part_weights(self) -> tuple[int, ...]:
        """Return the weight of each part among those of the metric: by default all are equal."""
        return (1,) * len(self.parts())

    def build(self, context: Context, share: Budget) -> Release:
        """Return its release, as `MetricPart` says; only of a metric that is a part of itself."""
        raise TypeError(
            f"{type(self).__name__}: a metric defines `build`; or `parts` and `combine`, if it is "
            "made of numbers that others release."
        )

    def replaced(self, asked: Sequence["Metric"]) -> Sequence[tuple["Metric", "Metric"]]:
        """Return which of `asked` are released otherwise beside it, each with what replaces it."""
        return ()

    @property
    def truth_within(self) -> tuple[float, float]:
        """The least and the largest number that the truth can be: a count is not below 0."""
        return 0.0 if self.whole else -math.inf, math.inf

    @property
    def is_ranked(self) -> bool:
        """Whether its error is a number of people, by which the rank of its value may be off."""
        return False

    @property
    def number_names(self) -> tuple[str, ...]:
        """The names of the numbers of a partition: by default there is one."""
        return (self.output,)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The output columns: numbers, and intervals of the truth, or errors of ranks."""
        ends = ("_rank_error",) if self.is_ranked else ("_low", "_high")
        # Outputs that are given need not be whole.
        whole = self.whole and vars(self).get("candidates") is None
        numbers = ((name, Output(name, whole)) for name in self.number_names)
        return tuple(
            output
            for name, number in numbers
            for output in (number, *(Output(name + end) for end in ends))
        )

    def combine(self, released: Sequence[Released]) -> Released:
        """Return its numbers, from what was released for its parts."""
        [only] = released
        return only

    def output_columns(self, released: Released) -> tuple[np.ndarray, ...]:
        """Return what stands in its output columns; intervals end where the truth cannot be."""
        ends = (released.rank,) if self.is_ranked else released.ends_inside(*self.truth_within)
        each = (released.values, *ends)
        rows = zip(*(np.atleast_2d(column.T) for column in each), strict=True)
        return tuple(column for row in rows for column in row)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return what makes its removal profile B[0..removals]; only of a monotone metric."""
        raise TypeError(f"{type(self).__name__}: has no removal profile.")

    def for_several_owners(self) -> "Metric":
        """Return it as it is released where rows have several owners."""
        return self

    def of_people(self) -> PeopleStatistic | None:
        """Return what it computes of one number per person, if preprocessing can release that."""
        return None

    def check_plan(self, budget: Budget, alone: bool, selected: bool) -> None:
        """Refuse what it cannot be released with.

        Args:
            budget: the whole.
            alone: whether it is the only metric.
            selected: whether partitions are selected privately.

        Raises:
            ValueError: with what to write instead.
        """


@dataclasses.dataclass(frozen=True)
class OfColumn(Metric):
    """A metric of one column, whose values are only compared.

    Attributes:
        column: the column.
    """

    column: str

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.column(type(self).__name__, "column", self.column)

    @property
    def output(self) -> str:
        """The name of its output column, with that of the column that it reads."""
        return self.name or f"{self._prefix}_{self.column}"

    def columns(self) -> tuple[Column, ...]:
        """Return the column."""
        return (Column(self.column, Role.ITEM),)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfNumbers(OfColumn):
    """A metric of one column of numbers.

    Attributes:
        unit: the grid of values.
    """

    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        subject = type(self).__name__
        exact = checks.fraction_between(subject, "unit", self.unit, 0, math.inf)
        checks.require(
            _LEAST_UNIT <= exact <= 1 / _LEAST_UNIT,
            subject,
            "unit",
            f"be from 2^-200 to 2^200, not {checks.shown(self.unit)}: floats must hold what is released",
            "Write unit=0.01.",
        )

    def columns(self) -> tuple[Column, ...]:
        """Return the column, with its unit."""
        unit = checks.decimal(type(self).__name__, "unit", self.unit)
        return (Column(self.column, Role.VALUE, unit),)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfNumbersBetween(OfNumbers):
    """A metric of numbers whose ends a user may know without the data.

    Attributes:
        low: values below count as that; None: no end is known.
        high: values above count as that; None: no end is known.
    """

    low: checks.Real | None = None
    high: checks.Real | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        subject = type(self).__name__
        low, high = units_between(self.ends, checks.decimal(subject, "unit", self.unit))
        checks.require(
            low is None or high is None or low <= high,
            subject,
            "high",
            f"be above low={self.low} by the unit, {self.unit}, or more",
            "Write a smaller unit.",
        )

    @property
    def ends(self) -> Ends:
        """The ends that are known, exactly.

        Raises:
            TypeError, ValueError: unless they are finite and `low` is below `high`.
        """
        subject, ends = type(self).__name__, []
        for name, end in (("low", self.low), ("high", self.high)):
            if end is not None:
                checks.fraction_between(
                    subject, name, end, -_FARTHEST, _FARTHEST, f"Write {name}=0."
                )
                end = checks.decimal(subject, name, end)
            ends.append(end)
        lower, upper = ends
        checks.require(
            lower is None or upper is None or lower < upper,
            subject,
            "high",
            f"be above low={float(lower or 0):g}, not {float(upper or 0):g}",
            "Write low=0, high=100.",
        )
        return lower, upper


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfPersonValues(OfNumbers):
    """A metric of one number per person.

    Attributes:
        person_value: what a person with several rows counts as: the "mean" of their values, the
            "sum", the "max" or the "min".
    """

    person_value: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(type(self).__name__, "person_value", self.person_value, PERSON_VALUES)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfRowsOrPeople(OfColumn):
    """A metric of rows, or of people.

    Attributes:
        per: "row", as in SQL, or "person", where every person counts once.
    """

    per: str = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(type(self).__name__, "per", self.per, ("row", "person"))

    @property
    def by_person(self) -> bool:
        """Whether people count, and not rows."""
        return self.per == "person"

    @property
    def output(self) -> str:
        """The name of its output column; it says where people count, and not rows."""
        return self.name or super().output + "_per_person" * self.by_person


def takes(metric: Metric | type[Metric], option: str) -> bool:
    """Return whether a metric, or a class of them, has this option."""
    return option in {field.name for field in dataclasses.fields(metric)}


def shown(value: object) -> str:
    """Return what a message shows of a metric: its class and output; of all else, a short form."""
    if isinstance(value, Metric):
        return f"{type(value).__name__} (output column {value.output})"
    return checks.shown(value)


def check_metrics(subject: str, metrics: object) -> tuple[Metric, ...]:
    """Return `metrics` as a tuple; refuse what is no metric, and equal output names."""
    if not isinstance(metrics, (list, tuple)) or not metrics:
        raise checks.ParameterTypeError(
            subject,
            "metrics",
            f"be a list of metrics, not {shown(metrics)}",
            'Write metrics=[dp.Count(), dp.Sum("spent")].',
        )
    for metric in metrics:
        if isinstance(metric, type) or not isinstance(metric, Metric):
            raise checks.ParameterTypeError(
                subject, "a metric", f"be one like dp.Count(), not {checks.shown(metric)}"
            )
    names = [metric.output for metric in metrics]
    checks.require(
        len(set(names)) == len(names),
        subject,
        "metrics",
        f"have different names, not {names}",
        'Give one of them another: dp.Sum("spent", name="spent_again").',
    )
    return tuple(metrics)


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


def check_candidates(subject: str, candidates: Candidates | None) -> None:
    """Refuse what is neither None nor Candidates that floats can hold."""
    if candidates is None:
        return
    hint = "Write Candidates.linear(0, 100, 1)."
    checks.of_type(subject, "candidates", candidates, Candidates, hint)
    checks.require(
        -sys.float_info.max <= candidates[0] and candidates[-1] <= sys.float_info.max,
        subject,
        "candidates",
        "be numbers that floats can hold, below 1.8e308",
    )


def check_indexes(subject: str, candidates: Candidates | None) -> None:
    """Refuse candidates whose indexes do not fit in an array, for what is released by ranks."""
    checks.require(
        candidates is None or candidates.size < WIDE,
        subject,
        "candidates",
        "be fewer than 2^62, as each person or vote has an index among them",
        "Take a coarser grid: Candidates.linear(0, 100, 0.001).",
    )

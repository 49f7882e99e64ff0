"""Transforms that are a `PrivateAggregate` of one statistic, or of none: ShiftedInverse,
PreprocessSensitivity, PrivateRatio and SelectPartitions."""

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import names_of
from beam_dp.mechanisms.metrics.base import Metric, OfNumbers, OfPersonValues, shown, takes
from beam_dp.mechanisms.metrics.person_epsilon import ANOTHER_WAY, personalised
from beam_dp.mechanisms.metrics.preprocessed import preprocessed
from beam_dp.mechanisms.metrics.profiled import Profiled
from beam_dp.mechanisms.metrics.ratio import Comparison, Ratio
from beam_dp.mechanisms.metrics.sums import Sum
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.checks import refuse
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.choose import NO_SEARCHES, SearchKind
from beam_dp.text.plan import Plan, Record
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.partitions import Partitions, PrivatePartitions

_TAKEN = ("column", "name", "unit", "weight")


@dataclasses.dataclass(eq=False, kw_only=True)
class OneStatistic(beam.PTransform[beam.PCollection[Any], beam.PCollection[beam.Row]], abc.ABC):
    """The base of these transforms: `PrivateAggregate` with their fields.

    Args:
        shards, columns: as of `PrivateAggregate`.
    """

    shards: int | None = None
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        metrics = self._metrics()
        shared = {field.name for field in dataclasses.fields(PrivateAggregate)} & set(vars(self))
        fields = {name: vars(self)[name] for name in shared}
        self._aggregate = PrivateAggregate(metrics=metrics, **fields)

    @abc.abstractmethod
    def _metrics(self) -> Sequence[Metric]:
        """Return the one metric that the fields ask for, or none."""

    def plan(self) -> Plan:
        """Return what each release would spend, as `PrivateAggregate.plan`; reads no row."""
        return self._aggregate.plan()

    def record(self, job: Mapping[str, Any] | None = None) -> beam.PCollection[Record]:
        """Return what was spent on what, as `PrivateAggregate.record`."""
        return self._aggregate.record(job)

    def cost(self) -> Budget:
        """Return what the output costs, for a `Ledger`: the budget that it was made with."""
        return self._aggregate.cost()

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[beam.Row]:
        """Release the statistic."""
        return rows | "Release" >> self._aggregate


@dataclasses.dataclass(eq=False)
class ShiftedInverse(OneStatistic):
    """Release one monotone statistic per partition by the shifted inverse mechanism.

    The steps are the removal loss of every partition, a search over it (one small step per
    partition), and a barrier. With probability 1 - beta the released y satisfies
    f without its T largest people <= y <= f (f rounded up to the candidates; the mirror for
    `Min`), where T is the shift that `plan()` shows. The whole output costs `budget`.

    Output as of `PrivateAggregate` with this one metric. For several statistics use
    `PrivateAggregate` directly: it reads the rows once.

    Args:
        statistic: `Count()`, `Sum(column)`, `Max(column)`, `Min(column)`, `KthLargest(column, k)`,
            `DistinctCount(column)`, `MaxFrequency(column)`, `SumOfSquares(column)` or a
            `CustomProfile`.
        person: the column that identifies a person, or several (see `PrivateAggregate`).
        budget: what all partitions together may cost.
        partition: the columns whose values name a partition; empty: one partition for all.
        bounds: how much one person may contribute.
        partitions: public ones, or how to select private ones.
        candidates: the public outputs; None: those of the statistic, by default a geometric grid
            that is wide enough for anything.
        search: `AboveThreshold`, `ExponentialMechanism`, `NoisyBinarySearch`, or "auto" for the
            smallest proved shift; None: the search of the statistic, if it has one, else
            `AboveThreshold`.
        beta: how often the guarantee may fail; None: that of the statistic, by default 5%.
        shards, columns: as of `PrivateAggregate`.

    Raises:
        TypeError, ValueError: when the pipeline is built.

    Source: Fang, Dong, Yi, "Shifted Inverse" (CCS 2022); Steinke, "Beyond Local Sensitivity via
    Down Sensitivity" (2023).
    """

    statistic: Metric
    person: str | Sequence[str]
    budget: Budget
    partition: Sequence[str] = ()
    bounds: ContributionBounds | None = None
    partitions: Partitions | None = None
    candidates: Candidates | None = None
    search: SearchKind | None = None
    beta: float | None = None

    def _metrics(self) -> Sequence[Metric]:
        """Return the statistic as a metric that is released by a search."""
        rule = f'be a search over the removal loss, not "{self.search}", which is none'
        hint = "Write dp.PrivateAggregate(metrics=[...]) for that."
        checks.require(self.search not in NO_SEARCHES, "ShiftedInverse", "search", rule, hint)
        search = self.search
        if search is None and getattr(self.statistic, "search", None) in NO_SEARCHES:
            search = AboveThreshold
        fields = {"search": search, "beta": self.beta, "candidates": self.candidates}
        if isinstance(self.statistic, Profiled):
            return [dataclasses.replace(self.statistic, **_given(fields))]
        names = names_of(lambda kind: issubclass(kind, Profiled))
        rule = f"be {names}, not {shown(self.statistic)}"
        hint = (
            "The number of people moves by 1 per person, and quantiles have a search of "
            "their own: release these by PrivateAggregate(metrics=[...])."
        )
        raise checks.ParameterTypeError("ShiftedInverse", "statistic", rule, hint)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _is_of_people(kind: type[Metric]) -> bool:
    """Return whether a metric is, or can be, a statistic of one number per person."""
    has_both = kind.of_people is not Metric.of_people and kind is not Sum
    return has_both or issubclass(kind, OfPersonValues)


@dataclasses.dataclass(eq=False)
class PreprocessSensitivity(OneStatistic):
    """Release one statistic per partition by sensitivity preprocessing.

    Each person becomes one number per partition (`person_value`), the statistic is replaced by the
    closest one that no person moves by more than Delta, and noise of that size is added: see
    `Preprocessing`. The whole output costs `budget`. Output as of `PrivateAggregate`; for several
    statistics use `PrivateAggregate` with `TrimmedMean` or `Preprocessed`.

    Args:
        statistic: `Mean(column)`, `Median(column)`, `Max(column)`, `Min(column)`,
            `Variance(column)`, `StandardDeviation(column)` (of these only column, name, unit and
            weight are taken, other options are refused), `TrimmedMean(column)`,
            `Preprocessed(column, of)` or `BlackBox(column, function)`.
        person: the column that identifies a person.
        budget: what all partitions together may cost.
        partition: the columns whose values name a partition; empty: one partition for all.
        bounds: how much one person may contribute.
        partitions: public ones, or how to select private ones.
        person_value: "mean", "sum", "max" or "min" of a person's values; None: that of the
            statistic, by default the mean, for `Max` the largest, for `Min` the smallest and for
            `Sum` the total.
        person_epsilon: the column of each person's epsilon, which is a public attribute, the same
            in all their rows. The statistic must be `Sum`, `Max`, `Median` (of these only column,
            name and unit are taken) or `Preprocessed` of an extreme, the budget the largest
            epsilon, and the partitions public: see `PersonalisedStatistic`. Person i gets
            epsilon_i-differential privacy in all. Rows whose epsilon is none of the public ones are
            dropped. If a person's rows disagree, the smallest epsilon of the rows that the bounds
            leave is used, and the person pays at most the largest.
        epsilons: the public epsilons that may be in that column.
        sensitivity: "auto", or Delta in the scale of the statistic; None: that of the statistic.
        shards, columns: as of `PrivateAggregate`.

    Raises:
        TypeError, ValueError: when the pipeline is built.

    Source: Cummings, Durfee, "Individual Sensitivity Preprocessing for Data Privacy" (SODA 2020).
    """

    statistic: Metric
    person: str
    budget: Budget
    partition: Sequence[str] = ()
    bounds: ContributionBounds | None = None
    partitions: Partitions | None = None
    person_value: str | None = None
    sensitivity: float | str | None = None
    person_epsilon: str | None = None
    epsilons: Sequence[float] | None = None

    def _metrics(self) -> Sequence[Metric]:
        """Return the statistic of people."""
        options = _given({"person_value": self.person_value, "sensitivity": self.sensitivity})
        statistic = self.statistic
        if self.person_epsilon is not None or self.epsilons is not None:
            return [personalised(statistic, self.person_epsilon, self.epsilons, options)]
        if not isinstance(statistic, Metric) or not _is_of_people(type(statistic)):
            rule = f"be one of {names_of(_is_of_people)}, not {shown(statistic)}"
            hint = 'Write statistic=dp.Mean("minutes").'
            raise checks.ParameterTypeError("PreprocessSensitivity", "statistic", rule, hint)
        if isinstance(statistic, OfNumbers) and not isinstance(statistic, OfPersonValues):
            others = [f.name for f in dataclasses.fields(statistic) if f.name not in _TAKEN]
            refuse(statistic, others, "in PreprocessSensitivity", ANOTHER_WAY)
            statistic = preprocessed(statistic)
        for name in options:
            rule = f"be left out: a {type(statistic).__name__} needs none"
            checks.require(takes(statistic, name), "PreprocessSensitivity", name, rule)
        return [dataclasses.replace(statistic, **options)]


@dataclasses.dataclass(eq=False)
class PrivateRatio(OneStatistic):
    """Release per partition which share of the rows, or people, has a given value.

    The share is a / b, with b the rows that have a value in `column`, and a those of them whose
    value equals `equals`: each person adds to b, or to a and b. The output is in [0, 1], and costs
    `budget` in all. Output as of `PrivateAggregate` with `Ratio(column)`; beside other metrics use
    that directly.

    Args:
        column: the column; its values are compared, not computed with.
        person: the column that identifies a person.
        budget: what all partitions together may cost.
        partition: the columns whose values name a partition; empty: one partition for all.
        bounds: how much one person may contribute; of the methods but
            "clip", `per="row"` needs rows_per_partition.
        partitions: public ones, or how to select private ones.
        equals: the value that counts, or a function of a value that says whether it does.
        per: "row" or "person".
        method: as in `Ratio`.
        shards, columns: as of `PrivateAggregate`.

    Raises:
        TypeError, ValueError: when the pipeline is built.

    Source: the docstring of `mechanisms.ratio`.
    """

    column: str
    person: str
    budget: Budget
    partition: Sequence[str] = ()
    bounds: ContributionBounds | None = None
    partitions: Partitions | None = None
    equals: Comparison = 1
    per: str = "row"
    method: str = "clip"

    def _metrics(self) -> Sequence[Metric]:
        """Return the ratio."""
        return [Ratio(self.column, equals=self.equals, per=self.per, method=self.method)]


@dataclasses.dataclass(eq=False)
class SelectPartitions(OneStatistic):
    """Release the keys of partitions that have enough people.

    The set of keys is (epsilon, delta)-DP as `budget` says. How partitions are selected, with and
    without bounds, says `PrivatePartitions`.

    One `beam.Row` with the partition columns per kept partition.

    Args:
        person: the column that identifies a person.
        partition: the columns whose values name a partition.
        budget: with a delta above 0.
        bounds: how many partitions and rows of one person count. None: up to 64 partitions.
        pre_threshold: never name a partition with fewer people than this.
        shards, columns: as of `PrivateAggregate`.

    Raises:
        TypeError, ValueError: when the pipeline is built.

    Source: the module docstring of `noise.partition_selection`.
    """

    person: str
    partition: Sequence[str]
    budget: Budget
    bounds: ContributionBounds | None = None
    pre_threshold: int = 1

    def _metrics(self) -> Sequence[Metric]:
        """Return no metric: the keys are all that is released."""
        self.partitions = PrivatePartitions(self.pre_threshold)
        return ()

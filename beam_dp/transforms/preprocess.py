"""PreprocessSensitivity: a statistic of one number per person, whatever its sensitivity is."""

import dataclasses
from collections.abc import Sequence

import apache_beam as beam

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics import base, person_epsilon, spread
from beam_dp.mechanisms.metrics import options as metric_options
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.black_box import BlackBox
from beam_dp.mechanisms.metrics.spread import Preprocessing
from beam_dp.mechanisms.planning.plan import Plan
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.partitions import PrivatePartitions, PublicPartitions
from beam_dp.transforms.steps.collect import SHARDS

_OWNER = "PreprocessSensitivity"
_TAKEN = ("column", "name", "unit", "weight", "method")
_MEND = "It is released in another way here: see person_value and sensitivity."


@dataclasses.dataclass(eq=False)
class PreprocessSensitivity(beam.PTransform):
    """Release one statistic per partition by sensitivity preprocessing.

    Each person becomes one number per partition (`person_value`), the statistic is replaced by the
    closest one that no person moves by more than Delta, and noise of that size is added: see
    `Preprocessing`. All of it together costs `budget`. Output as of `PrivateAggregate`; for several
    statistics use that with `Variance`, `StandardDeviation`, `TrimmedMean` or `Preprocessed`.

    Args:
        statistic: `Mean(column)`, `Median(column)`, `Max(column)`, `Min(column)` (of these only
            column, name and unit are taken, other options are refused), `Variance(column)`,
            `StandardDeviation(column)`, `TrimmedMean(column)`, `Preprocessed(column, of)` or
            `BlackBox(column, function)`.
        person: the column that identifies a person.
        budget: what all partitions together may cost.
        partition: the columns whose values name a partition; empty: one partition for all.
        bounds: how much of the data one person may reach.
        partitions: public ones, or how to select private ones.
        person_value: "mean", "sum", "max", "min" or "last" of a person's values; None: that of the
            statistic, by default the mean, for `Max` the largest, for `Min` the smallest and for
            `Sum` the total.
        person_epsilon: the column of an epsilon for each person; a public attribute of them, the
            same in all their rows. See `PersonalisedStatistic`: for `Sum`, `Max`, `Median` (of
            these only column, name and unit are taken, and of `Median` candidates and beta) and
            `Preprocessed` of an extreme, a budget of the largest epsilon, and public partitions.
            Person i gets epsilon_i-differential privacy in all. Rows whose epsilon is none of the
            public ones are dropped; if a person's rows disagree, they pay at most the largest, and
            the smallest of the rows that the bounds leave is used.
        epsilons: the public epsilons that may be in it.
        last_by: for "last": the column that says when (numbers, dates, times).
        sensitivity: "auto", or Delta in the scale of the statistic; None: that of the statistic.
        shards: how many parts the people are cut into; a power of two.
        partition_rows: the most rows that one partition has, if you know: see `PrivateAggregate`.

    Raises:
        TypeError, ValueError: when the pipeline is built.

    Source: Cummings, Durfee, "Individual Sensitivity Preprocessing for Data Privacy" (SODA 2020).
    """

    statistic: Metric
    person: str
    budget: Budget
    partition: Sequence[str] = ()
    bounds: ContributionBounds | None = None
    partitions: PublicPartitions | PrivatePartitions | None = None
    person_value: str | None = None
    sensitivity: float | str | None = None
    last_by: str | None = None
    person_epsilon: str | None = None
    epsilons: Sequence[float] | None = None
    shards: int = SHARDS
    partition_rows: int | None = None

    def __post_init__(self) -> None:
        self._aggregate = PrivateAggregate(
            self.person,
            [self._metric()],
            self.budget,
            self.partition,
            self.bounds,
            self.partitions,
            self.shards,
            self.partition_rows,
        )

    def _metric(self) -> Metric:
        names = ("person_value", "last_by", "sensitivity")
        options = {name: vars(self)[name] for name in names if vars(self)[name] is not None}
        statistic = self.statistic
        if self.person_epsilon is not None or self.epsilons is not None:
            return person_epsilon.personalised(
                statistic, self.person_epsilon, self.epsilons, options
            )
        if spread.has_method(statistic):
            others = [f.name for f in dataclasses.fields(statistic) if f.name not in _TAKEN]
            metric_options.refuse(statistic, others, f"in {_OWNER}", _MEND)
            return dataclasses.replace(spread.preprocessed(statistic), **options)
        if isinstance(statistic, BlackBox) and self.sensitivity is not None:
            raise ValueError(f"{_OWNER}: sensitivity must be left out: a BlackBox needs none.")
        if isinstance(statistic, (Preprocessing, BlackBox)):
            return dataclasses.replace(statistic, **options)
        raise TypeError(
            f"{_OWNER}: statistic must be Mean, Median, Max, Min, Variance, StandardDeviation, "
            f"TrimmedMean, Preprocessed or BlackBox, not {base.shown(statistic)}. "
            'Write statistic=dp.Mean("minutes").'
        )

    def plan(self) -> Plan:
        """Return what would be spent on what; reads no row."""
        return self._aggregate.plan()

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        """Release the one metric."""
        return rows | "Release" >> self._aggregate

"""PreprocessSensitivity: release a statistic of one number per person, of any sensitivity."""

import dataclasses
from collections.abc import Sequence

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics import names_of
from beam_dp.mechanisms.metrics.base import Metric, shown, takes
from beam_dp.mechanisms.metrics.person_epsilon import personalised
from beam_dp.mechanisms.metrics.preprocessed import Preprocessing, preprocessed
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.options import refuse
from beam_dp.transforms.aggregate import OneMetric
from beam_dp.transforms.partitions import Partitions

_OWNER = "PreprocessSensitivity"
_TAKEN = ("column", "name", "unit", "weight", "method")
_MEND = "It is released in another way here: see person_value and sensitivity."


def _is_of_people(kind: type[Metric]) -> bool:
    """Return whether a metric is, or can be, a statistic of one number per person."""
    has_both = takes(kind, "method") and kind.of_people is not Metric.of_people
    return has_both or takes(kind, "last_by")  # which all of them take that reduce a person


@dataclasses.dataclass(eq=False)
class PreprocessSensitivity(OneMetric):
    """Release one statistic per partition by sensitivity preprocessing.

    Each person becomes one number per partition (`person_value`), the statistic is replaced by the
    closest one that no person moves by more than Delta, and noise of that size is added: see
    `Preprocessing`. The whole output costs `budget`. Output as of `PrivateAggregate`; for several
    statistics use `PrivateAggregate` with `Variance`, `StandardDeviation`, `TrimmedMean` or
    `Preprocessed`.

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
        person_epsilon: the column of each person's epsilon, which is a public attribute, the same
            in all their rows. See `PersonalisedStatistic`: for `Sum`, `Max`, `Median` (of
            these only column, name and unit are taken, and of `Median` candidates and beta) and
            `Preprocessed` of an extreme, a budget of the largest epsilon, and public partitions.
            Person i gets epsilon_i-differential privacy in all. Rows whose epsilon is none of the
            public ones are dropped; if a person's rows disagree, they pay at most the largest, and
            the smallest of the rows that the bounds leave is used.
        epsilons: the public epsilons that may be in that column.
        last_by: for "last": the column that says when a row was (numbers, dates, times).
        sensitivity: "auto", or Delta in the scale of the statistic; None: that of the statistic.
        shards: how many parts the people are cut into on the way, a power of two; None: by the size
            of the input and the number of workers (see `steps.shard_number`).
        partition_rows: the most rows that one partition has, if you know: see `PrivateAggregate`.
        columns: all columns that the rows have, if these are dicts: see `PrivateAggregate`.

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
    last_by: str | None = None
    person_epsilon: str | None = None
    epsilons: Sequence[float] | None = None
    shards: int | None = None
    partition_rows: int | None = None
    columns: Sequence[str] | None = None

    def _metric(self) -> Metric:
        names = ("person_value", "last_by", "sensitivity")
        options = {name: vars(self)[name] for name in names if vars(self)[name] is not None}
        statistic = self.statistic
        if self.person_epsilon is not None or self.epsilons is not None:
            return personalised(statistic, self.person_epsilon, self.epsilons, options)
        if not isinstance(statistic, Metric) or not _is_of_people(type(statistic)):
            raise checks.ParameterTypeError(
                _OWNER,
                "statistic",
                f"be one of {names_of(_is_of_people)}, not {shown(statistic)}",
                'Write statistic=dp.Mean("minutes").',
            )
        if not isinstance(statistic, Preprocessing) and takes(statistic, "method"):
            others = [f.name for f in dataclasses.fields(statistic) if f.name not in _TAKEN]
            refuse(statistic, others, f"in {_OWNER}", _MEND)
        if takes(statistic, "method"):
            statistic = preprocessed(statistic)
        for name in options:
            checks.require(
                takes(statistic, name),
                _OWNER,
                name,
                f"be left out: a {type(statistic).__name__} needs none",
            )
        return dataclasses.replace(statistic, **options)

"""PrivateAggregate: release several metrics over several columns in one pass over the data."""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics.base import Metric, check_metrics
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning import partition_rows
from beam_dp.mechanisms.planning.plan import Plan, describe
from beam_dp.mechanisms.planning.program import Program, compile_program
from beam_dp.transforms.columns import layout as layouts
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.partitions import (
    PrivatePartitions,
    PublicPartitions,
    check_bounds,
    check_partitions,
    partition_count,
    public_keys,
    reach_of,
)
from beam_dp.transforms.steps import barrier, block_votes, eligibility, guards, output_rows
from beam_dp.transforms.steps import draw as drawing
from beam_dp.transforms.steps import summarise as summarising
from beam_dp.transforms.steps.collect import SHARDS

_OWNER = "PrivateAggregate"


@dataclasses.dataclass(eq=False)
class PrivateAggregate(
    beam.PTransform[beam.PCollection[Any], beam.PCollection[beam.Row | pa.RecordBatch]]
):
    """Release statistics about people per partition, without asking for clipping bounds.

    The whole output together is (epsilon, delta)-differentially private (or rho-zCDP) as `budget`
    says, when one person with all their rows is added or removed: every metric, every partition,
    every error bound, and which partitions appear.

    One `beam.Row` per released partition: the partition columns, then for each metric its value and
    `<name>_error`, a bound that holds with probability 95%. By default it bounds the distance from
    the clipped statistic (see `ClippedSum` and `TwoPhase`); for quantiles and for releases from
    below it is a number of people (see `RankRelease` and `DirectRelease`).

    Edge cases:
        rows without a usable person or partition are dropped; values that are no numbers are
        absent (see `columns.layout`); public partitions without rows are released like others;
        without `partition` there is one partition, which is always released. Each object can be
        applied once.

    Args:
        person: the column that identifies a person; or the two columns of rows with two owners
            (`["from", "to"]`), which disappear when either owner is removed. For such rows there
            are `Count`, `Sum`, `Max`, `Min` and `DistinctCount`, no bounds, and no private
            partitions.
        metrics: what to release: `Count()`, `Sum("spent")`, `Max("minutes")`, ...
        budget: what the whole output together may cost.
        partition: the columns whose values name a partition; empty: one partition for all.
        bounds: how much of the data one person may reach; None: no limit but the number of public
            partitions.
        partitions: `PublicPartitions([...])` or `PrivatePartitions()`; None: private ones if
            there are partition columns.
        shards: how many parts the people are cut into on the way; a power of two.
        partition_rows: the most rows that one partition has, if you know; rows of the same person
            with the same value count once. It is only compared with what one worker can compute
            (`mechanisms.planning.partition_rows`, for metrics that need rows or owners).
        batches: release `pyarrow.RecordBatch`es of at most some thousand rows instead of single
            rows, which is faster for many public partitions; not with private partitions, whose
            keys can be of any type, nor with public keys of several types in one column.

    Raises:
        TypeError, ValueError: when the pipeline is built; the message says what to write instead.

    Source: the module docstrings of `bounding.bounder`, `summaries.histograms`, `releases.clipped`
        and `planning.program`.
    """

    person: str | Sequence[str]
    metrics: Sequence[Metric]
    budget: Budget
    partition: Sequence[str] = ()
    bounds: ContributionBounds | None = None
    partitions: PublicPartitions | PrivatePartitions | None = None
    shards: int = SHARDS
    partition_rows: int | None = None
    batches: bool = False

    def __post_init__(self) -> None:
        self._owner, self._second = eligibility.check_person(_OWNER, self.person)
        self.person = self._owner
        self.partition = self._partition = checks.columns(_OWNER, "partition", self.partition)
        self.metrics = check_metrics(_OWNER, self.metrics)
        self.bounds = self._bounds = check_bounds(_OWNER, self.bounds)
        self.partitions = check_partitions(_OWNER, self.partition, self.partitions)
        if self._second is not None:
            self.metrics = eligibility.check_two(
                _OWNER, self.metrics, self._bounds, self.partitions
            )
        if type(self.budget) is not Budget:
            raise checks.ParameterTypeError(
                _OWNER,
                "budget",
                f"be a Budget, not {checks.shown(self.budget)}",
                "Write budget=dp.Budget(epsilon=1.0).",
            )
        eligibility.check(self.metrics)
        output_rows.check_names(_OWNER, self.partition, self.metrics)
        output_rows.check_batches(_OWNER, self.batches, self.partitions)
        self._once = guards.Once()
        self._program = self._compile()
        block_votes.check(self._program.measures)
        partition_rows.check_rows(
            _OWNER, self.partition_rows, self.metrics, self._second is not None
        )

    def _compile(self) -> Program:
        asked = self.partitions
        return compile_program(
            self.metrics,
            self.budget,
            reach_of(_OWNER, self._bounds, self.partitions),
            depth=self._bounds.depth,
            selection=asked.request() if isinstance(asked, PrivatePartitions) else None,
            second=self._second,
            partitions=partition_count(self.partitions),
        )

    def plan(self) -> Plan:
        """Return what each release would spend, and its expected error; reads no row."""
        free = self._bounds.reach is None and self._second is None
        return describe(self._program, unbounded=free)

    def expand(self, pcoll: beam.PCollection[Any]) -> beam.PCollection[beam.Row | pa.RecordBatch]:
        """Collect, bound, summarise, draw, and put a barrier behind the draw."""
        guards.check_input(_OWNER, pcoll)
        self._once.use(_OWNER)
        public, key = public_keys(self.partitions), layouts.fresh_key()
        layout = Layout(self._owner, self._partition, self._program.columns, public, key)
        bounder = Bounder(
            self._bounds, self._program.fields, layout.key, keep_rows=self._program.keep_rows
        )
        buckets = drawing.bucket_count(layout, self._program.keep_rows)
        measures, shared = self._program.measures, self._program.shared_measures
        summarise = summarising.Summarise(layout, bounder, measures, shared, buckets, self.shards)
        draw = barrier.DrawOnce(self._program, drawing.BucketPartitions(layout, buckets))
        released = output_rows.OutputRows(self.partition, self.metrics, layout, self.batches)
        return pcoll | "Summarise" >> summarise | "Release" >> draw | "Released" >> released

    def display_data(self) -> dict[str, Any]:
        """Return the public parameters that a monitoring page may show."""
        return {"budget": repr(self.budget), "metrics": ", ".join(m.output for m in self.metrics)}


class OneMetric(beam.PTransform[beam.PCollection[Any], beam.PCollection[beam.Row]], abc.ABC):
    """The base of transforms that release one metric: `PrivateAggregate` with their fields."""

    def __post_init__(self) -> None:
        shared = {field.name for field in dataclasses.fields(PrivateAggregate)} & set(vars(self))
        fields = {name: vars(self)[name] for name in shared}
        self._aggregate = PrivateAggregate(metrics=[self._metric()], **fields)

    @abc.abstractmethod
    def _metric(self) -> Metric:
        """Return the metric that the fields ask for."""

    def plan(self) -> Plan:
        """Return what each release would spend; reads no row."""
        return self._aggregate.plan()

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[beam.Row]:
        """Release the one metric."""
        return rows | "Release" >> self._aggregate

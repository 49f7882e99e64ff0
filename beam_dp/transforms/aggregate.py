"""PrivateAggregate: several metrics over several columns, one pass over the data."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import apache_beam as beam

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics.base import Metric, check_metrics
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning import worker_limits
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
from beam_dp.transforms.steps import barrier, eligibility, guards, output_rows
from beam_dp.transforms.steps import draw as drawing
from beam_dp.transforms.steps import summarise as summarising
from beam_dp.transforms.steps.collect import SHARDS

_OWNER = "PrivateAggregate"


@dataclasses.dataclass(eq=False)
class PrivateAggregate(beam.PTransform):
    """Release statistics about people per partition, with no clipping bounds asked.

    The output is (epsilon, delta)-differentially private (or rho-zCDP) as `budget` says, for all of
    it together, when one person with all their rows is added or removed: every metric, every
    partition, every error bound, and which partitions appear.

    One `beam.Row` per released partition: the partition columns, then for each metric its value and
    `<name>_error`, a bound that holds with probability 95%. By default it is the distance from the
    clipped statistic (see `ClippedSum` and `TwoPhase`), for quantiles and for releases from below a
    number of people (see `RankRelease` and `DirectRelease`).

    Edge cases:
        rows without a usable person or partition are dropped; values that are no numbers are
        absent (see `columns.layout`); public partitions without rows are released like others;
        without `partition` there is one partition, always released. Each object can be applied
        once.

    Args:
        person: the column that identifies a person; or the two columns of rows with two owners
            (`["from", "to"]`), which disappear when either is removed. These take `Count`, `Sum`,
            `Max`, `Min` and `DistinctCount`, without bounds, and no private partitions.
        metrics: what to release: `Count()`, `Sum("spent")`, `Max("minutes")`, ...
        budget: what all of it together may cost.
        partition: the columns whose values name a partition; empty: one partition for all.
        bounds: how much of the data one person may reach; None: no limit but the number of public
            partitions.
        partitions: `PublicPartitions([...])` or `PrivatePartitions()`; None: private ones if
            there are partition columns.
        shards: how many parts the people are cut into on the way; a power of two.
        partition_rows: the most rows that one partition has, if you know; those of the same person
            with the same value count once. It is only held against what one worker can take
            (`mechanisms.planning.worker_limits`, for metrics that need rows or owners).
        batches: release `pyarrow.RecordBatch`es of at most some thousand rows instead of single
            rows, which is faster for many public partitions; not with private ones, whose keys can
            be of any types, nor with public ones of several types in one column.

    Raises:
        TypeError, ValueError: when the pipeline is built, with what to write instead.

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
        self.person, self._second = eligibility.check_person(_OWNER, self.person)
        self.partition = checks.columns(_OWNER, "partition", self.partition)
        self.metrics = check_metrics(_OWNER, self.metrics)
        self.bounds = check_bounds(_OWNER, self.bounds)
        self.partitions = check_partitions(_OWNER, self.partition, self.partitions)
        if self._second is not None:
            self.metrics = eligibility.check_two(_OWNER, self.metrics, self.bounds, self.partitions)
        if type(self.budget) is not Budget:
            raise TypeError(
                f"{_OWNER}: budget must be a Budget, not {checks.shown(self.budget)}. "
                "Write budget=dp.Budget(epsilon=1.0)."
            )
        eligibility.check(self.metrics)
        output_rows.check_names(_OWNER, self.partition, self.metrics)
        output_rows.check_batches(_OWNER, self.batches, self.partitions)
        self._once = guards.Once()
        self._program = self._compile()
        worker_limits.check_rows(
            _OWNER, self.partition_rows, self.metrics, self._second is not None
        )

    def _compile(self) -> Program:
        private = isinstance(self.partitions, PrivatePartitions)
        number = partition_count(self.partitions)
        return compile_program(
            self.metrics,
            self.budget,
            reach_of(_OWNER, self.bounds, self.partitions),
            self.bounds.depth,
            self.partitions.request() if private else None,
            number == 1,
            self._second,
            number,
        )

    def plan(self) -> Plan:
        """Return what would be spent on what, and the expected error; reads no row."""
        free = self.bounds.reach is None and self._second is None
        return describe(self._program, unbounded=free)

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        """Collect, bound, summarise, draw, and put a barrier behind the draw."""
        guards.check_input(_OWNER, pcoll)
        self._once.use(_OWNER)
        layout = Layout(
            self.person,
            self.partition,
            self._program.columns,
            self._program.units,
            public_keys(self.partitions),
            layouts.fresh_key(),
            self._program.items,
            self._second is not None,
            self._program.flags,
            self._program.orders,
            self._program.tiers,
        )
        bounder = Bounder(
            self.bounds, self._program.fields, layout.key, keep_rows=self._program.keep_rows
        )
        buckets = drawing.bucket_count(layout, self._program.keep_rows)
        measures, shared = self._program.measures, self._program.shared_measures
        summarise = summarising.Summarise(layout, bounder, measures, shared, buckets, self.shards)
        draw = barrier.Release(self._program, drawing.BucketPartitions(layout, buckets))
        released = output_rows.OutputRows(self.partition, self.metrics, layout, self.batches)
        return pcoll | "Summarise" >> summarise | "Release" >> draw | "Released" >> released

    def display_data(self) -> dict[str, Any]:
        """Return the public parameters that a monitoring page may show."""
        return {"budget": repr(self.budget), "metrics": ", ".join(m.output for m in self.metrics)}

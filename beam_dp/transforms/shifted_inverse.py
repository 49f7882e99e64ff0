"""ShiftedInverse: a monotone statistic by removal loss, search and barrier."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import apache_beam as beam

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import base, custom_profile, extremes, items, rows, spread, totals
from beam_dp.mechanisms.metrics import options as metric_options
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.plan import Plan
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.partitions import PrivatePartitions, PublicPartitions
from beam_dp.transforms.steps.collect import SHARDS

_OWNER = "ShiftedInverse"
_SEARCHED = (
    *(extremes.Max, extremes.Min, rows.KthLargest, items.MaxFrequency),
    *(items.SumOfSquares, custom_profile.CustomProfile),
)


@dataclasses.dataclass(eq=False)
class ShiftedInverse(beam.PTransform):
    """Release one monotone statistic per partition by the shifted inverse mechanism.

    The removal loss of every partition, a search over it (one small step per partition), a
    barrier. With probability 1 - beta the released y satisfies
    f without its T largest people <= y <= f (f rounded up to the candidates; the mirror for
    `Min`), T being the shift that `plan()` shows; all of it together costs `budget`.

    Output as of `PrivateAggregate` with this one metric. For several statistics use that directly:
    they are computed in one pass.

    Args:
        statistic: `Count()`, `Sum(column)`, `Max(column)`, `Min(column)`, `KthLargest(column, k)`,
            `DistinctCount(column)`, `MaxFrequency(column)`, `SumOfSquares(column)` or a
            `CustomProfile`.
        person: the column that identifies a person, or two (see `PrivateAggregate`).
        budget: what all partitions together may cost.
        partition: the columns whose values name a partition; empty: one partition for all.
        bounds: how much of the data one person may reach.
        partitions: public ones, or how to select private ones.
        candidates: the public outputs; None: those of the statistic, by default a geometric grid
            that is wide enough for anything.
        search: `AboveThreshold`, `ExponentialMechanism`, `NoisyBinarySearch`, `ScaleThenChoose`, or
            "auto" for the smallest proved shift; None: that of the statistic, if it has one, else
            the first.
        beta: how often the guarantee may fail; None: that of the statistic, by default 5%.
        shards: how many parts the people are cut into; a power of two.
        partition_rows: the most rows that one partition has, if you know: see `PrivateAggregate`.

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
    partitions: PublicPartitions | PrivatePartitions | None = None
    candidates: Candidates | None = None
    search: SearchKind | None = None
    beta: float | None = None
    shards: int = SHARDS
    partition_rows: int | None = None

    def __post_init__(self) -> None:
        self._aggregate = PrivateAggregate(
            self.person,
            [self._direct()],
            self.budget,
            self.partition,
            self.bounds,
            self.partitions,
            self.shards,
            self.partition_rows,
        )

    def _direct(self) -> Metric:
        """Return the statistic as a metric that is searched for."""
        checks.require(
            self.search != TWO_PHASE,
            f'{_OWNER}: search must be a search, not "two-phase", which is none. '
            "Write dp.PrivateAggregate(metrics=[...]) for that.",
        )
        search = self.search
        if search is None and getattr(self.statistic, "search", None) == TWO_PHASE:
            search = AboveThreshold
        given = {"search": search, "beta": self.beta, "candidates": self.candidates}
        options: dict[str, Any] = {name: of for name, of in given.items() if of is not None}
        if isinstance(self.statistic, (totals.Count, totals.Sum, items.DistinctCount)):
            because = f"in {_OWNER}, which searches for the output and clips nobody"
            metric_options.refuse(self.statistic, metric_options.CLIP, because, "Leave it out.")
            return dataclasses.replace(self.statistic, one_sided=True, **options)
        if isinstance(self.statistic, _SEARCHED):
            spread.check_removed(_OWNER, self.statistic)
            return dataclasses.replace(self.statistic, **options)
        raise TypeError(
            f"{_OWNER}: statistic must be Count, Sum, DistinctCount, "
            f"{', '.join(kind.__name__ for kind in _SEARCHED)}, not "
            f"{base.shown(self.statistic)}. The number of people moves by 1 per person, "
            "and quantiles have a search of their own: release these by "
            "PrivateAggregate(metrics=[...])."
        )

    def plan(self) -> Plan:
        """Return what would be spent on what, and the guaranteed shift; reads no row."""
        return self._aggregate.plan()

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        """Release the one metric."""
        return rows | "Release" >> self._aggregate

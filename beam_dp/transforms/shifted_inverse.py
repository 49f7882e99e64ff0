"""ShiftedInverse: release a monotone statistic by a search over its removal loss."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import names_of
from beam_dp.mechanisms.metrics.base import Metric, shown
from beam_dp.mechanisms.metrics.profiled import Profiled
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.choose import TWO_PHASE, WALK, SearchKind
from beam_dp.transforms.aggregate import OneMetric
from beam_dp.transforms.partitions import Partitions

_OWNER = "ShiftedInverse"


@dataclasses.dataclass(eq=False)
class ShiftedInverse(OneMetric):
    """Release one monotone statistic per partition by the shifted inverse mechanism.

    The steps are the removal loss of every partition, a search over it (one small step per
    partition), and a barrier. With probability 1 - beta the released y satisfies
    f without its T largest people <= y <= f (f rounded up to the candidates; the mirror for
    `Min`), where T is the shift that `plan()` shows. The whole output costs `budget`.

    Output as of `PrivateAggregate` with this one metric. For several statistics use
    `PrivateAggregate` directly: it computes them in one pass.

    Args:
        statistic: `Count()`, `Sum(column)`, `Max(column)`, `Min(column)`, `KthLargest(column, k)`,
            `DistinctCount(column)`, `MaxFrequency(column)`, `SumOfSquares(column)` or a
            `CustomProfile`.
        person: the column that identifies a person, or several (see `PrivateAggregate`).
        budget: what all partitions together may cost.
        partition: the columns whose values name a partition; empty: one partition for all.
        bounds: how much of the data one person may reach.
        partitions: public ones, or how to select private ones.
        candidates: the public outputs; None: those of the statistic, by default a geometric grid
            that is wide enough for anything.
        search: `AboveThreshold`, `ExponentialMechanism`, `NoisyBinarySearch`, `ScaleThenChoose`, or
            "auto" for the smallest proved shift; None: the search of the statistic, if it has one,
            else `AboveThreshold`.
        beta: how often the guarantee may fail; None: that of the statistic, by default 5%.
        shards: how many parts the people are cut into on the way, a power of two; None: by the size
            of the input and the number of workers (see `steps.shard_number`).
        partition_rows: the most rows that one partition has, if you know: see `PrivateAggregate`.
        columns: all columns that the rows have, if these are dicts: see `PrivateAggregate`.

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
    shards: int | None = None
    partition_rows: int | None = None
    columns: Sequence[str] | None = None

    def _metric(self) -> Metric:
        """Return the statistic as a metric that is released by a search."""
        checks.require(
            self.search not in (TWO_PHASE, WALK),
            _OWNER,
            "search",
            f'be a search over the removal loss, not "{self.search}", which is none',
            "Write dp.PrivateAggregate(metrics=[...]) for that.",
        )
        search = self.search
        if search is None and getattr(self.statistic, "search", None) in (TWO_PHASE, WALK):
            search = AboveThreshold
        fields = {"search": search, "beta": self.beta, "candidates": self.candidates}
        options: dict[str, Any] = {
            name: value for name, value in fields.items() if value is not None
        }
        if isinstance(self.statistic, Profiled):
            return self.statistic.from_below(_OWNER, options)
        names = names_of(lambda kind: issubclass(kind, Profiled))
        raise checks.ParameterTypeError(
            _OWNER,
            "statistic",
            f"be {names}, not {shown(self.statistic)}",
            "The number of people moves by 1 per person, and quantiles have a search of "
            "their own: release these by PrivateAggregate(metrics=[...]).",
        )

"""PrivateRatio: release a share of rows or people per partition."""

import dataclasses
from collections.abc import Sequence

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.ratio import Comparison, Ratio
from beam_dp.transforms.aggregate import OneMetric
from beam_dp.transforms.partitions import Partitions


@dataclasses.dataclass(eq=False)
class PrivateRatio(OneMetric):
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
        bounds: how much of the data one person may reach; `per="row"` needs rows_per_partition.
        partitions: public ones, or how to select private ones.
        equals: the value that counts, or a function of a value that says whether it does.
        per: "row" or "person".
        method: as in `Ratio`.
        neighbours: "add-remove", or "substitution".
        shards: how many parts the people are cut into on the way, a power of two; None: by the size
            of the input and the number of workers (see `steps.shard_number`).
        columns: all columns that the rows have, if these are dicts: see `PrivateAggregate`.

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
    neighbours: str = "add-remove"
    shards: int | None = None
    columns: Sequence[str] | None = None

    def _metric(self) -> Metric:
        """Return the ratio."""
        return Ratio(
            self.column,
            equals=self.equals,
            per=self.per,
            method=self.method,
            neighbours=self.neighbours,
        )

"""PrivateRatio: a share of rows or people per partition."""

import dataclasses
from collections.abc import Sequence

import apache_beam as beam

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics.ratio import Comparison, Ratio
from beam_dp.mechanisms.planning.plan import Plan
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.partitions import PrivatePartitions, PublicPartitions
from beam_dp.transforms.steps.collect import SHARDS


@dataclasses.dataclass(eq=False)
class PrivateRatio(beam.PTransform):
    """Release per partition which share of the rows, or people, has a given value.

    a / b with b the rows that have a value in `column` and a those where it equals `equals`: each
    person adds to b, or to a and to b. The output is in [0, 1]; all of it together costs `budget`.
    Output as of `PrivateAggregate` with `Ratio(column)`; with other metrics use that directly.

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
        shards: how many parts the people are cut into; a power of two.

    Raises:
        TypeError, ValueError: when the pipeline is built.

    Source: the docstring of `mechanisms.ratio`.
    """

    column: str
    person: str
    budget: Budget
    partition: Sequence[str] = ()
    bounds: ContributionBounds | None = None
    partitions: PublicPartitions | PrivatePartitions | None = None
    equals: Comparison = 1
    per: str = "row"
    method: str = "kulesza_suresh_wang"
    neighbours: str = "add-remove"
    shards: int = SHARDS

    def __post_init__(self) -> None:
        options = {"equals": self.equals, "per": self.per, "method": self.method}
        metric = Ratio(self.column, neighbours=self.neighbours, **options)
        self._aggregate = PrivateAggregate(
            self.person,
            [metric],
            self.budget,
            self.partition,
            self.bounds,
            self.partitions,
            self.shards,
        )

    def plan(self) -> Plan:
        """Return what would be spent on what; reads no row."""
        return self._aggregate.plan()

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        """Release the one metric."""
        return rows | "Release" >> self._aggregate

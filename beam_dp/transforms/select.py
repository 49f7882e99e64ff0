"""SelectPartitions: release the keys of partitions, and nothing else about them."""

import dataclasses
from collections.abc import Sequence

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.program import Program, compile_program
from beam_dp.transforms.aggregate import PrivateTransform
from beam_dp.transforms.partitions import PrivatePartitions, reach_of
from beam_dp.transforms.steps import output_rows

_OWNER = "SelectPartitions"


@dataclasses.dataclass(eq=False)
class SelectPartitions(PrivateTransform):
    """Release the keys of partitions that have enough people.

    The set of keys is (epsilon, delta)-DP as `budget` says. A partition of at least
    `pre_threshold` people is kept with the largest probability that this allows beyond that number.

    One `beam.Row` with the partition columns per kept partition.

    Args:
        person: the column that identifies a person.
        partition: the columns whose values name a partition.
        budget: with a delta above 0.
        bounds: must limit the partitions of one person.
        pre_threshold: never name a partition with fewer people than this.
        shards: how many parts the people are cut into on the way, a power of two; None: by the size
            of the input and the number of workers (see `steps.shard_number`).
        columns: all columns that the rows have, if these are dicts: see `PrivateAggregate`.

    Raises:
        TypeError, ValueError: when the pipeline is built.

    Source: Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection"
    (2020), Theorem 1.
    """

    person: str
    partition: Sequence[str]
    budget: Budget
    bounds: ContributionBounds
    pre_threshold: int = 1
    shards: int | None = None
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        checks.column(_OWNER, "person", self.person)
        self.partition = self._partition = checks.columns(_OWNER, "partition", self.partition)
        checks.require(bool(self.partition), _OWNER, "partition", "name a column, not none")
        output_rows.check_names(_OWNER, self._partition, ())
        if not isinstance(self.bounds, ContributionBounds) or type(self.budget) is not Budget:
            raise checks.ParameterTypeError(
                _OWNER,
                "bounds",
                "be ContributionBounds and budget a Budget",
                "Write bounds=dp.ContributionBounds(partitions=3), budget=dp.Budget(1.0, 1e-6).",
            )
        self._owner, self._bounds = self.person, self.bounds
        self.partitions, self.metrics, self.batches = (
            PrivatePartitions(self.pre_threshold),
            (),
            False,
        )
        self._ready()

    def _compile(self, budget: Budget) -> Program:
        reach = reach_of(_OWNER, self.bounds, self.partitions)
        selection = PrivatePartitions(self.pre_threshold).request()
        # Also a trial without noise names the partitions that are likely to be with this budget.
        return compile_program((), self.budget, reach, selection=selection)

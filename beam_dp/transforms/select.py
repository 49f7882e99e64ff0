"""SelectPartitions: release the keys of partitions, and nothing else about them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.plan import Record
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.transforms import known_columns, release_record
from beam_dp.transforms.columns import layout as layouts
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.draws.draws_options import draws_of
from beam_dp.transforms.guarding import trial, unusual
from beam_dp.transforms.inputs import shard_number
from beam_dp.transforms.partitions import PrivatePartitions, reach_of
from beam_dp.transforms.steps import barrier, guards, output_rows
from beam_dp.transforms.steps import draw as drawing
from beam_dp.transforms.steps import summarise as summarising

_OWNER = "SelectPartitions"


@dataclasses.dataclass(eq=False)
class SelectPartitions(beam.PTransform[beam.PCollection[Any], beam.PCollection[beam.Row]]):
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
            of the input and the number of workers (see `inputs.shard_number`).
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
        private = PrivatePartitions(self.pre_threshold)
        reach = reach_of(_OWNER, self.bounds, private)
        self._program = compile_program((), self.budget, reach, selection=private.request())
        known_columns.declared(_OWNER, self.columns, (self.person, *self._partition))
        shard_number.check(_OWNER, self.shards)
        self._once = guards.Once()
        self._drawn: barrier.Drawn | None = None

    def pieces(self) -> tuple[tuple[Budget, int], ...]:
        """Return what the releases of the output cost, each with how often: for a `Ledger`."""
        return self._program.pieces

    def expand(self, pcoll: beam.PCollection[Any]) -> beam.PCollection[beam.Row]:
        """Count the people of each partition, draw, and put a barrier behind the draw."""
        guards.check_input(_OWNER, pcoll)
        unusual.warn(_OWNER, self.budget)
        known_columns.check(_OWNER, pcoll, (self.person, *self._partition), self.columns)
        draws = draws_of(_OWNER, pcoll.pipeline)
        self._once.use(_OWNER)
        layout = Layout(self.person, self._partition, (), None, layouts.fresh_key())
        bounder, buckets = Bounder(self.bounds, (), layout.key), drawing.bucket_count(layout)
        measures = self._program.measures
        summarise = summarising.Summarise(layout, bounder, measures, (), buckets, self.shards)
        partitions = drawing.BucketPartitions(layout, buckets)
        noise = trial.noise_of(pcoll.pipeline)
        draw = barrier.DrawOnce(self._program, partitions, noise, draws=draws)
        released = output_rows.OutputRows(self.partition, (), layout)
        rows = (
            pcoll | "Summarise" >> summarise | "ReleaseNumbers" >> draw | "NameColumns" >> released
        )
        self._drawn = draw.drawn
        return rows

    def record(self, job: Mapping[str, Any] | None = None) -> beam.PCollection[Record]:
        """Return a collection of one dict, what was spent: see `PrivateAggregate.record`."""
        return release_record.of(self, self._drawn, self._program, job)

    def display_data(self) -> dict[str, Any]:
        """Return the public parameters that a monitoring page may show."""
        return release_record.shown(self)

"""Rows in, one summary per partition out; a bound on partitions and centres are chosen on the way.

    rows
      CollectColumns     as for a given bound, which is here the last step of the ladder
      GroupByShard
      ReduceShards       whole people, reduced; their votes in what is chosen first
        ChooseFirst      of the votes: one noisy histogram, and the bound that it shows; the centres
        StoreFirst       what was drawn is never drawn again
      SettleBounds       the lines of the bound, which is a side input, as for a given bound
      GroupByBucket

It is no composite step of its own, for it has two outputs of different types. What is released of
it is the choice alone (`Chosen`). Which pairs of a person stay is decided by the keyed hash
of the run, as always: those that a given bound of the same size would keep.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.first_choices import Chosen
from beam_dp.mechanisms.planning.reach_programs import Programs
from beam_dp.mechanisms.summaries import wire
from beam_dp.transforms.building import quick_steps
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.draws.draws_folder import Barriers, Draws
from beam_dp.transforms.public.collected_partitions import KeysAsSide
from beam_dp.transforms.reach.reduce_shards import VOTES, ReduceShards
from beam_dp.transforms.steps import settle, summarise
from beam_dp.transforms.steps.barrier import stored
from beam_dp.transforms.steps.collect import collecting

Summarised = tuple[beam.PCollection[tuple[int, Iterable[bytes]]], beam.PCollection[Chosen]]
"""Summaries by bucket, and what was chosen first."""


class ChooseFirst(quick_steps.QuickStep):
    """Draw the bound and the centres from the votes of everybody.

    Args:
        programs: the search, and the programs for each bound.
        noise: the randomness.
        draws: what keeps the draws of the run.
    """

    def __init__(self, programs: Programs, noise: Noise, draws: Draws) -> None:
        self._programs, self._noise, self._draws = programs, noise, draws

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, Chosen]]:
        """Take the votes of all bundles."""
        parts = [wire.unpack_summary(blob) for blob in filter(None, element[1])]
        votes = self._programs.votes.merged(parts)
        yield 0, self._draws.once("first", lambda: self._programs.choose(votes, self._noise))


class SettleReached(settle.SummariseLines):
    """Settle reduced lines of whole people under the bound that was chosen, and summarise them.

    Args:
        programs: the program for each bound.
        bounder: the bounding of the run, up to the last step of the ladder.
        buckets: how many parts the partitions are cut into.
    """

    def __init__(self, programs: Programs, bounder: Bounder, buckets: int) -> None:
        model = programs.model
        super().__init__(bounder, model.measures, model.shared_measures, buckets)
        self._programs, self._widest = programs, bounder
        self._chosen: Chosen | None = None

    def process(
        self, element: tuple[int, bytes], chosen: Chosen | None = None
    ) -> Iterator[settle.Packed]:
        """Take the lines of some people; those before them are summarised meanwhile."""
        if chosen is not None and chosen is not self._chosen:
            self._turn_to(chosen)
        lines = wire.unpack_table(element[1])
        yield from self.summarised(functools.partial(self._bounder.settle_reduced, lines))

    def _turn_to(self, chosen: Chosen) -> None:
        """Take the measures and the bounds of the choice, which is the same for all elements."""
        program = self._programs.at(chosen)
        self._measures, self._shared = program.measures, program.shared_measures
        if chosen.reach is not None:
            bounds = dataclasses.replace(self._widest.bounds, partitions=chosen.reach.reach)
            self._bounder = dataclasses.replace(self._widest, bounds=bounds)
        self._chosen = chosen


@dataclasses.dataclass(frozen=True)
class SummariseReached:
    """The steps from rows to (bucket, packed summaries), and the choice of the bound on the way.

    Attributes:
        layout: which columns hold what.
        bounder: the bounding of the run, up to the last step of the ladder.
        programs: the search, and the program for each bound.
        buckets: how many parts the partitions are cut into.
        shards: how many parts the people are cut into; None: see `inputs.shard_number`.
        noise: the randomness; only tests pass another.
        draws: what keeps the draws of the run.
        listed: the side input of the public keys, if the pipeline collects them.
    """

    layout: Layout
    bounder: Bounder
    programs: Programs
    buckets: int = 1
    shards: int | None = None
    noise: Noise = dataclasses.field(default_factory=Noise)
    draws: Draws = dataclasses.field(default_factory=Barriers)
    listed: KeysAsSide = dataclasses.field(default_factory=KeysAsSide)

    def apply(self, rows: beam.PCollection[Any]) -> Summarised:
        """Apply the steps of the module's docstring; neither output is private."""
        collect = collecting(rows, self.layout, self.bounder, self.shards, self.listed)
        reduce = beam.ParDo(ReduceShards(self.bounder, self.programs.votes))
        reduced = (
            rows
            | "CollectColumns" >> collect
            | "GroupByShard" >> beam.GroupByKey()
            | "ReduceShards"
            >> reduce.with_output_types(tuple[int, bytes]).with_outputs(VOTES, main="lines")
        )
        chosen = self._chosen(reduced[VOTES])
        model = self.programs.model
        settle_them = SettleReached(self.programs, self.bounder, self.buckets)
        settling = beam.ParDo(settle_them, beam.pvalue.AsSingleton(chosen))
        asked = model.measures, self.buckets, self.bounder.key
        settled = summarise.summaries_of(reduced.lines, settling, *asked)
        return summarise.by_bucket(settled, self.buckets, bool(model.shared_measures)), chosen

    def _chosen(self, votes: beam.PCollection[tuple[int, bytes]]) -> beam.PCollection[Chosen]:
        """Return the choice, behind a barrier; there is one even where there are no rows."""
        nobody = quick_steps.mapped(lambda _: (0, b"")).with_output_types(tuple[int, bytes])
        start = votes.pipeline | "StartVotes" >> beam.Impulse() | "AddNoVotes" >> nobody
        choose = beam.ParDo(ChooseFirst(self.programs, self.noise, self.draws))
        return (
            (votes, start)
            | "FlattenVotes" >> beam.Flatten()
            | "GroupVotes" >> beam.GroupByKey()
            | "ChooseFirst" >> choose.with_output_types(tuple[int, Chosen])
            | "StoreFirst" >> beam.GroupByKey()
            | "TakeStoredFirst" >> quick_steps.mapped(stored)
        )

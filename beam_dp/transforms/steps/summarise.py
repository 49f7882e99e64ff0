"""Rows in, one summary per partition out: collect, shuffle, bound, summarise, shuffle.

    rows
      CollectColumns     per bundle: columns, merged per person and partition, hopeless ones dropped
      GroupByShard       bytes, by keyed hash of the person: all lines of a person meet here
      SettleBounds       the final bounds; one line per person and partition becomes a summary
                         (for a user's own function, blocks of people become votes: `block_votes`)
      GroupByBucket      bytes, by partition
                                                    # (bucket, summaries)

Where a bound on partitions or centres are chosen first, columns are collected as for a given bound,
which is here the last step of the ladder, and between the shards and their bounds stand these:

      ReduceShards       whole people, reduced; their votes in what is chosen first
        ChooseFirst      of the votes: one noisy histogram, and the bound that it shows; the centres
        StoreFirst       what was drawn is never drawn again
      SettleBounds       the lines of the bound, which is a side input, as for a given bound

That is no composite step of its own, for it has two outputs of different types. What is released of
it is the choice alone (`Chosen`). Which pairs of a person stay is decided by the keyed hash of the
run, as always: those that a given bound of the same size would keep.

The summaries are not private. There is no counter, no log and no side output on the way.
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.first_choices import Chosen, FirstVotes
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.summaries import wire
from beam_dp.mechanisms.summaries.histograms import Measure, Summary
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.steps import block_votes, quick_steps, runtime, settle
from beam_dp.transforms.steps.barrier import stored
from beam_dp.transforms.steps.collect import collecting
from beam_dp.transforms.steps.kept_draws import Draws
from beam_dp.transforms.steps.settle import SHARED, Settle

VOTES: Literal["votes"] = "votes"
"""The tag of the votes."""
_PIECE_LINES = 1 << 18
Reduced: TypeAlias = tuple[int, bytes] | TaggedOutput[Literal["votes"], tuple[int, bytes]]
"""The output of a shard: (shard, lines of whole people); or, tagged, (0, votes)."""


@dataclasses.dataclass(eq=False)
class Summarise(
    beam.PTransform[beam.PCollection[Any], beam.PCollection[tuple[int, Iterable[bytes]]]]
):
    """Turn rows into (bucket, packed summaries), bounded per person. Not private by itself.

    Attributes:
        layout: which columns hold what.
        bounder: the bounding of the run.
        measures: what is summarised per partition.
        shared: what is summarised over all partitions.
        buckets: how many parts the partitions are cut into.
        shards: how many parts the people are cut into; None: see `steps.shard_number`.
    """

    layout: Layout
    bounder: Bounder
    measures: tuple[Measure | Relation, ...]
    shared: tuple[Measure, ...] = ()
    buckets: int = 1
    shards: int | None = None

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[tuple[int, Iterable[bytes]]]:
        """Apply the steps of the module's docstring."""
        settle = Settle(self.bounder, self.measures, self.shared, self.buckets)
        collect = collecting(rows, self.layout, self.bounder, self.shards)
        shards = rows | "CollectColumns" >> collect | "GroupByShard" >> beam.GroupByKey()
        asked = self.measures, self.buckets, self.bounder.key
        settled = summaries_of(shards, beam.ParDo(settle), *asked)
        return by_bucket(settled, self.buckets, bool(self.shared))


def summaries_of(
    shards: beam.PCollection[Any],
    settling: beam.ParDo,
    measures: block_votes.Measures,
    buckets: int,
    key: bytes,
) -> tuple[beam.PCollection[tuple[int, bytes]], ...]:
    """Return the summaries, and the votes where users' functions of blocks are released.

    Args:
        shards: the lines of people.
        settling: the step that settles and summarises them.
        measures: what is summarised per partition.
        buckets: how many parts the partitions are cut into.
        key: the run's key.
    """
    typed = settling.with_output_types(tuple[int, bytes])
    if not block_votes.wanted(measures):
        return (shards | "SettleBounds" >> typed,)
    outputs = shards | "SettleBounds" >> typed.with_outputs(block_votes.TAG, main="summaries")
    lines = outputs[block_votes.TAG]
    return outputs.summaries, block_votes.asked(lines, measures, buckets, key)


def by_bucket(
    summaries: tuple[beam.PCollection[tuple[int, bytes]], ...], buckets: int, shared: bool
) -> beam.PCollection[tuple[int, Iterable[bytes]]]:
    """Group summaries by bucket; every bucket occurs, whatever the data.

    So public partitions appear when they are empty. (Not by `beam.Create`, which brings another
    shuffle.)

    Args:
        summaries: collections of (bucket, summary).
        buckets: how many parts the partitions are cut into.
        shared: whether something is summarised over all partitions.
    """
    numbers = [*range(buckets), *([SHARED] if shared else [])]
    every = quick_steps.flat_mapped(lambda _: [(number, b"") for number in numbers])
    every = every.with_output_types(tuple[int, bytes])
    empty = summaries[0].pipeline | "StartBuckets" >> beam.Impulse() | "AddEmptyBuckets" >> every
    return (
        (*summaries, empty)
        | "FlattenBuckets" >> beam.Flatten()
        | "GroupByBucket" >> beam.GroupByKey()
    )


def pieces(table: Table, lines: int) -> Iterator[Table]:
    """Yield a reduced table in pieces of about so many lines, none of which cuts a person."""
    starts = np.flatnonzero(changes(table.person))
    # The last person who begins before each multiple of `lines`.
    edges = starts[np.searchsorted(starts, np.arange(lines, len(table), lines)) - 1]
    bounds = np.unique(np.concatenate([[0], edges, [len(table)]]))
    for start, end in itertools.pairwise(bounds.tolist()):
        yield table.take(slice(start, end))


class ReduceShards(quick_steps.QuickStep):
    """Turn the lines of a shard into lines of whole people, and count their votes.

    The votes are exact and private data, as the lines are.

    Args:
        bounder: the bounding of the run, up to the last step of the ladder.
        votes: what is counted.
    """

    def __init__(self, bounder: Bounder, votes: FirstVotes) -> None:
        self._bounder, self._votes = bounder, votes

    def start_bundle(self) -> None:
        """Begin a bundle with nobody: a bundle that failed leaves nothing behind."""
        self._counted: list[Summary] = []

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Reduced]:
        """Take all lines of one shard: all those of each of its people."""
        lines = settle.gather(element[1], self._bounder)
        if lines is None:
            return
        table = self._bounder.reduce(lines)
        self._counted.append(self._votes.of(table, self._bounder))
        for piece in pieces(table, _PIECE_LINES):
            yield element[0], wire.pack(piece)

    def finish_bundle(self) -> Iterator[TaggedOutput[Literal["votes"], WindowedValue]]:
        """Yield the votes of the bundle."""
        if self._counted:
            counted = 0, wire.pack(self._votes.merged(self._counted))
            yield TaggedOutput(VOTES, GlobalWindows.windowed_value(counted))
        runtime.give_back()


class ChooseFirst(quick_steps.QuickStep):
    """Draw the bound and the centres from the votes of everybody.

    Args:
        program: the run's program.
        noise: the randomness.
        draws: what keeps the draws of the run.
    """

    def __init__(self, program: Program, noise: Noise, draws: Draws) -> None:
        self._program, self._noise, self._draws = program, noise, draws

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, Chosen]]:
        """Take the votes of all bundles."""
        parts = [wire.unpack(blob) for blob in filter(None, element[1])]
        votes = self._program.votes.merged(parts)
        yield 0, self._draws.once("first", lambda: self._program.choose(votes, self._noise))


class SettleReached(settle.SummariseLines):
    """Settle reduced lines of whole people under the bound that was chosen, and summarise them.

    Args:
        program: the run's program.
        bounder: the bounding of the run, up to the last step of the ladder.
        buckets: how many parts the partitions are cut into.
    """

    def __init__(self, program: Program, bounder: Bounder, buckets: int) -> None:
        super().__init__(bounder, program.measures, program.shared_measures, buckets)
        self._program, self._widest = program, bounder
        self._chosen: Chosen | None = None

    def process(
        self, element: tuple[int, bytes], chosen: Chosen | None = None
    ) -> Iterator[settle.Packed]:
        """Take the lines of some people; those before them are summarised meanwhile."""
        if chosen is not None and chosen is not self._chosen:
            self._turn_to(chosen)
        lines = wire.unpack(element[1])
        yield from self.summarised(functools.partial(self._bounder.settle_reduced, lines))

    def _turn_to(self, chosen: Chosen) -> None:
        """Take the measures and the bounds of the choice, which is the same for all elements."""
        program = self._program.at(chosen)
        self._measures, self._shared = program.measures, program.shared_measures
        if chosen.reach is not None:
            bounds = dataclasses.replace(self._widest.bounds, partitions=chosen.reach.reach)
            self._bounder = dataclasses.replace(self._widest, bounds=bounds)
        self._chosen = chosen


def summarise_and_choose(
    rows: beam.PCollection[Any],
    layout: Layout,
    bounder: Bounder,
    program: Program,
    buckets: int,
    shards: int | None,
    *,
    noise: Noise,
    draws: Draws,
) -> tuple[beam.PCollection[tuple[int, Iterable[bytes]]], beam.PCollection[Chosen]]:
    """Apply the steps of the module's docstring, with a choice among them.

    Args:
        rows: the rows.
        layout: which columns hold what.
        bounder: the bounding of the run, up to the last step of the ladder.
        program: the run's program.
        buckets: how many parts the partitions are cut into.
        shards: how many parts the people are cut into; None: see `steps.shard_number`.
        noise: the randomness.
        draws: what keeps the draws of the run.

    Returns:
        (bucket, packed summaries), which are private data; and what was chosen, which is not.
    """
    collect = collecting(rows, layout, bounder, shards)
    reduce = beam.ParDo(ReduceShards(bounder, program.votes))
    reduced = (
        rows
        | "CollectColumns" >> collect
        | "GroupByShard" >> beam.GroupByKey()
        | "ReduceShards"
        >> reduce.with_output_types(tuple[int, bytes]).with_outputs(VOTES, main="lines")
    )
    chosen = _chosen(reduced[VOTES], ChooseFirst(program, noise, draws))
    settle_them = SettleReached(program, bounder, buckets)
    settling = beam.ParDo(settle_them, beam.pvalue.AsSingleton(chosen))
    asked = program.measures, buckets, bounder.key
    settled = summaries_of(reduced.lines, settling, *asked)
    return by_bucket(settled, buckets, bool(program.shared_measures)), chosen


def _chosen(
    votes: beam.PCollection[tuple[int, bytes]], choose: ChooseFirst
) -> beam.PCollection[Chosen]:
    """Return the choice, behind a barrier; there is one even where there are no rows."""
    nobody = quick_steps.mapped(lambda _: (0, b"")).with_output_types(tuple[int, bytes])
    start = votes.pipeline | "StartVotes" >> beam.Impulse() | "AddNoVotes" >> nobody
    return (
        (votes, start)
        | "FlattenVotes" >> beam.Flatten()
        | "GroupVotes" >> beam.GroupByKey()
        | "ChooseFirst" >> beam.ParDo(choose).with_output_types(tuple[int, Chosen])
        | "StoreFirst" >> beam.GroupByKey()
        | "TakeStoredFirst" >> quick_steps.mapped(stored)
    )

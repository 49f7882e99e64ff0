"""Rows in, one summary per partition out: collect, shuffle, bound, summarise, shuffle.

    rows
      Collect            per bundle: columns, merged per person and partition, hopeless ones dropped
      GroupByShard       bytes, by keyed hash of the person: all lines of a person meet here
      Settle             the final bounds; one line per person and partition becomes a summary
                         (for a user's own function, blocks of people become votes: `block_votes`)
      GroupByBucket      bytes, by partition
                                                    # (bucket, summaries)

The output is not private. There is no counter, no log and no side output on the way.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

import apache_beam as beam

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.steps import block_votes
from beam_dp.transforms.steps.collect import SHARDS, collector
from beam_dp.transforms.steps.settle import SHARED, Settle


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
        shards: how many parts the people are cut into.
    """

    layout: Layout
    bounder: Bounder
    measures: tuple[Measure | Relation, ...]
    shared: tuple[Measure, ...] = ()
    buckets: int = 1
    shards: int = SHARDS

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[tuple[int, Iterable[bytes]]]:
        """Apply the steps of the module's docstring."""
        settle = Settle(self.bounder, self.measures, self.shared, self.buckets)
        numbers = [*range(self.buckets), *([SHARED] if self.shared else [])]
        collect = collector(rows, self.layout, self.bounder, self.shards)
        shards = (
            rows
            | "Collect" >> beam.ParDo(collect).with_output_types(tuple[int, bytes])
            | "GroupByShard" >> beam.GroupByKey()
        )
        summaries = self._settled(shards, settle)
        # Every bucket occurs, whatever the data: public partitions appear when empty.
        # (Not by `beam.Create`, which brings another shuffle.)
        every = beam.FlatMap(lambda _: [(number, b"") for number in numbers])
        every = every.with_output_types(tuple[int, bytes])
        buckets = rows.pipeline | "Start" >> beam.Impulse() | "Buckets" >> every
        return (
            (*summaries, buckets)
            | "AllBuckets" >> beam.Flatten()
            | "GroupByBucket" >> beam.GroupByKey()
        )

    def _settled(
        self, shards: beam.PCollection[tuple[int, Iterable[bytes]]], settle: Settle
    ) -> tuple[beam.PCollection[tuple[int, bytes]], ...]:
        """Return the summaries, and the votes where users' functions of blocks are released."""
        settling = beam.ParDo(settle).with_output_types(tuple[int, bytes])
        if not block_votes.wanted(self.measures):
            return (shards | "Settle" >> settling,)
        outputs = shards | "Settle" >> settling.with_outputs(block_votes.TAG, main="summaries")
        votes = block_votes.Votes(self.measures, self.buckets, self.bounder.key)
        return outputs.summaries, outputs[block_votes.TAG] | "AskBlocks" >> votes

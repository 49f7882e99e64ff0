"""Rows in, one summary per partition out: collect, shuffle, bound, summarise, shuffle.

    rows
      CollectColumns     per bundle: columns, merged per person and partition, hopeless ones dropped
      GroupByShard       bytes, by keyed hash of the person: all lines of a person meet here
      SettleBounds       the final bounds; one line per person and partition becomes a summary
                         (for a user's own function, blocks of people become votes: `block_votes`)
      GroupByBucket      bytes, by partition
                                                    # (bucket, summaries)

The output is not private. There is no counter, no log and no side output on the way.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar

import apache_beam as beam

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.public_partitions import KeysAsSide
from beam_dp.transforms.steps import block_votes, quick_steps
from beam_dp.transforms.steps.collect import collecting
from beam_dp.transforms.steps.settle import SHARED, Packed, Settle

Lines = TypeVar("Lines")


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
        listed: the side input of the public keys, if the pipeline collects them.
    """

    layout: Layout
    bounder: Bounder
    measures: tuple[Measure | Relation, ...]
    shared: tuple[Measure, ...] = ()
    buckets: int = 1
    shards: int | None = None
    listed: KeysAsSide = dataclasses.field(default_factory=KeysAsSide)

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[tuple[int, Iterable[bytes]]]:
        """Apply the steps of the module's docstring."""
        settle = Settle(self.bounder, self.measures, self.shared, self.buckets)
        collect = collecting(rows, self.layout, self.bounder, self.shards, self.listed)
        shards = rows | "CollectColumns" >> collect | "GroupByShard" >> beam.GroupByKey()
        asked = self.measures, self.buckets, self.bounder.key
        settled = summaries_of(shards, beam.ParDo(settle), *asked)
        return by_bucket(settled, self.buckets, bool(self.shared))


def summaries_of(
    shards: beam.PCollection[Lines],
    settling: "beam.ParDo[Lines, Packed]",
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

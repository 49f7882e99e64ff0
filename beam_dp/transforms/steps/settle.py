"""The second step: settle the bounds, and summarise one line per person and partition."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.bounding.accumulator import HELD_LINES, InOrder
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.summaries import histograms, owner_lines, wire
from beam_dp.mechanisms.summaries.histograms import Measure, Summary
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation
from beam_dp.transforms.steps import block_votes, quick_steps, runtime
from beam_dp.transforms.steps.block_votes import bucket_of

SHARED = -1
"""The bucket of the summary over all partitions."""
_SUMMARY_LINES = 1 << 20
Packed: TypeAlias = tuple[int, bytes] | TaggedOutput[Literal["blocks"], tuple[int, bytes]]
"""The output: (bucket, summary), or, tagged `block_votes.TAG`, (group of blocks, lines)."""
Summarised = tuple[Summary, Summary | None, Owned | None]
Tasks = InOrder[Summarised]


def gather(packed: Iterable[bytes], bounder: Bounder) -> Table | None:
    """Return the contributions of a shard, to be settled; little more than these is ever held."""
    held: list[Table] = []
    limit = HELD_LINES
    for blob in packed:
        held.append(wire.unpack(blob))
        if sum(map(len, held)) >= limit:
            held = [bounder.reduce(table.concatenate(held))]
            limit = max(HELD_LINES, 2 * len(held[0]))
    return table.concatenate(held) if held else None


class SummariseLines(quick_steps.QuickStep):
    """Summarise the settled lines of people by partition; the base of the steps that settle them.

    Args:
        bounder: the bounding of the run.
        measures: what is summarised per partition.
        shared: what is summarised over all partitions.
        buckets: how many parts the partitions are cut into.
    """

    def __init__(
        self,
        bounder: Bounder,
        measures: Sequence[Measure | Relation],
        shared: Sequence[Measure],
        buckets: int,
    ) -> None:
        self._bounder, self._buckets = bounder, buckets
        self._measures, self._shared = tuple(measures), tuple(shared)
        self._relations = any(isinstance(measure, Relation) for measure in measures)

    def setup(self) -> None:
        """Begin without threads."""
        self._tasks: Tasks = InOrder(None, 0)

    def start_bundle(self) -> None:
        """Begin a bundle with no summaries."""
        self._partitions: list[Summary] = []
        self._people: list[Summary] = []
        self._owned: list[Owned] = []
        self._tasks = InOrder(runtime.pool(), runtime.threads() - 1)

    def summarised(self, settled: Callable[[], Table]) -> Iterator[Packed]:
        """Take what returns settled contributions of whole people; yield what is full."""
        yield from self._take(self._tasks.put(functools.partial(self._summarised, settled)))

    def finish_bundle(
        self,
    ) -> Iterator[WindowedValue | TaggedOutput[Literal["blocks"], WindowedValue]]:
        """Yield the summaries that are still held."""
        for element in itertools.chain(self._take(self._tasks.drain()), self._flush()):
            if isinstance(element, TaggedOutput):
                yield TaggedOutput(element.tag, GlobalWindows.windowed_value(element.value))
            else:
                yield GlobalWindows.windowed_value(element)
        self._tasks = InOrder(None, 0)  # runners keep the step: free its threads
        runtime.give_back()

    def teardown(self) -> None:
        """Let go of threads and lines; runners do this at the end and after a failure."""
        self._tasks.forget()

    def _summarised(self, settled: Callable[[], Table]) -> Summarised:
        table, lines = settled(), None
        if self._relations:
            lines = owner_lines.collect(table, self._measures, self._bounder.key)
            table = self._bounder.aggregate(table)
        people = histograms.summarise_people(table, self._shared) if self._shared else None
        return histograms.summarise(table, self._measures), people, lines

    def _take(self, summarised: Iterable[Summarised]) -> Iterator[Packed]:
        for summary, people, lines in summarised:
            self._partitions.append(summary)
            self._people += [people] if people is not None else []
            self._owned += [lines] if lines is not None else []
        if sum(map(len, self._partitions)) + sum(map(len, self._owned)) >= _SUMMARY_LINES:
            yield from self._flush()

    def _flush(self) -> Iterator[Packed]:
        partitions, self._partitions = self._partitions, []
        people, self._people = self._people, []
        lines, self._owned = self._owned, []
        if partitions:
            summary = merge(partitions, self._measures)
            for bucket, index in self._split(summary.partition):
                yield bucket, wire.pack(summary.take(index))
        if lines:
            merged = owner_lines.merge(lines)
            kept, packed = block_votes.split(merged, self._measures, self._bounder.key)
            for bucket, index in self._split(kept.partition):
                yield bucket, wire.pack(kept.take(index))
            yield from (TaggedOutput(block_votes.TAG, element) for element in packed)
        if people:
            yield SHARED, wire.pack(merge(people, self._shared))

    def _split(self, partition: np.ndarray) -> Iterator[tuple[int, np.ndarray | slice]]:
        """Yield each bucket with the indexes of its lines."""
        if self._buckets == 1:
            yield 0, slice(None)
            return
        buckets = bucket_of(partition, self._buckets, self._bounder.key)
        for bucket in np.unique(buckets).tolist():
            yield bucket, np.flatnonzero(buckets == bucket)


class Settle(SummariseLines):
    """Settle the bounds of the people of a shard, and summarise their lines by partition."""

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Packed]:
        """Take all contributions of one shard; shards before it are summarised meanwhile."""
        lines = gather(element[1], self._bounder)
        if lines is not None:
            yield from self.summarised(functools.partial(self._bounder.settle, lines))


def merge(summaries: Sequence[Summary], measures: Sequence[Measure | Relation]) -> Summary:
    """Return the reduced union of summaries."""
    return histograms.reduce(table.concatenate(summaries), measures)


def open_bucket(
    packed: Iterable[bytes], measures: Sequence[Measure | Relation]
) -> tuple[Summary, Owned]:
    """Return the merged summary and lines of one bucket; they may be empty.

    Little more than the result is held at a time.
    """
    limit = 4 * _SUMMARY_LINES
    summaries: list[Summary] = []
    lines: list[Owned] = []
    for blob in filter(None, packed):
        part = wire.unpack(blob)
        if isinstance(part, Owned):
            lines.append(part)
            if sum(map(len, lines)) >= limit:
                lines = [owner_lines.merge(lines)]
                limit = max(4 * _SUMMARY_LINES, 2 * len(lines[0]))
        else:
            summaries.append(part)
    return merge(summaries or [_nothing()], measures), owner_lines.merge(lines)


def _nothing() -> Summary:
    empty = np.empty(0, np.int64)
    return Summary(np.empty((1, 0), np.uint64), empty, empty, empty, empty)

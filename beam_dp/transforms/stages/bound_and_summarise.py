"""Rows in, one summary per partition out: collect, shuffle, bound, summarise, shuffle.

    rows
      CollectColumns     per bundle: columns, merged per person and partition, hopeless ones dropped
      GroupByShard       bytes, by keyed hash of the person: all lines of a person meet here
      SettleBounds       the final bounds; one line per person and partition becomes a summary
      GroupByBucket      bytes, by partition
                                                    # (bucket, summaries)

Where a bound on partitions, or centres, are chosen first, columns are collected as for a given
bound, the last step of the ladder. These steps stand between GroupByShard and SettleBounds:

      ReduceShards       whole people, reduced; their votes in what is chosen first
        ChooseFirst      of the votes: one noisy histogram, and the bound that it shows; the centres
        StoreFirst       what was drawn is never drawn again
      SettleBounds       the lines of the bound, which is a side input, as for a given bound

Only the choice (`Chosen`) is released of that. As always, the keyed hash of the run decides which
pairs of a person stay: those that a given bound of the same size would keep.

The summaries are not private. There is no counter, no log and no side output on the way.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.bounding.accumulator import HELD_LINES, Accumulator, InOrder
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.numerics import hashing
from beam_dp.mechanisms.planning.first_choices import Chosen, FirstVotes
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.summaries import histograms, owner_lines, wire
from beam_dp.mechanisms.summaries.histograms import Measure, Summary
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import layout as layouts
from beam_dp.transforms.columns import row_fields
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.stages import fresh_functions, quick_steps, shard_number, threads_and_memory

SHARED = -1
"""The bucket of the summary over all partitions."""
VOTES: Literal["votes"] = "votes"
"""The tag of the votes."""
_BLOB_LINES, _PIECE_LINES, _SUMMARY_LINES = 1 << 15, 1 << 18, 1 << 20
_NOTHING: Iterator[tuple[int, bytes]] = iter(())
_BYTES = tuple[int, bytes]
Summarised = tuple[Summary, Summary | None, Owned | None]
Tasks = InOrder[Summarised]
Reduced: TypeAlias = tuple[int, bytes] | TaggedOutput[Literal["votes"], bytes]
"""The output of a shard: (shard, lines of whole people); or, tagged, votes."""


@dataclasses.dataclass(eq=False)
class Summarise(
    beam.PTransform[beam.PCollection[Any], beam.PCollection[tuple[int, Iterable[bytes]]]]
):
    """Turn rows into (bucket, packed summaries), bounded per person. Not private by itself.

    Attributes:
        layout: which columns hold what.
        bounder: the bounding of the run, up to the last step of the ladder.
        measures: what is summarised per partition.
        shared: what is summarised over all partitions.
        buckets: how many parts the partitions are cut into.
        shards: how many parts the people are cut into; None: see `stages.shard_number`.
        program: the run's program, where something is chosen first.
        choose: turns the votes into what is chosen, behind a barrier.
        chosen: what is chosen first, once this is applied; None: nothing. It is not private data.
    """

    layout: Layout
    bounder: Bounder
    measures: Sequence[Measure | Relation]
    shared: Sequence[Measure] = ()
    buckets: int = 1
    shards: int | None = None
    program: Program | None = None
    choose: beam.PTransform[Any, Any] | None = None
    chosen: beam.PCollection[Chosen] | None = dataclasses.field(init=False, default=None)

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[tuple[int, Iterable[bytes]]]:
        """Apply the steps of the module's docstring."""
        layouts.check_types(self.layout, known_columns.types_of(rows))
        layouts.check_forms(self.layout, known_columns.forms_of(rows))
        collect = Collect(self.layout, self.bounder, shard_number.number_of(rows, self.shards))
        collected = rows | "CollectColumns" >> beam.ParDo(collect).with_output_types(_BYTES)
        people, sides = collected | "GroupByShard" >> beam.GroupByKey(), []
        if self.program is not None and self.choose is not None:
            reduce = beam.ParDo(ReduceShards(self.bounder, self.program.votes))
            tagged = reduce.with_output_types(_BYTES).with_outputs(VOTES, main="lines")
            reduced = people | "ReduceShards" >> tagged
            self.chosen = reduced[VOTES] | "First" >> self.choose
            people, sides = reduced.lines, [beam.pvalue.AsSingleton(self.chosen)]
        settle = Settle(self.bounder, self.measures, self.shared, self.buckets, self.program)
        typed = beam.ParDo(settle, *sides).with_output_types(_BYTES)
        settled = people | "SettleBounds" >> typed
        # Every bucket occurs, whatever the data, so that public partitions appear when they are
        # empty. (Not by `beam.Create`, which brings another shuffle.)
        numbers = [*range(self.buckets), *([SHARED] if self.shared else [])]
        every = quick_steps.flat_mapped(lambda _: [(number, b"") for number in numbers])
        start = rows.pipeline | "StartBuckets" >> beam.Impulse()
        empty = start | "AddEmptyBuckets" >> every.with_output_types(_BYTES)
        return (
            (settled, empty)
            | "FlattenBuckets" >> beam.Flatten()
            | "GroupByBucket" >> beam.GroupByKey()
        )


class Collect(quick_steps.QuickStep):
    """Turn rows into packed contributions by shard, merged as far as the bundle goes.

    Args:
        layout: which columns hold what.
        bounder: the bounding of the run.
        shards: how many parts the people are cut into; a power of two.
    """

    def __init__(self, layout: Layout, bounder: Bounder, shards: int) -> None:
        self._layout, self._bounder, self._shards = layout, bounder, shards

    def start_bundle(self) -> None:
        """Begin a bundle with no rows: a bundle that failed leaves nothing behind."""
        pool, ahead = threads_and_memory.pool(), threads_and_memory.threads()
        self._accumulator = Accumulator(self._bounder, pool=pool, ahead=ahead)
        self._rows = row_fields.FieldLists(self._layout.names)
        self._add_row = self._rows.add

    def process(self, element: Any) -> Iterator[tuple[int, bytes]]:
        """Take one row, or one Arrow batch or table."""
        if type(element) is not dict and row_fields.is_columnar(element):
            return self._take_batches(element)
        # No generator and no further call for each row: these would take longer than the row.
        if not self._add_row(element):
            return _NOTHING
        return itertools.chain.from_iterable(map(self._take, self._tables()))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the contributions that are still held."""
        tables = [full for rows in self._tables() for full in self._accumulator.add(rows)]
        tables += self._accumulator.drain()
        for element in itertools.chain.from_iterable(map(self._pack, tables)):
            yield GlobalWindows.windowed_value(element)
        self._accumulator = Accumulator(self._bounder)  # runners keep the step: free its table
        threads_and_memory.give_back()

    def _tables(self) -> list[Table]:
        """Return the collected rows as tables."""
        return self._layout.from_lists(self._rows.drain()) if len(self._rows) else []

    def _take_batches(self, element: pa.Table | pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        for batch in layouts.batches(element):
            yield from self._take(functools.partial(self._layout.from_batch, batch))

    def _take(self, rows: Table | Callable[[], Table]) -> Iterator[tuple[int, bytes]]:
        for full in self._accumulator.add(rows):
            yield from self._pack(full)

    def _pack(self, table: Table) -> Iterator[tuple[int, bytes]]:
        shift = np.uint64(64 - self._shards.bit_length())  # and 1: no word is shifted by 64
        shard = (self._bounder.hashes(table)[0] >> shift >> np.uint64(1)).astype(np.uint16)
        if (shard[1:] < shard[:-1]).any():  # reduced lines are in order already
            order = np.argsort(shard, kind="stable")
            table, shard = table.take(order), shard[order]
        edges = np.searchsorted(shard, np.arange(self._shards + 1)).tolist()
        for number, (start, end) in enumerate(itertools.pairwise(edges)):
            for low in range(start, end, _BLOB_LINES):
                part = table.take(slice(low, min(low + _BLOB_LINES, end)))
                yield number, wire.pack(part)


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


def bucket_of(partition: np.ndarray, buckets: int, key: bytes) -> np.ndarray:
    """Return the bucket of each partition, by a keyed hash."""
    hashes = hashing.fold(table.two_words(partition), hashing.salt(key, "bucket"))
    return (hashes % np.uint64(buckets)).astype(np.int64)


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
        lines = gather(element[1], self._bounder)
        if lines is None:
            return
        table = self._bounder.reduce(lines)
        self._counted.append(self._votes.of(table, self._bounder))
        for piece in pieces(table, _PIECE_LINES):
            yield element[0], wire.pack(piece)

    def finish_bundle(self) -> Iterator[TaggedOutput[Literal["votes"], WindowedValue]]:
        """Yield the votes of the bundle."""
        if self._counted:
            counted = wire.pack(self._votes.merged(self._counted))
            yield TaggedOutput(VOTES, GlobalWindows.windowed_value(counted))
        threads_and_memory.give_back()


class Settle(quick_steps.QuickStep):
    """Settle the bounds of people, and summarise their lines by partition.

    Args:
        bounder: the bounding of the run.
        measures: what is summarised per partition.
        shared: what is summarised over all partitions.
        buckets: how many parts the partitions are cut into.
        program: the run's program, where something is chosen first.
    """

    def __init__(
        self,
        bounder: Bounder,
        measures: Sequence[Measure | Relation],
        shared: Sequence[Measure],
        buckets: int,
        program: Program | None = None,
    ) -> None:
        self._bounder, self._buckets, self._program = bounder, buckets, program
        self._chosen: Chosen | None = None
        self._counted: int | None = None
        self._measures, self._shared = tuple(measures), tuple(shared)
        self._relations = any(isinstance(measure, Relation) for measure in measures)

    def start_bundle(self) -> None:
        """Begin a bundle with no summaries."""
        self._partitions: list[Summary] = []
        self._people: list[Summary] = []
        self._owned: list[Owned] = []
        self._tasks: Tasks = InOrder(threads_and_memory.pool(), threads_and_memory.threads() - 1)

    def process(
        self, element: tuple[int, Any], chosen: Chosen | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Take all contributions of one shard, or reduced lines of some people.

        Meanwhile the lines of earlier elements are summarised.
        """
        if chosen is None:
            lines = gather(element[1], self._bounder)
            if lines is None:
                return
            settled = functools.partial(self._bounder.settle, lines)
            counted = None
        else:
            self._turn_to(chosen)
            lines = wire.unpack(element[1])
            settled = functools.partial(self._bounder.settle_reduced, lines)
            counted = None if self._counted is None else self._bounder.pairs(lines, self._counted)
        task = functools.partial(self._summarised, settled, counted)
        yield from self._take(self._tasks.put(task))

    def _turn_to(self, chosen: Chosen) -> None:
        """Take the measures and the bounds of the choice, which is the same for all elements."""
        if chosen is self._chosen or self._program is None:
            return
        program = self._program.at(chosen)
        self._measures, self._shared = program.measures, program.shared_measures
        self._counted = program.counted if program.counts_apart else None
        if chosen.reach is not None:
            bounds = dataclasses.replace(self._bounder.bounds, partitions=chosen.reach.reach)
            self._bounder = dataclasses.replace(self._bounder, bounds=bounds)
        self._chosen = chosen

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the summaries that are still held."""
        for element in itertools.chain(self._take(self._tasks.drain()), self._flush()):
            yield GlobalWindows.windowed_value(element)
        self._tasks = InOrder(None, 0)  # runners keep the step: free its threads
        threads_and_memory.give_back()

    def _summarised(self, settled: Callable[[], Table], counted: Table | None) -> Summarised:
        """Summarise settled lines; where a bound was chosen, more `counted` pairs may select."""
        table, lines = settled(), None
        if self._relations:
            lines = owner_lines.collect(table, self._measures, self._bounder.key)
            table = self._bounder.aggregate(table)
        people = histograms.summarise_people(table, self._shared) if self._shared else None
        return histograms.summarise(table, self._measures, counted), people, lines

    def _take(self, summarised: Iterable[Summarised]) -> Iterator[tuple[int, bytes]]:
        for summary, people, lines in summarised:
            self._partitions.append(summary)
            self._people += [people] if people is not None else []
            self._owned += [lines] if lines is not None else []
        if sum(map(len, self._partitions)) + sum(map(len, self._owned)) >= _SUMMARY_LINES:
            yield from self._flush()

    def _flush(self) -> Iterator[tuple[int, bytes]]:
        partitions, self._partitions = self._partitions, []
        people, self._people = self._people, []
        lines, self._owned = self._owned, []
        if partitions:
            summary = merge(partitions, self._measures)
            for bucket, index in self._split(summary.partition):
                yield bucket, wire.pack(summary.take(index))
        if lines:
            merged = owner_lines.merge(lines)
            for bucket, index in self._split(merged.partition):
                yield bucket, wire.pack(merged.take(index))
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
    owned = fresh_functions.with_votes(owner_lines.merge(lines), measures)
    return merge(summaries or [_nothing()], measures), owned


def _nothing() -> Summary:
    empty = np.empty(0, np.int64)
    return Summary(np.empty((1, 0), np.uint64), empty, empty, empty, empty)

"""Rows in, one summary per partition out: collect, shuffle, bound, summarise, shuffle.

    rows
      Collect            per bundle: columns, merged per person and partition, hopeless ones dropped
      GroupByShard       bytes, by keyed hash of the person: everything of a person meets here
      Settle             the final bounds; one line per person and partition becomes a summary
                         (for a user's own function, blocks of people become votes: `votes`)
      GroupByBucket      bytes, by partition
                                                    # (bucket, summaries)

What leaves is not private. There is no counter, no log and no side output on the way.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints.batch import BatchConverter
from apache_beam.typehints.row_type import RowTypeConstraint

from beam_dp.mechanisms import blobs, checks, contributions, owned, statistics, thinning
from beam_dp.mechanisms.accumulation import HELD_LINES, Accumulator
from beam_dp.mechanisms.contributions import Bounder, Table
from beam_dp.mechanisms.owned import Owned, Relation
from beam_dp.mechanisms.statistics import Measure, Summary
from beam_dp.transforms import columns, fields, memory, votes
from beam_dp.transforms.ahead import Ahead
from beam_dp.transforms.buckets import bucket_of
from beam_dp.transforms.columns import Layout

SHARDS = 64
SHARED = -1
"""The bucket of the summary over all partitions."""
_BLOB_LINES = 1 << 15
_SUMMARY_LINES = 1 << 20


class Collect(beam.DoFn):
    """Turn rows into packed contributions by shard, merged as far as the bundle goes.

    Args:
        layout: which columns hold what.
        bounder: the bounding of the run.
        shards: how many parts the people are cut into; a power of two.
    """

    def __init__(self, layout: Layout, bounder: Bounder, shards: int) -> None:
        self._layout, self._bounder, self._shards = layout, bounder, shards

    def setup(self) -> None:
        """Let go of what building the pipeline left."""
        memory.give_back()

    def start_bundle(self) -> None:
        """Begin with nothing: a bundle that failed leaves nothing behind."""
        self._accumulator = Accumulator(self._bounder)
        self._buffer = columns.RowBuffer(self._layout)
        self._ahead = Ahead(self._layout.from_batch)

    def process(self, element: Any) -> Iterator[tuple[int, bytes]]:
        """Take one row, or one Arrow batch or table."""
        if fields.is_columnar(element):
            yield from self._take_batches(element)
        elif full := self._buffer.add(element):
            yield from self._take(full)

    def finish_bundle(self) -> Iterator[Any]:
        """Hand on what is held."""
        for element in self._take(itertools.chain(self._ahead.drain(), self._buffer.flush())):
            yield GlobalWindows.windowed_value(element)
        for table in self._accumulator.drain():
            for element in self._pack(table):
                yield GlobalWindows.windowed_value(element)
        self._accumulator = Accumulator(self._bounder)  # runners keep the step: let go of its table
        memory.give_back()

    def _take_batches(self, element: pa.Table | pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        for batch in columns.batches(element):
            yield from self._take(self._ahead.put(batch))

    def _take(self, tables: Iterable[Table]) -> Iterator[tuple[int, bytes]]:
        for table in tables:
            for full in self._accumulator.add(table):
                yield from self._pack(full)

    def _pack(self, table: Table) -> Iterator[tuple[int, bytes]]:
        shift = np.uint64(64 - self._shards.bit_length() + 1)
        shard = np.zeros(len(table), np.uint16)
        if self._shards > 1:
            shard = (self._bounder.person_hash(table) >> shift).astype(np.uint16)
        if (shard[1:] < shard[:-1]).any():  # lines that were reduced come in order
            order = np.argsort(shard, kind="stable")
            table, shard = table.take(order), shard[order]
        edges = np.searchsorted(shard, np.arange(self._shards + 1)).tolist()
        for place, (start, end) in enumerate(itertools.pairwise(edges)):
            for low in range(start, end, _BLOB_LINES):
                part = table.take(slice(low, min(low + _BLOB_LINES, end)))
                yield place, blobs.pack_table(part)


class CollectBatches(Collect):
    """The same for collections with a schema, which arrive as whole Arrow tables."""

    @beam.DoFn.yields_elements
    def process_batch(self, batch: pa.Table) -> Iterator[tuple[int, bytes]]:
        """Take one table of rows."""
        yield from self._take_batches(batch)

    def infer_output_type(self, input_type: object) -> object:
        """Say what leaves, for Beam's choice of coders."""
        return tuple[int, bytes]


def gather(packed: Iterable[bytes], bounder: Bounder) -> Table | None:
    """Return the settled contributions of a shard, holding little more than what is kept."""
    held: list[Table] = []
    limit = HELD_LINES
    for blob in packed:
        held.append(blobs.unpack_table(blob))
        if sum(map(len, held)) >= limit:
            held = [bounder.reduce(contributions.concatenate(held))]
            limit = max(HELD_LINES, 2 * len(held[0]))
    return bounder.settle(contributions.concatenate(held)) if held else None


class Settle(beam.DoFn):
    """Bound the people of a shard for good, and summarise what they add to each partition.

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

    def start_bundle(self) -> None:
        """Begin with nothing."""
        self._partitions: list[Summary] = []
        self._people: list[Summary] = []
        self._owned: list[Owned] = []
        self._ahead = Ahead(self._summarised)

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        """Take all contributions of one shard; the one before it is summarised meanwhile."""
        table = gather(element[1], self._bounder)
        if table is not None:
            yield from self._take(self._ahead.put(table))

    def finish_bundle(self) -> Iterator[Any]:
        """Hand on what is held."""
        for element in itertools.chain(self._take(self._ahead.drain()), self._flush()):
            if isinstance(element, TaggedOutput):
                yield TaggedOutput(element.tag, GlobalWindows.windowed_value(element.value))
            else:
                yield GlobalWindows.windowed_value(element)
        memory.give_back()

    def _summarised(self, table: Table) -> tuple[Summary, Summary | None, Owned | None]:
        lines = None
        if self._relations:
            lines = owned.collect(table, self._measures, self._bounder.key)
            table = self._bounder.aggregate(table)
        people = statistics.summarise_people(table, self._shared) if self._shared else None
        return statistics.summarise(table, self._measures), people, lines

    def _take(
        self, summarised: Iterable[tuple[Summary, Summary | None, Owned | None]]
    ) -> Iterator[tuple[int, bytes] | TaggedOutput]:
        for summary, people, lines in summarised:
            self._partitions.append(summary)
            self._people += [people] if people is not None else []
            self._owned += [lines] if lines is not None else []
        if sum(map(len, [*self._partitions, *self._owned])) >= _SUMMARY_LINES:
            yield from self._flush()

    def _flush(self) -> Iterator[tuple[int, bytes] | TaggedOutput]:
        partitions, self._partitions = self._partitions, []
        people, self._people = self._people, []
        lines, self._owned = self._owned, []
        if partitions:
            summary = merge(partitions, self._measures)
            for bucket, index in self._split(summary.partition):
                yield bucket, blobs.pack_summary(summary.take(index))
        if lines:
            merged = thinning.merge(lines, self._measures)
            found, packed = votes.split(merged, self._measures, self._bounder.key)
            for bucket, index in self._split(found.partition):
                yield bucket, blobs.pack_owned(found.take(index))
            yield from (TaggedOutput(votes.TAG, element) for element in packed)
        if people:
            yield SHARED, blobs.pack_summary(merge(people, self._shared))

    def _split(self, partition: np.ndarray) -> Iterator[tuple[int, np.ndarray | slice]]:
        """Yield each bucket with the places of its lines."""
        if self._buckets == 1:
            yield 0, slice(None)
            return
        buckets = bucket_of(partition, self._buckets, self._bounder.key)
        for bucket in np.unique(buckets).tolist():
            yield bucket, np.flatnonzero(buckets == bucket)


def merge(summaries: Sequence[Summary], measures: Sequence[Measure | Relation]) -> Summary:
    """Return the reduced union of summaries."""
    return statistics.reduce(statistics.concatenate(summaries), measures)


def check_shards(owner: str, shards: object) -> None:
    """Refuse what is no number of shards."""
    checks.require(
        type(shards) is int and 1 <= shards <= 1 << 16 and shards & (shards - 1) == 0,
        f"{owner}: shards must be a power of two from 1 to 65536, not {shards!r}.",
    )


def collector(rows: beam.PCollection, layout: Layout, bounder: Bounder, shards: int) -> Collect:
    """Return the DoFn that suits the elements of `rows`, checking a known schema on the way."""
    check_shards("Summarise", shards)
    kind = rows.element_type
    if not isinstance(kind, RowTypeConstraint):
        kind = RowTypeConstraint.from_user_type(kind)
    if kind is None:
        return Collect(layout, bounder, shards)
    names = [name for name, _ in kind._fields]
    for name in layout.names:
        checks.require(name in names, f"column {name!r} must be one of {names}.")
    return (CollectBatches if _is_columnar(kind) else Collect)(layout, bounder, shards)


def _is_columnar(kind: RowTypeConstraint) -> bool:
    """Return whether Beam can hold rows of this schema as Arrow tables (dates, say, it cannot)."""
    try:
        BatchConverter.from_typehints(element_type=kind.user_type, batch_type=pa.Table)
    except (RuntimeError, TypeError, ValueError):
        return False
    return True


@dataclasses.dataclass(eq=False)
class Summarise(beam.PTransform):
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

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        """Apply the steps of the module's docstring."""
        settle = Settle(self.bounder, self.measures, self.shared, self.buckets)
        places = [*range(self.buckets), *([SHARED] if self.shared else [])]
        collect = collector(rows, self.layout, self.bounder, self.shards)
        shards = (
            rows
            | "Collect" >> beam.ParDo(collect).with_output_types(tuple[int, bytes])
            | "GroupByShard" >> beam.GroupByKey()
        )
        settling = beam.ParDo(settle).with_output_types(tuple[int, bytes])
        summaries = self._settled(shards, settling)
        # Every bucket occurs, whatever the data: public partitions appear when empty.
        # (By hand: `beam.Create` brings a shuffle of its own.)
        every = beam.FlatMap(lambda _: [(place, b"") for place in places])
        every = every.with_output_types(tuple[int, bytes])
        buckets = rows.pipeline | "Start" >> beam.Impulse() | "Buckets" >> every
        return (
            (*summaries, buckets)
            | "AllBuckets" >> beam.Flatten()
            | "GroupByBucket" >> beam.GroupByKey()
        )

    def _settled(
        self, shards: beam.PCollection, settling: beam.PTransform
    ) -> tuple[beam.PCollection, ...]:
        """Return the summaries; for users' functions of blocks also their votes."""
        if not votes.wanted(self.measures):
            return (shards | "Settle" >> settling,)
        both = shards | "Settle" >> settling.with_outputs(votes.TAG, main="summaries")
        asking = votes.Votes(self.measures, self.buckets, self.bounder.key)
        return both.summaries, both[votes.TAG] | "AskBlocks" >> asking


def open_bucket(
    packed: Iterable[bytes], measures: Sequence[Measure | Relation]
) -> tuple[Summary, Owned]:
    """Return the merged summary and lines of one bucket; they may be empty.

    Little more than what is kept is held at a time.
    """
    limit = 4 * _SUMMARY_LINES
    found: list[Summary] = []
    lines: list[Owned] = []
    for blob in filter(None, packed):
        if blobs.is_owned(blob):
            lines.append(blobs.unpack_owned(blob))
            if sum(map(len, lines)) >= limit:
                lines = [thinning.merge(lines, measures)]
                limit = max(4 * _SUMMARY_LINES, 2 * len(lines[0]))
        else:
            found.append(blobs.unpack_summary(blob))
    return merge(found or [_nothing()], measures), thinning.merge(lines, measures)


def open_summary(packed: Iterable[bytes], measures: Sequence[Measure]) -> Summary:
    """Return the merged summary of a bucket without relations."""
    return open_bucket(packed, measures)[0]


def _nothing() -> Summary:
    empty = np.empty(0, np.int64)
    return Summary(np.empty((1, 0), np.uint64), empty, empty, empty, empty)

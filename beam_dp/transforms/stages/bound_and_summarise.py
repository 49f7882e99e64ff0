"""Rows in, one summary per partition out: collect, shuffle, bound, summarise, shuffle.

    rows
      CollectColumns    per bundle: one line per person and partition, without certain drops
      GroupByShard      bytes, by keyed hash of the person: all lines of a person meet here
      SettleBounds      the final bounds; the lines of people become summaries of partitions
      GroupByBucket     bytes, by partition
    (bucket, summaries)

Where something is chosen first, by what whole people have (centres, private partitions, or a bound
on partitions), these steps stand between GroupByShard and SettleBounds:

      ReduceShards          whole people; their votes, and their weights in partitions
        ChooseParameters    of the votes: the centres, and the bound of one noisy histogram
        Select              of the weights, by bucket, for that bound: the partitions to release
        Store...            what was drawn is never drawn again

SettleBounds then takes the lines of the selected partitions. Its side inputs are the choices, and
the lines of people who have too many for one element.

Only the choices (`Adaptive`, `Selected`) are released of that. As always, the keyed hash of the run
decides which pairs of a person stay: those that a given bound of the same size would keep.

The summaries are not private. There is no counter, no log and no side output on the way.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.bounding.accumulator import Accumulator, InOrder
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.numerics import hashing
from beam_dp.mechanisms.planning import adaptive
from beam_dp.mechanisms.planning.compile import compiled
from beam_dp.mechanisms.planning.program import NOTHING, Adaptive, Program
from beam_dp.mechanisms.summaries import histograms, owner_lines, wire
from beam_dp.mechanisms.summaries.histograms import WEIGHTS, Contributions, Measure, Summary
from beam_dp.mechanisms.summaries.norm_lines import with_norms
from beam_dp.mechanisms.summaries.owner_lines import NO_LINES, Owned, Relation
from beam_dp.mechanisms.summaries.partition_view import places_of
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import layout as layouts
from beam_dp.transforms.columns import row_fields
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.stages import fresh_functions, quick_steps, shard_number, threads_and_memory

SHARED = -1
"""The bucket of the summary over all partitions."""
VOTES: Literal["votes"] = "votes"
"""The tag of the votes."""
WEIGHED: Literal["weights"] = "weights"
"""The tag of the weights in partitions."""
LARGE: Literal["large"] = "large"
"""The tag of the lines of people who have too many for one element."""
_PIECE_LINES, _SUMMARY_LINES = 1 << 18, 1 << 20
_SHARD_LINES = 5 << 19  # as many rows as 32 MiB of Parquet have (`shard_number`)
_BYTES = tuple[int, bytes]
Summarised = tuple[Summary, Summary | None, Owned | None]
Tasks = InOrder[Summarised]
Reduced: TypeAlias = (
    tuple[int, bytes]
    | TaggedOutput[Literal["votes"], bytes]
    | TaggedOutput[Literal["weights"], tuple[int, bytes]]
    | TaggedOutput[Literal["large"], tuple[int, int, bytes]]
)
"""The output of a shard: (shard, lines of whole people); or, tagged, votes, weights by bucket, or
(shard, place, lines): a part of what (shard, nothing) stands for."""


@dataclasses.dataclass(frozen=True)
class Selected:
    """Some of the partitions of a bucket that were selected: released.

    Attributes:
        bucket: the bucket.
        identities: theirs, uint64 of shape (2, n).
        keys: theirs, an array of objects.
    """

    bucket: int
    identities: np.ndarray
    keys: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, index: slice) -> "Selected":
        """Return some of them."""
        return Selected(self.bucket, self.identities[:, index], self.keys[index])


@dataclasses.dataclass(eq=False)
class First:
    """What is chosen first, behind barriers, and released; `Summarise` sets `chosen`, `selected`.

    Attributes:
        program: the run's program.
        choose: turns votes into an `Adaptive`.
        select: returns, for the side input of `chosen`, what turns (bucket, packed weights) into
            `Selected`; None: partitions are public.
        chosen: what `choose` has made; None: there was nothing to choose.
        selected: what `select` has made.
    """

    program: Program
    choose: beam.PTransform[Any, Any]
    select: Callable[[Any], beam.PTransform[Any, Any]] | None = None
    chosen: beam.PCollection[Adaptive] | None = None
    selected: beam.PCollection[Selected] | None = None

    @property
    def sides(self) -> list[Any]:
        """The side inputs that say what was chosen: an `Adaptive` and a list of `Selected`, or None."""
        return [self.side, None if self.selected is None else beam.pvalue.AsList(self.selected)]

    @property
    def side(self) -> Any:
        """The side input that says what `choose` chose; None: nothing."""
        return None if self.chosen is None else beam.pvalue.AsSingleton(self.chosen)


def adapted(
    program: Program, chosen: Adaptive | None, selected: Sequence[Selected] | None = None
) -> Program:
    """Return the program for what was chosen first, and for the number of partitions selected.

    Where none was selected, the program is the same with and without rows.
    """
    known = chosen or NOTHING
    if selected is not None:
        known = dataclasses.replace(known, partitions=sum(map(len, selected)))
    return compiled(program.request, known)


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
        shards: how many parts the people are cut into; None: see `stages.shard_number`.
        first: what is chosen first; None: nothing.
    """

    layout: Layout
    bounder: Bounder
    measures: Sequence[Measure | Relation]
    shared: Sequence[Measure] = ()
    buckets: int = 1
    shards: int | None = None
    first: First | None = None

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[tuple[int, Iterable[bytes]]]:
        """Apply the steps of the module's docstring."""
        _, (types, forms) = known_columns.known_of(rows)
        for each in types:
            layouts.check_types(self.layout, each)
        layouts.check_forms(self.layout, forms)
        collect = Collect(self.layout, self.bounder, shard_number.number_of(rows, self.shards))
        collected = rows | "CollectColumns" >> beam.ParDo(collect).with_output_types(_BYTES)
        people = collected | "GroupByShard" >> beam.GroupByKey()
        sides, program = [None, None, ()], None
        if self.first is not None:
            program, reduced = self.first.program, self._reduce_and_choose(people, self.first)
            people = reduced.lines
            sides = [*self.first.sides, beam.pvalue.AsIter(reduced[LARGE])]
        listed = self.layout.public is not None
        settle = Settle(self.bounder, self.measures, self.shared, self.buckets, program, listed)
        typed = beam.ParDo(settle, *sides).with_output_types(_BYTES)
        settled = people | "SettleBounds" >> typed
        shared = [SHARED] if self.shared else []
        return by_bucket(settled, [*range(self.buckets), *shared])

    def _reduce_and_choose(self, people: beam.PCollection[Any], first: First) -> Any:
        """Return the output of the shards; the choices are applied to the votes and weights."""
        reduce = beam.ParDo(ReduceShards(self.bounder, first.program, self.buckets))
        typed = reduce.with_output_types(_BYTES)
        reduced = people | "ReduceShards" >> typed.with_outputs(VOTES, WEIGHED, LARGE, main="lines")
        if first.program.request.chooses:
            first.chosen = reduced[VOTES] | "First" >> first.choose
        if first.select is not None:
            # Not flattened with empty ones: some runners show what is flattened in debug logs.
            grouped = reduced[WEIGHED] | "GroupByWeights" >> beam.GroupByKey()
            first.selected = grouped | "Select" >> first.select(first.side)
        return reduced


def by_bucket(
    packed: beam.PCollection[tuple[int, bytes]], numbers: Iterable[int]
) -> beam.PCollection[tuple[int, Iterable[bytes]]]:
    """Group packed summaries by bucket; every bucket occurs, whatever the data.

    So public partitions appear when they are empty. (Not by `beam.Create`, which brings another
    shuffle.)
    """
    listed = list(numbers)
    every = quick_steps.flat_mapped(lambda _: [(number, b"") for number in listed])
    start = packed.pipeline | "StartBuckets" >> beam.Impulse()
    empty = start | "AddEmptyBuckets" >> every.with_output_types(_BYTES)
    both = (packed, empty) | "FlattenBuckets" >> beam.Flatten()
    return both | "GroupByBucket" >> beam.GroupByKey()


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

    def process(self, element: Any) -> Iterator[tuple[int, bytes]]:
        """Take one row, or one Arrow batch or table."""
        if row_fields.is_columnar(element):
            for batch in layouts.batches(element):
                yield from self._take(functools.partial(self._layout.from_batch, batch))
        elif self._rows.add(element):
            yield from itertools.chain.from_iterable(map(self._take, self._tables()))

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

    def _take(self, rows: Table | Callable[[], Table]) -> Iterator[tuple[int, bytes]]:
        for full in self._accumulator.add(rows):
            yield from self._pack(full)

    def _pack(self, table: Table) -> Iterator[tuple[int, bytes]]:
        shift = np.uint64(64 - self._shards.bit_length())  # and 1: no word is shifted by 64
        shard = (self._bounder.hashes(table)[0] >> shift >> np.uint64(1)).astype(np.uint16)
        return packed_by_place(table, shard, self._shards)


def packed_by_place(
    lines: Any, places: np.ndarray, size: int, packed: Callable[[Any], bytes] = wire.pack
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of each place packed, with the number of the place, from 0 to before `size`.

    Args:
        lines: a table, a summary or owner lines.
        places: that of each line; 16 bits are sorted without comparisons.
        size: how many places there are.
        packed: makes bytes of lines.
    """
    if (places[1:] < places[:-1]).any():  # reduced lines are in the order of shards already
        order = np.argsort(places, kind="stable")
        lines, places = lines.take(order), places[order]
    edges = np.searchsorted(places, np.arange(size + 1)).tolist()
    for place, (start, end) in enumerate(itertools.pairwise(edges)):
        if end > start:
            for _, blob in wire.parts(lines.take(slice(start, end)), packed):
                yield place, blob


def gather(packed: Iterable[bytes], bounder: Bounder) -> Table | None:
    """Return the contributions of a shard, to be settled; little more than these is ever held."""
    held: list[Table] = []
    limit = _SHARD_LINES
    for blob in packed:
        held.append(wire.unpack(blob))
        if sum(map(len, held)) >= limit:
            held = [bounder.reduce(table.concatenate(held))]
            limit = max(_SHARD_LINES, 2 * len(held[0]))
    return table.concatenate(held) if held else None


def bucket_of(partition: np.ndarray, buckets: int, key: bytes | None) -> np.ndarray:
    """Return the bucket of each partition, by a keyed hash; None: of public ones, by turns."""
    if key is None:
        return np.asarray(partition[0] % np.uint64(buckets), np.int64)
    hashes = hashing.fold(table.two_words(partition), hashing.salt(key, "bucket"))
    return (hashes % np.uint64(buckets)).astype(np.int64)


def packed_pieces(reduced: Table, lines: int) -> Iterator[tuple[Table, bytes]]:
    """Yield pieces of a reduced table and their bytes: more than `wire.MOST_BYTES` only where one
    person has as much."""
    for piece in pieces(reduced, lines):
        blob = wire.pack(piece)
        if len(blob) > wire.MOST_BYTES and lines > 1:
            yield from packed_pieces(piece, lines // 4)
        else:
            yield piece, blob


def pieces(table: Table, lines: int) -> Iterator[Table]:
    """Yield a reduced table in pieces of about so many lines, none of which cuts a person."""
    starts = np.flatnonzero(changes(table.person))
    # The last person who begins before each multiple of `lines`.
    edges = starts[np.searchsorted(starts, np.arange(lines, len(table), lines)) - 1]
    bounds = np.unique(np.concatenate([[0], edges, [len(table)]]))
    for start, end in itertools.pairwise(bounds.tolist()):
        yield table.take(slice(start, end))


class ReduceShards(quick_steps.QuickStep):
    """Turn the lines of a shard into lines of whole people, and count their votes and weights.

    Votes and weights are exact and private data, as the lines are.

    Args:
        bounder: the bounding of the run.
        program: the run's program.
        buckets: how many parts the partitions are cut into.
    """

    def __init__(self, bounder: Bounder, program: Program, buckets: int) -> None:
        self._bounder, self._votes, self._buckets = bounder, adaptive.votes_of(program), buckets
        self._chooses, self._metrics = program.request.chooses, bool(program.request.metrics)
        self._caps = program.request.caps
        self._measures = [Measure(WEIGHTS)] * len(self._caps)

    def start_bundle(self) -> None:
        """Begin a bundle with nobody: a bundle that failed leaves nothing behind."""
        self._counted: list[Summary] = []
        self._weights: list[Summary] = []

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Reduced]:
        """Take all lines of one shard: all those of each of its people."""
        lines = gather(element[1], self._bounder)
        if lines is None:
            return
        table = self._bounder.reduce(lines)
        if self._chooses:
            self._counted.append(self._votes.of(table, self._bounder))
        for index, cap in enumerate(self._caps):
            pairs = Contributions(self._bounder.pairs(table, cap))
            summary = histograms.summarise(pairs, self._measures[:1])
            measure = np.full(len(summary), index)
            self._weights.append(dataclasses.replace(summary, measure=measure))
        if sum(map(len, self._weights)) >= _SUMMARY_LINES:
            yield from (TaggedOutput(WEIGHED, each) for each in self._weighed())
        if self._metrics:
            yield from self._packed(element[0], table)

    def _packed(self, shard: int, reduced: Table) -> Iterator[Reduced]:
        """Yield the lines of whole people; those of people with too many are parted, and tagged."""
        large = []
        for piece, blob in packed_pieces(reduced, _PIECE_LINES):
            if len(blob) <= wire.MOST_BYTES:
                yield shard, blob
            else:
                large.append(piece)
        if large:
            yield shard, b""
            for place, blob in enumerate(wire.blobs(table.concatenate(large))):
                yield TaggedOutput(LARGE, (shard, place, blob))

    def _weighed(self) -> Iterator[tuple[int, bytes]]:
        """Yield the weights that are held, by bucket."""
        summaries, self._weights = self._weights, []
        if summaries:
            summary = merge(summaries, self._measures)
            yield from split(summary, self._buckets, self._bounder.key)

    def finish_bundle(self) -> Iterator[TaggedOutput[Any, WindowedValue]]:
        """Yield the votes and weights of the bundle."""
        if self._counted:
            for blob in wire.blobs(self._votes.merged(self._counted)):
                yield TaggedOutput(VOTES, GlobalWindows.windowed_value(blob))
        for each in self._weighed():
            yield TaggedOutput(WEIGHED, GlobalWindows.windowed_value(each))
        threads_and_memory.give_back()


class Settle(quick_steps.QuickStep):
    """Settle the bounds of people, and summarise their lines by partition.

    Args:
        bounder: the bounding of the run.
        measures: what is summarised per partition.
        shared: what is summarised over all partitions.
        buckets: how many parts the partitions are cut into.
        program: the run's program, where something is chosen first.
        listed: whether the partitions are indexes in a public list.
    """

    def __init__(
        self,
        bounder: Bounder,
        measures: Sequence[Measure | Relation],
        shared: Sequence[Measure],
        buckets: int,
        program: Program | None = None,
        listed: bool = False,
    ) -> None:
        self._bounder, self._buckets, self._program = bounder, buckets, program
        self._measures, self._shared = tuple(measures), tuple(shared)
        self._relations = any(isinstance(measure, Relation) for measure in measures)
        self._key = None if listed else bounder.key

    def start_bundle(self) -> None:
        """Begin a bundle with no summaries."""
        self._held: list[Summarised] = []
        self._lines = 0
        self._begun = False
        self._most: int | None = None
        self._listed: np.ndarray | None = None
        self._tasks: Tasks = InOrder(threads_and_memory.pool(), threads_and_memory.threads() - 1)

    def process(
        self,
        element: tuple[int, Any],
        chosen: Adaptive | None = None,
        selected: Sequence[Selected] | None = None,
        large: Iterable[tuple[int, int, bytes]] = (),
    ) -> Iterator[tuple[int, bytes]]:
        """Take all contributions of one shard, or reduced lines of some people.

        Meanwhile the lines of earlier elements are summarised.
        """
        if self._program is None:
            lines = gather(element[1], self._bounder)
            if lines is None:
                return
            settled = functools.partial(self._bounder.settle, lines)
        else:
            if not self._begun:  # what was chosen is the same for all elements
                self._turn_to(adapted(self._program, chosen, selected), selected)
            blobs = [element[1]] if element[1] else parted(element[0], large)
            lines = table.concatenate(list(map(wire.unpack, blobs)))
            settled = functools.partial(self._settled, lines)
        yield from self._take(self._tasks.put(functools.partial(self._summarised, settled)))

    def _turn_to(self, program: Program, selected: Sequence[Selected] | None) -> None:
        """Take the measures, the bound and the partitions that were chosen."""
        self._measures, self._shared = program.measures, program.shared_measures
        self._most, self._begun = program.bounded_partitions, True
        if selected:
            self._listed = np.concatenate([each.identities for each in selected], axis=1)

    def _settled(self, lines: Table) -> Table:
        """Return the settled lines of the partitions that were selected."""
        if self._listed is not None:
            lines = lines.take(places_of(lines.partition, self._listed) >= 0)
        return self._bounder.settle_reduced(lines)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the summaries that are still held."""
        for element in itertools.chain(self._take(self._tasks.drain()), self._flush()):
            yield GlobalWindows.windowed_value(element)
        self._tasks = InOrder(None, 0)  # runners keep the step: free its threads
        threads_and_memory.give_back()

    def _summarised(self, settled: Callable[[], Table]) -> Summarised:
        """Summarise settled lines; what is no norm, by a bounded number of a person's pairs."""
        table, lines, bounded = settled(), None, None
        if self._most is not None:
            bounded = self._bounder.lines_of_pairs(table, self._most)
        if self._relations:
            few = table if bounded is None else bounded
            lines = owner_lines.collect(table, few, self._measures, self._bounder.key)
            table = self._bounder.aggregate(table)
            bounded = None if bounded is None else self._bounder.aggregate(bounded)
        people = Contributions(table, bounded)
        if lines is not None:
            lines = with_norms(lines, people, self._measures, self._bounder.key)
        shared = histograms.summarise_people(people, self._shared) if self._shared else None
        return histograms.summarise(people, self._measures), shared, lines

    def _take(self, summarised: Iterable[Summarised]) -> Iterator[tuple[int, bytes]]:
        for each in summarised:
            self._held.append(each)
            self._lines += len(each[0]) + len(each[2] or ())
            # Large summaries have other partitions, mostly: merging them would not pay.
            if self._lines >= _SUMMARY_LINES or len(each[0]) >= _SUMMARY_LINES // 2:
                yield from self._flush()

    def _flush(self) -> Iterator[tuple[int, bytes]]:
        held, self._held, self._lines = self._held, [], 0
        if not held:
            return
        summaries, people, lines = zip(*held, strict=True)
        parts: list[Summary | Owned] = [merge(summaries, self._measures)]
        if self._relations:
            parts.append(owner_lines.merge(lines))
        for part in parts:
            yield from split(part, self._buckets, self._key)
        if self._shared:
            for blob in wire.blobs(merge(people, self._shared)):
                yield SHARED, blob


def parted(shard: int, large: Iterable[tuple[int, int, bytes]]) -> list[bytes]:
    """Return the parts of a shard, in their order."""
    return [blob for _, blob in sorted(each[1:] for each in large if each[0] == shard)]


def split(lines: Summary | Owned, buckets: int, key: bytes | None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines packed, with the buckets of their partitions."""
    places = np.zeros(len(lines), np.uint16)
    if buckets > 1:
        places = bucket_of(lines.partition, buckets, key).astype(np.uint16)
    return packed_by_place(lines, places, buckets)


def merge(summaries: Sequence[Summary], measures: Sequence[Measure | Relation]) -> Summary:
    """Return the reduced union of reduced summaries."""
    if len(summaries) == 1:
        return summaries[0]
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
    summary = table.concatenate(summaries or [Summary.nothing()])
    summary = histograms.reduce(summary, measures)
    if not lines:
        return summary, NO_LINES
    return summary, fresh_functions.with_votes(owner_lines.merge(lines), measures)

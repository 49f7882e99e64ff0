"""Draw what is released, once: the choices that come first, the shared clips, then all numbers.

Elements are blocks of rows in columns, so that a row costs little where it passes a barrier.

Beam may compute a collection again for every consumer and every retry. Noise that is drawn again is
a second release, so each draw is followed by a GroupByKey, whose key tells nothing of it: the steps
behind it compute from stored elements, on every runner of `guards.RUNNERS`. (A Reshuffle is the
same with more steps.)

Two runners need more. Spark stores shuffles with its executors: when an executor is lost, Spark
draws again for the consumers that have not run yet, while another consumer may have written its
file. On Spark a side input survives: the driver collects it once (`BoundedDataset.getBytes` of
Beam's runner) and keeps it as long as the job lives. Flink, told to restart, runs a failed
step again, and with it all steps that are joined to it by exchanges that Flink does not store. It
stores the exchanges of a step whose input and side input have one origin. So on
`guards.RECOMPUTING` one step reads all that is released from a side input. It is started by one
empty element from the same GroupByKey, which holds nothing that was drawn. Where Flink restarts
after the loss of a worker, no step helps; a folder that keeps the draws does
(`stages.draws_folder`).
"""

import dataclasses
import functools
import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import apache_beam as beam
import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.bounding.ordering import pick
from beam_dp.mechanisms.histogram_choice.clipping_loss import SUMS
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.planning import adaptive
from beam_dp.mechanisms.planning.program import NOTHING, Adaptive, Program
from beam_dp.mechanisms.summaries import wire
from beam_dp.mechanisms.summaries.histograms import WEIGHTS, Measure, Summary, partitions
from beam_dp.mechanisms.summaries.owner_lines import Owned
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.transforms.columns import partition_keys
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.partition_keys import Key
from beam_dp.transforms.columns.public_keys import PublicKeys
from beam_dp.transforms.stages import guards, quick_steps
from beam_dp.transforms.stages.bound_and_summarise import (
    SHARED,
    First,
    Selected,
    adapted,
    open_bucket,
)
from beam_dp.transforms.stages.draws_folder import Barriers, Draws

BLOCK_ROWS, MESSAGE_ROWS = 1 << 13, 1 << 11
_MANY, _MOST, _SMALLER = 64, 1 << 16, 8
_LARGEST = 2**63 - 1
_TOGETHER = tuple[int, tuple[int, "Block"]]
START = -2
"""The key of what starts the step that combines, beside the buckets of blocks."""
_Rows = TypeVar("_Rows", "Block", Selected)
Suppress = Callable[[Sequence[np.ndarray]], tuple[np.ndarray, ...]]
"""Makes output columns of released ones."""
_Bucket = tuple[int, Iterable[bytes]]
"""The number of a bucket, and its packed summaries."""


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """Some released rows.

    Attributes:
        keys: the partition of each row: its key (objects), or its index in the public list.
        numbers: the output columns, once what was drawn is combined.
        drawn: what every step drew, before.
        chosen: what was chosen first.
    """

    keys: np.ndarray
    numbers: tuple[np.ndarray, ...] = ()
    drawn: tuple[Released, ...] = ()
    chosen: Adaptive = NOTHING

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, index: slice) -> "Block":
        """Return some of the rows."""
        numbers = tuple(column[index] for column in self.numbers)
        drawn = tuple(each.take(index) for each in self.drawn)
        return Block(self.keys[index], numbers, drawn, self.chosen)

    def named(self, public: PublicKeys | None) -> Sequence[Key]:
        """Return the key of each row."""
        if self.keys.dtype == object:
            keys: list[Key] = self.keys.tolist()
            return keys
        return public.keys.take(self.keys) if public is not None else [()] * len(self.keys)

    def rows(self, public: PublicKeys | None) -> Iterator[tuple[Key, tuple[Any, ...]]]:
        """Yield the key and the numbers of each row."""
        names = self.named(public)
        columns = [column.tolist() for column in self.numbers]
        numbers = zip(*columns, strict=True) if columns else (() for _ in names)
        return zip(names, numbers, strict=True)


def cut(rows: _Rows) -> Iterator[_Rows]:
    """Yield rows in parts of at most `BLOCK_ROWS` and, pickled, `wire.MOST_BYTES`."""
    for start in range(0, len(rows), BLOCK_ROWS):
        part = rows.take(slice(start, start + BLOCK_ROWS))
        yield from (few for few, _ in wire.parts(part, pickle.dumps))


def bucket_count(
    layout: Layout, keep_rows: bool = False, is_engine: bool = False, box: bool = False
) -> int:
    """Return how many buckets the partitions are cut into: as many as hold a block of public ones.

    All summaries of a bucket meet in the memory of one worker, and what it draws is stored.

    Args:
        layout: which columns hold what.
        keep_rows: whether a partition has owner lines, not a summary only.
        is_engine: whether the runner sends a bucket as one message (see `shard_number`): then it
            holds fewer, and an eighth of those where they have owner lines, as up to 100 messages
            wait outside of the heap. (The size of the input decides nothing: blocks are seen.)
        box: whether a number of people may have one draw for all partitions, which are few: then
            they are in one bucket, and in the memory of one worker, but for an engine.
    """
    if not layout.partition or (box and not is_engine):
        return 1
    parts = _SMALLER if keep_rows and is_engine else 1
    if layout.public is None:
        return parts * _MANY if keep_rows or is_engine else 8
    keys = len(layout.public)
    filled = -(-keys * parts // (MESSAGE_ROWS if is_engine else BLOCK_ROWS))
    return min(_MOST, max(filled, min(_MANY, keys) if keep_rows else 1))


@dataclasses.dataclass(frozen=True)
class BucketPartitions:
    """The partitions that each bucket releases, and their keys.

    Attributes:
        layout: which columns hold what.
        buckets: how many parts the partitions are cut into.
    """

    layout: Layout
    buckets: int

    def cells(
        self,
        bucket: int,
        summary: Summary,
        lines: Owned,
        selected: Sequence[Selected] | None,
    ) -> tuple[PartitionView, np.ndarray]:
        """Return the view of the partitions of a bucket, and their keys or public indexes."""
        public = self._public(bucket)
        if public is None:
            own = [each for each in selected or () if each.bucket == bucket]
            own = own or [no_partitions(bucket)]
            identities = np.concatenate([each.identities for each in own], axis=1)
            keys = np.concatenate([each.keys for each in own])
            return PartitionView.of_listed(summary, identities, lines), keys
        return PartitionView.of_listed(summary, public[None], lines), public.astype(np.int64)

    def names(self, keys_: np.ndarray) -> Sequence[Key]:
        """Return the keys of what `cells` returned."""
        return Block(keys_).named(self.layout.public)

    def _public(self, bucket: int) -> np.ndarray | None:
        """Return the indexes in the public list that belong to the bucket; None if private."""
        if self.layout.partition and self.layout.public is None:
            return None
        size = len(self.layout.public) if self.layout.public is not None else 1
        return np.arange(bucket, size, self.buckets, dtype=np.uint64)  # as `bucket_of` has them


def listed(names: list[Key]) -> np.ndarray:
    """Return keys as an array of tuples, which numpy alone would take for a table."""
    column = np.empty(len(names), object)
    column[:] = names
    return column


def choose_parameters(
    _: bytes, packed: Iterable[bytes], program: Program, noise: Noise, draws: Draws
) -> tuple[int, Adaptive]:
    """Draw the bound and the centres from the votes of all bundles."""
    votes = adaptive.votes_of(program).merged([wire.unpack(blob) for blob in packed])
    return 0, draws.once("first", lambda: adaptive.choose(program, votes, noise))


def select_partitions(
    element: _Bucket, program: Program, noise: Noise, draws: Draws, chosen: Adaptive | None = None
) -> Iterator[tuple[int, tuple[int, Selected]]]:
    """Draw which partitions of a bucket are released, from the weights in all of them.

    The parts have one key, the bucket: all that are behind the barrier are of one draw.
    """
    bucket, packed = element
    program = adapted(program, chosen)

    def selected() -> Selected:
        summary, _ = open_bucket(packed, [Measure(WEIGHTS)] * len(program.request.caps))
        return named_partitions(
            bucket, summary, program.select(PartitionView.of_all(summary), noise)
        )

    whole = draws.once(f"selected-{bucket}", selected)
    for part in enumerate([*cut(whole)] or [whole]):
        yield bucket, part


def keep_nothing(
    _: bytes, weighed: Iterable[int], buckets: int, draws: Draws
) -> Iterator[tuple[int, tuple[int, Selected]]]:
    """Keep that nothing is selected in the buckets without weights; yield what was kept before."""
    for bucket in sorted(set(range(buckets)).difference(weighed)):
        kept = draws.once(f"selected-{bucket}", functools.partial(no_partitions, bucket))
        for part in enumerate(cut(kept)):
            yield bucket, part


def no_partitions(bucket: int) -> Selected:
    """Return that no partition of a bucket is selected."""
    return Selected(bucket, np.zeros((2, 0), np.uint64), listed([]))


def named_partitions(
    bucket: int, summary: Summary, kept: np.ndarray | slice = slice(None)
) -> Selected:
    """Return the partitions of a summary at the indexes `kept`, with their keys."""
    identities = pick(table.two_words(partitions(summary)), kept)
    pairs = zip(*identities.tolist(), strict=True)
    keys = listed([partition_keys.name_of(pair, summary.names) for pair in pairs])
    return Selected(bucket, identities, keys)


def covered_by(
    element: _Bucket,
    program: Program,
    partitions: BucketPartitions,
    chosen: Adaptive | None = None,
    selected: Sequence[Selected] | None = None,
) -> Iterator[np.ndarray]:
    """Yield what clips cover of the partitions of a bucket; it is private data."""
    program = adapted(program, chosen, selected)
    if element[0] != SHARED and program.covering:
        summary, lines = open_bucket(element[1], program.measures)
        view, _ = partitions.cells(element[0], summary, lines, selected)
        yield program.coverage(view)


def choose_clips(
    element: _Bucket,
    program: Program,
    noise: Noise,
    draws: Draws,
    chosen: Adaptive | None = None,
    selected: Sequence[Selected] | None = None,
    covered: Iterable[np.ndarray] = (),
) -> Iterator[tuple[int, tuple[np.ndarray, ...]]]:
    """Draw what chooses shared clips, of the summary over all partitions and what they cover."""
    if element[0] != SHARED:
        return
    program = adapted(program, chosen, selected)
    summary, _ = open_bucket(element[1], program.shared_measures)
    view = PartitionView(summary, np.zeros(len(summary), np.int64), 1)
    parts = [*covered]
    yield SHARED, draws.once("clips", lambda: program.choose_clips(view, noise, parts))


def draw_bucket(
    element: _Bucket,
    program: Program,
    partitions: BucketPartitions,
    noise: Noise,
    draws: Draws,
    clips: tuple[np.ndarray, ...] = (),
    chosen: Adaptive | None = None,
    selected: Sequence[Selected] | None = None,
) -> Iterator[_TOGETHER]:
    """Draw the numbers of the partitions of a bucket; yield its numbered blocks under the bucket.

    Bucket 0 yields `START` too. (Under one key, Flink puts what one worker draws into one record.)

    Args:
        element: all summaries of one bucket.
        program: the run's program.
        partitions: those of each bucket.
        noise: the randomness.
        draws: what keeps the draws of the run.
        clips: the histograms that choose the clips which all partitions share.
        chosen: what was chosen first.
        selected: the partitions that were selected, of all buckets; None: they are public.
    """
    bucket, packed = element
    if bucket == SHARED:
        return
    program = adapted(program, chosen, selected)

    def released() -> Block:
        summary, lines = open_bucket(packed, program.measures)
        view, keys = partitions.cells(bucket, summary, lines, selected)
        drawn = program.release(view.among(program.partitions or 1), clips, noise)
        return Block(keys, drawn=drawn, chosen=program.chosen)

    if bucket == 0:
        yield START, (0, Block(listed([])))
    for numbered in enumerate(cut(draws.once(f"bucket-{bucket}", released))):
        yield bucket, numbered


def stored(numbered: tuple[int, Iterable[Any]]) -> Any:
    """Return the one element behind a barrier: one draw, however often noise was drawn."""
    return next(iter(numbered[1]))


def behind_a_barrier(drawn: beam.PCollection[tuple[int, Any]], what: str) -> beam.PCollection[Any]:
    """Return the elements that were drawn, as they were stored."""
    grouped = drawn | f"Store{what}" >> beam.GroupByKey()
    return grouped | f"TakeStored{what}" >> quick_steps.mapped(stored)


def stored_together(grouped: tuple[int, Iterable[tuple[int, _Rows]]]) -> Iterator[_Rows]:
    """Yield one part of each number, in the order of the numbers; nothing of `START`."""
    parts: dict[int, _Rows] = {}
    for number, part in grouped[1] if grouped[0] != START else ():
        parts.setdefault(number, part)
    yield from (parts[number] for number in sorted(parts))


def started(grouped: tuple[int, Iterable[tuple[int, Block]]]) -> Iterator[bytes]:
    """Yield one empty element in all, with nothing of what was drawn."""
    if grouped[0] == START:
        yield b""


def sums_of(block: Block, program: Program) -> np.ndarray:
    """Return what the blocks of all partitions add up, so that they can be combined."""
    return adapted(program, block.chosen).sums(block.drawn)


def combined(block: Block, program: Program, sums: Iterable[np.ndarray] = ()) -> Block:
    """Return the output columns of a block of drawn numbers: a function of what was released.

    Args:
        block: what every step drew.
        program: the run's program.
        sums: `sums_of` every block.
    """
    taken = adapted(program, block.chosen)
    whole = added([np.zeros((len(taken.steps), SUMS)), *sums])
    return Block(block.keys, taken.combine(block.drawn, whole))


def added(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum of tables, rounded once: the same in each order that a side input may have."""
    cells = np.array(tables).reshape(len(tables), -1).T
    return np.array([math.fsum(cell) for cell in cells]).reshape(tables[0].shape)


def combined_all(_: bytes, blocks: Iterable[Block], program: Program) -> Iterator[Block]:
    """Yield every block, combined."""
    every = list(blocks)
    sums = [sums_of(block, program) for block in every]
    for block in every:
        yield combined(block, program, sums)


@dataclasses.dataclass(frozen=True)
class Drawn:
    """What was drawn, behind the barrier: for the record of the release.

    Attributes:
        source: the collection of all blocks, before they are combined.
        sides: the side inputs of the draw: what chose the shared clips (or none), and what was chosen
            first (`First.sides`).
        noise: what the draw draws with.
    """

    source: beam.PCollection[Block]
    sides: list[Any]
    noise: Noise


@dataclasses.dataclass(eq=False)
class ChooseParameters(beam.PTransform[beam.PCollection[bytes], beam.PCollection[Adaptive]]):
    """Turn the votes of people into the one choice, behind a barrier, even where nobody votes.

    Attributes:
        program: the run's program.
        noise: the randomness.
        draws: what keeps the draws of the run.
    """

    program: Program
    noise: Noise
    draws: Draws

    def expand(self, votes: beam.PCollection[bytes]) -> beam.PCollection[Adaptive]:
        """Gather the votes of all bundles, and draw."""
        given = beam.pvalue.AsIter(votes), self.program, self.noise, self.draws
        choose = quick_steps.mapped(choose_parameters, *given).with_output_types(
            tuple[int, Adaptive]
        )
        start = votes.pipeline | "StartFirst" >> beam.Impulse()
        return behind_a_barrier(start | "ChooseParameters" >> choose, "First")


@dataclasses.dataclass(eq=False)
class DrawSelection(beam.PTransform[beam.PCollection[_Bucket], beam.PCollection[Selected]]):
    """Turn (bucket, packed weights) into the selected partitions, behind a barrier.

    Nothing is selected in a bucket without weights. That is kept too: else the files of the draws
    would tell which buckets have some. What an earlier run selected there counts: the noise of the
    buckets that are drawn later is for the number of partitions selected in all.

    Attributes:
        program: the run's program.
        noise: the randomness.
        draws: what keeps the draws of the run.
        buckets: how many parts the partitions are cut into.
        chosen: the side input that says what was chosen before; None: nothing.
    """

    program: Program
    noise: Noise
    draws: Draws
    buckets: int
    chosen: Any = None

    def expand(self, weights: beam.PCollection[_Bucket]) -> beam.PCollection[Selected]:
        """Draw for every bucket."""
        given = self.program, self.noise, self.draws, self.chosen
        select = quick_steps.flat_mapped(select_partitions, *given)
        kind = tuple[int, tuple[int, Selected]]
        selected = weights | "SelectPartitions" >> select.with_output_types(kind)
        if not isinstance(self.draws, Barriers):
            weighed = beam.pvalue.AsIter(weights | "BucketsWithWeights" >> beam.Keys())
            keep = quick_steps.flat_mapped(keep_nothing, weighed, self.buckets, self.draws)
            start = weights.pipeline | "StartSelected" >> beam.Impulse()
            kept = start | "KeepNothing" >> keep.with_output_types(kind)
            # Both are committed draws: where debug logs show them, they show what is released.
            selected = (selected, kept) | "AllSelected" >> beam.Flatten()
        grouped = selected | "StoreSelected" >> beam.GroupByKey()
        return grouped | "TakeStoredSelected" >> quick_steps.flat_mapped(stored_together)


@dataclasses.dataclass(eq=False)
class DrawOnce(beam.PTransform[beam.PCollection[_Bucket], beam.PCollection[Block]]):
    """Turn (bucket, packed summaries) into released `Block`s, computed behind a barrier.

    Attributes:
        program: the run's program.
        partitions: the partitions of each bucket.
        noise: the randomness; only tests pass another.
        first: what was chosen first; None: nothing.
        draws: what keeps the draws of the run.
        combine: whether the blocks are combined here; else they are the stored draws.
        drawn: what was drawn, once this is applied.
    """

    program: Program
    partitions: BucketPartitions
    noise: Noise = dataclasses.field(default_factory=Noise)
    first: First | None = None
    draws: Draws = dataclasses.field(default_factory=Barriers)
    combine: bool = True
    drawn: Drawn = dataclasses.field(init=False)

    def expand(self, summaries: beam.PCollection[_Bucket]) -> beam.PCollection[Block]:
        """Choose shared clips, if any, then draw, each with a barrier behind; combine the rest."""
        how = self.noise, self.draws
        first = [None, None] if self.first is None else self.first.sides
        clips: Any = ()
        if self.program.shared_measures:
            asked: list[Any] = [self.program, *how, *first]
            if self.program.covering:
                cover = quick_steps.flat_mapped(covered_by, self.program, self.partitions, *first)
                asked.append(beam.pvalue.AsIter(summaries | "CoverValues" >> cover))
            choose = quick_steps.flat_mapped(choose_clips, *asked)
            typed = choose.with_output_types(tuple[int, tuple[np.ndarray, ...]])
            chosen = summaries | "ChooseClips" >> typed
            clips = beam.pvalue.AsSingleton(behind_a_barrier(chosen, "Clips"))
        sides = [clips, *first]
        given = self.program, self.partitions, *how, *sides
        draw = quick_steps.flat_mapped(draw_bucket, *given).with_output_types(_TOGETHER)
        grouped = summaries | "DrawNumbers" >> draw | "StoreNumbers" >> beam.GroupByKey()
        blocks = grouped | "TakeStoredNumbers" >> quick_steps.flat_mapped(stored_together)
        self.drawn = Drawn(blocks, sides, self.noise)
        if not self.combine:
            return blocks
        if guards.may_recompute(summaries.pipeline):  # all from a side input: the driver keeps it
            start = grouped | "StartCombining" >> quick_steps.flat_mapped(started)
            combine = quick_steps.flat_mapped(
                combined_all, beam.pvalue.AsIter(blocks), self.program
            )
            return start | "CombineNumbers" >> combine
        sums = []
        if self.program.shared_measures:
            added_up = blocks | "SumNumbers" >> quick_steps.mapped(sums_of, self.program)
            sums = [beam.pvalue.AsIter(added_up)]
        return blocks | "CombineNumbers" >> quick_steps.mapped(combined, self.program, *sums)


def as_rows(
    block: Block,
    names: Sequence[str],
    wholes: Sequence[bool],
    public: PublicKeys | None,
    suppress: Suppress | None = None,
) -> Iterator[beam.Row]:
    """Yield each row of a block under its names."""
    for key, numbers in _typed(block, wholes, suppress).rows(public):
        yield beam.Row(**dict(zip(names, (*key, *numbers), strict=True)))


def as_batches(block: Block, *how: Any) -> Iterator[pa.RecordBatch]:
    """Yield a block as batches, more than one where keys are long; the rest is as of `as_batch`."""
    for part, _ in wire.parts(block, lambda part: pickle.dumps(as_batch(part, *how))):
        yield as_batch(part, *how)


def as_batch(
    block: Block,
    names: Sequence[str],
    wholes: Sequence[bool],
    public: PublicKeys | None,
    suppress: Suppress | None = None,
) -> pa.RecordBatch:
    """Return a block as a batch under its names; it has public keys, or none."""
    keys = public.keys.columns if public is not None else ()
    indexes = pa.array(block.keys)
    kinds = [pa.int64() if whole else pa.float64() for whole in wholes]
    numbers = map(pa.array, _typed(block, wholes, suppress).numbers, kinds)
    return pa.RecordBatch.from_arrays([*(_part(part, indexes) for part in keys), *numbers], names)


def _part(keys: pa.Array, indexes: pa.Array) -> pa.Array:
    """Return one part of the keys at these indexes, with the type that a file of rows has."""
    taken = keys.take(indexes)
    return taken.cast(pa.string()) if pa.types.is_large_string(taken.type) else taken


def typed(column: np.ndarray, whole: bool) -> np.ndarray:
    """Return released numbers as int64, where they are whole, or as float64.

    Whole numbers saturate at 64 bits: a default grid ends at 2^63, and noise may pass it. That
    happens after the noise, so it tells nothing. One that is missing (NaN) is None.
    """
    if not whole:
        return column.astype(np.float64)
    if column.dtype == np.int64:
        return column
    if column.dtype == np.float64 and (np.abs(column) <= integers.WIDE).all():
        return column.astype(np.int64)
    pairs = zip(column.tolist(), np.isnan(column.astype(float)), strict=True)
    cells = [None if lacks else max(-_LARGEST, min(_LARGEST, int(n))) for n, lacks in pairs]
    return np.array(cells, object if None in cells else np.int64)


def _typed(block: Block, wholes: Sequence[bool], suppress: Suppress | None) -> Block:
    numbers = tuple(map(typed, block.numbers, wholes))
    return dataclasses.replace(block, numbers=numbers if suppress is None else suppress(numbers))

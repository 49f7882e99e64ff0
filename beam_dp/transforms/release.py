"""Draw the released numbers, once, and put a barrier behind them.

Beam may compute a collection again for every consumer and every retry. Noise that is drawn again is
a second release, so each draw is followed by a GroupByKey over the number of the block: what lies
behind it is computed from stored elements, on every runner of `guards.RUNNERS`. (A Reshuffle is the
same with more steps.) Elements are blocks of rows, so that the barrier costs nothing per row.

Two runners need more. Spark stores shuffles with its executors: when one is lost it draws again,
for those consumers that have not run yet, and another may have written its file. What survives
there is a side input, which the driver collects once (`BoundedDataset.getBytes` of Beam's runner)
and keeps as long as the job lives. Flink, told to restart, runs again whatever is joined by
exchanges that it does not store; it stores those of a step whose input and side input have one
origin. So on `guards.RECOMPUTING` all that is released comes from a side input; the step that reads
it is started by one empty element from the same GroupByKey, and so by nothing that was drawn. (No
step can hold off Flink when it restarts after the loss of a worker: the README says so.)
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.summaries.histograms import Summary, partitions
from beam_dp.mechanisms.summaries.owner_lines import Owned
from beam_dp.mechanisms.summaries.partition_view import Cells
from beam_dp.transforms import guards, keys, summary
from beam_dp.transforms.blocks import Block, cut
from beam_dp.transforms.columns import Layout

BLOCK_ROWS = 1 << 13
_FEW_PARTITIONS = 1 << 14
_MANY = 64
_NO_BLOCK = -1


def bucket_count(layout: Layout, keep_rows: bool = False) -> int:
    """Return how many parts the partitions are cut into: enough for many workers if many.

    Args:
        layout: which columns hold what.
        keep_rows: whether a partition comes with lines of its owners, not with a summary only.
    """
    if not layout.partition:
        return 1
    if keep_rows:
        return _MANY if layout.public is None else min(_MANY, len(layout.public))
    return 8 if layout.public is None or len(layout.public) > _FEW_PARTITIONS else 1


@dataclasses.dataclass(frozen=True)
class Places:
    """The partitions that a bucket releases, and how their keys are found.

    Attributes:
        layout: which columns hold what.
        buckets: how many parts the partitions are cut into.
    """

    layout: Layout
    buckets: int

    def cells(
        self, bucket: int, found: Summary, lines: Owned | None = None
    ) -> tuple[Cells, np.ndarray]:
        """Return the view on the partitions of a bucket, and their keys or places in the list."""
        public = self._public(bucket)
        if public is None:
            identities = partitions(found)
            pairs = zip(identities[0].tolist(), _second(identities), strict=True)
            return Cells.of_all(found, lines), _listed(
                [keys.name_of(pair, found.names) for pair in pairs]
            )
        places = _places(found.partition[0], public)
        owned_places = _places(lines.partition[0], public) if lines is not None else None
        return Cells(found, places, len(public), lines, owned_places), public.astype(np.int64)

    def names(self, keys_: np.ndarray) -> Sequence[keys.Key]:
        """Return the keys that `cells` gave."""
        return Block(keys_, ()).named(self.layout.public)

    def _public(self, bucket: int) -> np.ndarray | None:
        """Return the places in the public list that belong to the bucket, None if private."""
        if self.layout.partition and self.layout.public is None:
            return None
        size = len(self.layout.public) if self.layout.public is not None else 1
        everything = np.arange(size, dtype=np.uint64)
        buckets = summary.bucket_of(everything[None], self.buckets, self.layout.key)
        return everything[buckets == bucket]


def _listed(names: list[keys.Key]) -> np.ndarray:
    """Return keys as an array of tuples, which numpy alone would take for a table."""
    listed = np.empty(len(names), object)
    listed[:] = names
    return listed


def _places(partition: np.ndarray, public: np.ndarray) -> np.ndarray:
    """Return the place of each line's partition in a sorted list; -1 where it is not in it."""
    if not len(public):
        return np.full(len(partition), -1, np.int64)
    at = np.minimum(np.searchsorted(public, partition), len(public) - 1)
    return np.where(public[at] == partition, at, -1)


def _second(identities: np.ndarray) -> list[int]:
    return identities[1].tolist() if len(identities) > 1 else [0] * identities.shape[1]


class ChooseClips(beam.DoFn):
    """Draw the clips that all partitions share, from the summary over all of them.

    Args:
        program: the run's program.
        noise: the randomness.
    """

    def __init__(self, program: Program, noise: Noise) -> None:
        self._program, self._noise = program, noise

    def process(
        self, element: tuple[int, Iterable[bytes]]
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Take the one bucket that holds that summary."""
        if element[0] != summary.SHARED:
            return
        found = summary.open_summary(element[1], self._program.shared_measures)
        cells = Cells(found, np.zeros(len(found), np.int64), 1)
        yield summary.SHARED, self._program.choose_clips(cells, self._noise)


class Draw(beam.DoFn):
    """Draw everything that is released for the partitions of a bucket.

    Args:
        program: the run's program.
        places: the partitions of each bucket.
        noise: the randomness.
    """

    def __init__(self, program: Program, places: Places, noise: Noise) -> None:
        self._program, self._places, self._noise = program, places, noise

    def process(
        self, element: tuple[int, Iterable[bytes]], clips: tuple[int, ...] = ()
    ) -> Iterator[tuple[int, Block]]:
        """Take all summaries of one bucket; yield numbered blocks of rows."""
        bucket, packed = element
        if bucket == summary.SHARED:
            return
        found, lines = summary.open_bucket(packed, self._program.measures)
        cells, names = self._places.cells(bucket, found, lines)
        kept = self._program.select(cells, self._noise)
        drawn, shown = self._program.release(cells.select(kept), clips, self._noise)
        numbers = tuple(column for pair in drawn for column in pair)
        released = Block(names[kept], numbers, tuple(shown))
        for number, block in enumerate(cut(released, BLOCK_ROWS)):
            yield number * self._places.buckets + bucket, block


def stored(numbered: tuple[int, Iterable[Any]]) -> Any:
    """Return the one element behind a barrier: one draw, whatever was drawn before it."""
    return next(iter(numbered[1]))


def numbered_together(numbered: tuple[int, Block]) -> tuple[int, tuple[int, Block]]:
    """Return a numbered block under the one key that all blocks share."""
    return 0, numbered


def no_block(_: bytes) -> tuple[int, tuple[int, Block]]:
    """Return what makes the group of all blocks occur where there are none."""
    return 0, (_NO_BLOCK, Block(np.empty(0, object), ()))


def stored_together(grouped: tuple[int, Iterable[tuple[int, Block]]]) -> Iterator[Block]:
    """Yield one block of each number, in the order of the numbers."""
    blocks: dict[int, Block] = {}
    for number, block in grouped[1]:
        blocks.setdefault(number, block)
    blocks.pop(_NO_BLOCK)
    yield from (blocks[number] for number in sorted(blocks))


def started(_: tuple[int, Iterable[tuple[int, Block]]]) -> bytes:
    """Return nothing of a group but that it is there."""
    return b""


def judge(block: Block, shown: Iterable[tuple[float, ...]], program: Program) -> Block:
    """Return the block with infinite error bounds where a clip may have cut everybody.

    It reads released numbers only: the block, and what all blocks show.
    """
    doubtful = program.is_doubtful([sum(people) for people in zip(*shown, strict=True)])
    numbers = list(block.numbers)
    for place, doubt in enumerate(doubtful):
        if doubt:
            numbers[2 * place + 1] = np.full(len(block.keys), math.inf)
    return dataclasses.replace(block, numbers=tuple(numbers))


def judge_all(_: bytes, blocks: Iterable[Block], program: Program) -> Iterator[Block]:
    """Yield every block, judged."""
    held = list(blocks)
    for block in held:
        yield judge(block, [each.shown for each in held], program)


@dataclasses.dataclass(eq=False)
class Release(beam.PTransform):
    """Turn (bucket, packed summaries) into released `Block`s, computed behind a barrier.

    Attributes:
        program: the run's program.
        places: the partitions of each bucket.
        noise: the randomness; only tests give another.
    """

    program: Program
    places: Places
    noise: Noise = dataclasses.field(default_factory=Noise)

    def expand(self, summaries: beam.PCollection) -> beam.PCollection:
        """Choose shared clips, if any, then draw, each behind its barrier; judge the errors."""
        draw = beam.ParDo(Draw(self.program, self.places, self.noise), *self._clips(summaries))
        numbered = summaries | "Draw" >> draw
        if guards.may_recompute(summaries.pipeline):
            return self._kept_by_the_driver(numbered)
        blocks = numbered | "Barrier" >> beam.GroupByKey() | "Stored" >> beam.Map(stored)
        shown = beam.pvalue.AsIter(blocks | "Shown" >> beam.Map(lambda block: block.shown))
        return blocks | "Judge" >> beam.Map(judge, shown, self.program)

    def _kept_by_the_driver(self, numbered: beam.PCollection) -> beam.PCollection:
        """Judge all blocks, read from a side input.

        All have one key, so that one task hands them over: of each bucket the blocks of one draw.
        """
        nothing = numbered.pipeline | "Impulse" >> beam.Impulse() | "NoBlock" >> beam.Map(no_block)
        together = numbered | "Together" >> beam.Map(numbered_together)
        grouped = (together, nothing) | "All" >> beam.Flatten() | "Barrier" >> beam.GroupByKey()
        blocks = beam.pvalue.AsIter(grouped | "Stored" >> beam.FlatMap(stored_together))
        start = grouped | "Start" >> beam.Map(started)
        return start | "Judge" >> beam.FlatMap(judge_all, blocks, self.program)

    def _clips(self, summaries: beam.PCollection) -> list[beam.pvalue.AsSingleton]:
        if not self.program.shared_measures:
            return []
        choose = beam.ParDo(ChooseClips(self.program, self.noise))
        chosen = summaries | "ChooseClips" >> choose | "ClipsBarrier" >> beam.GroupByKey()
        return [beam.pvalue.AsSingleton(chosen | "StoredClips" >> beam.Map(stored))]

"""Put a barrier behind the draw, so that noise is drawn once, and judge the error bounds.

Beam may compute a collection again for every consumer and every retry. Noise that is drawn again is
a second release, so each draw is followed by a GroupByKey over the number of the block: the steps
behind it compute from stored elements, on every runner of `guards.RUNNERS`. (A Reshuffle is the
same with more steps.) Elements are blocks of rows, so that the barrier costs nothing per row.

Two runners need more. Spark stores shuffles with its executors: when an executor is lost, Spark
draws again for the consumers that have not run yet, while another consumer may have written its
file. On Spark a side input survives: the driver collects it once (`BoundedDataset.getBytes` of
Beam's runner) and keeps it as long as the job lives. Flink, told to restart, runs again all steps
that are joined by exchanges that it does not store; it stores the exchanges of a step whose input
and side input have one origin. So on `guards.RECOMPUTING` everything that is released comes from a
side input. One empty element from the same GroupByKey, and so nothing that was drawn, starts the
step that reads it. (No step prevents this when Flink restarts after the loss of a worker: the
README says so.)
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import Program
from beam_dp.transforms.steps import guards
from beam_dp.transforms.steps.draw import BucketPartitions, ChooseClips, Draw
from beam_dp.transforms.steps.released_block import Block

_NO_BLOCK = -1


def stored(numbered: tuple[int, Iterable[Any]]) -> Any:
    """Return the one element behind a barrier: one draw, however often noise was drawn."""
    return next(iter(numbered[1]))


def numbered_together(numbered: tuple[int, Block]) -> tuple[int, tuple[int, Block]]:
    """Return a numbered block under the key 0, which all blocks share."""
    return 0, numbered


def no_block(_: bytes) -> tuple[int, tuple[int, Block]]:
    """Return an element that makes the group of all blocks occur where there is no block."""
    return 0, (_NO_BLOCK, Block(np.empty(0, object), ()))


def stored_together(grouped: tuple[int, Iterable[tuple[int, Block]]]) -> Iterator[Block]:
    """Yield one block of each number, in the order of the numbers."""
    blocks: dict[int, Block] = {}
    for number, block in grouped[1]:
        blocks.setdefault(number, block)
    blocks.pop(_NO_BLOCK)
    yield from (blocks[number] for number in sorted(blocks))


def started(_: tuple[int, Iterable[tuple[int, Block]]]) -> bytes:
    """Return an empty element for a group, with nothing of its content."""
    return b""


def judge(block: Block, shown: Iterable[tuple[float, ...]], program: Program) -> Block:
    """Return the block with infinite error bounds where a clip may have cut everybody.

    It reads released numbers only: the block, and the `shown` of all blocks.
    """
    doubtful = program.is_doubtful([sum(people) for people in zip(*shown, strict=True)])
    numbers = list(block.numbers)
    for index, doubt in enumerate(doubtful):
        if doubt:
            numbers[2 * index + 1] = np.full(len(block.keys), math.inf)
    return dataclasses.replace(block, numbers=tuple(numbers))


def judge_all(_: bytes, blocks: Iterable[Block], program: Program) -> Iterator[Block]:
    """Yield every block, judged."""
    every = list(blocks)
    for block in every:
        yield judge(block, [other.shown for other in every], program)


@dataclasses.dataclass(eq=False)
class DrawOnce(
    beam.PTransform[beam.PCollection[tuple[int, Iterable[bytes]]], beam.PCollection[Block]]
):
    """Turn (bucket, packed summaries) into released `Block`s, computed behind a barrier.

    Attributes:
        program: the run's program.
        places: the partitions of each bucket.
        noise: the randomness; only tests pass another.
    """

    program: Program
    places: BucketPartitions
    noise: Noise = dataclasses.field(default_factory=Noise)

    def expand(
        self, summaries: beam.PCollection[tuple[int, Iterable[bytes]]]
    ) -> beam.PCollection[Block]:
        """Choose shared clips, if any, then draw, each with a barrier behind; judge the errors."""
        draw = beam.ParDo(Draw(self.program, self.places, self.noise), *self._clips(summaries))
        numbered = summaries | "Draw" >> draw
        if guards.may_recompute(summaries.pipeline):
            return self._kept_by_the_driver(numbered)
        blocks = numbered | "Barrier" >> beam.GroupByKey() | "Stored" >> beam.Map(stored)
        shown = beam.pvalue.AsIter(blocks | "Shown" >> beam.Map(lambda block: block.shown))
        return blocks | "Judge" >> beam.Map(judge, shown, self.program)

    def _kept_by_the_driver(
        self, numbered: beam.PCollection[tuple[int, Block]]
    ) -> beam.PCollection[Block]:
        """Judge all blocks, read from a side input.

        All have one key, so that one task passes them on: of each bucket the blocks of one draw.
        """
        nothing = numbered.pipeline | "Impulse" >> beam.Impulse() | "NoBlock" >> beam.Map(no_block)
        together = numbered | "Together" >> beam.Map(numbered_together)
        grouped = (together, nothing) | "All" >> beam.Flatten() | "Barrier" >> beam.GroupByKey()
        blocks = beam.pvalue.AsIter(grouped | "Stored" >> beam.FlatMap(stored_together))
        start = grouped | "Start" >> beam.Map(started)
        return start | "Judge" >> beam.FlatMap(judge_all, blocks, self.program)

    def _clips(
        self, summaries: beam.PCollection[tuple[int, Iterable[bytes]]]
    ) -> list[beam.pvalue.AsSingleton]:
        if not self.program.shared_measures:
            return []
        choose = beam.ParDo(ChooseClips(self.program, self.noise))
        chosen = summaries | "ChooseClips" >> choose | "ClipsBarrier" >> beam.GroupByKey()
        return [beam.pvalue.AsSingleton(chosen | "StoredClips" >> beam.Map(stored))]

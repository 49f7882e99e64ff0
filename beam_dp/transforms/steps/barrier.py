"""Put a barrier behind the draw, so that released numbers are drawn once, and judge their errors.

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
    places: BucketPartitions
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

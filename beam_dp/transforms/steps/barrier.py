"""Put a barrier behind the draw, so that noise is drawn once, then combine what was drawn.

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
step that reads it. No step helps where Flink restarts after the loss of a worker: a folder does, in
which draws are kept (`steps.kept_draws`).
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.first_choices import Chosen
from beam_dp.mechanisms.planning.program import Program
from beam_dp.transforms.steps import guards, quick_steps
from beam_dp.transforms.steps.draw import Block, BucketPartitions, ChooseClips, Draw
from beam_dp.transforms.steps.kept_draws import Barriers, Draws

_NO_BLOCK = -1
_TOGETHER = tuple[int, tuple[int, Block]]


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


def sums_of(block: Block, program: Program) -> np.ndarray:
    """Return what the blocks of all partitions add up, so that they can be combined."""
    return program.at(block.chosen).sums(block.drawn)


def combined(block: Block, program: Program, sums: Iterable[np.ndarray] = ()) -> Block:
    """Return the output columns of a block of drawn numbers: a function of what was released.

    Args:
        block: what every step drew.
        program: the run's program.
        sums: `sums_of` every block.
    """
    taken = program.at(block.chosen)
    whole = added([np.zeros((len(taken.steps), 2)), *sums])
    return Block(block.keys, taken.combine(block.drawn, whole))


def added(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum of tables, rounded once: a side input has no order, and may be read again."""
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
    """What was drawn, behind the barrier, as side inputs: for the record of the release.

    Attributes:
        source: the collection of all blocks, before they are combined.
        blocks: the same as a side input.
        sides: the side inputs of the draw: what chose the shared clips (or none), and the choice of
            the bound on partitions where that was not given.
        noise: what the draw draws with.
    """

    source: beam.PCollection[Block]
    blocks: Iterable[Block]
    sides: list[Any]
    noise: Noise


@dataclasses.dataclass(eq=False)
class DrawOnce(
    beam.PTransform[beam.PCollection[tuple[int, Iterable[bytes]]], beam.PCollection[Block]]
):
    """Turn (bucket, packed summaries) into released `Block`s, computed behind a barrier.

    Attributes:
        program: the run's program.
        partitions: the partitions of each bucket.
        noise: the randomness; only tests pass another.
        chosen: the choice of the bound, behind a barrier; None: the bound was given.
        draws: what keeps the draws of the run.
    """

    program: Program
    partitions: BucketPartitions
    noise: Noise = dataclasses.field(default_factory=Noise)
    chosen: beam.PCollection[Chosen] | None = None
    draws: Draws = dataclasses.field(default_factory=Barriers)
    drawn: "Drawn" = dataclasses.field(init=False)

    def expand(
        self, summaries: beam.PCollection[tuple[int, Iterable[bytes]]]
    ) -> beam.PCollection[Block]:
        """Choose shared clips, if any, then draw, each with a barrier behind; combine the rest."""
        sides = [*self._clips(summaries), *self._reach]
        drawing = Draw(self.program, self.partitions, self.noise, self.draws)
        draw = beam.ParDo(drawing, *sides).with_output_types(tuple[int, Block])
        numbered = summaries | "DrawNumbers" >> draw
        if guards.may_recompute(summaries.pipeline):
            return self._kept_by_the_driver(numbered, sides)
        blocks = (
            numbered
            | "StoreNumbers" >> beam.GroupByKey()
            | "TakeStoredNumbers" >> quick_steps.mapped(stored)
        )
        self.drawn = Drawn(blocks, beam.pvalue.AsIter(blocks), sides, self.noise)
        if not self.program.spreads:
            return blocks | "CombineNumbers" >> quick_steps.mapped(combined, self.program)
        sums = beam.pvalue.AsIter(
            blocks | "SumNumbers" >> quick_steps.mapped(sums_of, self.program)
        )
        return blocks | "CombineNumbers" >> quick_steps.mapped(combined, self.program, sums)

    def _kept_by_the_driver(
        self, numbered: beam.PCollection[tuple[int, Block]], sides: list[Any]
    ) -> beam.PCollection[Block]:
        """Combine all blocks, read from a side input.

        All have one key, so that one task passes them on: of each bucket the blocks of one draw.
        """
        none = quick_steps.mapped(no_block).with_output_types(_TOGETHER)
        nothing = numbered.pipeline | "StartBlocks" >> beam.Impulse() | "AddNoBlock" >> none
        keyed = quick_steps.mapped(numbered_together).with_output_types(_TOGETHER)
        together = numbered | "KeyBlocksTogether" >> keyed
        grouped = (
            (together, nothing)
            | "FlattenBlocks" >> beam.Flatten()
            | "StoreNumbers" >> beam.GroupByKey()
        )
        source = grouped | "TakeStoredNumbers" >> quick_steps.flat_mapped(stored_together)
        blocks = beam.pvalue.AsIter(source)
        self.drawn = Drawn(source, blocks, sides, self.noise)
        start = grouped | "StartCombining" >> quick_steps.mapped(started)
        return start | "CombineNumbers" >> quick_steps.flat_mapped(
            combined_all, blocks, self.program
        )

    @property
    def _reach(self) -> list[beam.pvalue.AsSingleton]:
        return [] if self.chosen is None else [beam.pvalue.AsSingleton(self.chosen)]

    def _clips(self, summaries: beam.PCollection[tuple[int, Iterable[bytes]]]) -> list[Any]:
        if not self.program.shared_measures:
            return [()]
        choose = beam.ParDo(ChooseClips(self.program, self.noise, self.draws), *self._reach)
        typed = choose.with_output_types(tuple[int, tuple[np.ndarray, ...]])
        chosen = summaries | "ChooseClips" >> typed | "StoreClips" >> beam.GroupByKey()
        return [beam.pvalue.AsSingleton(chosen | "TakeStoredClips" >> quick_steps.mapped(stored))]

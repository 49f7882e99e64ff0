"""Votes of blocks of people, for a user's function of unknown sensitivity.

The people of a partition are cut into a public number of disjoint blocks by a keyed hash of their
identity. A user's function is asked once per block, with that block's numbers only, and its answer
is the block's vote: the index of a candidate. So one person, with all their rows, changes the vote
of one block at most, whatever the function is ("subsample and aggregate": Nissim, Raskhodnikova,
Smith 2007, section 4). That holds for every key. People who share a block by chance remain
different people in it: each is known by their whole identity (`owner_lines`).
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.numerics.integers import scale
from beam_dp.mechanisms.numerics.user_functions import plain_number
from beam_dp.mechanisms.summaries import person_value
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation

BlockFunction = Callable[[np.ndarray], Any]
"""A number for the values of people: one float per person, in increasing order."""


def vote_of(fresh: Callable[[], BlockFunction], values: np.ndarray) -> float | None:
    """Return the number that a user's function gives for some values; None if it is not finite.

    Args:
        fresh: makes the function; it may fail like the function itself.
        values: an array that the function may change.
    """
    # A boundary to a user's function on private data: nothing of an error is kept, be it
    # SystemExit, a KeyboardInterrupt that the function raises, or too deep a recursion.
    with contextlib.suppress(BaseException), np.errstate(all="ignore"):
        answer = float(plain_number("BlackBox", fresh()(values)))
        return answer if math.isfinite(answer) else None
    return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockRelation(Relation):
    """A relation whose lines become the votes of blocks before the draw.

    Attributes:
        blocks: the public number of blocks.
        person_value: what a person's values become.
        unit: what one unit of a value is worth.
        candidates: a vote is rounded up to one of them; above all of them it is the last one.
        function: the user's function.
    """

    blocks: int
    person_value: str
    unit: Fraction
    candidates: Candidates
    function: BlockFunction

    def block(self, lines: Owned) -> np.ndarray:
        """Return the block of each line, which its person and the run's key decide."""
        return np.asarray((lines.person[0] % np.uint64(self.blocks)).astype(np.int64))

    def votes(self, lines: Owned, fresh: Callable[[], BlockFunction]) -> Owned:
        """Return a line (partition, block, index of a candidate) for each block that votes.

        Args:
            lines: of this relation; all lines of each block that occurs.
            fresh: makes the function for each block, with as little state of earlier calls as
                possible.
        """
        block = self.block(lines)
        order = np.lexsort((*lines.person, block, *lines.partition))
        lines, block = lines.take(order), block[order]
        new_block = ordering.changes(lines.partition) | ordering.changes(block[None])
        starts = np.flatnonzero(new_block | ordering.changes(lines.person))
        numbers = person_value.of_people(self.person_value, lines.item, lines.count, starts)
        blocks = np.split(
            scale(numbers, self.unit).astype(float), np.flatnonzero(new_block[starts])[1:]
        )
        votes = [vote_of(fresh, np.sort(people)) for people in blocks if len(people)]
        voting = np.array([vote is not None for vote in votes], bool)
        heads = np.flatnonzero(new_block)[voting]
        answers = np.array([vote for vote in votes if vote is not None], float)
        return Owned(
            partition=ordering.pick(lines.partition, heads),
            relation=lines.relation[heads],
            person=block[heads].astype(np.uint64)[None],
            item=np.minimum(self.candidates.indexes(answers), self.candidates.size - 1),
            count=np.ones(len(heads), np.int64),
        )

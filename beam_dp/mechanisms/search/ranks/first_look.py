"""FirstLook: for a small part of the budget, about how many people there are, and where many are.

A walk with a large floor that passes few candidates at a time, the *edges*, and then two questions
about all people. It ends at the first thing that it takes for true: an edge that many people are at
or beyond, or one of the questions.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.search.ranks.node import Node
from beam_dp.mechanisms.search.ranks.weight_walk import WeightWalk

STEP = 4096
"""How many candidates are between two edges: four digits have 9,000 in a decade."""

EDGES = 1 << 12
"""So many edges at most: they are further apart where candidates are very many."""

FARTHER = 4
"""By so much less each further stretch of candidates beyond an edge weighs; see `stretches`."""


class Line(NamedTuple):
    """People in the order of a walk; private data.

    Attributes:
        indexes: how many candidates are passed before each place where somebody is, rising.
        sums: how much people have before each of these, and in all, in units of 1 / D.
        size: how many candidates there are.
    """

    indexes: np.ndarray
    sums: np.ndarray
    size: int

    @classmethod
    def of(cls, node: Node, upper: bool) -> "Line":
        """Return the people of a node, from the top or from the bottom."""
        indexes, amounts = node.buckets - node.first, node.amounts
        if upper:
            indexes, amounts = (node.size - 1 - indexes)[::-1], amounts[::-1]
        sums = np.append(integers.narrow(np.array([0])), integers.running_sums(amounts))
        return cls(indexes, sums, node.size)

    @property
    def total(self) -> int:
        """How much all people have."""
        return int(self.sums[-1])

    def reached(self, indexes: np.ndarray) -> np.ndarray:
        """Return what people have at or before each place."""
        return np.asarray(self.sums[np.searchsorted(self.indexes, indexes, side="right")])


class Sight(NamedTuple):
    """What a first look ends with; it may be released.

    Attributes:
        edge: a place that many people are at or before; None: no such place was seen.
        people: n is likely to be so large; 0: nothing is known.
    """

    edge: int | None
    people: Fraction


class FirstLook(NamedTuple):
    """The levels of a first look; all is public.

    It is e-DP when one person is added or removed, of bounded range 2 e: it is a `WeightWalk`
    whose levels do not move, over the edges and then over the questions, in falling order. A person
    is at or beyond an edge if they are at or beyond one before, and counts for all questions.

    Attributes:
        rate: e, per person.
        level: how many people must be at or beyond an edge; see `level_for`.
        questions: what n is compared with, falling, in people.
        resolution: D.
    """

    rate: Fraction
    level: Fraction
    questions: Sequence[Fraction]
    resolution: int

    def see(self, line: Line, noise: Noise) -> Sight:
        """Return what is seen first: a private draw."""
        stop = self._walk(line).stop(noise)
        sights = self._sights(line.size)
        return sights[-1] if stop is None else sights[stop.run]

    def chances(self, line: Line) -> list[tuple[Sight, float]]:
        """Return all that may be seen, with the exact chances."""
        return list(zip(self._sights(line.size), self._walk(line).chances(), strict=True))

    def _walk(self, line: Line) -> WeightWalk:
        edges = line.reached(_edges(line.size))
        everybody = np.repeat(line.sums[-1:], len(self.questions))
        levels = [self._units(level) for level in (self.level, *self.questions)]
        counts = [len(edges), *([1] * len(self.questions))]
        units = np.repeat(integers.narrow(np.array(levels, object)), counts)
        needs = integers.add(units, -integers.concatenate([edges, everybody]))
        return WeightWalk(self.rate / self.resolution, needs, np.ones(len(needs), np.int64))

    def _sights(self, size: int) -> list[Sight]:
        """Return what each stop stands for, and what it means to pass all."""
        seen = [Sight(edge, self.level) for edge in _edges(size).tolist()]
        return [*seen, *(Sight(None, each) for each in self.questions), Sight(None, Fraction(0))]

    def _units(self, people: Fraction) -> int:
        return math.ceil(people * self.resolution)


def level_for(rate: Fraction, outer: int, chance: float) -> float:
    """Return a level for edges: of so many candidates without anybody, one is seen with `chance`.

    M edges of the level T have the chance M e^(-e T) / 2 together, fewer edges a smaller one.
    """
    edges = max(1, outer // STEP)
    return max(0.0, math.log(edges / (2 * chance))) / float(rate)


def _edges(size: int) -> np.ndarray:
    """Return where edges are, from the outside: every `STEP` candidates, or `EDGES` in all."""
    step = max(STEP, -(-size // EDGES))
    return np.arange(step, size, step, dtype=np.int64)


def stretches(edge: int) -> tuple[tuple[int, ...], int]:
    """Return where the stretches beyond an edge end, and what all weigh in candidates of the first.

    The first one has `STEP` candidates, each further one twice as many, of a quarter of the weight.
    """
    lengths = (STEP << i for i in itertools.count())
    cuts, weight, index, part = [], 0.0, edge, 1.0
    while index > 0:
        length = min(next(lengths), index)
        index, weight, part = index - length, weight + part * length, part / FARTHER
        cuts.append(index)
    return tuple(cut for cut in cuts if cut), math.ceil(weight)

"""A game of two players with a sparse matrix, solved about, in floating point.

    min over r of max over mu of    sum of mu_g C_g - sum of mu_g D_gi r_i

for r in [0, 1] with a sum of at most `most`, and mu >= 0 with a sum of 1: a linear program in which
one step of the primal-dual method costs two products with D (Chambolle and Pock 2011, J. Math.
Imaging Vis. 40). Steps go twice as far, and part of the way back to where they began, and begin
again where they have come closer (Lu and Yang 2024, "Restarted Halpern PDHG for linear
programming", arXiv 2407.16144): that converges linearly. Players who are alike, and start alike,
stay alike.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

_STEPS = 400
_CHECKED = 8  # steps between two looks at the bounds
_GOOD, _BETTER = 0.2, 0.8  # parts of the gap at its start with which it starts again
_LONG = 0.36  # part of all steps after which it does anyway
_SKEW = 10  # how far the weight of a step may go from the given one
_POWERS = 12  # products that estimate the norm of D
_NEWTON, _EXACT = 40, 1e-10


class Sides(NamedTuple):
    """A lower and an upper bound of the value."""

    low: float
    high: float

    @property
    def gap(self) -> float:
        """How far apart they are."""
        return self.high - self.low

    def within(self, other: Sides) -> Sides:
        """Return what is known from both."""
        return Sides(max(self.low, other.low), min(self.high, other.high))


class Strategies(NamedTuple):
    """Both players, and what they do: r, mu, the loads D^T mu, and the losses D r."""

    removed: np.ndarray
    groups: np.ndarray
    loads: np.ndarray
    losses: np.ndarray


@dataclass
class MatrixGame:
    """Players with r against groups with weights mu: min over r of max over mu of mu (C - D r).

    r is in [0, 1] and adds up to `most` at most; mu is at least 0 and adds up to 1.

    Attributes:
        matrix: D, sparse, at least 0.
        sums: C.
        most: at least 0.
        weight: how far mu goes in a step beside r.
    """

    matrix: Any
    sums: np.ndarray
    most: float
    weight: float

    def __post_init__(self) -> None:
        """Remember the weight."""
        self.usual, self.shift = self.weight, 0.0

    @functools.cached_property
    def turned(self) -> Any:
        """The transpose of D."""
        return self.matrix.T.tocsr()

    @functools.cached_property
    def norm(self) -> float:
        """About the largest singular value of D."""
        vector, size = np.ones(self.matrix.shape[1]), 1.0
        for _ in range(_POWERS):
            vector = self.turned @ (self.matrix @ (vector / size))
            size = float(np.linalg.norm(vector))
        return max(math.sqrt(size) * 1.05, 1e-9)

    def at(self, removed: np.ndarray, groups: np.ndarray) -> Strategies:
        """Return a point with what its players do."""
        return Strategies(removed, groups, self.turned @ groups, self.matrix @ removed)

    def moved(self, point: Strategies) -> Strategies:
        """Return the next point."""
        ahead = point.removed + point.loads / (self.norm * self.weight)
        removed, self.shift = shifted(ahead, self.most, self.shift)
        losses = self.matrix @ removed
        gains = self.sums - 2 * losses + point.losses
        groups = shares(point.groups + gains * (self.weight / self.norm))
        return Strategies(removed, groups, self.turned @ groups, losses)

    def sides(self, point: Strategies) -> Sides:
        """Return the bounds of a point, about."""
        low = point.groups @ self.sums - largest_sum(point.loads, self.most)
        return Sides(float(low), float((self.sums - point.losses).max()))

    def best(
        self, start: Strategies, enough: Callable[[Sides], bool]
    ) -> tuple[np.ndarray, np.ndarray, Sides]:
        """Return the best r and mu from a start, and their bounds.

        Args:
            start: where to begin.
            enough: whether bounds are close.
        """
        sides, removed, groups = Sides(-math.inf, math.inf), start.removed, start.groups
        for one, bounds in self.points(start):
            removed = one.removed if bounds.high < sides.high else removed
            groups = one.groups if bounds.low > sides.low else groups
            sides = sides.within(bounds)
            if enough(sides):
                break
        return removed, groups, sides

    def points(self, start: Strategies) -> Iterator[tuple[Strategies, Sides]]:
        """Yield points that come closer to a solution, with their bounds."""
        sides = self.sides(start)
        yield start, sides
        point, anchor, first, last, count = start, start, sides.gap, sides.gap, 0
        for step in range(1, _STEPS + 1):
            near, count = self.moved(point), count + 1
            point = _blended(near, point, anchor, count / (count + 1))
            if step % _CHECKED:
                continue
            sides = self.sides(near)
            yield near, sides
            before, last = last, sides.gap
            worse = before < last < _BETTER * first
            if last < _GOOD * first or worse or count > _LONG * step:
                self._balance(anchor, near)
                point = anchor = near
                first, count = last, 0

    def _balance(self, before: Strategies, after: Strategies) -> None:
        """Let mu go as far beside r as it went from one start to the next."""
        steps = [float(np.linalg.norm(after[side] - before[side])) for side in (0, 1)]
        if min(steps) > 0:
            weight = math.sqrt(self.weight * steps[1] / steps[0])
            self.weight = min(max(weight, self.usual / _SKEW), self.usual * _SKEW)


def _blended(near: Strategies, point: Strategies, anchor: Strategies, part: float) -> Strategies:
    """Return a part of a step of twice the length, and for the rest the anchor."""
    triples = zip(near, point, anchor, strict=True)
    return Strategies(*(part * (2 * to - at) + (1 - part) * home for to, at, home in triples))


def largest_sum(numbers: np.ndarray, most: float) -> float:
    """Return the sum of the largest numbers, as many as `most` at most."""
    cut = max(0, len(numbers) - int(most))
    if cut == len(numbers):
        return 0.0
    return float(np.partition(numbers, cut)[cut:].sum())


def shares(numbers: np.ndarray) -> np.ndarray:
    """Return the nearest numbers of at least 0 that add up to 1 (Michelot 1986); one at least."""
    above, size, cut = numbers - numbers.max(), 0, 0.0
    below = above
    while len(above) != size:
        size, cut = len(above), float(above.sum() - 1) / len(above)
        above = above[above > cut]
    return np.asarray(np.maximum(below - cut, 0))


def shifted(numbers: np.ndarray, most: float, shift: float = 0.0) -> tuple[np.ndarray, float]:
    """Return about the nearest numbers between 0 and 1 that add up to at most `most`, and a shift.

    They are the numbers less the shift, cut: their sum falls with it, and Newton's steps find it.

    Args:
        numbers: any.
        most: at least 0.
        shift: where to begin.
    """
    low, high = 0.0, float(numbers.max(initial=0))
    shift = shift if low <= shift < high and len(numbers) > most else 0.0
    for _ in range(_NEWTON):
        cut = np.minimum(np.maximum(numbers - shift, 0), 1)
        over = float(cut.sum()) - most
        if abs(over) <= _EXACT * most or (over < 0 and shift == 0):
            break
        low, high = (shift, high) if over > 0 else (low, shift)
        inside = int(np.count_nonzero((cut > 0) & (cut < 1)))
        shift = shift + over / inside if inside else math.inf
        shift = shift if low <= shift < high else (low + high) / 2
    return cut, shift

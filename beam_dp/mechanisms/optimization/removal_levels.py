"""The profile B[0..K] of the program of `removal_program`, certain however it was found.

    B[k] = g(LP[k]),    g(v) = ceil(v - c),  c = sqrt(2) - 1.

g never falls, so B interlaces as LP does. g(n) = n for integers, so that B[0] is exact and B[k] is
at most the exact profile, an integer above LP[k]. And B[k] > LP[k] - c: rounding loses less than
half a row.

Privacy needs B to be a function of the data: if rounding errors could decide, one person might move
them. They cannot, as LP[k] is rational (a vertex of a polyhedron with integer coefficients) and the
points n + c where B jumps are not: bounds of LP[k] that are exact and close enough always have the
same B. (With a rational c some LP[k] would be such a point, and no bounds would do.)

*Few programs are solved.* The weights that prove a bound at k prove bounds for all k. LP is convex,
so that above any two k it is below their chord. And whom the solution at k removes first is a good
guess for all smaller k. The next k is the one where the bounds are farthest apart.

*Few groups matter to few removals.* Leave out groups with sums of at most s, an integer, where
LP[h] >= s. For k <= h what is left of them is at most s <= LP[h] <= LP[k], so that LP[k] is at most
the larger of s and of LP[k] of the other groups; and it is at least both. So is B[k], for g(s) = s.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.matrix_game import Sides
from beam_dp.mechanisms.optimization import highs_model
from beam_dp.mechanisms.optimization.removal_bounds import (
    BaseLosses,
    RemovalBounds,
    Touched,
    Weights,
)
from beam_dp.mechanisms.optimization.removal_game import RemovalGame
from beam_dp.mechanisms.optimization.removal_program import RemovalProgram
from beam_dp.mechanisms.optimization.removal_proposals import INSIDE, Guess, RemovalProposals

_LEAST, _MOST = 30, 44  # bits that are kept of bounds
_NARROW = 62  # bits of a number that numpy holds
_MANY = 1000  # rows from which HiGHS may be slower than the game
_FEW = 64  # groups below which HiGHS is faster
_VARIED = 1000  # groups of shared rows from which interior points are faster than HiGHS
_TINY = 1000  # numbers in a tableau below which rational numbers are faster than HiGHS

_NOTHING = Touched(*(np.zeros(0, np.int64) for _ in range(3)))


def rounded(numerator: int, denominator: int) -> int:
    """Return g of a fraction v.

    It is ceil((P - Q sqrt(2)) / Q) for P / Q = v + 1. With s the root of 2 Q^2, rounded down, that
    is s < Q sqrt(2) < s + 1, an integer n Q is at least P - Q sqrt(2) if and only if it is at least
    P - s.

    Args:
        numerator: of v.
        denominator: of v, at least 1.
    """
    shift = math.isqrt(2 * denominator * denominator) - denominator
    return -((shift - numerator) // denominator)


class RemovalLevels:
    """Bounds of LP[0..K], times 2^bits, that come closer until B of both is the same.

    Attributes:
        order: whom the last solution removes first.
    """

    def __init__(self, program: RemovalProgram, removals: int) -> None:
        """Begin with what is known without a solution."""
        total = int(program.weights.astype(object).sum())
        # Nothing is left without all people.
        self.program, self.beyond = program, max(0, removals - program.people)
        self.removals = removals = removals - self.beyond
        self.bits = min(_MOST, max(_LEAST, 58 - total.bit_length()))
        self.bounds = RemovalBounds(program)
        # Interior points come first where the simplex method is slow.
        varied = len(self.bounds.sums) >= _VARIED
        self.varied = varied and len(program.shared) >= _MANY
        one, top = 1 << self.bits, int(self.bounds.sums.max())
        none = np.zeros(0, np.int64)
        groups = np.zeros(len(self.bounds.sums), np.int64)
        groups[int(self.bounds.sums.argmax())] = one
        self.low = self.bounds.lowers(Weights(groups, none, none, none), removals, self.bits)
        self.high = np.full(removals + 1, top * one, object)
        self.known: dict[int, int] = {0: top}
        self.order = none
        if removals == program.people:
            self.high[removals] = 0

    @functools.cached_property
    def proposals(self) -> RemovalProposals:
        """What HiGHS proposes."""
        return RemovalProposals.of(self.bounds, self.removals)

    def values(self) -> list[int]:
        """Return B[0..K]."""
        if self.varied:
            self._divide()
        while unknown := self._unknown():
            self._settle(max(unknown, key=lambda k: (self.high[k] - self.low[k], k)))
        return self._sides()[0] + [0] * self.beyond

    def _divide(self) -> None:
        """Take B of few removals from the groups that matter to them, where half of all do not."""
        last = self.removals
        while last:
            if last in self._unknown():
                self._settle(last)
            small = self.bounds.sums <= int(self.low[last]) >> self.bits
            if 2 * np.count_nonzero(small) >= len(small) and not small.all():
                self._take_few(last - 1, small)
                return
            last //= 2

    def _take_few(self, removals: int, small: np.ndarray) -> None:
        """Take B[0..removals] from the groups without these flags."""
        most = int(self.bounds.sums[small].max())
        few = RemovalLevels(self.program.of_groups(~small), removals)
        few.varied = True
        for k, level in enumerate(few.values()):
            self.known.setdefault(k, max(level, most))

    def _unknown(self) -> list[int]:
        """Return all k whose B[k] is not known."""
        low, high = self._sides()
        return [k for k in range(self.removals + 1) if low[k] != high[k]]

    def loss(self, level: int, first: int = 0) -> int:
        """Return the least k from `first` on with B[k] <= level, K + 1 if there is none."""
        while True:
            low, high = self._sides()
            least = next((k for k, value in enumerate(low) if value <= level), self.removals + 1)
            most = next((k for k, value in enumerate(high) if value <= level), self.removals + 1)
            least = max(least, first)
            if least >= most:
                return least
            self._settle((least + most) // 2)

    def _sides(self) -> tuple[list[int], list[int]]:
        """Return lower and upper bounds of B, which do not rise with k, as LP does not."""
        one = 1 << self.bits
        low = [rounded(int(bound), one) for bound in self.low]
        high = [rounded(int(bound), one) for bound in self.high]
        for k, value in self.known.items():
            low[k] = high[k] = value
        return list(itertools.accumulate(low[::-1], max))[::-1], list(
            itertools.accumulate(high, min)
        )

    def _settle(self, k: int) -> None:
        """Compute B[k], and use its proof for all other k."""
        if self.program.numbers > _TINY:
            if self._played(k):
                return
            for way in self._ways:
                if self._guessed(k, way):
                    return
        value = self.program.solved(k)
        self.known[k] = rounded(*value.as_integer_ratio())
        self.low[k] = max(self.low[k], math.floor(value * (1 << self.bits)))
        self.high[k] = min(self.high[k], math.ceil(value * (1 << self.bits)))
        self.high = _convex(self.high)

    def _played(self, k: int) -> bool:
        """Compute B[k] by guesses of the game; return whether they came close enough."""
        if not self._playable:
            return False
        one, decided = 1 << self.bits, False
        known = Sides(int(self.low[k]) / one, int(self.high[k]) / one)
        for guess in self._game.guesses(k, self.bits, known):
            lines = self.bounds.lines.chosen(guess.removed[self.bounds.lines.people] > 0)
            decided = self._decides(guess, k, _NOTHING, lines)
            self._extend(self._game.order(self.removals), _NOTHING)
            if decided and not self._unknown():
                break
        return decided

    @property
    def _ways(self) -> list[int]:
        """How programs are solved, in this order."""
        return [INSIDE] * self.varied + list(range(len(highs_model.WAYS)))

    @functools.cached_property
    def _playable(self) -> bool:
        """Whether the game is known to be fast where HiGHS is slow."""
        program, groups = self.program, len(self.bounds.sums)
        if len(program.shared) or len(program.values) < _MANY or groups < _FEW:
            return False
        return len(self._game.groups) >= _FEW

    @functools.cached_property
    def _game(self) -> RemovalGame:
        return RemovalGame.of(self.bounds, self.removals)

    def _guessed(self, k: int, way: int) -> bool:
        """Compute B[k] by guesses; return whether they came close enough."""
        for guess, proposal in self.proposals.guesses(k, way, self.bits):
            touched, lines = self.proposals.touched, self.proposals.lines
            decided = self._decides(guess, k, touched, lines)
            if guess.bits == self.bits and (decided or way != INSIDE):
                people = self.proposals.joined.people
                loads = self.proposals.loads(proposal)[people] + proposal.removed[people]
                order = np.argsort(-loads, kind="stable")[: self.removals]
                self._extend(people[order], touched)
            if decided:
                return True
        return False

    def _decides(self, guess: Guess, k: int, touched: Touched, lines: BaseLosses) -> bool:
        """Return whether a guess proves B[k]."""
        low, high = self._proved(guess, k, touched, lines)
        level = rounded(low, 1 << guess.bits)
        if level != rounded(high, 1 << guess.bits):
            return False
        self.known[k] = level
        return True

    def _proved(self, guess: Guess, k: int, touched: Touched, lines: BaseLosses) -> tuple[int, int]:
        """Return bounds of LP[k], times 2^bits of the guess, and take them for all k."""
        bits, finer = guess.bits, guess.bits - self.bits
        lows = self.bounds.lowers(guess.weights, self.removals, bits)
        removed = _feasible(guess.removed, k, bits)
        high = int(self.bounds.left(removed, touched, lines, bits).max())
        self.low = np.maximum(self.low, lows >> finer)
        self.high[k] = min(self.high[k], -(-high >> finer))
        self.high = _convex(self.high)
        best = max(int(lows[k]), int(self.low[k]) << finer)
        return best, min(high, int(self.high[k]) << finer)

    def remove(self, order: np.ndarray) -> None:
        """Take the bounds of removing people in an order that may be a good one."""
        chosen = np.zeros(self.program.people, np.bool_)
        chosen[order[: self.removals]] = True
        self._extend(order[: self.removals], self.bounds.touched(chosen))

    def _extend(self, order: np.ndarray, touched: Touched) -> None:
        """Take the bounds that whole removals in an order give for all k."""
        self.order = order
        whole = self.bounds.left_in_turn(order, touched)
        size = len(whole)
        self.high[:size] = np.minimum(self.high[:size], whole.astype(object) << self.bits)


def _feasible(removed: np.ndarray, k: int, bits: int) -> np.ndarray:
    """Return r as integers over 2^bits within [0, 1], with a sum of at most k."""
    wide = removed.astype(object) if bits > _NARROW else removed
    parts = np.minimum(np.maximum(wide, 0), 1 << bits)
    taken, most = int(parts.astype(object).sum()), k << bits
    if taken > most:
        parts = integers.narrow(parts.astype(object) * most // taken)
    return np.asarray(parts)


def _convex(bounds: np.ndarray) -> np.ndarray:
    """Return the largest convex function below bounds of LP[0..K], rounded up."""
    hull: list[int] = []
    values = bounds.tolist()
    for k, value in enumerate(values):
        while len(hull) > 1 and _above(values, hull[-2], hull[-1], k):
            hull.pop()
        hull.append(k)
    convex = np.array(values, object)
    for left, right in itertools.pairwise(hull):
        width = right - left
        part = np.arange(width).astype(object)
        chord = values[left] * (width - part) + values[right] * part
        convex[left:right] = -(-chord // width)
    return convex


def _above(values: list[Any], left: int, middle: int, right: int) -> bool:
    """Return whether the middle one is on or above the line through the others."""
    rise = (values[middle] - values[left]) * (right - left)
    return bool(rise >= (values[right] - values[left]) * (middle - left))

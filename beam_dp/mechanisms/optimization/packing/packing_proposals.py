"""Guesses of the program of `packing_program`, by a first-order method in floats.

The primal-dual hybrid gradient method (Chambolle and Pock, 2011; with the steps of Pock and
Chambolle, 2011, and the restarts and weights of Applegate et al., "Practical large-scale linear
programming using primal-dual hybrid gradient", 2021). A step takes time and memory for the rows,
and no more. Where a program has many solutions, as where everybody is removed by the same small
part, it comes close in few steps; the simplex method walks through millions of vertices there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.optimization.packing.packing_program import Packing

_LOOK = 20  # steps between two looks
_ENOUGH, _SOME, _LONG = 0.2, 0.8, 0.36  # when to begin again, as in that article


class PackingGuess(NamedTuple):
    """A guess of r, per person, and of y, per row, which packs 1 of a value at most, about."""

    removed: np.ndarray
    packed: np.ndarray


class _State(NamedTuple):
    packed: np.ndarray
    stays: np.ndarray
    removed: np.ndarray


class PackingProposals:
    """Guesses that come closer."""

    def __init__(self, packing: Packing) -> None:
        """Begin with nobody removed."""
        self.packing, self.price = packing, float(packing.price)
        self.lengths = np.diff(np.append(packing.starts, len(packing.values)))
        rows = packing.loads(np.ones(len(packing.values)))
        self.of_person = 1 / np.maximum(rows, 1)
        self.of_value = 1 / self.lengths
        self.of_row = 1 / (1 + (packing.owners >= 0).sum(axis=1))
        even = np.repeat(self.of_value, self.lengths)
        self.state = _State(even, np.ones(packing.size), np.zeros(packing.people))
        self.weight = 1.0

    def guesses(self, steps: int) -> Iterator[PackingGuess]:
        """Yield guesses until so many steps are done."""
        begin, sums, count = self.state, [np.zeros_like(part) for part in self.state], 0
        first = last = math.inf
        over = self.packing.loads(begin.packed) > self.price
        yield self._guess(begin)
        yield self._guess(begin._replace(removed=np.maximum(begin.removed, over)))
        for step in range(1, steps + 1):
            self.state = self._step(self.state)
            count += 1
            for total, part in zip(sums, self.state, strict=True):
                total += part
            if step % _LOOK:
                continue
            best, gap = self._best(_State(*(total / count for total in sums)))
            yield self._guess(best)
            long, falls = count >= _LONG * step, gap <= last
            if long or gap <= _ENOUGH * first or (gap <= _SOME * first and not falls):
                self._reweigh(begin, best)
                self.state = begin = best
                sums, count, first = [np.zeros_like(part) for part in best], 0, gap
            first, last = min(first, gap) if math.isinf(first) else first, gap

    def _best(self, mean: _State) -> tuple[_State, float]:
        """Return the best of the state, the mean of the last ones, and both stretched."""
        states = [self.state, mean, self._stretched(self.state), self._stretched(mean)]
        gaps = [self._gap(state) for state in states]
        gap = min(gaps)
        return states[gaps.index(gap)], gap

    def _stretched(self, state: _State) -> _State:
        """Return a state in which r is so much larger that somebody is removed whole.

        Parts of a removal that are even, but too small, are found so in one step.
        """
        removed = state.removed / max(float(state.removed.max()), 1e-300)
        return state._replace(stays=self._stays(removed), removed=removed)

    def _stays(self, removed: np.ndarray) -> np.ndarray:
        """Return what stays of each value."""
        taken = self.packing.taken(np.append(removed, 0.0))
        return np.asarray(np.maximum(1 - np.minimum.reduceat(taken, self.packing.starts), 0))

    def _step(self, state: _State) -> _State:
        packing = self.packing
        taken = packing.taken(np.append(state.removed, 0.0))
        rise = 1 - np.repeat(state.stays, self.lengths) - taken
        packed = np.maximum(state.packed + self.of_row / self.weight * rise, 0)
        ahead = 2 * packed - state.packed
        spare = 1 - np.add.reduceat(ahead, packing.starts)
        stays = np.maximum(state.stays - self.weight * self.of_value * spare, 0)
        spare = self.price - packing.loads(ahead)
        removed = np.clip(state.removed - self.weight * self.of_person * spare, 0, 1)
        return _State(packed, stays, removed)

    def _reweigh(self, old: _State, new: _State) -> None:
        """Balance the steps of both sides by how far they went."""
        packed = float(np.linalg.norm(new.packed - old.packed))
        prices = math.hypot(
            float(np.linalg.norm(new.removed - old.removed)),
            float(np.linalg.norm(new.stays - old.stays)),
        )
        if packed > 1e-12 and prices > 1e-12:
            self.weight = math.sqrt(self.weight * prices / packed)

    def _gap(self, state: _State) -> float:
        """Return how far the bounds of a state are apart, about."""
        packing = self.packing
        high = float(self._stays(state.removed).sum())
        high += self.price * float(state.removed.sum())
        packed = self._kept(state)
        over = np.maximum(packing.loads(packed) - self.price, 0).sum()
        return high - float(packed.sum() - over)

    def _kept(self, state: _State) -> np.ndarray:
        """Return y of a state, filled up to 1 for each value that stays, or cut to it."""
        sums = np.add.reduceat(state.packed, self.packing.starts)
        fills = (sums > 1) | (state.stays > 0)
        factor = np.where(fills & (sums > 0), 1 / np.maximum(sums, 1e-300), 1.0)
        return np.asarray(state.packed * np.repeat(factor, self.lengths))

    def _guess(self, state: _State) -> PackingGuess:
        return PackingGuess(state.removed, self._kept(state))

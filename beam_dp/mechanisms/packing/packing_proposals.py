"""Guesses of the program of `packing_program`, by a first-order method in floats.

The primal-dual hybrid gradient method (Chambolle and Pock, 2011; with the steps of Pock and
Chambolle, 2011, and the restarts and weights of Applegate et al., "Practical large-scale linear
programming using primal-dual hybrid gradient", 2021). A step takes time and memory for the rows,
and no more. Where a program has many solutions, as where everybody is removed by the same small
part, it comes close in few steps; the simplex method walks through millions of vertices there.

Everything is counted in prices, as in `Packing`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.packing.packing_program import Packing

_LOOK = 20  # steps between two looks
_ENOUGH, _SOME, _LONG = 0.2, 0.8, 0.36  # when to begin again, as in that article


class PackingGuess(NamedTuple):
    """A guess of r, per person, and of u, per row, which packs c_v of a value at most, about."""

    removed: np.ndarray
    packed: np.ndarray


class _State(NamedTuple):
    """Where the method is; z is left out (empty) where the bound of a row is that of its value."""

    packed: np.ndarray
    stays: np.ndarray
    removed: np.ndarray


class PackingProposals:
    """Guesses that come closer."""

    def __init__(self, packing: Packing) -> None:
        """Begin with nobody removed."""
        self.packing = packing
        self.lengths = packing.lengths
        rows = packing.loads(np.ones(len(packing.values)))
        self.of_person = 1 / np.maximum(rows, 1)
        self.of_value = 1 / self.lengths
        sides = (packing.owners >= 0).sum(axis=1) + (not packing.single)
        self.of_row = 1 / sides
        self.most = packing.room if packing.single else math.inf
        even = np.repeat(packing.room / self.lengths, self.lengths)
        stays = np.ones(0 if packing.single else len(packing.weights))
        self.state = _State(even, stays, np.zeros(packing.people))
        self.weight = 1 / float(packing.room.mean())

    def guesses(self, steps: int) -> Iterator[PackingGuess]:
        """Yield guesses until so many steps are done."""
        begin, sums, count = self.state, [np.zeros_like(part) for part in self.state], 0
        first = last = math.inf
        over = self.packing.loads(begin.packed) > 1
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
        stays = state.stays if self.packing.single else self._stays(removed)
        return state._replace(stays=stays, removed=removed)

    def _stays(self, removed: np.ndarray) -> np.ndarray:
        """Return what stays of each value."""
        taken = self.packing.taken(np.append(removed, 0.0))
        return np.asarray(np.maximum(1 - self.packing.stays(taken), 0))

    def _step(self, state: _State) -> _State:
        packing, stays = self.packing, state.stays
        rise = 1 - packing.taken(np.append(state.removed, 0.0))
        if not packing.single:
            rise -= np.repeat(stays, self.lengths)
        packed = np.clip(state.packed + self.of_row / self.weight * rise, 0, self.most)
        ahead = 2 * packed - state.packed
        if not packing.single:
            spare = packing.room - packing.sums(ahead)
            stays = np.maximum(stays - self.weight * self.of_value * spare, 0)
        spare = 1 - packing.loads(ahead)
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
        high = float((packing.room * self._stays(state.removed)).sum() + state.removed.sum())
        packed = self._kept(state)
        over = np.maximum(packing.loads(packed) - 1, 0).sum()
        return high - float(packed.sum() - over)

    def _kept(self, state: _State) -> np.ndarray:
        """Return u of a state, filled up to c_v for each value that stays, or cut to it."""
        packing = self.packing
        stays = self._stays(state.removed) if packing.single else state.stays
        sums = packing.sums(state.packed)
        fills = (sums > packing.room) | (stays > 0)
        factor = np.where(fills & (sums > 0), packing.room / np.maximum(sums, 1e-300), 1.0)
        return np.asarray(state.packed * np.repeat(factor, self.lengths))

    def _guess(self, state: _State) -> PackingGuess:
        return PackingGuess(state.removed, self._kept(state))

"""Guesses of a packing program by a first-order method in floats.

The primal-dual hybrid gradient method (Chambolle and Pock, 2011; with the steps of Pock and
Chambolle, 2011, and the restarts and weights of Applegate et al., "Practical large-scale linear
programming using primal-dual hybrid gradient", 2021). A step takes time and memory for the rows,
and no more. Where a program has many solutions, as where everybody is removed by the same small
part, it comes close in few steps; the simplex method walks through millions of vertices there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from beam_dp.mechanisms.packing.packing_program import Packing, PackingBounds

_LOOK = 20  # steps between two looks
_ENOUGH, _SOME, _LONG = 0.2, 0.8, 0.36  # when to begin again, as in that article


class PackingProposals:
    """Guesses that come closer, of x and y, counted in the sizes of columns and lines."""

    def __init__(self, packing: Packing) -> None:
        """Begin with nothing packed and nobody removed."""
        from scipy import sparse

        self.packing = packing
        columns, lines = packing.column_sizes.astype(float), packing.line_sizes.astype(float)
        price = float(packing.price.numerator)
        entries = packing.numbers.astype(float) * columns[packing.columns] / lines[packing.lines]
        shape = len(lines), len(columns)
        self._matrix = sparse.csr_matrix((entries, (packing.lines, packing.columns)), shape)
        self._turned = self._matrix.T.tocsr()
        self._gains, self._rooms = packing.gains * columns / price, packing.rooms / lines
        self._most = np.full(len(columns), np.inf) if packing.blocks else packing.most / columns
        self._worth = packing.worth * lines / price
        self._of_column, self._of_line = (
            1 / np.maximum(abs(matrix).sum(axis=1).A1, 1e-9)
            for matrix in (self._turned, self._matrix)
        )
        size = np.linalg.norm(np.append(self._rooms, packing.most / columns))
        self._weight = float(np.linalg.norm(self._gains) / size)

    def bounds(self, steps: int) -> Iterator[PackingBounds]:
        """Yield what guesses prove until so many steps are done."""
        state = begin = np.zeros(len(self._most)), np.zeros(len(self._rooms))
        sums, count, first, last = [np.zeros_like(part) for part in state], 0, math.inf, math.inf
        for step in range(1, steps + 1):
            state, count = self._step(*state), count + 1
            for total, part in zip(sums, state, strict=True):
                total += part
            if step % _LOOK:
                continue
            mean = sums[0] / count, sums[1] / count
            found = [(self._proved(*each), each) for each in (state, mean)]
            yield from (bounds for bounds, _ in found)
            gaps = [float(bounds.high - bounds.low) for bounds, _ in found]
            gap = min(gaps)
            best = found[gaps.index(gap)][1]
            first = gap if math.isinf(first) else first
            falls = gap <= last
            soon = gap <= _ENOUGH * first or (gap <= _SOME * first and not falls)
            if soon or count >= _LONG * step:
                self._reweigh(begin, best)
                state = begin = best
                sums, count, first = [np.zeros_like(part) for part in best], 0, gap
            last = gap

    def _step(self, columns: np.ndarray, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rise = self._of_column / self._weight * (self._gains - self._turned @ prices)
        new = np.clip(columns + rise, 0, self._most)
        spare = self._rooms - self._matrix @ (2 * new - columns)
        return new, np.clip(prices - self._weight * self._of_line * spare, 0, self._worth)

    def _reweigh(self, old: tuple[np.ndarray, ...], new: tuple[np.ndarray, ...]) -> None:
        """Balance the steps of both sides by how far they went."""
        columns, prices = (float(np.linalg.norm(b - a)) for a, b in zip(old, new, strict=True))
        if columns > 1e-12 and prices > 1e-12:
            self._weight = math.sqrt(self._weight * prices / columns)

    def _proved(self, columns: np.ndarray, prices: np.ndarray) -> PackingBounds:
        """Return the bounds of a guess, or of one in which somebody is removed whole.

        Parts of a removal that are even, but too small, are found so in one step.
        """
        packing, removed = self.packing, prices[: self.packing.people]
        bits = max(packing.bits, 0)
        stretched = removed / max(float(removed.max(initial=0)), 1e-300)
        packed = np.floor(np.ldexp(columns * packing.column_sizes, bits)).astype(np.int64)
        found = [
            packing.bounds(packed, np.ceil(np.ldexp(parts, bits)).astype(np.int64), bits)
            for parts in (removed, stretched)
        ]
        return min(found, key=lambda bounds: bounds.high)

"""Decide in which cell of a grid the value of a packing program lies, certain however it was found.

With s = D / 32 for the price D, E is known by the whole number

    q(E) = ceil(E / s - c),    0.4142 < c < 0.4143,

which never falls with E: bounds of E that have the same q decide it, whoever proposes. And
0 <= E' - E <= D gives 0 <= q' - q <= 32, whatever c is.

*Each process draws its c.* Near to the points (n + c) s, where q jumps, bounds must be close. With
a c that is known somebody could make up a database whose E is as near to one as they like: then it
is decided late, or never. With 64 random bits of c the chance that E is within 2^-k s of such a
point is at most 20,000 * 2^-k for every database. `packing_refined` gains about 30 bits in a round:
that a database needs a fifth round has a chance of 2^-105.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.packing import packing_flow, packing_refined
from beam_dp.mechanisms.packing.packing_program import Packing, PackingBounds
from beam_dp.mechanisms.packing.packing_proposals import PackingProposals

PARTS = 32
EDGE = Fraction(4142, 10_000) + Fraction(int(Noise().words(1)[0]), 10_000 << 64)
"""c."""
_SMALL = 30_000  # rows of a program that HiGHS is asked for first
_ROWS = 3_000_000  # and of one that it is asked for soon
_FEW, _MANY = 1_000, 20_000  # steps of the first-order method before HiGHS has its turn


class PackingCell(NamedTuple):
    """Where the value of a program lies, and a line above it for all prices.

    Attributes:
        number: q of the value, and of what was added to it.
        stays: the sum of w z of a removal.
        removed: the sum of r of it.
    """

    number: int
    stays: Fraction
    removed: Fraction


def cell(prices: Fraction) -> int:
    """Return q of a value that is so many prices."""
    return math.ceil(prices * PARTS - EDGE)


class CellSearch:
    """Bounds of E / D plus a known number, which come closer until one cell is left.

    Attributes:
        low: the lowest cell that is left.
        high: the highest.
    """

    def __init__(
        self, known: PackingBounds, bounds: Iterator[PackingBounds], added: Fraction = Fraction(0)
    ) -> None:
        """Begin with what is known.

        Args:
            known: bounds of E / D.
            bounds: others, which come as close as one likes.
            added: the known number.
        """
        self._added, self._bounds, self._best = added, bounds, known
        self.low, self.high = cell(known.low + added), cell(known.high + added)

    @classmethod
    def of(cls, packing: Packing, added: Fraction) -> CellSearch:
        """Return the search of a packing program."""
        known = packing.bounds(np.zeros(packing.people), np.zeros(len(packing.values)))
        return cls(known, bounds(packing), added)

    def step(self) -> None:
        """Take the bounds of one guess more."""
        found = next(self._bounds)
        if found.high < self._best.high:
            self._best, self.high = found, cell(found.high + self._added)
        self.low = max(self.low, cell(found.low + self._added))

    def decided(self) -> PackingCell:
        """Return the only cell."""
        while self.low < self.high:
            self.step()
        return PackingCell(self.high, self._best.stays, self._best.removed)


def bounds(packing: Packing) -> Iterator[PackingBounds]:
    """Yield bounds: of a flow where rows have one owner, of HiGHS for programs of its size.

    Larger programs have a first-order method before.
    """
    flow = packing_flow.bounds(packing) if packing.owners.shape[1] == 1 else None
    if flow is not None:
        yield flow
    elif len(packing.values) > _SMALL:
        steps = _FEW if len(packing.values) <= _ROWS else _MANY
        for guess in PackingProposals(packing).guesses(steps):
            yield packing.bounds(guess.removed, guess.packed)
    yield from refined(packing)


def refined(packing: Packing) -> Iterator[PackingBounds]:
    """Yield bounds by HiGHS, as close as one likes."""
    for guess in packing_refined.solutions(packing):
        yield packing.exact_bounds(guess.prices, guess.columns, guess.bits)

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


def cell(prices: Fraction) -> int:
    """Return q of a value that is so many prices."""
    return math.ceil(prices * PARTS - EDGE)


class CellSearch:
    """Bounds of E / D, which come closer until one cell is left.

    Attributes:
        known: what it began with.
        low: the lowest cell that is left.
        high: the highest.
        least: the highest lower bound that is known.
        best: what is known with the least upper bound.
    """

    def __init__(self, known: PackingBounds, bounds: Iterator[PackingBounds]) -> None:
        """Begin with what is known.

        Args:
            known: bounds of E / D.
            bounds: others, which come as close as one likes.
        """
        self._bounds, self.known, self.best, self.least = bounds, known, known, known.low
        self.low, self.high = cell(known.low), cell(known.high)

    def step(self) -> None:
        """Take the bounds of one guess more."""
        found = next(self._bounds)
        if found.high < self.best.high:
            self.best, self.high = found, cell(found.high)
        self.least = max(self.least, found.low)
        self.low = cell(self.least)

    def decided(self) -> int:
        """Return the only cell."""
        while self.low < self.high:
            self.step()
        return self.high


def bounds(packing: Packing) -> Iterator[PackingBounds]:
    """Yield bounds: of a flow where rows have one owner, of HiGHS for programs of its size.

    Larger programs have a first-order method before.
    """
    flow = packing_flow.guess(packing) if packing.is_flow else None
    if flow is not None:
        yield packing.bounds(*flow, 0)
    elif len(packing.gains) > _SMALL:
        steps = _FEW if len(packing.gains) <= _ROWS else _MANY
        yield from PackingProposals(packing).bounds(steps)
    yield from refined(packing)


def refined(packing: Packing) -> Iterator[PackingBounds]:
    """Yield bounds by HiGHS, as close as one likes."""
    for guess in packing_refined.solutions(packing):
        yield packing.bounds(guess.columns, guess.prices[: packing.people], guess.bits)

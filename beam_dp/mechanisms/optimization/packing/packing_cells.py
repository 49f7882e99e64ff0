"""Decide in which cell of a grid the value of a packing program lies, certain however it was found.

With s = D / 32 for the price D, E is known by the whole number

    q(E) = ceil(E / s - c),    c = sqrt(2) - 1,

which never falls with E. E is rational (a vertex of a polyhedron with rational coefficients), and
the points (n + c) s where q jumps are not: bounds of E that are exact and close enough always have
the same q, and `packing_refined` has bounds as close as one likes. So q is a function of the
program, whoever proposes. And 0 <= E' - E <= D gives
0 <= q' - q <= 32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.optimization.packing import packing_flow, packing_refined
from beam_dp.mechanisms.optimization.packing.packing_program import Packing, PackingBounds
from beam_dp.mechanisms.optimization.packing.packing_proposals import PackingProposals

PARTS = 32
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
    """Return q of a value that is so many prices.

    It is ceil((P - Q sqrt(2)) / Q) for P / Q = v + 1, v the value in parts. With s the root of 2
    Q^2, rounded down, that is s < Q sqrt(2) < s + 1, an integer n Q is at least P - Q sqrt(2) if
    and only if it is at least P - s.
    """
    numerator, denominator = (prices * PARTS).as_integer_ratio()
    shift = math.isqrt(2 * denominator * denominator) - denominator
    return -((shift - numerator) // denominator)


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

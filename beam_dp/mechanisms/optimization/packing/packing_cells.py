"""Decide in which cell of a grid the value of a packing program lies, certain however it was found.

With s = D / 32 for the price D, E is known by the whole number

    q(E) = ceil(E / s - c),    c = sqrt(2) - 1,

which never falls with E. E is rational (a vertex of a polyhedron with rational coefficients), and
the points (n + c) s where q jumps are not: bounds of E that are exact and close enough always have
the same q. So q is a function of the program, whoever proposes. And 0 <= E' - E <= D gives
0 <= q' - q <= 32.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from beam_dp.mechanisms.optimization.packing import packing_by_highs
from beam_dp.mechanisms.optimization.packing.packing_program import Packing
from beam_dp.mechanisms.optimization.packing.packing_proposals import (
    PackingGuess,
    PackingProposals,
)

PARTS = 32
_SMALL = 30_000  # rows of a program that HiGHS is asked for first
_ROWS = 3_000_000  # and of one that it is asked for at all
_STEPS = 1_000, 20_000  # of the first-order method before HiGHS has its turn, and after


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

    def __init__(self, packing: Packing, added: Fraction) -> None:
        self._packing, self._added = packing, added
        self.low = cell(added)
        self._line = packing.upper(packing.taken_by_nobody)
        self.high = cell(self._line[0] + added)
        self._guesses = _guesses(packing)

    def step(self) -> None:
        """Take one guess more."""
        guess = next(self._guesses)
        line = self._packing.upper(guess.removed)
        if line[0] < self._line[0]:
            self._line, self.high = line, cell(line[0] + self._added)
        low = self._packing.lower(guess.packed)
        self.low = max(self.low, cell(low + self._added))

    def decided(self) -> PackingCell:
        """Return the only cell."""
        while self.low < self.high:
            self.step()
        return PackingCell(self.high, *self._line[1:])


def _guesses(packing: Packing) -> Iterator[PackingGuess]:
    """Yield guesses: HiGHS is asked for programs of its size, others have a first-order method."""
    if len(packing.values) <= _SMALL:
        yield from packing_by_highs.guesses(packing)
    first_order = PackingProposals(packing)
    yield from first_order.guesses(_STEPS[0])
    if _SMALL < len(packing.values) <= _ROWS:
        yield from packing_by_highs.guesses(packing)
    for steps in itertools.repeat(_STEPS[1]):
        yield from first_order.guesses(steps)

"""Removal profiles of rows with any number of owners, from packings at a grid of prices.

At a price D of a removal, E(D) is the most that rows pack when nobody carries more than D
(`packings`), which is the least of what stays of the statistic plus D for each person removed, if
people may be removed by parts. For x' = x + one person, E(D) <= E'(D) <= E(D) + D. E(D) is known
in steps of s = D / 32 only,

    R_D = s (ceil(E(D) / s - c) - 1),    c < 0.4143,    E(D) - 1.42 s < R_D < E(D),

and since D is 32 s, R_D <= R'_D <= R_D + D. Over a public grid of prices the profile is

    B[0] = the statistic,    B[k] = max(0, ceil(max over D of (R_D - k D))).

*It interlaces*, B'[k + 1] <= B[k] <= B'[k]: at each price R'_D - (k + 1) D <= R_D - k D <=
R'_D - k D; the largest of numbers, and ceil, never fall where these do not; and R_D < E(D) <= B[0].
So the loss has sensitivity 1, in one direction, for any number of owners: all that the searches
need (Fang, Dong, Yi, "Shifted Inverse", CCS 2022). It rests on the exact E(D), and not on a solver:
`packing_cells` proves the step of E(D) in integers.

*What it is.* Whole people are removed by parts 0 and 1, so that E(D) - k D is at most the exact
profile, an integer, and so is B[k]. B[k] is below the least for removals of k people by parts, the
largest E(D) - k D over all D, by at most k / 16 + 0.045 of a price: there are 16 prices per octave.

*Few prices are tried.* E is concave, 0 at D = 0, and below a line that each program's solution
gives, so that each price bounds all others. A price is tried only while these bounds leave it a
chance to be the best for some k. The first ones are high, where few people can pay for their
removal and `value_rows` leaves few rows. None is tried above the first price D known to have
E(D) = B[0]: the next one, D' >= 17 D / 16, gives less than B[0] - k D - k D / 16, and D itself more
than B[0] - k D - 1.42 D / 32.
"""

from __future__ import annotations

import bisect
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.packing.packing_cells import PARTS, PackingCell, cell
from beam_dp.mechanisms.profiles.packed.packings import Packed

_OCTAVE, _LOWEST, _HIGHEST = 16, 6, 62  # prices per octave, from 2^-6 to 2^62
_FINE, _BITS = 12, 44  # prices are whole over 2^12, and bounds over 2^56
_STRIDE = 8  # prices at most that the descent passes over


def profile(packed: Packed, removals: int) -> list[int]:
    """Return B[0..removals] of a statistic.

    Args:
        packed: E of one database.
        removals: K, at least 1.
    """
    checks.positive_integer("by_price.profile", "removals", removals)
    if not packed.total:
        return [0] * (removals + 1)
    return _Search(packed, removals).levels()


def price(index: int) -> Fraction:
    """Return the index-th price of the grid."""
    octave, step = divmod(index, _OCTAVE)
    return Fraction((_OCTAVE + step) << octave, _OCTAVE << _LOWEST)


_PRICES = [price(index) for index in range(_OCTAVE * (_LOWEST + _HIGHEST) + 1)]


class _Search:
    """The best of R_D - k D for each k.

    Attributes:
        best: B of the prices that were tried.
        prices: all prices that may be tried, times 2^12.
        above: upper bounds of E(D) at these prices, times 2^56.
        left: which of them are left to be tried.
    """

    def __init__(self, packed: Packed, removals: int) -> None:
        self.packed, self.removals = packed, removals
        self.best = np.append(packed.total, np.zeros(removals, np.int64))
        tried = _PRICES[: bisect.bisect_left(_PRICES, packed.enough()) + 1]
        self.prices = np.array([int(at * (1 << _FINE)) for at in tried], object)
        self.above = np.full(len(tried), packed.total << _FINE + _BITS, object)
        self.left = np.ones(len(tried), np.bool_)

    def levels(self) -> list[int]:
        """Return B[0..K]."""
        self._descend()
        while (index := self._most_promising()) is not None:
            self._try(index)
        levels: list[int] = self.best.tolist()
        return levels

    def _descend(self) -> None:
        """Try prices from the highest down until K people are removed.

        The steps grow while few people are removed, for programs of far lower prices are harder.
        """
        index, step, most = len(self.prices) - 1, 1, self.removals
        before, found = Fraction(0), self._try(index)
        while index and found.removed < most and found.stays:
            near = 4 * found.removed > most and found.removed > before
            step, before = 1 if near else step, found.removed
            index = max(0, index - step)
            found, step = self._try(index), min(2 * step, _STRIDE)

    def _most_promising(self) -> int | None:
        """Return the price that may raise B most; None if none may."""
        gains = {index: self._gain(index) for index in np.flatnonzero(self.left).tolist()}
        best = max(gains, key=lambda index: (gains[index], index), default=None)
        return None if best is None or gains[best] <= 0 else best

    def _gain(self, index: int) -> int:
        """Return by how much a price may raise B."""
        above = Fraction(self.above[index], 1 << _FINE + _BITS) / price(index)
        levels = _levels(self.prices[index], cell(above), self.removals)
        return int((levels - self.best[1 : len(levels) + 1]).max(initial=0))

    def _try(self, index: int) -> PackingCell:
        """Take what a price gives."""
        found = self.packed.cell(price(index))
        levels = _levels(self.prices[index], found.number, self.removals)
        known = self.best[1 : len(levels) + 1]
        np.maximum(known, levels, out=known)
        self.left[index] = False
        most = -int(-Fraction(found.number + 1, PARTS) * price(index) * (1 << _FINE + _BITS) // 1)
        higher = most * self.prices // self.prices[index] + 1
        self.above = np.minimum(self.above, np.maximum(higher, most))
        stays, removed = (-int(-part * (1 << _BITS) // 1) for part in found[1:])
        self.above = np.minimum(self.above, (stays << _FINE) + self.prices * removed)
        return found


def _levels(each: int, number: int, removals: int) -> np.ndarray:
    """Return ceil(R_D - k D) for k = 1.. while it is above 0, up to K.

    Args:
        each: D times 2^12.
        number: the cell of E(D): R_D is `number` - 1 parts of D.
        removals: K.
    """
    last = min(removals, -((1 - number) // PARTS) - 1)
    left = number - 1 - PARTS * np.arange(1, last + 1, dtype=object)
    return np.asarray(-(-left * each // (PARTS << _FINE)), np.int64)

"""The removal profile of the k-th largest row, where rows have any number of owners.

For a value y, let E(D) be the most that the rows above y pack at a price D (`packings`), and R_D
below it in steps of D / 32 (`by_price`). The k-th largest row is at most y if at most k - 1 rows
are above it. Removing r people, by parts, leaves at least E(D) - r D of them, so that

    loss(y) = max(0, max over prices D of ceil((R_D - (k - 1)) / D))

is at most the exact loss. It falls as y rises, for there are fewer rows, and a person more raises
it by 0 or 1, as R_D rises by 0 to D. B[r] is the first value of the rows with a loss of at most r;
it interlaces as the loss does. For k = 1 this is the fractional matching of the rows above y, which
is their fractional cover: E(1), and every other price gives less. For other k the prices are the
powers of 2 up to 64 (k - 1), so that n people with very many rows each have a loss of
n - (k - 1) / D, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.packing.packing_cells import PARTS
from beam_dp.mechanisms.profiles.packed.packings import PackedRows

_FINEST = 64
_BELOW = Fraction(2, 5 * PARTS)  # of a price: how far R_D is below V


def profile(
    owners: np.ndarray, items: np.ndarray, counts: np.ndarray, k: int, removals: int, empty: Number
) -> list[Number]:
    """Return B[0..removals] of the k-th largest item of the rows.

    Args:
        owners: as for `PackedRows`.
        items: the value of each row.
        counts: how many rows each row stands for, at least 1.
        k: 1 for the largest.
        removals: K, at least 1.
        empty: the result where fewer than k rows are left; below all items.
    """
    checks.positive_integer("kth_by_price.profile", "k", k)
    kept = np.flatnonzero((owners >= 0).any(axis=0))
    order = kept[np.argsort(-items[kept], kind="stable")]
    ranked = _Ranked(owners[:, order], items[order], counts[order], k, removals)
    return [empty if level < 0 else ranked.values[level].item() for level in ranked.levels()]


class _Ranked:
    """Rows by falling item, and which rows can be the k-th largest after removals.

    Attributes:
        values: the different items, falling.
        ends: how many rows have one of the first items.
        totals: how many rows the first ones stand for.
        prices: every D, the best one of the last loss first.
    """

    def __init__(
        self, owners: np.ndarray, items: np.ndarray, counts: np.ndarray, k: int, removals: int
    ) -> None:
        """Take rows by falling item."""
        last = np.flatnonzero(np.append(items[1:] != items[:-1], len(items) > 0))
        self.owners, self.counts, self.k, self.removals = owners, counts, k, removals
        self.values, self.ends = items[last], last + 1
        self.totals = integers.running_sums(counts)
        top = (_FINEST * (k - 1)).bit_length()
        self.prices = [Fraction(1 << power) for power in range(top + 1)]

    def levels(self) -> list[int]:
        """Return per number of removals the index of an item in `values`, -1 beyond all of them.

        B[r] is the item at the first j with loss(j + 1) > r, loss(j) being that of the rows
        of the first j items, which never falls with j; rows beyond a loss above K matter to no r.
        So prefixes grow twofold until there is one; in between all r are bisected at once.
        """
        indexes = [-1] * (self.removals + 1)
        nodes = list(self._doubled())
        while nodes:
            first, stop, low, high = nodes.pop()
            if first == stop:
                continue
            if low == high:
                indexes[first:stop] = [low] * (stop - first)
                continue
            middle = (low + high) // 2
            split = self._loss(middle + 1, first, stop)
            nodes += [(first, split, low, middle), (split, stop, middle + 1, high)]
        return indexes

    def _doubled(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield from which r to before which B[r] is from which place to which: prefixes double."""
        first, low, rows = 0, 0, self.k + self.removals
        while first <= self.removals and low < len(self.values):
            size = max(low + 1, int(np.searchsorted(self.ends, rows, "right")))
            split = self._loss(size, first, self.removals + 1)
            yield first, split, low, size - 1
            first, low, rows = split, size, 2 * int(self.ends[size - 1])

    def _loss(self, size: int, first: int, stop: int) -> int:
        """Return the loss of the rows of the first items.

        Args:
            size: how many items.
            first: the least answer; given for a loss below it.
            stop: the largest answer; given for a loss above it.
        """
        rows = int(self.ends[size - 1])
        if self.totals[rows - 1] < self.k:
            return first
        if stop == 1:
            return 1
        packed, best = PackedRows(self.owners[:, :rows], None, self.counts[:rows]), max(first, 1)
        for price in tuple(self.prices):
            low, high = self._between(packed, price)
            while low < high and low < stop and high > best:
                packed.closer(price)
                low, high = self._between(packed, price)
            if low > best:
                best = low
                self.prices.remove(price)
                self.prices.insert(0, price)
            if best >= stop:
                return stop
        return best

    def _between(self, packed: PackedRows, price: Fraction) -> tuple[int, int]:
        """Return two numbers between which the loss by one price is, from what is known."""
        low, high = (self._losses(number, price) for number in packed.between(price))
        return low, high

    def _losses(self, number: Fraction, price: Fraction) -> int:
        """Return how many people are lost at a price, V being this number."""
        return math.ceil((number - (self.k - 1)) / price - _BELOW)

"""The most that rows with several owners count for when nobody counts for more than a price.

A row has an owner or several, a value and a weight. At a price D, `Packed` tells E(D), the most
that rows pack when each counts in part, so that the rows of a person pack D at most together.

* The number of rows, the sum of their weights, and the rows of the most frequent value
  (`packed_rows`): u_t is at most the weight of row t, times a part of its value.
* The number of distinct values (`packed_values`): the rows of a value share a capacity.

For x' = x + one person p, 0 <= E'(D) - E(D) <= D: what packs x packs x' too, with 0 for the rows of
p; and what packs x' packs x without the rows of p, which pack D at most. E is 0 at D = 0 and
concave (the mean of packings for two prices is one for their mean), never above the statistic, and
equal to it at a price that pays for all.

E is known in cells: q(E) = ceil(32 E / D - c), 0.4142 < c < 0.4143, which integers decide, and
which moves by 0 to 32 for a person (`packing_cells`). So the function that is released,

    V(D) = D (q(E(D)) - 3/5) / 32,    E(D) - 1.02 D / 32 < V(D) < E(D),

rises by 0 to D for a person more, as E does.

*Whose row is it.* The same person in two roles of a row is one owner. An empty role (-1) is
nobody's. A row of which all roles are empty belongs to nobody whom its loss could protect, and is
left out: it is left out of x and x' alike.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.packing.packing_cells import PARTS, CellSearch
from beam_dp.mechanisms.packing.packing_program import PackingBounds

_GUESSES = 4  # between two looks at what is known
_CELLS, _FINEST = 1 << 22, 1000  # numbers of a table, and of thresholds in it
NOTHING = PackingBounds(Fraction(0), Fraction(0), Fraction(0), Fraction(0))
SLACK = 1e-7  # relative: n floats above 0 add up to it but for n 2^-53, and n is below 10^8


class Packed(abc.ABC):
    """E of one database, at any price of a denominator of at most 2^12.

    Attributes:
        total: the statistic, E at the highest prices.
    """

    total: int

    def __init__(self) -> None:
        self._searches: dict[Fraction, CellSearch] = {}

    def __call__(self, price: Fraction) -> Fraction:
        """Return V(D)."""
        return value_at(self.search(price).decided(), price)

    def search(self, price: Fraction) -> CellSearch:
        """Return the search for the cell of E(D), as far as it has come."""
        if price not in self._searches:
            known = self._glance(price) if self.total else NOTHING
            self._searches[price] = CellSearch(known, self.bounds(price))
        return self._searches[price]

    def between(self, price: Fraction) -> tuple[Fraction, Fraction]:
        """Return two numbers between which V(D) is, from what is known."""
        search = self.search(price)
        return value_at(search.low, price), value_at(search.high, price)

    def closer(self, price: Fraction) -> None:
        """Take some guesses more for E(D)."""
        search = self.search(price)
        for _ in range(_GUESSES):
            if search.low < search.high:
                search.step()

    @abc.abstractmethod
    def enough(self) -> Fraction:
        """Return a price that pays for everything."""

    @abc.abstractmethod
    def bounds(self, price: Fraction) -> Iterator[PackingBounds]:
        """Yield bounds as close as one likes."""

    @abc.abstractmethod
    def _glance(self, price: Fraction) -> PackingBounds:
        """Return rough bounds of E / D."""


class Glance:
    """Bounds of what stays of the group of which most is left, at all prices at once.

    Without the people who have h or more, for D each, what they own nothing of is left, for any h.
    And a share min(1, D / m_t) of the weight of each row, m_t being the most that an owner of it
    has, packs at most D for everybody.
    """

    def __init__(
        self, groups: np.ndarray, weights: np.ndarray, heavy: np.ndarray, degrees: np.ndarray
    ) -> None:
        """Take what can stay: its group, its weight, and the most that its owners have."""
        size, most = int(groups.max()) + 1, int(degrees.max())
        count = max(2, min(_FINEST, _CELLS // size))
        self._edges = np.unique(np.append(np.geomspace(1, most, count).astype(np.int64), [0, most]))
        places = groups * len(self._edges) + np.searchsorted(self._edges, heavy)
        self._table, parts = (
            np.bincount(places, part, size * len(self._edges)).reshape(size, -1)
            for part in (weights, weights / heavy)
        )
        self._kept = np.cumsum(self._table, axis=1)
        self._beyond = np.cumsum(parts[:, ::-1], axis=1)[:, ::-1]
        self._gone = len(degrees) - np.searchsorted(np.sort(degrees), self._edges, "right")

    def low(self, price: Fraction) -> Fraction:
        """Return a lower bound of E / D."""
        at = float(price)
        above = int(np.searchsorted(self._edges, at, "right"))
        packed = self._kept[:, above - 1] / at
        if above < len(self._edges):
            packed += self._table[:, above] / self._edges[above]
            packed += self._beyond[:, above + 1 :][:, :1].sum(axis=1)
        return Fraction(float(packed.max()) * (1 - SLACK))

    def high(self, price: Fraction) -> PackingBounds:
        """Return an upper bound of E / D; the lower one is 0."""
        left = self._kept.max(axis=0)
        best = int((self._gone + left / float(price)).argmin())
        stays = Fraction(float(left[best]) * (1 + SLACK))
        gone = Fraction(int(self._gone[best]))
        return PackingBounds(Fraction(0), stays / price + gone, stays, gone)


def value_at(number: int, price: Fraction) -> Fraction:
    """Return V for a cell."""
    return price * (5 * number - 3) / (5 * PARTS)


def different(owners: np.ndarray) -> np.ndarray:
    """Return the owners of each row, each once, falling, -1 beyond the last one.

    Args:
        owners: shape (rows, roles), -1 for nobody.
    """
    falling = -np.sort(-owners, axis=1)
    twice = falling[:, 1:] == falling[:, :-1]
    if twice.any():
        falling[:, 1:][twice] = -1
        falling = -np.sort(-falling, axis=1)
    return np.asarray(falling)


def pairs(
    owners: np.ndarray, values: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the person of each pair of a person and a value, and the weight of its rows."""
    row, role = np.nonzero(owners >= 0)
    size = int(values.max(initial=-1)) + 1
    codes = owners[row, role].astype(np.int64) * size + values[row]
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sums = integers.segment_sums(weights[row[order]], starts)
    return codes[order[starts]] // max(size, 1), sums

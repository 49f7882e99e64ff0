"""The most that rows with several owners count for when nobody counts for more than a price.

A row has an owner or several, a value and a weight. At a price D, `Packed` tells E(D), with

    E(D) = max { sum of u_t : 0 <= u_t, sum of u_t over the rows of a value <= its weight,
                              sum of u_t over the rows of a person <= D }

(`packing_program`). For x' = x + one person p, 0 <= E'(D) - E(D) <= D: what packs x packs x' too,
with 0 for the rows of p; and what packs x' packs x without the rows of p, which pack D at most.
E is 0 at D = 0 and concave (the mean of packings for two prices is one for their mean), never above
the weight of all values, and equal to it at a price that pays for all.

* The number of rows, and the sum of their weights: each row is a value of its own.
* The number of distinct values: the rows of a value share a capacity of 1.
* The rows of the most frequent value: the largest, over values, of E of the rows of that value
  alone, and of what packs where the value is chosen by parts (`MostFrequent`). A maximum of
  functions that rise by 0 to D does so too.

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
import dataclasses
import functools
import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.packing import packing_cells
from beam_dp.mechanisms.packing.packing_cells import CellSearch, PackingCell
from beam_dp.mechanisms.profiles.packed.value_rows import ValueRows

_GUESSES = 4  # between two looks at what is known
SLACK = 1e-7  # relative: n floats above 0 add up to it but for n 2^-53, and n is below 10^8


class Packed(abc.ABC):
    """E of one database, at any price of a denominator of at most 2^12.

    Attributes:
        total: the statistic, E at the highest prices.
    """

    total: int

    def __call__(self, price: Fraction) -> Fraction:
        """Return V(D)."""
        return value_at(self.number(price), price)

    @abc.abstractmethod
    def cell(self, price: Fraction) -> PackingCell:
        """Return the cell of E(D), and a line above E at all prices."""

    def number(self, price: Fraction) -> int:
        """Return q(E(D))."""
        return self.cell(price).number

    @abc.abstractmethod
    def enough(self) -> Fraction:
        """Return a price that pays for everything."""


class PackedRows(Packed):
    """The sum of the weights of values, each of which needs one of its rows."""

    def __init__(
        self,
        owners: np.ndarray,
        values: np.ndarray | None,
        weights: np.ndarray | None = None,
        each: int = 1,
    ) -> None:
        """Take the rows.

        Args:
            owners: the person in each role (row of the array) of each row (column), numbers from 0;
                -1 for nobody.
            values: any integer codes; None: every row is a value of its own.
            weights: integers of at least 0, one per row, where every row is a value of its own;
                None: every value has the same.
            each: the weight of every value, where they have the same.
        """
        self.rows = _value_rows(owners, values, weights, each)
        self.total = int(self.rows.weights.sum())
        self._heaviest = int(self.rows.weights.max(initial=0))
        self._known: dict[Fraction, PackingCell] = {}
        self._searches: dict[Fraction, tuple[ValueRows, CellSearch]] = {}

    @functools.cached_property
    def _glance(self) -> _Glance:
        return _Glance(self.rows)

    @functools.cached_property
    def _degrees(self) -> np.ndarray:
        return self.rows.degrees(self._heaviest)

    def enough(self) -> Fraction:
        """Return a price at which even shares of the rows of values load nobody more."""
        return self.rows.heaviest() if len(self.rows.values) else Fraction(1)

    def between(self, price: Fraction) -> tuple[Fraction, Fraction]:
        """Return two numbers between which V(D) is, from what is known."""
        if price in self._known:
            low = high = self._known[price].number
        elif price in self._searches:
            low, high = self._searches[price][1].low, self._searches[price][1].high
        else:
            low, high = map(packing_cells.cell, self._glance.bounds(price))
        return value_at(low, price), value_at(high, price)

    def closer(self, price: Fraction) -> None:
        """Take some guesses more for E(D)."""
        search = self._search(price)
        if search is None or search.low == search.high:
            self.cell(price)
            return
        for _ in range(_GUESSES):
            if search.low < search.high:
                search.step()

    def cell(self, price: Fraction) -> PackingCell:
        """Return the cell of E(D), and a line above E at all prices."""
        if price not in self._known:
            search = self._search(price)
            if search is not None:
                left, found = self._searches.pop(price)[0], search.decided()
                stays, removed = found.stays + left.whole, found.removed + left.removed
                self._known[price] = PackingCell(found.number, stays, removed)
        return self._known[price]

    def _search(self, price: Fraction) -> CellSearch | None:
        """Return the search for the cell of what is left of the rows; None if that is known."""
        if price not in self._searches:
            left, most = dataclasses.replace(self.rows), math.ceil(price)
            degrees = self._degrees if most >= self._heaviest else left.degrees(most)
            left.reduce(price, degrees)
            known = left.counted / price + left.removed
            if not len(left.values):
                stays, removed = Fraction(left.whole), Fraction(left.removed)
                self._known[price] = PackingCell(packing_cells.cell(known), stays, removed)
                return None
            self._searches[price] = left, CellSearch.of(left.packing(price), known)
        return self._searches[price][1]


class _Glance:
    """Bounds of E(D) at all prices at once, from how much the owners of each row have.

    With even shares s_t of the weight of its value for each row, d(i) the shares of person i, and
    m_t the largest d of the owners of t, s_t min(1, D / m_t) packs at most D for everybody. And
    without the people with d(i) >= h, for D each, the values are left of which a row has no such
    owner, for any h.
    """

    def __init__(self, rows: ValueRows) -> None:
        lengths = np.bincount(rows.values, minlength=len(rows.weights))
        shares = (rows.weights / np.maximum(lengths, 1))[rows.values]
        degrees = np.zeros(rows.people + 1)
        for role in rows.owners.T:
            degrees += np.bincount(np.where(role < 0, rows.people, role), shares, len(degrees))
        degrees[-1] = 0
        heavy = np.maximum.reduce([degrees[role] for role in rows.owners.T])
        self._heavy, index = np.unique(heavy, return_inverse=True)
        self._shares = np.bincount(index, shares)
        starts = np.flatnonzero(np.diff(rows.values, prepend=-1))
        least = np.minimum.reduceat(heavy, starts)
        weights = np.bincount(np.searchsorted(self._heavy, least), rows.weights, len(self._heavy))
        # Without the people of at least each of these, and without nobody at the end.
        self._left = np.append(0, np.cumsum(weights))
        many = len(degrees) - 1 - np.searchsorted(np.sort(degrees[:-1]), self._heavy)
        self._gone = np.append(many, 0)

    def bounds(self, price: Fraction) -> tuple[Fraction, Fraction]:
        """Return a lower and an upper bound of E(D) / D."""
        at = float(price)
        low = float((self._shares * np.minimum(1, at / self._heavy)).sum()) / at
        high = float((self._gone + self._left / at).min())
        return Fraction(low * (1 - SLACK)), Fraction(high * (1 + SLACK))


def value_at(number: int, price: Fraction) -> Fraction:
    """Return V for a cell."""
    return price * (5 * number - 3) / (5 * packing_cells.PARTS)


def covered(owners: np.ndarray, values: np.ndarray, price: int) -> int:
    """Return E(D) of the number of values whose rows have one owner each, exactly.

    It is whole, as a maximum flow of whole numbers is: so bounds decide it.

    Args:
        owners: the owner of each row, numbers from 0.
        values: any integer codes.
        price: D, at least 1.
    """
    price = min(price, len(values) + 1)  # which pays for everything too
    rows, at = _value_rows(owners[None], values, None, 1), Fraction(price)
    rows.reduce(at, rows.degrees(price))
    known = rows.counted + rows.removed * price
    if not len(rows.values):
        return known
    for found in packing_cells.bounds(rows.packing(at)):
        least = math.ceil(found.low * price)
        if least == math.floor(found.high * price):
            break
    return known + least


def _value_rows(
    owners: np.ndarray, values: np.ndarray | None, weights: np.ndarray | None, each: int
) -> ValueRows:
    """Return the rows that have an owner and a weight by value, with each owner once."""
    kept = (owners >= 0).any(axis=0)
    if weights is not None:
        kept &= np.asarray(weights > 0)
    people = different(owners[:, kept].T)
    size, count = int(people.max(initial=-1)) + 1, len(people)
    if values is None:
        weight = np.full(count, each) if weights is None else weights[kept].astype(np.int64)
        return ValueRows(people, np.arange(count), weight, size)
    order = np.argsort(values[kept], kind="stable")
    ordered = values[kept][order]
    number = np.cumsum(np.diff(ordered, prepend=ordered[:1]) != 0)
    same = np.full(int(number.max(initial=-1)) + 1, each)
    return ValueRows(people[order], number, same, size)


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

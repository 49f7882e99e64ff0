"""The rows of the most frequent value, where rows have any number of owners, at any price."""

from __future__ import annotations

import dataclasses
import functools
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.packing import packing_cells
from beam_dp.mechanisms.packing.packing_cells import PackingCell
from beam_dp.mechanisms.profiles.packed.chosen_values import ChosenValues
from beam_dp.mechanisms.profiles.packed.packings import (
    SLACK,
    Packed,
    PackedRows,
    different,
    value_at,
)

_PARTS_UP_TO = 1000  # M


class MostFrequent(Packed):
    """The weight of the rows of the value that has most of it: the largest of many packings.

    E(D) is the largest of what the rows of each value alone pack, and, up to M = 1,000 rows, of
    what they pack where the value is chosen by parts (`chosen_values`): max(E_v(D), min(J(D), M)).
    A person more adds 0 to D to each of them, and so to the largest; and each divided by D never
    rises with D. Parts help where the most frequent values belong to few people, different ones for
    each value; beyond M their programs would be large, and help least.

    No E_v is above J, where v has all parts: so E is at most J, and where J is known and at most M,
    E is J. Else values come in the order of an upper bound, the least over roles of what the people
    of that role count for if they share rows with nobody; no more come when the bound of the next
    one is in no higher cell than what is known. So of 200,000 values that are nearly as frequent
    few programs are solved.
    """

    def __init__(self, owners: np.ndarray, items: np.ndarray, weights: np.ndarray) -> None:
        """Take the rows; `items` are any integer codes, otherwise as for `PackedRows`."""
        kept = np.flatnonzero((owners >= 0).any(axis=0) & np.asarray(weights > 0))
        codes = np.unique(items[kept], return_inverse=True)[1]
        weights = weights[kept].astype(np.int64)
        totals = integers.sums_at(codes, weights, int(codes.max(initial=-1)) + 1)
        falling = np.argsort(-totals, kind="stable")
        place = np.empty(len(falling), np.int64)
        place[falling] = np.arange(len(falling))
        order = np.argsort(place[codes], kind="stable")
        self._codes, self._totals = place[codes][order], totals[falling]
        self._weights = weights[order]
        self._starts = np.searchsorted(self._codes, np.arange(len(totals)))
        different_owners = different(owners[:, kept[order]].T)
        self._owners = different_owners.T
        self._by_parts = ChosenValues(different_owners, self._codes, self._weights, self._totals)
        self.total = int(self._totals.max(initial=0))
        self._items: dict[int, PackedRows] = {}
        self._known: dict[Fraction, _Race] = {}

    @functools.cached_property
    def _owned(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each role the values of its people, and how much of each they have.

        Rows without a person in the role count in full: each is a person of its own.
        """
        people, found = int(self._owners.max(initial=0)) + 1, []
        for role in self._owners:
            one = np.where(role < 0, people + np.arange(len(role)), role)
            pairs = self._codes * (people + len(role)) + one
            order = np.argsort(pairs, kind="stable")
            starts = np.flatnonzero(np.diff(pairs[order], prepend=-1))
            sums = integers.segment_sums(self._weights[order], starts)
            found.append((self._codes[order[starts]], sums))
        return found

    @functools.cached_property
    def _heavy(self) -> np.ndarray:
        """The most that an owner of each row has of its value."""
        people = int(self._owners.max(initial=0)) + 2
        pairs = (self._codes * people + self._owners + 1).ravel()
        order = np.argsort(pairs, kind="stable")
        new = np.diff(pairs[order], prepend=-1) != 0
        weights = np.tile(self._weights, len(self._owners))
        sums = integers.segment_sums(weights[order], np.flatnonzero(new))
        owned = np.empty(len(pairs), np.int64)
        owned[order] = sums[np.cumsum(new) - 1]
        rows = np.where(self._owners < 0, 0, owned.reshape(self._owners.shape))
        return np.asarray(rows.max(axis=0))

    def enough(self) -> Fraction:
        """Return the most that anybody has of one value, at least 1."""
        return Fraction(max(1, int(self._heavy.max(initial=1))))

    def cell(self, price: Fraction) -> PackingCell:
        """Return the largest cell of the values, and the total, above E everywhere.

        The sum of r of any removal for these is at most E / D.
        """
        low, high = self._cells(price)
        while low < high:
            self.closer(price)
            low, high = self._cells(price)
        return PackingCell(low, Fraction(self.total), Fraction(low + 1, packing_cells.PARTS))

    def between(self, price: Fraction) -> tuple[Fraction, Fraction]:
        """Return two numbers between which V(D) is, from what is known."""
        low, high = self._cells(price)
        return value_at(low, price), value_at(high, price)

    def closer(self, price: Fraction) -> None:
        """Solve a program by parts as far as M, or that of the value with the highest bound left."""
        race, (low, high) = self._race(price), self._cells(price)
        if low == high:
            return
        search, most = self._by_parts.search(price), packing_cells.cell(_PARTS_UP_TO / price)
        if search.low < search.high and search.low < most and race.low < most:
            search.step()
        else:
            self._run(race, price)

    def _cells(self, price: Fraction) -> tuple[int, int]:
        """Return two cells between which that of E(D) is, from what is known."""
        race, most = self._race(price), packing_cells.cell(_PARTS_UP_TO / price)
        if race.low >= most:
            return race.low, race.high
        search = self._by_parts.search(price)
        low, high = max(race.low, min(search.low, most)), max(race.high, min(search.high, most))
        return low, min(high, search.high)

    def _run(self, race: _Race, price: Fraction) -> None:
        race.low = max(race.low, self._of_item(race.next).number(price))
        race.place += 1

    def _race(self, price: Fraction) -> _Race:
        """Return what is known at a price: at first that even shares load nobody too much."""
        if price not in self._known:
            at, size = float(price), len(self._starts)
            high = self._totals / at
            for codes, sums in self._owned:
                high = np.minimum(high, np.bincount(codes, np.minimum(sums / at, 1), size))
            shares = self._weights * np.minimum(1 / at, 1 / np.maximum(self._heavy, 1))
            low = np.bincount(self._codes, shares, size).max(initial=0) * (1 - SLACK)
            best = packing_cells.cell(Fraction(float(low)))
            self._known[price] = _Race(high * (1 + SLACK), np.argsort(-high, kind="stable"), best)
        return self._known[price]

    def _of_item(self, item: int) -> PackedRows:
        if item not in self._items:
            ends = np.append(self._starts, len(self._codes))
            rows = slice(int(ends[item]), int(ends[item + 1]))
            numbers = np.unique(self._owners[:, rows], return_inverse=True)
            owners = numbers[1].reshape(len(self._owners), -1) - int(numbers[0][0] < 0)
            self._items[item] = PackedRows(owners, None, self._weights[rows])
        return self._items[item]


@dataclasses.dataclass
class _Race:
    """Values at one price.

    Attributes:
        bounds: upper bounds of E / D for each value.
        order: the values by falling bounds.
        low: the highest cell that is known to be reached.
        place: how many values were solved.
    """

    bounds: np.ndarray
    order: np.ndarray
    low: int
    place: int = 0

    @property
    def next(self) -> int:
        """The value with the highest bound that is left."""
        return int(self.order[self.place])

    @property
    def high(self) -> int:
        """The highest cell that is possible."""
        if self.place == len(self.order):
            return self.low
        return max(self.low, packing_cells.cell(Fraction(float(self.bounds[self.next]))))

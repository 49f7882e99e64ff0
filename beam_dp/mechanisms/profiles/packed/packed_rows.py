"""Rows, their weights, or the rows of the most frequent value, at any price.

Of each value v a part l_v may be chosen, 1 in all, and row t packs at most its weight w_t times the
part of its value (`packing_program.of_rows`):

    J(D) = max { sum of u_t : 0 <= u_t <= w_t l_v, sum of l_v <= 1, nobody carries more than D }.

J is never above the sum of l_v times the rows of v, and so never above the rows of the most
frequent value. J(D) - k D is at most what remains of it without any k people, who must be found for
every value. Where all rows have one value, J is what they pack.

*Why by parts.* The rows of one value may belong to few people: of 57 order lines of a part four
suppliers have all, who carry 4 at a price of 1. Sixteen parts of 55 lines each, by a sixteenth
each, carry nearly 55 at that price, as they have other suppliers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.packing import packing_cells
from beam_dp.mechanisms.packing.packing_cells import CellSearch
from beam_dp.mechanisms.packing.packing_program import Packing, PackingBounds, of_rows
from beam_dp.mechanisms.profiles.packed.packings import (
    SLACK,
    Glance,
    Packed,
    different,
    pairs,
)

_FIRST, _SMALL = 8, 20_000  # values and rows of the first program
_PARTS_UP_TO = 1000  # M


class PackedRows(Packed):
    """J: the weight of the rows of the value that has most of it, which is chosen by parts.

    *Few values are in a program.* Its solution says how much of every other value its removal
    leaves. Where none is left with more than the values of the program are, it is the solution for
    all values; else those with most are added (Kelley's cutting planes, 1960). And nobody carries
    more than D who has no more than D of any one value: her name leaves her rows.
    """

    def __init__(
        self, owners: np.ndarray, values: np.ndarray | None, weights: np.ndarray | None = None
    ) -> None:
        """Take the rows.

        Args:
            owners: the person in each role (row of the array) of each row (column), numbers from 0;
                -1 for nobody.
            values: any integer codes; None: all rows have the same.
            weights: integers of at least 0, one per row; None: 1 each.
        """
        super().__init__()
        size = owners.shape[1]
        weights = np.ones(size, np.int64) if weights is None else weights.astype(np.int64)
        kept = np.flatnonzero((owners >= 0).any(axis=0) & np.asarray(weights > 0))
        codes = np.zeros(len(kept), np.int64)
        if values is not None:
            codes = np.unique(values[kept], return_inverse=True)[1]
            totals = integers.sums_at(codes, weights[kept], int(codes.max(initial=-1)) + 1)
            place = np.empty(len(totals), np.int64)
            place[np.argsort(-totals, kind="stable")] = np.arange(len(totals))
            order = np.argsort(place[codes], kind="stable")
            kept, codes = kept[order], place[codes][order]
        self._values, self._weights = codes, weights[kept]
        self._owners = different(owners[:, kept].T)
        self.totals = integers.sums_at(codes, self._weights, int(codes.max(initial=-1)) + 1)
        self._ends = np.searchsorted(codes, np.arange(len(self.totals)), "right")
        self.total = int(self.totals.max(initial=0))

    @functools.cached_property
    def _heaviest(self) -> np.ndarray:
        """The most that each person has of one value, and 0 for nobody."""
        size = int(self._owners.max(initial=-1)) + 2
        if len(self.totals) == 1:
            row, role = np.nonzero(self._owners >= 0)
            return integers.sums_at(self._owners[row, role], self._weights[row], size)
        heaviest = np.zeros(size, np.int64)
        np.maximum.at(heaviest, *pairs(self._owners, self._values, self._weights))
        return heaviest

    @functools.cached_property
    def _from_far(self) -> Glance:
        heavy = self._heaviest[self._owners].max(axis=1)
        return Glance(self._values, self._weights, heavy, self._heaviest)

    def alone(self, place: int) -> PackedRows:
        """Return the rows of one value, by its place in the falling order of their weight."""
        rows = slice(*np.append(0, self._ends)[place : place + 2].tolist())
        numbers = np.unique(np.append(-1, self._owners[rows]), return_inverse=True)[1]
        owners = numbers[1:].reshape(-1, self._owners.shape[1]) - 1
        return PackedRows(owners.T, None, self._weights[rows])

    def enough(self) -> Fraction:
        """Return the most that anybody has of one value, at least 1."""
        return Fraction(max(1, int(self._heaviest.max())))

    def _glance(self, price: Fraction) -> PackingBounds:
        if price >= self.enough():
            whole = Fraction(self.total)
            return PackingBounds(whole / price, whole / price, whole, Fraction(0))
        known = self._from_far.high(price)
        return known._replace(low=min(self._from_far.low(price), known.high))

    def bounds(self, price: Fraction) -> Iterator[PackingBounds]:
        """Yield bounds by programs of more and more values."""
        able = self._heaviest > math.floor(price)
        # So many values, by equal parts, load nobody too much.
        small = int(np.searchsorted(self._ends, _SMALL, "right"))
        first = max(1, min(small, _FIRST + math.ceil(self.enough() / price)))
        chosen = np.arange(min(first, len(self.totals)))
        while True:
            people, program = self._program(chosen, able, price)
            for found in packing_cells.bounds(program):
                parts = np.zeros(len(able))
                parts[people] = found.parts
                others, left = self._left_above(float(found.stays), chosen, parts)
                stays = max([found.stays, *map(Fraction, left.tolist())])
                yield found._replace(high=stays / price + found.removed, stays=stays)
                if len(others):
                    break
            more = others[np.argsort(-left, kind="stable")[: len(chosen)]]
            chosen = np.union1d(chosen, more)

    def _left_above(
        self, most: float, chosen: np.ndarray, parts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the values not chosen of which more may be left, and at most how much."""
        if len(chosen) == len(self.totals):
            return chosen[:0], parts[:0]
        count = int(np.count_nonzero(self.totals * (1 + SLACK) > most))
        rows = np.searchsorted(self._values, count)
        kept = np.maximum(0, 1 - parts[self._owners[:rows]].sum(axis=1))
        left = np.bincount(self._values[:rows], self._weights[:rows] * kept, count)
        above = left + SLACK * self.totals[:count]
        others = np.setdiff1d(np.flatnonzero(above > most), chosen)
        return others, above[others]

    def _program(
        self, chosen: np.ndarray, able: np.ndarray, price: Fraction
    ) -> tuple[np.ndarray, Packing]:
        """Return the program of some values, and who its people are: rows of the same are one."""
        rows = np.flatnonzero(np.isin(self._values, chosen))
        owners, values = self._owners[rows], np.searchsorted(chosen, self._values[rows])
        owners = np.where(able[owners], owners, -1)
        weights, owned = self._weights[rows], (owners >= 0).any(axis=1)
        free = integers.sums_at(values[~owned], weights[~owned], len(chosen))
        people, numbers = np.unique(np.append(-1, owners[owned]), return_inverse=True)
        owners = -np.sort(1 - numbers[1:].reshape(-1, owners.shape[1]), axis=1)
        codes = values[owned]
        for role in owners.T:
            codes = np.unique(codes * len(people) + role + 1, return_inverse=True)[1]
        first, same = np.unique(codes, return_index=True, return_inverse=True)[1:]
        sums = integers.sums_at(same, weights[owned], len(first))
        return people[1:], of_rows(price, owners[first], sums, values[owned][first], free)


class MostFrequent(Packed):
    """The rows of the most frequent value: what those of any value pack, or, if few, J.

    E(D) is the largest of what the rows of each value alone pack, and, up to M = 1,000 rows, of J:
    max(E_v(D), min(J(D), M)). A person more adds 0 to D to each of them, and so to the largest.
    Parts help where the most frequent values belong to few people, different ones for each value;
    beyond M their programs would be large, and help least.

    No E_v is above J, where v has all parts: so E is at most J, and where J is at most M, E is J.
    Else values come in the falling order of their rows, until the next one has too few.
    """

    def __init__(self, owners: np.ndarray, values: np.ndarray, weights: np.ndarray) -> None:
        """Take the rows, as `PackedRows`."""
        super().__init__()
        self._by_parts = PackedRows(owners, values, weights)
        self.total = self._by_parts.total
        self._alone: list[PackedRows] = []

    def enough(self) -> Fraction:
        """Return the most that anybody has of one value, at least 1."""
        return self._by_parts.enough()

    def _glance(self, price: Fraction) -> PackingBounds:
        return self._by_parts.search(price).known

    def bounds(self, price: Fraction) -> Iterator[PackingBounds]:
        """Yield bounds of J as far as M, then of the values."""
        low, most = self._glance(price).low, _PARTS_UP_TO / price
        if low < most:
            for found in self._by_parts.bounds(price):
                low = max(low, min(found.low, most))
                yield found._replace(low=low)
                if found.low >= most:
                    break
        searches: list[CellSearch] = []
        while True:
            others = Fraction(self._most_behind(len(searches)))
            known = [search.best for search in searches]
            high = max([others / price, *(found.high for found in known)])
            stays = max([others, *(found.stays for found in known)])
            removed = max([Fraction(0), *(found.removed for found in known)])
            low = max([low, *(search.least for search in searches)])
            yield PackingBounds(low, max(low, high), stays, removed)
            left = [search for search in searches if search.low < search.high]
            worst = max(left, key=lambda search: search.best.high, default=None)
            if worst is None or worst.best.high < others / price:
                searches.append(self._of_value(len(searches)).search(price))
            else:
                worst.step()

    def _most_behind(self, place: int) -> int:
        """Return the most rows of a value from a place on."""
        totals = self._by_parts.totals
        return int(totals[place]) if place < len(totals) else 0

    def _of_value(self, place: int) -> PackedRows:
        while len(self._alone) <= place:
            self._alone.append(self._by_parts.alone(len(self._alone)))
        return self._alone[place]

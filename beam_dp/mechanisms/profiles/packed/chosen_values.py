"""The rows of the most frequent value, where the value is chosen by parts, at any price.

Of each value v a part l_v may be chosen, 1 in all, and row t packs at most its weight w_t times the
part of its value (`chosen_packing`):

    J(D) = max { sum of u_t : 0 <= u_t <= w_t l_v, sum of l_v <= 1, nobody carries more than D }.

*It moves by 0 to D for a person more.* What packs x packs x' too, with 0 for the rows of p; and
what packs x' packs x without the rows of p, which pack D at most. J is never above the sum of l_v
times the rows of v, and so never above the rows of the most frequent value. J(D) - k D is at most
what remains of it without any k people, who must be found for every value.

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
from beam_dp.mechanisms.packing import packing_refined
from beam_dp.mechanisms.packing.chosen_packing import ChosenPacking
from beam_dp.mechanisms.packing.packing_cells import CellSearch
from beam_dp.mechanisms.packing.packing_program import PackingBounds
from beam_dp.mechanisms.profiles.packed.packings import SLACK

_SOLVERS = "ipx", "simplex"  # programs of nearly equal values: twenty times as fast
_FIRST, _SMALL = 8, 20_000  # values and rows of the first program


class ChosenValues:
    """J of one database, at any price.

    *Few values are in a program.* Its solution says how much of every other value its removal
    leaves. Where none is left with more than the values of the program are, it is the solution for
    all values; else those with most are added (Kelley's cutting planes, 1960). And nobody carries
    more than D who has no more than D of any one value: her name leaves her rows.
    """

    def __init__(
        self, owners: np.ndarray, values: np.ndarray, weights: np.ndarray, totals: np.ndarray
    ) -> None:
        """Take the rows.

        Args:
            owners: shape (rows, roles): the people of each row, each once, falling, and -1 where
                there are fewer. Every row has an owner.
            values: the value of each row, numbered from 0, rising.
            weights: the weight of each row, at least 1.
            totals: the weight of the rows of each value, falling.
        """
        self._owners, self._values, self._weights, self._totals = owners, values, weights, totals
        self._ends = np.searchsorted(values, np.arange(len(totals)), "right")
        self._searches: dict[Fraction, CellSearch] = {}

    def search(self, price: Fraction) -> CellSearch:
        """Return the search for the cell of J(D), as far as it has come."""
        if price not in self._searches:
            self._searches[price] = CellSearch(self._glance(price), self._bounds(price))
        return self._searches[price]

    @functools.cached_property
    def _heaviest(self) -> np.ndarray:
        """The most that each person has of one value, and 0 for nobody."""
        people = int(self._owners.max(initial=-1)) + 1
        row, role = np.nonzero(self._owners >= 0)
        pairs = self._owners[row, role] * len(self._totals) + self._values[row]
        order = np.argsort(pairs, kind="stable")
        starts = np.flatnonzero(np.diff(pairs[order], prepend=-1))
        sums = integers.segment_sums(self._weights[row[order]], starts)
        owner = pairs[order[starts]] // len(self._totals)
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        heaviest = np.zeros(people + 1, np.int64)
        heaviest[owner[first]] = np.maximum.reduceat(sums, first) if len(first) else []
        return heaviest

    @functools.cached_property
    def most(self) -> int:
        """The most that anybody has of one value."""
        return int(self._heaviest.max())

    @functools.cached_property
    def _row_heaviest(self) -> np.ndarray:
        """The most that an owner of each row has of one value."""
        return np.asarray(self._heaviest[self._owners].max(axis=1, initial=0))

    @functools.cached_property
    def _removals(self) -> list[tuple[int, int]]:
        """How many people have more than 2^j of one value, and what is left without them."""
        found = []
        for power in range(self.most.bit_length() + 1):
            kept = self._row_heaviest <= 1 << power
            sums = integers.sums_at(self._values[kept], self._weights[kept], len(self._totals))
            removed = int(np.count_nonzero(self._heaviest > 1 << power))
            found.append((removed, int(sums.max(initial=0))))
        return found

    def _glance(self, price: Fraction) -> PackingBounds:
        """Return bounds by the most that anybody has of one value."""
        if price >= self.most:
            whole = Fraction(int(self._totals.max(initial=0)))
            return PackingBounds(whole / price, whole / price, whole, Fraction(0))
        at, size = float(price), len(self._totals)
        shares = self._weights * np.minimum(1, at / np.maximum(self._row_heaviest, 1)) / at
        low = np.bincount(self._values, shares, size).max(initial=0) * (1 - SLACK)
        removed, stays = min(self._removals, key=lambda pair: pair[0] * price + pair[1])
        high = removed + stays / price
        return PackingBounds(min(Fraction(low), high), high, Fraction(stays), Fraction(removed))

    def _bounds(self, price: Fraction) -> Iterator[PackingBounds]:
        """Yield bounds as close as one likes, by programs of more and more values."""
        able = self._heaviest > price
        # So many values, by equal parts, load nobody too much.
        small = int(np.searchsorted(self._ends, min(_SMALL, len(self._values)), "right"))
        chosen = np.arange(max(1, min(small, _FIRST + math.ceil(self.most / price))))
        while True:
            people, program = self._program(chosen, able, price)
            for guess in packing_refined.solutions(program, _SOLVERS):
                removed = program.removed(guess)
                most = program.left(removed, guess.bits)
                parts = np.zeros(len(able))
                parts[people] = removed / (1 << guess.bits)
                others, left = self._left_above(float(most), chosen, parts)
                stays = max([most, *map(Fraction, left.tolist())])
                gone = Fraction(sum(removed), 1 << guess.bits)
                yield PackingBounds(program.low(guess), stays / price + gone, stays, gone)
                if len(others):
                    break
            more = others[np.argsort(-left, kind="stable")[: len(chosen)]]
            chosen = np.union1d(chosen, more)

    def _left_above(
        self, most: float, chosen: np.ndarray, parts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the values not chosen of which more may be left, and at most how much."""
        count = int(np.count_nonzero(self._totals * (1 + SLACK) > most))
        rows = np.searchsorted(self._values, count)
        kept = np.maximum(0, 1 - parts[self._owners[:rows]].sum(axis=1))
        left = np.bincount(self._values[:rows], self._weights[:rows] * kept, count)
        above = left + SLACK * self._totals[:count]
        others = np.setdiff1d(np.flatnonzero(above > most), chosen)
        return others, above[others]

    def _program(
        self, chosen: np.ndarray, able: np.ndarray, price: Fraction
    ) -> tuple[np.ndarray, ChosenPacking]:
        """Return the program of some values, and who its people are: rows of the same are one."""
        ends = np.append(0, self._ends)
        rows = np.concatenate([np.arange(ends[value], ends[value + 1]) for value in chosen])
        owners, values = self._owners[rows], np.searchsorted(chosen, self._values[rows])
        owners = -np.sort(-np.where(able[owners], owners, -1), axis=1)
        weights, owned = self._weights[rows], owners[:, 0] >= 0
        free = integers.sums_at(values[~owned], weights[~owned], len(chosen))
        lines, index = np.unique(
            np.column_stack([values, owners])[owned], axis=0, return_inverse=True
        )
        sums = integers.sums_at(index.ravel(), weights[owned], len(lines))
        people = np.unique(lines[:, 1:])
        people = people[people >= 0]
        renamed = np.where(lines[:, 1:] < 0, -1, np.searchsorted(people, lines[:, 1:]))
        program = ChosenPacking(
            renamed, lines[:, 0], sums.astype(object), free.astype(object), price
        )
        return people, program

"""The most that rows of several owners pack, at any threshold: counts, sums, the most frequent
value.

A row has an owner or several, a value and a weight. E(D) is the most that rows pack at a threshold
D: row t packs u_t >= 0, at most its weight w_t, and the rows of each person pack D at most
together. The statistics are

* the number of rows, and the sum of their weights: `PackedRows`, all rows of one value;
* the rows of the most frequent value: `MostFrequent`;
* the number of different values, whose rows share a weight: `packed_values`.

*A person adds 0 to D.* For x' = x + one person p, 0 <= E'(D) - E(D) <= D: what packs x packs x'
too, with 0 for the rows of p; and what packs x' packs x without the rows of p, which pack D at
most. E is 0 at D = 0 and concave (the mean of packings for two thresholds is one for their mean),
never above the statistic, and equal to it at a threshold that pays for all.

*What is released.* E is known in cells: q(E) = ceil(32 E / D - c), 0.4142 < c < 0.4143, which
integers decide, and which moves by 0 to 32 for a person (`packing_program`). So the function

    V(D) = D (q(E(D)) - 3/5) / 32,    E(D) - 1.02 D / 32 < V(D) < E(D),

rises by 0 to D for a person more, as E does.

*The most frequent value by parts.* A part l_v of each value v is chosen, and all parts add up to 1
at most. Row t packs at most its weight times the part of its value (`packing_program.of_rows`):

    J(D) = max { sum of u_t : 0 <= u_t <= w_t l_v, sum of l_v <= 1, nobody carries more than D }.

J is never above the sum of l_v times the rows of v, and so never above the rows of the most
frequent value. J(D) - k D is at most what remains of these without any k people, who are the same k
people for every value. Where all rows have one value, J is what they pack.

The rows of one value may belong to few people. If four suppliers have all 57 order lines of an
article, they carry 4 at a threshold of 1. A sixteenth of each of sixteen articles, which have 55
lines each and different suppliers, carries nearly 55 at that threshold.

*Whose row is it.* The same person in two roles of a row is one owner. An empty role (-1) is
nobody's. A row whose roles are all empty is left out, of x and x' alike: it belongs to nobody, so
that there is nobody to protect.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.packing import packing_program
from beam_dp.mechanisms.packing.packing_program import PARTS, CellSearch, Packing, PackingBounds

_CELLS, _FINEST = 1 << 22, 1000  # numbers of a table, and of thresholds in it
_FIRST, _SMALL = 8, 20_000  # values and rows of the first program
_PARTS_UP_TO = 1000  # M
NOTHING = PackingBounds(Fraction(0), Fraction(0), Fraction(0), Fraction(0))
SLACK = 1e-7  # relative: n floats above 0 add up to it but for n 2^-53, and n is below 10^8


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


def renumbered(owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the people among the owners, rising, and `different` owners by their place there."""
    people, numbers = np.unique(np.append(-1, different(owners)), return_inverse=True)
    return people[1:], numbers[1:].reshape(owners.shape) - 1


def alike(keys: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one row of each kind, and the kind of each row: its key and its owners.

    Args:
        keys: numbers from 0, by which kinds are in order.
        owners: shape (rows, roles), -1 for nobody.
    """
    size, kinds = int(owners.max(initial=-1)) + 2, keys
    for role in owners.T:
        kinds = np.unique(kinds * size + role + 1, return_inverse=True)[1]
    rows = np.zeros(int(kinds.max(initial=-1)) + 1, np.int64)
    rows[kinds] = np.arange(len(kinds))
    return rows, kinds


def value_at(number: int, threshold: Fraction) -> Fraction:
    """Return V for a cell."""
    return threshold * (5 * number - 3) / (5 * PARTS)


class Packed(abc.ABC):
    """E of one database, at any threshold of a denominator of at most 2^12.

    Attributes:
        total: the statistic, E at the highest thresholds.
    """

    total: int

    @functools.cached_property
    def _searches(self) -> dict[Fraction, CellSearch]:
        """What is known so far, by threshold."""
        return {}

    def __call__(self, threshold: Fraction) -> Fraction:
        """Return V(D)."""
        return value_at(self.search(threshold).decided(), threshold)

    def search(self, threshold: Fraction) -> CellSearch:
        """Return the search for the cell of E(D), as far as it has come."""
        if threshold not in self._searches:
            known = self._glance(threshold) if self.total else NOTHING
            self._searches[threshold] = CellSearch(known, self.bounds(threshold))
        return self._searches[threshold]

    def between(self, threshold: Fraction) -> tuple[Fraction, Fraction]:
        """Return two numbers between which V(D) is, from what is known."""
        search = self.search(threshold)
        return value_at(search.low, threshold), value_at(search.high, threshold)

    def closer(self, threshold: Fraction) -> None:
        """Take one guess more for E(D), which is not known yet."""
        self.search(threshold).step()

    @abc.abstractmethod
    def enough(self) -> Fraction:
        """Return a threshold that pays for everything."""

    @abc.abstractmethod
    def bounds(self, threshold: Fraction) -> Iterator[PackingBounds]:
        """Yield bounds as close as one likes."""

    @abc.abstractmethod
    def _glance(self, threshold: Fraction) -> PackingBounds:
        """Return rough bounds of E / D."""


class Glance:
    """Bounds of E / D of the group that counts most, at all thresholds at once.

    Upper bound, for any h: remove all people who have more than h, at D each; what none of them
    owns is left. Lower bound: a share min(1, D / m_t) of the weight of each row, m_t being at least
    what an owner of it has in its group, packs at most D for everybody.
    """

    def __init__(
        self, groups: np.ndarray, weights: np.ndarray, heavy: np.ndarray, degrees: np.ndarray
    ) -> None:
        """Take what can stay: its group, its weight, and the most that its owners have.

        Args:
            groups: numbers from 0.
            weights: above 0.
            heavy: above 0; counted as the next one of some hundreds of numbers.
            degrees: what each person has.
        """
        size, most = int(groups.max()) + 1, int(degrees.max())
        count = max(2, min(_FINEST, _CELLS // size))
        self._edges = np.unique(np.append(np.geomspace(1, most, count).astype(np.int64), [0, most]))
        places = groups * len(self._edges) + np.searchsorted(self._edges, heavy)
        table = np.bincount(places, weights, size * len(self._edges))
        self._table = table.reshape(size, -1)
        self._stays = np.cumsum(self._table, axis=1).max(axis=0)
        self._gone = len(degrees) - np.searchsorted(np.sort(degrees), self._edges, "right")

    def low(self, threshold: Fraction) -> Fraction:
        """Return a lower bound of E / D."""
        packed = self._table @ (1 / np.maximum(self._edges, float(threshold)))
        return Fraction(float(packed.max()) * (1 - SLACK))

    def high(self, threshold: Fraction) -> PackingBounds:
        """Return an upper bound of E / D; the lower one is 0."""
        best = int((self._gone + self._stays / float(threshold)).argmin())
        stays = Fraction(float(self._stays[best]) * (1 + SLACK))
        gone = Fraction(int(self._gone[best]))
        return PackingBounds(Fraction(0), stays / threshold + gone, stays, gone)


class PackedRows(Packed):
    """J: the weight of the rows of the value that has most of it, which is chosen by parts.

    *Few values are in a program.* Its solution is a removal, which is tried on every other value.
    If it leaves of none of them more than of those in the program, it is the solution for all
    values; else the values of which most is left are added (Kelley's cutting planes, 1960).
    Whoever has at most D of each value carries at most D anyway: their name leaves their rows.
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
        weights = np.ones(owners.shape[1], int) if weights is None else weights.astype(np.int64)
        kept = np.flatnonzero((owners >= 0).any(axis=0) & np.asarray(weights > 0))
        codes = np.zeros(len(kept), np.int64)
        if values is not None:
            codes = np.unique(values[kept], return_inverse=True)[1]
            totals = integers.sums_at(codes, weights[kept], int(codes.max(initial=-1)) + 1)
            place = np.argsort(np.argsort(-totals, kind="stable"))
            order = np.argsort(place[codes])
            kept, codes = kept[order], place[codes][order]
        self._values, self._weights = codes, weights[kept]
        self._owners = different(owners[:, kept].T)
        self.totals = integers.sums_at(codes, self._weights, int(codes.max(initial=-1)) + 1)
        self._ends = np.searchsorted(codes, np.arange(len(self.totals)), "right")
        self.total = int(self.totals.max(initial=0))

    @functools.cached_property
    def _owned(self) -> np.ndarray:
        """What the owner in each role of each row has of the value of the row; 0 for nobody."""
        size = int(self._owners.max(initial=-1)) + 2
        codes = self._values[:, None] * size + self._owners + 1
        codes = np.unique(codes, return_inverse=True)[1]
        weights = np.repeat(self._weights, codes.shape[1])
        sums = integers.sums_at(codes.ravel(), weights, int(codes.max(initial=-1)) + 1)
        return np.where(self._owners < 0, 0, sums[codes])

    @functools.cached_property
    def _heaviest(self) -> np.ndarray:
        """The most that each person has of one value, and 0 for nobody."""
        size = int(self._owners.max(initial=-1)) + 2
        if len(self.totals) == 1:
            row, role = np.nonzero(self._owners >= 0)
            return integers.sums_at(self._owners[row, role], self._weights[row], size)
        heaviest = np.zeros(size, np.int64)
        np.maximum.at(heaviest, self._owners, self._owned)
        return heaviest

    @functools.cached_property
    def _by_person(self) -> Glance:
        """By the most that owners have of any value: people are removed for all values at once."""
        heavy = self._heaviest[self._owners].max(axis=1)
        return Glance(self._values, self._weights, heavy, self._heaviest)

    @functools.cached_property
    def _by_value(self) -> Glance:
        """By what owners have of the value of the row: the lower bound is higher, of one value."""
        if len(self.totals) == 1:
            return self._by_person
        return Glance(self._values, self._weights, self._owned.max(axis=1), self._heaviest)

    def alone(self, place: int) -> PackedRows:
        """Return the rows of one value, by its place in the falling order of their weight."""
        rows = slice(*np.append(0, self._ends)[place : place + 2].tolist())
        return PackedRows(renumbered(self._owners[rows])[1].T, None, self._weights[rows])

    @functools.cached_property
    def _roles(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Per role the values of its people, and what they have; each empty role is a new person."""
        size, found = len(self._owners) + int(self._owners.max(initial=-1)) + 1, []
        for role in self._owners.T:
            people = np.where(role < 0, size - 1 - np.arange(len(role)), role)
            codes, places = np.unique(self._values * size + people, return_inverse=True)
            found.append((codes // size, np.bincount(places, self._weights)))
        return found

    def _by_role(self, threshold: Fraction) -> np.ndarray:
        """Return an upper bound of E / D per value: what people count for if none share a row."""
        high = self.totals / float(threshold)
        for values, owned in self._roles:
            parts = np.minimum(owned / float(threshold), 1)
            high = np.minimum(high, np.bincount(values, parts, len(high)))
        return high * (1 + SLACK)

    def enough(self) -> Fraction:
        """Return the most that anybody has of one value, at least 1."""
        return Fraction(max(1, int(self._heaviest.max())))

    def _glance(self, threshold: Fraction) -> PackingBounds:
        if threshold >= self.enough():
            whole = Fraction(self.total)
            return PackingBounds(whole / threshold, whole / threshold, whole, Fraction(0))
        known = self._by_person.high(threshold)
        return known._replace(low=min(self._by_value.low(threshold), known.high))

    def bounds(self, threshold: Fraction) -> Iterator[PackingBounds]:
        """Yield bounds by programs of more and more values."""
        able = self._heaviest > math.floor(threshold)
        # So many values, by equal parts, load nobody too much.
        small = int(np.searchsorted(self._ends, _SMALL, "right"))
        first = max(1, min(small, _FIRST + math.ceil(self.enough() / threshold)))
        chosen = np.arange(min(first, len(self.totals)))
        while True:
            people, program = self._program(chosen, able, threshold)
            for found in packing_program.bounds(program):
                parts = np.zeros(len(able))
                parts[people] = found.parts
                others, left = self._left_above(float(found.stays), chosen, parts)
                stays = max([found.stays, *map(Fraction, left.tolist())])
                yield found._replace(high=stays / threshold + found.removed, stays=stays)
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
        self, chosen: np.ndarray, able: np.ndarray, threshold: Fraction
    ) -> tuple[np.ndarray, Packing]:
        """Return the program of some values, and who its people are: rows of the same are one."""
        rows = np.flatnonzero(np.isin(self._values, chosen))
        owners, values = self._owners[rows], np.searchsorted(chosen, self._values[rows])
        owners = np.where(able[owners], owners, -1)
        weights, owned = self._weights[rows], (owners >= 0).any(axis=1)
        free = integers.sums_at(values[~owned], weights[~owned], len(chosen))
        people, owners = renumbered(owners[owned])
        first, same = alike(values[owned], owners)
        sums = integers.sums_at(same, weights[owned], len(first))
        return people, packing_program.of_rows(
            threshold, owners[first], sums, values[owned][first], free
        )


class MostFrequent(PackedRows):
    """The rows of the most frequent value: the most that those of one value pack, or, if few, J.

    E(D) is the largest of what the rows of each value alone pack, and, up to M = 1,000 rows, of J:
    max(E_v(D), min(J(D), M)). A person more adds 0 to D to each of them, and so to the largest.
    Parts help where the most frequent values belong to few people, different ones for each value;
    beyond M their programs would be large, and help least.

    No E_v is above J, where v has all parts: so E is at most J, and where J is at most M, E is J.
    Else values are looked at in the falling order of an upper bound, until the next bound is too
    low. A value's bound is the least over roles of what the people of that role count for alone.
    """

    def _glance(self, threshold: Fraction) -> PackingBounds:
        """Return bounds of J, the lower of which is of one value; or the upper one of roles and M."""
        known = super()._glance(threshold)
        if known.high * threshold <= _PARTS_UP_TO:
            return known
        high = max(_PARTS_UP_TO / threshold, Fraction(float(self._by_role(threshold).max())))
        by_role = PackingBounds(known.low, high, high * threshold, Fraction(0))
        return by_role if high < known.high else known

    def bounds(self, threshold: Fraction) -> Iterator[PackingBounds]:
        """Yield bounds of J as far as M, then of the values."""
        low, most = self.search(threshold).known.low, _PARTS_UP_TO / threshold
        if low < most:
            for found in super().bounds(threshold):
                low = max(low, min(found.low, most))
                yield found._replace(low=low)
                if found.low >= most:
                    break
        searches: list[CellSearch] = []
        most_of = self._by_role(threshold)
        order = np.argsort(-most_of, kind="stable").tolist()
        while True:
            others = Fraction(max(most_of[order[len(searches) :][:1]], default=0))
            rest = PackingBounds(low, others, others * threshold, Fraction(0))
            known = [rest, *(search.best for search in searches)]
            low = max([low, *(search.least for search in searches)])
            high = max(low, *(found.high for found in known))
            stays = max(found.stays for found in known)
            yield PackingBounds(low, high, stays, max(found.removed for found in known))
            left = [search for search in searches if search.low < search.high]
            worst = max(left, key=lambda search: search.best.high, default=None)
            if worst is None or worst.best.high < others:
                searches.append(self.alone(order[len(searches)]).search(threshold))
            else:
                worst.step()

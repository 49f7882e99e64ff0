"""Removal profiles of statistics of rows that belong to any number of people.

A row disappears when any of its owners does. Let people be removed by parts r_i in [0, 1]; of a row
t with the owners O(t) the part z_t = max(0, 1 - sum of r_i over O(t)) stays. For a statistic F of
the parts that stay, which never falls when a part grows,

    LP[k] = min { F(z) : r_i in [0, 1], sum of all r_i <= k },    B[k] = g(LP[k]),

with g(v) = ceil(v - c), c = sqrt(2) - 1.

*It interlaces*, B'[k + 1] <= B[k] <= B'[k] for x' = x + one person p. To any r of x add r_p = 1:
nothing of the rows of p stays, and the sum is one more: LP'[k + 1] <= LP[k]. From any r' of x'
leave r_p out: the rows of p are not in x, and no other row has lost anything: LP[k] <= LP'[k]. g
is monotone. So the loss has sensitivity 1, in one direction, for any number of owners.

*What it is.* r in {0, 1} removes whole people, so LP[k] is at most the exact profile, an integer
above LP[k], and so is B[k]; B[0] is exact. B[k] > LP[k] - c.

* `total`: F = sum of w_t z_t.
* `most_frequent`: F = the largest, over items, of the sum of w_t z_t over the rows of the item.
* `distinct`: F = sum over items of the largest z_t of the rows of the item.
* `kth_largest`: the loss of y is the least k with B[k] <= rank - 1 for the total number of rows
  above y. Fewer rows are above a larger y, so that the loss falls with y, and interlaces as B does.
  No row below B[K] matters.
  (The largest of rows with two roles has the fractional cover of `owner_pairs` instead.)

*Sizes*, K = 620, processor seconds of one core, for 1.8 million order lines of 80,000 customers and
10,000 suppliers: their number 2 s, the most frequent of 50 quantities 7 s, of 730 ship dates 17 s,
1.6 million different prices 25 s, the largest price 2 s; with 1,000 clerks too the 100th largest
price 40 s, and the most frequent of 3,333 parts that are all about as frequent, in 100,000 order
lines, 83 s; 685,000 triangles of 300,000 people 4 s.
`kth_largest` solves up to K programs of somewhat more than k rows or K people: where k is a large
part of millions of rows, as for a median of rows, seconds are needed for each of them.
`distinct` is slow, hours and more, where most items have many rows of people who are alike: then
nothing but parts of everybody is optimal, and the program cannot be made small. The default of
distinct counts is `shared_values.distinct_by_price`, which is near it, and takes seconds there.

*Whose row is it.* The same person in two roles of a row is one owner: her removal takes the row,
once. An empty role (-1) is nobody's. A row of which all roles are empty belongs to nobody whom its
loss could protect, and is left out: it is left out of x and x' alike.
"""

from collections.abc import Iterator

import numpy as np

from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.optimization.removal_levels import RemovalLevels
from beam_dp.mechanisms.optimization.removal_program import RemovalProgram
from beam_dp.mechanisms.profiles import owner_pairs


def total(owners: np.ndarray, weights: np.ndarray | None, removals: int) -> list[int]:
    """Return B[0..removals] of the sum of the rows' weights; None: 1 each, which counts the rows.

    Args:
        owners: the person in each role (row of the array) of each row (column), -1 for nobody.
        weights: integers of at least 0, one per row.
        removals: K, at least 1.
    """
    column = np.ones(owners.shape[1], np.int64) if weights is None else weights
    everything = np.zeros(len(column), np.int64)
    return _levels(owners, np.arange(len(column)), column, everything, removals)


def most_frequent(
    owners: np.ndarray, items: np.ndarray, counts: np.ndarray, removals: int
) -> list[int]:
    """Return B[0..removals] of how many rows the most frequent item has.

    Args:
        owners: as in `total`.
        items: any integer codes.
        counts: how many rows each row stands for, at least 1.
        removals: K, at least 1.
    """
    return _levels(owners, np.arange(len(items)), counts, items, removals)


def distinct(owners: np.ndarray, items: np.ndarray, removals: int) -> list[int]:
    """Return B[0..removals] of the number of different items.

    Args:
        owners: as in `total`.
        items: any integer codes.
        removals: K, at least 1.
    """
    ones, everything = np.ones(len(items), np.int64), np.zeros(len(items), np.int64)
    return _levels(owners, items, ones, everything, removals)


def kth_largest(
    owners: np.ndarray, items: np.ndarray, counts: np.ndarray, k: int, removals: int, empty: Number
) -> list[Number]:
    """Return B[0..removals] of the k-th largest item of the rows.

    Args:
        owners: as in `total`.
        items: the value of each row.
        counts: how many rows each row stands for, at least 1.
        k: 1 for the largest.
        removals: K, at least 1.
        empty: the result where fewer than k rows are left; below all items.
    """
    checks.positive_integer("shared_rows.kth_largest", "k", k)
    kept = np.asarray((owners >= 0).any(axis=0))
    owners, items, counts = owners[:, kept], items[kept], counts[kept]
    if k == 1 and len(owners) == 2:
        return owner_pairs.max_profile(*pair(owners), items, removals, empty)
    order = np.argsort(-items, kind="stable")
    ranked = _Ranked(owners[:, order], items[order], counts[order], k, removals)
    return [empty if level < 0 else ranked.values[level].item() for level in ranked.levels()]


class _Ranked:
    """Rows by falling item, and which rows can be the k-th largest after removals.

    Attributes:
        values: the different items, falling.
        ends: how many rows have one of the first items.
        totals: how many rows the first ones stand for.
        order: whom the last program that was solved removes first.
    """

    def __init__(
        self, owners: np.ndarray, items: np.ndarray, counts: np.ndarray, k: int, removals: int
    ) -> None:
        """Take rows by falling item."""
        last = np.flatnonzero(np.append(items[1:] != items[:-1], len(items) > 0))
        # The program of the first rows is a part of the program of all, which is made once.
        self.rows, self.counts = different(owners.T), counts
        self.owners, self.k, self.removals = np.ascontiguousarray(self.rows.T), k, removals
        self.values, self.ends = items[last], last + 1
        self.totals = integers.running_sums(counts)
        self.order = np.zeros(0, np.int64)

    def levels(self) -> list[int]:
        """Return per number of removals the index of an item in `values`, -1 beyond all of them.

        B[r] is the item at the first j with loss(j + 1) > r, loss(j) being that of the rows
        of the first j items. Their program is a part of that of more rows, so that the loss never
        falls with j, and rows beyond a loss above K matter to no r. So prefixes grow twofold until
        there is one; in between all r are bisected at once.
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
        """Return the least r so that r removals leave fewer than k rows of the first items.

        Args:
            size: how many items.
            first: the least answer; given for a loss below it.
            stop: the largest answer; given for a loss above it.
        """
        rows = int(self.ends[size - 1])
        owners, counts = self.rows[:rows], self.counts[:rows]
        if self.totals[rows - 1] < self.k:
            return first
        # One removal takes at most one of the rows that are apart: k + r of them leave k.
        apart = self._apart(self.owners[:, :rows], self.k + stop - 1)
        first = max(first, apart - self.k + 1)
        if stop == 1 or first >= stop:
            return stop
        program = RemovalProgram(owners, np.arange(rows), counts, np.zeros(rows, np.int64))
        levels = RemovalLevels(program, stop - 1)
        levels.remove(self.order[self.order < program.people])
        loss = levels.loss(self.k - 1, first)
        self.order = levels.order
        return loss

    def _apart(self, owners: np.ndarray, wanted: int) -> int:
        """Return how many rows there are, at least, no two of which have a common owner.

        Those are taken that are the first of all of their owners, again and again, until so many
        are known as are wanted. There are no more of them than people.
        """
        apart, wanted = 0, min(wanted, int(owners.max()) + 1)
        owners = owners[:, : 8 * wanted * len(owners)]
        while apart < wanted and owners.shape[1]:
            index = np.arange(owners.shape[1])
            least = np.full(int(self.owners.max()) + 2, owners.shape[1])
            for role in owners:
                np.minimum.at(least, role, index)
            least[-1] = owners.shape[1]
            there = owners >= 0
            picked = np.all(~there | (least[owners] == index), axis=0)
            apart += int(np.count_nonzero(picked))
            used = np.zeros(len(least), np.bool_)
            used[owners[:, picked]] = True
            used[-1] = False
            owners = owners[:, ~used[owners].any(axis=0)]
        return apart


def pair(owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both owners of each row of at most two roles, the only one twice."""
    first, second = owners[0], owners[-1]
    return np.where(first < 0, second, first), np.where(second < 0, first, second)


def _levels(
    owners: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    groups: np.ndarray,
    removals: int,
) -> list[int]:
    """Return B[0..removals] of rows with a value, and its weight and group."""
    kept = (owners >= 0).any(axis=0) & np.asarray(weights > 0)
    if not kept.any():
        return [0] * (removals + 1)
    columns = (column[kept] for column in (values, weights, groups))
    return RemovalLevels(_program(owners[:, kept], *columns), removals).values()


def _program(
    owners: np.ndarray, values: np.ndarray, weights: np.ndarray, groups: np.ndarray
) -> RemovalProgram:
    """Return the program of rows that all have an owner."""
    order = np.argsort(values, kind="stable")
    value, weight, group = (column[order] for column in (values, weights, groups))
    first = np.diff(np.unique(value, return_inverse=True)[1], prepend=-1) > 0
    return RemovalProgram(
        different(owners.T[order]),
        np.cumsum(first) - 1,
        weight[first],
        np.unique(group[first], return_inverse=True)[1],
    )


def different(owners: np.ndarray) -> np.ndarray:
    """Return the owners of each row, each once, rising, -1 beyond the last one.

    Args:
        owners: shape (rows, roles), -1 for nobody. The result numbers people from 0.
    """
    beyond = np.iinfo(np.int64).max
    rising = np.sort(np.where(owners < 0, beyond, owners), axis=1)
    rising[:, 1:][rising[:, 1:] == rising[:, :-1]] = beyond
    rising.sort(axis=1)
    codes = np.unique(rising, return_inverse=True)[1]
    return np.where(rising == beyond, -1, codes.reshape(rising.shape))

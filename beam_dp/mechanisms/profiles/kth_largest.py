"""The removal profile of the k-th largest row, where one person may own many rows.

A line is (person, item, count): `count` rows of that person have the value `item`. Let c_i(y) be
the number of rows of person i above y and C(y) their sum. Different values are numbered as buckets.
The k-th largest row is at most y iff C(y) <= k - 1, and the r people whose removal takes most rows
above y are those with the r largest c_i(y), so

    loss(y) = min { r : C(y) - (sum of the r largest c_i(y)) <= k - 1 }

is the exact removal loss and B[r] is the first y with loss(y) <= r (Fang, Dong, Yi, "Shifted
Inverse", CCS 2022, section 5). The statistic is monotone: more rows, a larger k-th largest.

Cutting c_i at k changes no loss. Let m people have k rows or more above y. With r < m one of them
stays, with at least k rows, cut or not; with r >= m all of them go, in both sums, and what is left
is the same.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.numbers import Number


def profile(
    people: np.ndarray, items: np.ndarray, counts: np.ndarray, k: int, removals: int
) -> list[Number]:
    """Return B[0..removals] of the k-th largest row.

    It is exact. The profiles of neighbours interlace: `B'[r + 1] <= B[r] <= B'[r]`.

    Edge cases: -inf where fewer than k rows are left; several lines of one person and item count
    together. Up to 2^62 rows.

    Args:
        people: per line a code from 0 on.
        items: per line the value of its rows, an integer.
        counts: per line how many rows, at least 1.
        k: from 1 on; half of all rows is as fast as 1.
        removals: how many people are removed at most.
    """
    checks.positive_integer("ranks.profile", "k", k)
    if len(people) == 0:
        return [-math.inf] * (removals + 1)
    values, codes = np.unique(items, return_inverse=True)
    rows = integers.sums_at(codes, counts, len(values))
    # above[j] is the number of rows in the buckets j, j + 1, ...: those above bucket j - 1.
    above = np.append(rows[::-1].cumsum()[::-1], 0)
    search = _Search(above, min(k, int(above[0]) + 1), np.empty(removals + 1, np.int64))
    search.run(people, codes, counts)
    units: list[Number] = [-math.inf, *values.tolist()]
    return [units[level] for level in search.levels.tolist()]


class _Node(NamedTuple):
    """A step of the bisection: for r from `first` to before `stop`, B[r] is from `low` to `high`.

    `base` has the number of each person's rows from bucket `high` on; `lines` are the people, the
    buckets and the counts of the lines in buckets between `low` and `high`.
    """

    first: int
    stop: int
    low: int
    high: int
    base: np.ndarray
    lines: tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class _Search:
    """Bisect for all B[r] at once, on the people who may still be among those with most rows."""

    above: np.ndarray
    k: int
    levels: np.ndarray

    @property
    def most(self) -> int:
        """K, the number of removals."""
        return len(self.levels) - 1

    def run(self, people: np.ndarray, buckets: np.ndarray, counts: np.ndarray) -> None:
        """Fill `levels` with the first j for which above[j] allows B[r] there."""
        size = int(people.max()) + 1
        # Above no bucket do r people own more rows than the r largest owners own in all.
        reach = int(_running(integers.sums_at(people, counts, size), self.most)[-1])
        low, high = self._first(self.k - 1 + reach), self._first(self.k - 1)
        over, inside = buckets >= high, (buckets >= low) & (buckets < high)
        base = integers.sums_at(people[over], counts[over], size)
        lines = people[inside], buckets[inside], counts[inside]
        nodes = [_Node(0, self.most + 1, low, high, base, lines)]
        while nodes:
            nodes += self._halves(nodes.pop())

    def _first(self, rows: int) -> int:
        """Return the first j with above[j] <= rows."""
        return int(np.searchsorted(-self.above, -rows))

    def _halves(self, node: _Node) -> list[_Node]:
        if node.low == node.high or node.first == node.stop:
            self.levels[node.first : node.stop] = node.low
            return []
        first, stop, low, high, base, (people, buckets, counts) = self._trimmed(node)
        middle = (low + high) // 2
        over, under = buckets >= middle, buckets < middle
        after = base + integers.sums_at(people[over], counts[over], len(base))
        needed = int(self.above[middle]) - (self.k - 1)
        loss = int(np.searchsorted(_running(after, self.most), needed))
        split = min(max(loss, first), stop)
        over &= buckets > middle
        left = people[under], buckets[under], counts[under]
        right = people[over], buckets[over], counts[over]
        return [
            _Node(split, stop, low, middle, after, left),
            _Node(first, split, middle + 1, high, base, right),
        ]

    def _trimmed(self, node: _Node) -> _Node:
        """Return the node without the people who are nowhere in it among the K largest owners.

        The K-th largest count at `high` is at most the K-th largest anywhere in the node, and
        nobody has more rows than at `low`.
        """
        if len(node.base) <= self.most or self.most == 0:
            return node
        rank = len(node.base) - self.most
        least = np.partition(node.base, rank)[rank]
        people, buckets, counts = node.lines
        kept = node.base + integers.sums_at(people, counts, len(node.base)) >= least
        codes, stays = kept.cumsum() - 1, kept[people]
        lines = codes[people[stays]], buckets[stays], counts[stays]
        return node._replace(base=node.base[kept], lines=lines)


def _running(counts: np.ndarray, most: int) -> np.ndarray:
    """Return the sums of the 0, 1, ..., `most` largest counts, or fewer with fewer people."""
    start = len(counts) - max(1, most)
    largest = np.partition(counts, start)[start:] if start > 0 else counts
    largest = largest[: min(len(counts), most)]
    return np.append(0, np.sort(largest)[::-1].cumsum())

"""The removal profile of the k-th largest row, where people own many rows, and rows many people.

Different items are numbered from the largest on. The k-th largest row is at most y if at most k - 1
rows are above y, and loss(y) is the least number of people whose removal leaves so few. B[r] is the
first item with a loss of at most r (Fang, Dong, Yi, "Shifted Inverse", CCS 2022, section 5). The
statistic is monotone: more rows, a larger k-th largest.

*Rows of one owner.* With c_i(y) the rows of person i above y and C(y) their sum, the r people whose
removal takes most rows are those with the r largest c_i(y), so

    loss(y) = min { r : C(y) - (sum of the r largest c_i(y)) <= k - 1 }

exactly.

*Rows of any number of owners.* Let E(D) be the most that the rows above y pack at a threshold D
(`packed.packed_rows`), and R_D below it in steps of D / 32 (`packed.by_threshold`). Removing r
people, by parts, leaves at least E(D) - r D of them, so that

    loss(y) = max(0, max over thresholds D of ceil((R_D - (k - 1)) / D))

is at most the exact loss. It falls as y rises, for there are fewer rows, and a person more raises
it by 0 or 1, as R_D rises by 0 to D. So B interlaces. For k = 1 only the threshold 1 is used: E(1)
is the fractional matching of the rows above y, which equals their fractional cover, and every other
threshold gives less. For other k the thresholds are the powers of 2 up to the first above 64 (k -
1), so that n people with very many rows each have a loss of n - (k - 1) / D, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.integers import Number
from beam_dp.mechanisms.packing.packing_program import PARTS
from beam_dp.mechanisms.profiles.packed.packed_rows import PackedRows

_FINEST = 64

Loss = Callable[[int, int, int], int]
"""From (n, low, high) to the loss of the rows of the first n lines, cut to [low, high]."""


def profile(
    owners: np.ndarray, items: np.ndarray, counts: np.ndarray, k: int, removals: int
) -> list[Number]:
    """Return B[0..removals] of the k-th largest row.

    The profiles of neighbours interlace: `B'[r + 1] <= B[r] <= B'[r]`.

    Edge cases: -inf where fewer than k rows are left. Up to 2^62 rows.

    Args:
        owners: shape (roles, lines): people from 0, -1 for nobody.
        items: per line the value of its rows, an integer.
        counts: per line how many rows, at least 1.
        k: from 1 on.
        removals: how many people are removed at most.
    """
    kept = np.flatnonzero((owners >= 0).any(axis=0))
    order = kept[np.argsort(-items[kept], kind="stable")]
    owners, items, counts = owners[:, order], items[order], counts[order]
    ends = np.flatnonzero(np.diff(items, append=items[-1:] - 1)) + 1
    loss = _exact(owners[0], counts, k) if len(owners) == 1 else _by_thresholds(owners, counts, k)
    levels = _levels(loss, ends, k, removals)
    values: list[Number] = [*items[ends - 1].tolist(), -math.inf]
    return [values[level] for level in levels]


def _levels(loss: Loss, ends: np.ndarray, k: int, removals: int) -> list[int]:
    """Return per number of removals the index of an item, or the number of items.

    B[r] is the item at the first j with loss(j + 1) > r, loss(j) being that of the rows of the
    first j items, which never falls with j. Once a loss is above K, no r needs more items. So the
    prefix is doubled until its loss is above K; then all r are bisected at once.

    Args:
        loss: the loss of the first so many lines.
        ends: how many lines have one of the first items.
        k: as for `profile`.
        removals: K.
    """
    indexes = [len(ends)] * (removals + 1)
    nodes, first, low, rows = [], 0, 0, k + removals
    while first <= removals and low < len(ends):
        size = max(low + 1, int(np.searchsorted(ends, rows, "right")))
        split = loss(int(ends[size - 1]), first, removals + 1)
        nodes.append((first, split, low, size - 1))
        first, low, rows = split, size, 2 * int(ends[size - 1])
    while nodes:
        first, stop, low, high = nodes.pop()
        if first == stop or low == high:
            indexes[first:stop] = [low] * (stop - first)
            continue
        middle = (low + high) // 2
        split = loss(int(ends[middle]), first, stop)
        nodes += [(first, split, low, middle), (split, stop, middle + 1, high)]
    return indexes


def _exact(people: np.ndarray, counts: np.ndarray, k: int) -> Loss:
    """Return the loss of rows of one owner each."""
    size = int(people.max(initial=0)) + 1

    def loss(rows: int, first: int, stop: int) -> int:
        owned = integers.sums_at(people[:rows], counts[:rows], size)
        largest = np.partition(owned, -stop)[-stop:] if stop < size else owned
        left = int(owned.sum()) - np.append(0, np.cumsum(np.sort(largest)[::-1]))
        return max(first, min(stop, int(np.count_nonzero(left >= k))))

    return loss


def _by_thresholds(owners: np.ndarray, counts: np.ndarray, k: int) -> Loss:
    """Return the loss of rows of several owners."""
    totals = integers.running_sums(counts)
    thresholds = [Fraction(1 << power) for power in range((_FINEST * (k - 1)).bit_length() + 1)]

    def loss(rows: int, first: int, stop: int) -> int:
        if totals[rows - 1] < k:
            return first
        if stop == 1:
            return 1
        packed, best = PackedRows(owners[:, :rows], None, counts[:rows]), max(first, 1)
        for threshold in tuple(thresholds):
            search, beyond = packed.search(threshold), (k - 1) / threshold
            # A cell q stands for R_D of q - 1 parts of the threshold.
            while search.low < search.high and _least(search.low, beyond) < stop:
                if _least(search.high, beyond) <= best:
                    break
                search.step()
            found = min(_least(search.low, beyond), stop)
            if found > best:
                best = found
                thresholds.remove(threshold)
                thresholds.insert(0, threshold)
        return best

    return loss


def _least(number: int, beyond: Fraction) -> int:
    """Return the loss at a threshold that a cell stands for."""
    return math.ceil(Fraction(number - 1, PARTS) - beyond)

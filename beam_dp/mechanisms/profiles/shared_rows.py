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

*Whose row is it.* The same person in two roles of a row is one owner: her removal takes the row,
once. An empty role (-1) is nobody's. A row of which all roles are empty belongs to nobody whom its
loss could protect, and is left out: it is left out of x and x' alike.
"""

import itertools

import numpy as np

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.optimization.removal_levels import RemovalLevels
from beam_dp.mechanisms.optimization.removal_program import RemovalProgram


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
    values: list[Number] = [*np.unique(items)[::-1].tolist(), empty]
    found = [values[0]] * (removals + 1)
    for value, below in itertools.pairwise(values):
        above = np.asarray(items >= value)
        losses = total(owners[:, above], counts[above], removals)
        found = [below if left < k else y for left, y in zip(losses, found, strict=True)]
        if losses[-1] >= k:
            break
    return found


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
    order = np.argsort(values[kept], kind="stable")
    columns = (column[kept][order] for column in (values, weights, groups))
    value, weight, group = columns
    first = np.diff(np.unique(value, return_inverse=True)[1], prepend=-1) > 0
    program = RemovalProgram(
        _different(owners.T[kept][order]),
        np.cumsum(first) - 1,
        weight[first],
        np.unique(group[first], return_inverse=True)[1],
    )
    return RemovalLevels(program, removals).values()


def _different(owners: np.ndarray) -> np.ndarray:
    """Return the owners of each row, each once, rising, -1 beyond the last one."""
    beyond = np.iinfo(np.int64).max
    rising = np.sort(np.where(owners < 0, beyond, owners), axis=1)
    rising[:, 1:][rising[:, 1:] == rising[:, :-1]] = beyond
    rising.sort(axis=1)
    codes = np.unique(rising, return_inverse=True)[1]
    return np.where(rising == beyond, -1, codes.reshape(rising.shape))

"""Removal profiles of how often the most frequent item occurs, and of the self-join size.

A line is (person, item, count): `count` rows of that person have that item. c_iv is the sum of a
person's counts of an item and C_v = sum_i c_iv. Everything is computed in integers.

Of one item alone the statistic is linear, and its exact profile is

    b_v[k] = C_v - (sum of the k largest c_iv).

It interlaces: b'_v[k + 1] <= b_v[k] <= b'_v[k] for one person more.

*The most frequent item*, f = max_v C_v:

    B[k] = max_v b_v[k],

the most rows that are left of any item, when each item loses its own k largest owners. For one
person more every b_v interlaces, and so does their maximum. It is at most the exact profile, for
whichever k people leave, at least b_v[k] is left of v. It is equal while one item is far ahead.

*The self-join size*, f = sum_v C_v^2:

    B[k] = sum_v b_v[k]^2.

It interlaces, for each b_v >= 0 does, and so do squares and sums of such profiles. It is at most
the exact profile, for after k removals C_v is at least b_v[k]. What both lose: each item has k
removals of its own. (f minus the sum of the k largest marginals f(x) - f(x - i) is a lower bound of
the second profile too, but moves by more than one step for one person: one person with one row, and
another with ten rows of the same item.)
"""

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.profiles.packed.packed_rows import alike
from beam_dp.mechanisms.summaries.owner_lines import Lines


def max_profile(lines: Lines, removals: int) -> list[int]:
    """Return B[0..removals] for how often the most frequent item occurs.

    Edge cases: 0 without rows.
    """
    removed, left = _left(lines, removals)
    most = np.zeros(removals + 1, left.dtype)
    np.maximum.at(most, removed, left)
    levels: list[int] = most.tolist()
    return levels


def squares_profile(lines: Lines, removals: int) -> list[int]:
    """Return B[0..removals] for the sum of squares, with k people removed for each item apart.

    B[0] is exact; B[k] is at most the exact profile and interlaces.

    Edge cases: 0 without rows.
    """
    removed, left = _left(lines, removals)
    sums = integers.sums_at(removed, integers.product(left, left), removals + 1)
    levels: list[int] = sums.tolist()
    return levels


def _left(lines: Lines, removals: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (k, b_v[k]) for every item v and 0 <= k <= removals, n_v; beyond n_v it is 0."""
    codes = np.unique(lines.items, return_inverse=True)[1]
    rows, pairs = alike(codes, lines.people[:, None])
    item, owned = codes[rows], integers.sums_at(pairs, lines.counts, len(rows))
    owned = owned[np.lexsort((-owned, item))]
    starts = np.flatnonzero(np.diff(item, prepend=-1))
    sizes, totals = np.diff(starts, append=len(item)), integers.segment_sums(owned, starts)
    k = np.arange(1, len(item) + 1) - np.repeat(starts, sizes)
    left = np.repeat(integers.running_sums(totals), sizes) - integers.running_sums(owned)
    kept = k <= removals
    whole = np.zeros(len(totals), np.int64)
    return np.append(whole, k[kept]), integers.concatenate([totals, left[kept]])

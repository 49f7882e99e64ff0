"""Removal profiles of how often the most frequent item occurs, and of the self-join size.

A line is (person, item, count): `count` rows of that person have that item. c_iv is the sum of a
person's counts of an item and C_v = sum_i c_iv. Everything is computed in integers.

Of one item alone the statistic is linear, and its exact profile is

    b_v[k] = C_v - (sum of the k largest c_iv).

It interlaces: b'_v[k + 1] <= b_v[k] <= b'_v[k] for one person more.

*The most frequent item*, f = max_v C_v: its exact profile is hard to compute. It is relaxed to the
linear program that removes parts of people (see `optimization.removal_program` and `shared_rows`).

*The self-join size*, f = sum_v C_v^2 = sum over pairs of people i <= j of w_ij, with w_ii =
sum_v c_iv^2 and w_ij = 2 sum_v c_iv c_jv: a sum over rows with two owners, see `squares_edges`.
Popular items make quadratically many pairs. `squares_profile` needs none:

    B[k] = sum_v b_v[k]^2.

It interlaces, for each b_v >= 0 does, and so do squares and sums of such profiles. It is at most
the exact profile, for after k removals C_v is at least b_v[k]. What it loses: each item has k
removals of its own. It is good where few popular items make up most of f, which is where the pairs
are too many. Which of the two is used must not depend on the data. (f minus the sum of the k
largest marginals f(x) - f(x - i) is a lower bound of the profile too, but moves by more than one
step for one person: one person with one row, and another with ten rows of the same item.)
"""

from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.optimization.removal_levels import RemovalLevels
from beam_dp.mechanisms.optimization.removal_program import RemovalProgram

_SOLVED = 640  # levels of the program, enough for epsilon 1: thousands of them take minutes
_MOST = 1 << 24  # rows of one person and item that count: far more need more digits than HiGHS has
PAIRS = 20_000_000
"""The most lines of pairs that `squares_edges` makes, unless told otherwise (about 1.5 GB)."""


class FrequencyTable(NamedTuple):
    """Lines (item, count, person) by item, the largest counts first, one line per owner.

    Attributes:
        items: the item of each line, rising.
        counts: the rows of each line, falling within an item.
        people: the owner of each line.
        starts: where each item starts.
    """

    items: np.ndarray
    counts: np.ndarray
    people: np.ndarray
    starts: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """How many people own each item."""
        return np.diff(np.append(self.starts, len(self.items)))

    @property
    def totals(self) -> np.ndarray:
        """C_v per item."""
        return integers.segment_sums(self.counts, self.starts)


def owned(people: np.ndarray, items: np.ndarray, counts: np.ndarray) -> FrequencyTable:
    """Return the lines with those of one person and item added up.

    Args:
        people: per line a code.
        items: per line a code.
        counts: per line how many rows, at least 1.
    """
    order = np.lexsort((people, items))
    people, items, counts = people[order], items[order], counts[order]
    first = _starts(items, people)
    people, items = people[first], items[first]
    counts = integers.segment_sums(counts, first)
    order = np.lexsort((-counts, items))
    items = items[order]
    return FrequencyTable(items, counts[order], people[order], _starts(items))


def max_profile(
    people: np.ndarray, items: np.ndarray, counts: np.ndarray, removals: int
) -> list[int]:
    """Return B[0..removals] for how often the most frequent item occurs.

    It is the value of the linear program of `removal_program`, in whole rows, and beyond k = 640
    the largest b_v[k], which is lower. B[0] is exact; B[k] is at most the exact profile, at least
    b_v[k] of every item, and interlaces. (Both profiles interlace, and where they meet, B'[641] =
    b'[641] <= b[640] <= B[640], b being the largest b_v.)

    Edge cases: 0 without rows; a person counts for at most 16,777,216 rows of one item, which is
    the same function of everybody else's rows.

    Args:
        people: per line a code.
        items: per line a code.
        counts: per line how many rows, at least 1.
        removals: how many people are removed at most.
    """
    if not len(items):
        return [0] * (removals + 1)
    lines = _cut(owned(people, items, counts))
    removed, left = _left(lines, removals)
    alone = np.zeros(removals + 1, left.dtype)
    alone[0] = lines.totals.max()
    np.maximum.at(alone, removed, left)
    program = RemovalProgram(
        np.unique(lines.people, return_inverse=True)[1][:, None],
        np.arange(len(lines.items)),
        lines.counts,
        np.unique(lines.items, return_inverse=True)[1],
    )
    solved = RemovalLevels(program, min(removals, _SOLVED)).values()
    return solved + [int(level) for level in alone[_SOLVED + 1 :]]


def _cut(lines: FrequencyTable) -> FrequencyTable:
    return lines._replace(counts=np.minimum(lines.counts, _MOST).astype(np.int64))


def squares_profile(
    people: np.ndarray, items: np.ndarray, counts: np.ndarray, removals: int
) -> list[int]:
    """Return B[0..removals] for the sum of squares, with k people removed for each item apart.

    B[0] is exact; B[k] is at most the exact profile and interlaces. No pairs are made.

    Edge cases: 0 without rows.

    Args:
        people: per line a code.
        items: per line a code.
        counts: per line how many rows, at least 1.
        removals: how many people are removed at most.
    """
    lines = owned(people, items, counts)
    removed, left = _left(lines, removals)
    order = np.argsort(removed, kind="stable")
    ends = np.searchsorted(removed[order], np.arange(1, removals + 2))
    left = left[order]
    parts = [0] * removals  # with few people most of them stay 0
    for k in np.flatnonzero(np.diff(ends)).tolist():
        parts[k] = _squares(left[ends[k] : ends[k + 1]])
    return [_squares(lines.totals), *parts]


def pairs(people: np.ndarray, items: np.ndarray, counts: np.ndarray) -> int:
    """Return how many lines of pairs `squares_edges` makes before it merges them.

    It is the sum over items of n_v (n_v + 1) / 2 for n_v owners. Private data.
    """
    return _pairs(owned(people, items, counts))


def _pairs(lines: FrequencyTable) -> int:
    return sum(size * (size + 1) // 2 for size in lines.sizes.tolist())


def squares_edges(
    people: np.ndarray, items: np.ndarray, counts: np.ndarray, limit: int = PAIRS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (first, second, weights): the sum of squares as rows with two owners, merged.

    Each pair stands there once, with first <= second. The weights (w_ii, and w_ij for i < j) add up
    to f: int64, or Python integers where they would not fit.

    Args:
        people: per line a code from 0 on.
        items: per line a code.
        counts: per line how many rows, at least 1.
        limit: of the lines before merging, see `pairs`.

    Raises:
        ValueError: if there would be more than `limit` lines: check a public bound on the owners
            per item first, or use `squares_profile`.
    """
    lines = owned(people, items, counts)
    checks.require(
        _pairs(lines) <= limit,
        "squares_edges",
        "the pairs of owners of all items",
        f"be at most {limit}",
        "Use squares_profile, which makes none.",
    )
    # Line t is paired with itself and all later lines of its item.
    ends = np.repeat(lines.starts + lines.sizes, lines.sizes)
    here = np.arange(len(lines.items))
    left = np.repeat(here, ends - here)
    runs = (ends - here).cumsum() - (ends - here)
    right = left + np.arange(len(left)) - np.repeat(runs, ends - here)
    weights = integers.product(lines.counts[left], lines.counts[right])
    weights = integers.product(weights, np.where(left == right, 1, 2))
    first, second = lines.people[left], lines.people[right]
    return _merged(np.minimum(first, second), np.maximum(first, second), weights)


def _merged(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.lexsort((second, first))
    first, second, weights = first[order], second[order], weights[order]
    starts = _starts(first, second)
    return first[starts], second[starts], integers.segment_sums(weights, starts)


def _left(lines: FrequencyTable, removals: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (k, b_v[k]) for every item v and 1 <= k <= removals, n_v; beyond n_v it is 0."""
    sizes, totals = lines.sizes, lines.totals
    k = np.arange(1, len(lines.items) + 1) - np.repeat(lines.starts, sizes)
    upto = integers.running_sums(totals)
    left = np.repeat(upto, sizes) - integers.running_sums(lines.counts)
    kept = k <= removals
    return k[kept], left[kept]


def _starts(*columns: np.ndarray) -> np.ndarray:
    """Return where a row of the sorted columns differs from the one before."""
    new = np.ones(len(columns[0]), bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.flatnonzero(new)


def _squares(numbers: np.ndarray) -> int:
    """Return the exact sum of squares."""
    if float(np.square(numbers.astype(np.float64)).sum()) < 1 << 62:
        return int(np.square(numbers).sum())
    return sum(number * number for number in numbers.tolist())

"""Neighbours whose removal profiles must interlace.

The neighbours are those of random chains: a database of up to 10 rows of 6 people, from which they
leave one by one in a random order. A violation is a pair whose profiles do not interlace,
B'[k + 1] <= B[k] <= B'[k], or rise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from beam_dp.mechanisms.packing import packing_program
from beam_dp.mechanisms.profiles import kth_largest
from beam_dp.mechanisms.profiles.packed import by_threshold, packed_rows
from beam_dp.mechanisms.profiles.packed.packed_rows import MostFrequent, PackedRows
from beam_dp.mechanisms.profiles.packed.packed_values import PackedValues

REMOVALS, PEOPLE = 5, 6
EVERY = (1, 2, 3, 4)


class Rows(NamedTuple):
    """Rows of some people: owners by role, an item and a weight each."""

    owners: np.ndarray
    items: np.ndarray
    weights: np.ndarray

    def without(self, gone: Any) -> Rows:
        """Return the rows that none of these people owns."""
        kept = ~np.isin(self.owners, list(gone)).any(axis=0)
        return Rows(self.owners[:, kept], self.items[kept], self.weights[kept])

    @property
    def owned(self) -> Rows:
        """Return the rows that somebody owns."""
        kept = (self.owners >= 0).any(axis=0)
        return Rows(self.owners[:, kept], self.items[kept], self.weights[kept])


class Statistic(NamedTuple):
    """A profile, what it is a profile of, and for which numbers of owners."""

    profile: Callable[[Rows], Sequence[Any]]
    exact: Callable[[Rows], float]
    owners: tuple[int, ...] = EVERY


def most_frequent(rows: Rows) -> int:
    """Return how many rows the most frequent item has."""
    return max((int(rows.weights[rows.items == item].sum()) for item in rows.items), default=0)


def distinct(rows: Rows) -> int:
    """Return how many items there are."""
    return len(np.unique(rows.items))


def total(rows: Rows) -> int:
    """Return the sum of the weights."""
    return int(rows.weights.sum())


def ranked(rank: int) -> Statistic:
    """Return the statistic of the row of this rank."""

    def exact(rows: Rows) -> float:
        values = sorted(np.repeat(rows.items, rows.weights).tolist(), reverse=True)
        return values[rank - 1] if len(values) >= rank else -math.inf

    def profile(rows: Rows) -> Sequence[Any]:
        return kth_largest.profile(*rows, rank, REMOVALS)

    return Statistic(profile, exact)


def forced(
    profile: Callable[[Rows], Sequence[Any]], module: Any, **limits: int
) -> Callable[[Rows], Sequence[Any]]:
    """Return a profile for which a module of the library has other limits, while it is computed."""

    def of_rows(rows: Rows) -> Sequence[Any]:
        with mock.patch.multiple(module, **limits):
            return profile(rows)

    return of_rows


def _total(rows: Rows) -> Sequence[int]:
    return by_threshold.profile(PackedRows(rows.owners, None, rows.weights), REMOVALS)


def _frequent(rows: Rows) -> Sequence[int]:
    return by_threshold.profile(MostFrequent(*rows), REMOVALS)


SHARED = {
    "total": Statistic(_total, total),
    "count": Statistic(
        lambda rows: by_threshold.profile(PackedRows(rows.owners, None), REMOVALS),
        lambda rows: len(rows.weights),
    ),
    "most frequent": Statistic(_frequent, most_frequent),
    "distinct": Statistic(
        lambda rows: by_threshold.profile(PackedValues(rows.owners, rows.items), REMOVALS), distinct
    ),
    "largest": ranked(1),
    "third largest": ranked(3),
}
"""Of any number of owners: by packings."""
STATISTICS = {
    **SHARED,
    "total, first order": Statistic(forced(_total, packing_program, _SMALL=0), total, (2, 3)),
    "most frequent, each value alone": Statistic(
        forced(_frequent, packed_rows, _PARTS_UP_TO=0), most_frequent, (1, 3)
    ),
    "most frequent, 3 rows by parts": Statistic(
        forced(_frequent, packed_rows, _PARTS_UP_TO=3), most_frequent, (1, 3)
    ),
}
"""Also the ways that only larger statistics have."""


def some_rows(
    generator: np.random.Generator, roles: int, people: int = PEOPLE, most: int = 10
) -> Rows:
    """Return up to `most` rows, some of whose roles are empty or held by one person twice."""
    size = int(generator.integers(0, most + 1))
    owners = generator.integers(-1, people, (roles, size))
    return Rows(owners, generator.integers(0, 4, size), generator.integers(1, 4, size))


def interlace(before: Sequence[Any], after: Sequence[Any]) -> bool:
    """Return whether after, the profile with one person more, interlaces with before."""
    up = all(low <= high for low, high in zip(before, after, strict=True))
    return up and all(low <= high for low, high in zip(after[1:], before, strict=False))


def falls(profile: Sequence[Any]) -> bool:
    """Return whether a profile never rises."""
    return all(after <= before for before, after in itertools.pairwise(profile))


def chain(generator: np.random.Generator, roles: int) -> Iterator[Rows]:
    """Yield rows, from which people who own some leave one by one."""
    rows = some_rows(generator, roles)
    yield rows
    present = np.unique(rows.owners[rows.owners >= 0])
    for person in generator.permutation(present).tolist():
        rows = rows.without([person])
        yield rows


def violations(statistic: Statistic, roles: int, pairs: int, seed: int) -> int:
    """Return how many of so many neighbours have profiles that do not interlace, or rise."""
    generator, found, seen = np.random.default_rng((seed, roles)), 0, 0
    while seen < pairs:
        profiles = map(statistic.profile, chain(generator, roles))
        for after, before in itertools.islice(itertools.pairwise(profiles), pairs - seen):
            found += not (interlace(before, after) and falls(after) and falls(before))
            seen += 1
    return found

"""Neighbours whose removal profiles must interlace, and proofs from guesses that are wrong.

The neighbours are those of random chains: a database of up to 10 rows of 6 people, from which they
leave one by one in a random order. A violation is a pair whose profiles do not interlace,
B'[k + 1] <= B[k] <= B'[k], or rise. Wrong proofs are bounds of a packing that are not on its two
sides, which scipy tells to nine digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from beam_dp.mechanisms.packing import packing_cells
from beam_dp.mechanisms.packing.packing_program import Packing
from beam_dp.mechanisms.profiles.packed import by_price, kth_by_price
from beam_dp.mechanisms.profiles.packed import most_frequent as most_frequent_module
from beam_dp.mechanisms.profiles.packed.most_frequent import MostFrequent
from beam_dp.mechanisms.profiles.packed.packings import PackedRows, different

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
        return kth_by_price.profile(*rows, rank, REMOVALS, -math.inf)

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
    return by_price.profile(PackedRows(rows.owners, None, rows.weights), REMOVALS)


def _frequent(rows: Rows) -> Sequence[int]:
    return by_price.profile(MostFrequent(*rows), REMOVALS)


SHARED = {
    "total": Statistic(_total, total),
    "count": Statistic(
        lambda rows: by_price.profile(PackedRows(rows.owners, None), REMOVALS),
        lambda rows: len(rows.weights),
    ),
    "most frequent": Statistic(_frequent, most_frequent),
    "distinct": Statistic(
        lambda rows: by_price.profile(PackedRows(rows.owners, rows.items), REMOVALS), distinct
    ),
    "largest": ranked(1),
    "third largest": ranked(3),
}
"""Of any number of owners: by packings."""
STATISTICS = {
    **SHARED,
    "total, first order": Statistic(forced(_total, packing_cells, _SMALL=0), total, (2, 3)),
    "most frequent, each value alone": Statistic(
        forced(_frequent, most_frequent_module, _PARTS_UP_TO=0), most_frequent, (1, 3)
    ),
    "most frequent, 3 rows by parts": Statistic(
        forced(_frequent, most_frequent_module, _PARTS_UP_TO=3), most_frequent, (1, 3)
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


def some_packing(generator: np.random.Generator, of_values: bool, roles: int = 4) -> Packing:
    """Return a program of up to so many owners per row: a value per row, or a few rows each."""
    rows = int(generator.integers(1, 9))
    owners = different(generator.integers(0, PEOPLE, (rows, roles)))
    values = np.sort(generator.integers(0, 3, rows)) if of_values else np.arange(rows)
    values = np.unique(values, return_inverse=True)[1]
    weights = generator.integers(1, 5, int(values.max()) + 1)
    price = Fraction(int(generator.integers(1, 40)), int(generator.choice([1, 2, 8])))
    return Packing(owners, values, weights, price)


def exact_packing(packing: Packing) -> float:
    """Return the value of a program in prices, to about nine digits."""
    from scipy.optimize import linprog

    people = [(packing.owners == person).any(axis=1) for person in range(packing.people)]
    values = [packing.values == value for value in range(len(packing.weights))]
    limits = [*([1.0] * packing.people), *(packing.weights / float(packing.price))]
    rows = np.array([*people, *values], np.float64)
    return -float(linprog(-np.ones(len(packing.values)), rows, limits).fun)


def wrong_proofs(of_values: bool, roles: int, guesses: int, seed: int) -> int:
    """Return how many of so many guesses give bounds that are not around the program's value."""
    generator, found, each = np.random.default_rng((seed, roles, of_values)), 0, 20
    for _ in range(-(-guesses // each)):
        packing = some_packing(generator, of_values, roles)
        exact = exact_packing(packing)
        for _ in range(each):
            size = float(generator.choice([0.1, 1, 3]))
            removed, packed = (
                size * (generator.random(many) - 0.2)
                for many in (packing.people, len(packing.values))
            )
            high, stays, parts = packing.upper(removed)
            line = float(stays / packing.price + parts)
            found += float(packing.lower(packed)) > exact + 1e-9
            found += min(float(high), line) < exact - 1e-9
    return found

"""The number of distinct values, at any price: the rows of a value share a room.

A value disappears when every of its rows does, and a row with any of its owners. At a price D of a
removal, with d(i) the weight of the values that i owns rows of,

1. d(i) <= D: i is not removed. To put back a part r_i costs nothing: at most r_i d(i) comes back,
   and r_i D is saved. Her name leaves her rows; a value with a row that nobody is left to remove
   counts in full.
2. Only i owns the only rows of values of a weight of at least D: i is removed whole. It costs D,
   and takes as much. All of her rows leave; values without a row are lost.

Neither rule changes the least of what is left plus D for each person, and each makes work for
the other. How often they are applied changes only how much is left for a program.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.packing import packing_cells
from beam_dp.mechanisms.packing.packing_program import Packing, PackingBounds, of_values
from beam_dp.mechanisms.profiles.packed.packings import Glance, Packed, different, pairs

_ROUNDS = 64
_SLOW = 0.99  # a round that leaves more of the rows is the last one


class PackedValues(Packed):
    """The sum of the weights of values, each of which needs one of its rows."""

    def __init__(self, owners: np.ndarray, values: np.ndarray, each: int = 1) -> None:
        """Take the rows.

        Args:
            owners: the person in each role (row of the array) of each row (column), numbers from 0;
                -1 for nobody.
            values: any integer codes.
            each: the weight of every value.
        """
        super().__init__()
        kept = np.flatnonzero((owners >= 0).any(axis=0))
        kept = kept[np.argsort(values[kept], kind="stable")]
        self._owners, self._each = different(owners[:, kept].T), each
        self._values = np.unique(values[kept], return_inverse=True)[1]
        self.total = each * (int(self._values.max(initial=-1)) + 1)

    @functools.cached_property
    def _shares(self) -> np.ndarray:
        """Even shares of the weight of its value for each row."""
        return np.asarray(self._each / np.bincount(self._values)[self._values])

    @functools.cached_property
    def _heaviest(self) -> np.ndarray:
        """The most that an owner of each row has by even shares."""
        shares = np.repeat(self._shares, self._owners.shape[1])
        degrees = np.bincount(self._owners.ravel() + 1, shares, minlength=1)
        degrees[0] = 0  # of nobody
        return np.asarray(degrees[self._owners + 1].max(axis=1, initial=0))

    @functools.cached_property
    def _degrees(self) -> np.ndarray:
        return _degrees(self._owners, self._values, self._each)

    @functools.cached_property
    def _by_shares(self) -> Glance:
        groups = np.zeros(len(self._values), np.int64)
        return Glance(groups, self._shares, self._heaviest, np.ceil(self._heaviest))

    @functools.cached_property
    def _from_far(self) -> Glance:
        starts = np.flatnonzero(np.diff(self._values, prepend=-1))
        least = np.minimum.reduceat(self._degrees[self._owners].max(axis=1), starts)
        groups = np.zeros(len(starts), np.int64)
        return Glance(groups, np.full(len(starts), self._each), least, self._degrees)

    def enough(self) -> Fraction:
        """Return a price at which even shares of the rows of values load nobody more."""
        # Floats err by far less than one part of 2^24 and the 1 / 4096 that are added.
        most = 4096 * float(self._heaviest.max(initial=1)) * (1 + 2.0**-24)
        return Fraction(math.ceil(most) + 1, 4096)

    def _glance(self, price: Fraction) -> PackingBounds:
        known = self._from_far.high(price)
        return known._replace(low=min(self._by_shares.low(price), known.high))

    def bounds(self, price: Fraction) -> Iterator[PackingBounds]:
        """Yield bounds of what the rules leave."""
        left = _Left(self._owners, self._values, self._each)
        left.reduce(price, self._degrees)
        more = left.whole / price + left.removed
        if not len(left.values):
            yield PackingBounds(more, more, Fraction(left.whole), Fraction(left.removed))
        for found in packing_cells.bounds(left.packing(price)):
            stays, removed = found.stays + left.whole, found.removed + left.removed
            yield PackingBounds(found.low + more, found.high + more, stays, removed)


class _Left:
    """Rows of values at one price, which the rules make fewer.

    Attributes:
        owners: shape (rows, roles): people from 0, each once in a row; -1 where there are fewer.
        values: the value of each row, rising.
        each: the weight of each value.
        whole: the weight of the values that count in full, and have left.
        removed: how many people are removed whole, and have left.
    """

    def __init__(self, owners: np.ndarray, values: np.ndarray, each: int) -> None:
        self.owners, self.values, self.each = owners, values, each
        self.size = int(values.max(initial=-1)) + 1
        self.whole = self.removed = 0

    def reduce(self, price: Fraction, degrees: np.ndarray) -> None:
        """Apply the rules until they find little.

        Args:
            price: D.
            degrees: d(i) of these rows, and 0 for nobody.
        """
        for _ in range(_ROUNDS):
            before = len(self.values)
            self._keep_people(degrees > math.floor(price))
            self._remove_people(price)
            if len(self.values) > _SLOW * before or not len(self.values):
                return
            degrees = _degrees(self.owners, self.values, self.each, len(degrees))

    def _keep_people(self, able: np.ndarray) -> None:
        """Rule 1: only these people may be removed."""
        self.owners = np.where(able[self.owners], self.owners, -1)
        stays = np.zeros(self.size, np.bool_)
        stays[self.values[(self.owners < 0).all(axis=1)]] = True
        self.whole += self.each * int(np.count_nonzero(stays))
        self._keep(~stays[self.values])

    def _remove_people(self, price: Fraction) -> None:
        """Rule 2."""
        alone = np.flatnonzero((self.owners >= 0).sum(axis=1) == 1)
        only = alone[np.bincount(self.values, minlength=1)[self.values[alone]] == 1]
        owned = np.bincount(self.owners[only].max(axis=1), minlength=self.owners.max(initial=0) + 2)
        full = owned * self.each >= math.ceil(price)
        self.removed += int(np.count_nonzero(full))
        self._keep(~full[self.owners].any(axis=1))

    def _keep(self, rows: np.ndarray) -> None:
        self.owners, self.values = self.owners[rows], self.values[rows]

    def packing(self, price: Fraction) -> Packing:
        """Return the program of what is left."""
        most = int((self.owners >= 0).sum(axis=1).max())
        owners, values = -np.sort(-self.owners, axis=1)[:, :most], self.values
        if most == 1:  # a flow has one way from a person to a value
            pairs_of = values * (int(owners.max()) + 1) + owners[:, 0]
            rows = np.unique(pairs_of, return_index=True)[1]
            owners, values = owners[rows], values[rows]
        numbers = np.unique(np.append(-1, owners), return_inverse=True)[1][1:] - 1
        values = np.unique(values, return_inverse=True)[1]
        return of_values(price, numbers.reshape(-1, most), values, self.each)


def _degrees(owners: np.ndarray, values: np.ndarray, each: int, size: int = 0) -> np.ndarray:
    """Return the weight of the values that each person owns rows of, and 0 for nobody."""
    people, _ = pairs(owners, values, np.zeros(len(values), np.int64))
    return each * np.bincount(people, minlength=max(size, int(owners.max(initial=-1)) + 2))


def covered(owners: np.ndarray, values: np.ndarray, price: int) -> int:
    """Return E(D) of the number of values whose rows have one owner each, exactly.

    It is whole, as a maximum flow of whole numbers is: so bounds decide it.

    Args:
        owners: the owner of each row, numbers from 0.
        values: any integer codes.
        price: D, at least 1.
    """
    price = min(price, len(values) + 1)  # which pays for everything too
    packed = PackedValues(owners[None], values)
    bounds = packed.bounds(Fraction(price))
    found = next(bounds)
    while math.ceil(found.low * price) < math.floor(found.high * price):
        found = next(bounds)
    return math.ceil(found.low * price)

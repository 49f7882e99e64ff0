"""The number of distinct values, at any threshold: the rows of a value share its weight.

A value disappears when all of its rows do, and a row disappears with any of its owners. At a
threshold D no person i is removed who owns rows of values of a weight d(i) <= D in all: to put back
a part r_i of them brings back r_i d(i) at most, and saves r_i D. So their name leaves their rows. A
value counts in full when one of its rows has no name left.

Values of one row each, which have the same owners, are one value: of their weights together. What
the row of the one packs can be shared evenly among theirs. So of a seller of thousands of articles
that nobody else sells one row is left.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.packing import packing_program
from beam_dp.mechanisms.packing.packing_program import Packing, PackingBounds, of_values
from beam_dp.mechanisms.profiles.packed import packed_rows
from beam_dp.mechanisms.profiles.packed.packed_rows import Glance, Packed, alike, renumbered


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
        kept = np.flatnonzero((owners >= 0).any(axis=0))
        self._owners, self._each = packed_rows.different(owners[:, kept].T), each
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
        """The weight of the values that each person owns rows of, and 0 for nobody."""
        size = int(self._values.max(initial=-1)) + 1
        pairs = np.sort((self._owners * size + self._values[:, None])[self._owners >= 0])
        people = pairs[np.diff(pairs, prepend=-1) > 0] // size
        counts = np.bincount(people, minlength=int(self._owners.max(initial=-1)) + 2)
        return np.asarray(self._each * counts)

    @functools.cached_property
    def _by_shares(self) -> Glance:
        return Glance(0 * self._values, self._shares, self._heaviest, np.ceil(self._heaviest))

    @functools.cached_property
    def _by_person(self) -> Glance:
        size = self.total // self._each
        least = np.full(size, self._degrees.max())
        np.minimum.at(least, self._values, self._degrees[self._owners].max(axis=1))
        return Glance(np.zeros(size, int), np.full(size, self._each), least, self._degrees)

    def enough(self) -> Fraction:
        """Return a threshold at which even shares of the rows of values load nobody more."""
        # Floats err by far less than one part of 2^24 and the 1 / 4096 that are added.
        most = 4096 * float(self._heaviest.max(initial=1)) * (1 + 2.0**-24)
        return Fraction(math.ceil(most) + 1, 4096)

    def _glance(self, threshold: Fraction) -> PackingBounds:
        known = self._by_person.high(threshold)
        return known._replace(low=min(self._by_shares.low(threshold), known.high))

    def bounds(self, threshold: Fraction) -> Iterator[PackingBounds]:
        """Yield bounds of what the values that count in full, and the program of the others, pack."""
        able = self._degrees > math.floor(threshold)
        owners = np.where(able[self._owners], self._owners, -1)
        whole = np.zeros(self.total // self._each, np.bool_)
        whole[self._values[(owners < 0).all(axis=1)]] = True
        rows, known = ~whole[self._values], self._each * int(np.count_nonzero(whole))
        if rows.any():
            packing = _program(threshold, owners[rows], self._values[rows], self._each, known)
            yield from packing_program.bounds(packing)
        else:
            yield PackingBounds(known / threshold, known / threshold, Fraction(known), Fraction(0))


def _program(
    threshold: Fraction, owners: np.ndarray, values: np.ndarray, each: int, known: int
) -> Packing:
    """Return the program of rows of which each has an owner, who are numbered anew.

    Values of one row each, of the same owners, are one value.
    """
    most = int((owners >= 0).sum(axis=1).max())
    owners = renumbered(owners)[1][:, :most]
    rows, _ = alike(values, owners)
    owners, values = owners[rows], values[rows]
    alone = np.bincount(values)[values] == 1
    rows, kinds = alike(np.where(alone, 0, values + 1), owners)
    rooms = np.where(alone[rows], each * np.bincount(kinds), each)
    first, values = np.unique(values[rows], return_index=True, return_inverse=True)[1:]
    return of_values(threshold, owners[rows], values, rooms[first], known)


def covered(owners: np.ndarray, values: np.ndarray, threshold: int) -> int:
    """Return E(D) of the number of values whose rows have one owner each, exactly.

    It is whole, as a maximum flow of whole numbers is: so bounds decide it.

    Args:
        owners: the owner of each row, numbers from 0.
        values: any integer codes.
        threshold: D, at least 1.
    """
    threshold = min(threshold, len(values) + 1)  # which pays for everything too
    found = PackedValues(owners[None], values).bounds(Fraction(threshold))
    ends = ((math.ceil(each.low * threshold), math.floor(each.high * threshold)) for each in found)
    return next(low for low, high in ends if low >= high)

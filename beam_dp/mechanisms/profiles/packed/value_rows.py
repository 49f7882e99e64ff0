"""What of the rows of several people is left for a program at one price of a removal.

A value of weight w disappears when every of its rows does, and a row with any of its owners. At a
price D of a removal, where of values of one row each a weight above D counts as D, with d(i) the
weight of the values that i owns rows of,

1. d(i) <= D: i is not removed. To put back a part r_i costs nothing: at most r_i d(i) comes back,
   and r_i D is saved. Her name leaves her rows; a value with a row that nobody is left to remove
   counts in full.
2. Only i owns the only rows of values of a weight of at least D: i is removed whole. It costs at
   most D, and takes as much. All of her rows leave; values without a row are lost.

Neither rule changes the least of what is left plus D for each person, and each makes work for
the other. How often they are applied changes only how much is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.packing.packing_program import Packing

_ROUNDS = 64
_SLOW = 0.99  # a round that leaves more of the rows is the last one


@dataclass
class ValueRows:
    """Rows of values at one price, which the rules make fewer.

    Attributes:
        owners: shape (rows, roles): people from 0, each once in a row; -1 where there are fewer.
        values: the value of each row, rising.
        weights: the weight of each value, by its number.
        people: how many people there may be.
        whole: the weight of the values that count in full, and have left.
        counted: the same, where a weight above the price counts as the price.
        removed: how many people are removed whole, and have left.
    """

    owners: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    people: int
    whole: int = 0
    counted: int = 0
    removed: int = 0

    @property
    def single(self) -> bool:
        """Whether every value has one row."""
        return bool((self.values[1:] != self.values[:-1]).all())

    def degrees(self, most: int) -> np.ndarray:
        """Return the weight of the values that each person owns rows of.

        Of values of one row it is at most `most` each.
        """
        row, role = np.nonzero(self.owners >= 0)
        owner, value = self.owners[row, role], self.values[row]
        if self.single:
            return integers.sums_at(owner, np.minimum(self.weights[value], most), self.people)
        size = int(self.values.max(initial=0)) + 1
        pairs = np.sort(owner.astype(np.int64) * size + value)
        owner, value = np.divmod(pairs[np.diff(pairs, prepend=-1) != 0], size)
        return integers.sums_at(owner, self.weights[value], self.people)

    def heaviest(self) -> Fraction:
        """Return a price that pays for all values: even shares of their rows load nobody more."""
        shares = (self.weights / np.bincount(self.values))[self.values]
        weights = np.broadcast_to(shares[:, None], self.owners.shape)
        loads = np.bincount(self.owners.ravel() + 1, weights.ravel())[1:]
        # Floats err by far less than one part of 2^24 and the 1 / 4096 that are added.
        return Fraction(math.ceil(4096 * float(loads.max()) * (1 + 2.0**-24)) + 1, 4096)

    def packing(self, price: Fraction) -> Packing:
        """Return the program of what is left."""
        most = int((self.owners >= 0).sum(axis=1).max())
        left, values = -np.sort(-self.owners, axis=1)[:, :most], self.values
        if most == 1:  # a flow has one way from a person to a value
            rows = np.unique(values * self.people + left[:, 0], return_index=True)[1]
            left, values = left[rows], values[rows]
        known = np.zeros(self.people + 1, np.bool_)
        known[left] = True
        known[-1] = False
        owners = np.where(left < 0, -1, (np.cumsum(known) - 1)[left])
        new = np.diff(values, prepend=-1) != 0
        return Packing(owners, np.cumsum(new) - 1, self.weights[values[new]], price)

    def reduce(self, price: Fraction, degrees: np.ndarray) -> None:
        """Apply the rules until they find little.

        Args:
            price: D.
            degrees: of these rows, weights of at most D, rounded up.
        """
        most = math.ceil(price)
        for _ in range(_ROUNDS):
            before = len(self.values)
            self._keep_people(degrees > math.floor(price), most)
            self._remove_people(most)
            if len(self.values) > _SLOW * before or not len(self.values):
                return
            degrees = self.degrees(most)

    def _keep_people(self, able: np.ndarray, most: int) -> None:
        """Rule 1: only these people may be removed."""
        self.owners = np.where(np.append(able, False)[self.owners], self.owners, -1)
        stays = np.zeros(len(self.weights), np.bool_)
        stays[self.values[(self.owners < 0).all(axis=1)]] = True
        full = self.weights[stays]
        self.whole += int(full.sum())
        self.counted += int(np.minimum(full, most).sum())
        self._keep(~stays[self.values])

    def _remove_people(self, most: int) -> None:
        """Rule 2."""
        alone = np.flatnonzero((self.owners >= 0).sum(axis=1) == 1)
        only = alone[np.bincount(self.values, minlength=1)[self.values[alone]] == 1]
        weights = np.minimum(self.weights[self.values[only]], most)
        full = integers.sums_at(self.owners[only].max(axis=1), weights, self.people + 1) >= most
        self.removed += int(np.count_nonzero(full))
        self._keep(~full[self.owners].any(axis=1))

    def _keep(self, rows: np.ndarray) -> None:
        self.owners, self.values = self.owners[rows], self.values[rows]

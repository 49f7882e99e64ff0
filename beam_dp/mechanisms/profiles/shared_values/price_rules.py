"""What of shared values is left for a program at one price of a removal.

A value disappears when every of its rows does, and a row with any of its owners. At a price D of a
removal, with d(i) the number of values that i owns rows of,

1. d(i) <= D: i is not removed. To put back a part r_i costs nothing: at most r_i d(i) values come
   back, and r_i D is saved. Her name leaves her rows; a value with a row that nobody is left to
   remove counts in full.
2. A row that only i owns is the only row of its value that matters among those of i: each of the
   others stays by no more.
3. Only i owns the only rows of at least D values: i is removed whole. It costs at most D, and takes
   as many values. All of her rows leave; values without a row are lost.

None of the rules changes the least of what is left plus D for each person, and each makes work for
the others. How often they are applied changes only how much is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.optimization.packing.packing_program import Packing

_ROUNDS = 64
_SLOW = 0.99  # a round that leaves more of the rows is the last one


@dataclass
class ValueRows:
    """Rows of values at one price, which the rules make fewer.

    Attributes:
        owners: shape (rows, roles): people from 0, each once in a row; -1 where there are fewer.
        values: the value of each row, rising.
        people: how many people there may be.
        whole: how many values count in full, and have left.
        removed: how many people are removed whole, and have left.
    """

    owners: np.ndarray
    values: np.ndarray
    people: int
    whole: int = 0
    removed: int = 0

    def degrees(self) -> np.ndarray:
        """Return how many values each person owns rows of."""
        row, role = np.nonzero(self.owners >= 0)
        pairs = self.owners[row, role].astype(np.int64) * (int(self.values.max(initial=0)) + 1)
        pairs = np.sort(pairs + self.values[row])
        pairs = pairs[np.diff(pairs, prepend=-1) != 0]
        owner = pairs // (int(self.values.max(initial=0)) + 1)
        return np.bincount(owner, minlength=self.people)

    def heaviest(self) -> Fraction:
        """Return a price that pays for all values: even shares of their rows load nobody more."""
        shares = 1 / np.bincount(self.values)[self.values]
        weights = np.broadcast_to(shares[:, None], self.owners.shape)
        loads = np.bincount(self.owners.ravel() + 1, weights.ravel())[1:]
        # Floats err by far less than the 1 / 4096 that is added.
        return Fraction(math.ceil(4096 * float(loads.max())) + 1, 4096)

    def packing(self, price: Fraction) -> Packing:
        """Return the program of what is left."""
        most = int((self.owners >= 0).sum(axis=1).max())
        left = -np.sort(-self.owners, axis=1)[:, :most]
        known = np.zeros(self.people + 1, np.bool_)
        known[left] = True
        known[-1] = False
        owners = np.where(left < 0, -1, (np.cumsum(known) - 1)[left])
        values = np.cumsum(np.diff(self.values, prepend=self.values[0]) != 0)
        return Packing(owners, values, price)

    def reduce(self, price: Fraction, degrees: np.ndarray) -> None:
        """Apply the rules until they find little.

        Args:
            price: D.
            degrees: of these rows.
        """
        for _ in range(_ROUNDS):
            before = len(self.values)
            self._keep_people(degrees > math.floor(price))
            self._remove_people(price)
            if len(self.values) > _SLOW * before or not len(self.values):
                return
            degrees = self.degrees()

    def _keep_people(self, able: np.ndarray) -> None:
        """Rule 1: only these people may be removed."""
        self.owners = np.where(np.append(able, False)[self.owners], self.owners, -1)
        stays = np.zeros(int(self.values.max(initial=-1)) + 1, np.bool_)
        stays[self.values[(self.owners < 0).all(axis=1)]] = True
        self.whole += int(np.count_nonzero(stays))
        self._keep(~stays[self.values])

    def _remove_people(self, price: Fraction) -> None:
        """Rules 2 and 3."""
        self._keep_single_rows()
        alone = np.flatnonzero((self.owners >= 0).sum(axis=1) == 1)
        only = alone[np.bincount(self.values)[self.values[alone]] == 1]
        full = np.bincount(self.owners[only].max(axis=1), minlength=self.people + 1) >= math.ceil(
            price
        )
        self.removed += int(np.count_nonzero(full))
        self._keep(~full[self.owners].any(axis=1))

    def _keep_single_rows(self) -> None:
        """Keep one of the rows of a value that somebody owns alone, and none of her others."""
        alone = np.flatnonzero((self.owners >= 0).sum(axis=1) == 1)
        codes = self.values * (self.people + 1)
        known, first = np.unique(codes[alone] + self.owners[alone].max(axis=1), return_index=True)
        if not len(known):
            return
        kept = np.ones(len(codes), np.bool_)
        for role in self.owners.T:
            index = np.minimum(np.searchsorted(known, codes + role), len(known) - 1)
            kept &= (known[index] != codes + role) | (role < 0)
        kept[alone[first]] = True
        self._keep(kept)

    def _keep(self, rows: np.ndarray) -> None:
        self.owners, self.values = self.owners[rows], self.values[rows]

"""The linear program that removes parts of people from rows with any number of owners.

A person i is removed by a part r_i in [0, 1]. A value v stays by the part z_v, at least 1 - the sum
of r_i over the owners of any of its rows t. The values of a group g count w_v each:

    LP[k] = min { max over groups g of the sum of w_v z_v over the values v of g : sum r_i <= k }.

One group and one value per row is a total; one value per row and a group per item is how often the
most frequent item occurs; one group and a value per item is a number of different items.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.optimization.rational_simplex import Tableau


@dataclass(frozen=True)
class RemovalProgram:
    """The program for all k; there is at least one row.

    Attributes:
        owners: shape (rows, most owners): the people of each row, numbered from 0, rising from left
            to right; -1 beyond the last one. Every row has an owner.
        values: the value of each row, numbered from 0, rising; every value has a row.
        weights: w_v, integers of at least 1.
        groups: the group of each value, numbered from 0; every group has a value.
    """

    owners: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    groups: np.ndarray

    @property
    def people(self) -> int:
        """How many people there may be."""
        return int(self.owners.max()) + 1

    def solved(self, removals: int) -> Fraction:
        """Return LP[k], by the simplex method in rational numbers: slow, and it ends.

        Args:
            removals: k.
        """
        return self._tableau(removals).minimum()

    def _tableau(self, removals: int) -> Tableau:
        """Return the program with a basis that is feasible: nobody is removed.

        Columns: r; for each value e_v >= 0, with z_v = 1 - sum r + e_v for its first row; the slack
        of the group with the most; then the basis: z_v for the first row of each value and the
        slack for all others, the slacks of the groups (0 for the one with the most), and that of k.
        """
        taken, kept, sums = self._by_group()
        top = int(sums.argmax())
        rows, people, values, groups = len(self.values), self.people, len(self.weights), len(sums)
        basis = people + values + 1
        table = np.zeros((rows + groups + 1, basis + rows + groups + 1), object)
        table[:rows, : basis - 1] = self._of_rows()
        table[rows:-1, :people] = taken[top] - taken
        table[rows:-1, people : basis - 1] = kept - kept[top]
        table[rows:-1, basis - 1] = -1
        table[rows + top, basis - 1] = 0
        table[-1, :people] = 1
        table[:, basis:] = np.eye(rows + groups + 1, dtype=np.int64)
        first = np.diff(self.values, prepend=-1)
        costs = np.zeros(table.shape[1], object)
        costs[:basis] = np.concatenate([-taken[top], kept[top], [1]])
        return Tableau(
            table,
            np.concatenate([first, sums[top] - sums, [removals]]).astype(object),
            costs,
            int(sums[top]),
            [1] * people + [None] * (len(costs) - people),
            list(range(basis, len(costs))),
        )

    def _of_rows(self) -> np.ndarray:
        """Return the columns of r and e in the rows of the tableau that stand for rows."""
        owned = np.zeros((len(self.values), self.people), object)
        for place, owners in enumerate(self.owners.tolist()):
            owned[place, [person for person in owners if person >= 0]] = 1
        first = np.flatnonzero(np.diff(self.values, prepend=-1))
        others = np.setdiff1d(np.arange(len(self.values)), first)
        # The first row: z + sum r - e = 1. Of the others this is subtracted: slack - ... = 0.
        left = owned.copy()
        left[others] = owned[first[self.values[others]]] - owned[others]
        right = np.zeros((len(self.values), len(self.weights)), object)
        right[np.arange(len(self.values)), self.values] = -1
        return np.concatenate([left, right], axis=1)

    def _by_group(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what first rows lose with each person, the weights of values, and the sums."""
        groups = int(self.groups.max()) + 1
        taken = np.zeros((groups, self.people), object)
        kept = np.zeros((groups, len(self.weights)), object)
        kept[self.groups, np.arange(len(self.weights))] = self.weights.astype(object)
        first = np.flatnonzero(np.diff(self.values, prepend=-1))
        for row, group, weight in zip(first, self.groups, self.weights.tolist(), strict=True):
            taken[group, self.owners[row][self.owners[row] >= 0]] += weight
        return taken, kept, kept.sum(axis=1)

"""The linear program that removes parts of people from rows with any number of owners.

A person i is removed by a part r_i in [0, 1]. A value v stays by the part z_v, at least 1 - the sum
of r_i over the owners of any of its rows t. The values of a group g count w_v each:

    LP[k] = min { max over groups g of the sum of w_v z_v over the values v of g : sum r_i <= k }.

One group and one value per row is a total; one value per row and a group per item is how often the
most frequent item occurs; one group and a value per item is a number of different items.
"""

from __future__ import annotations

import functools
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

    def of_groups(self, kept: np.ndarray) -> RemovalProgram:
        """Return the program of the groups with these flags, of which there is one at least."""
        values = kept[self.groups]
        rows = values[self.values]
        owners = self.owners[rows]
        known = np.zeros(self.people + 1, np.bool_)
        known[owners] = True
        known[-1] = False
        return RemovalProgram(
            np.where(owners < 0, -1, (np.cumsum(known) - 1)[owners]),
            (np.cumsum(values) - 1)[self.values[rows]],
            self.weights[values],
            (np.cumsum(kept) - 1)[self.groups[values]],
        )

    @functools.cached_property
    def shared(self) -> np.ndarray:
        """The rows of values with several rows or owners; others stay by 1 - r_i, at least 0."""
        several = np.bincount(self.values) > 1
        several[self.values[(self.owners >= 0).sum(axis=1) > 1]] = True
        return np.flatnonzero(several[self.values])

    @property
    def numbers(self) -> int:
        """How many numbers its simplex tableau has."""
        rows, groups = len(self.shared), int(self.groups.max()) + 1
        return (rows + groups + 1) * (self.people + 2 * rows + groups + 2)

    def solved(self, removals: int) -> Fraction:
        """Return LP[k], by the simplex method in rational numbers: slow, and it ends.

        Args:
            removals: k.
        """
        return self._tableau(removals).minimum()

    def _tableau(self, removals: int) -> Tableau:
        """Return the program with a basis that is feasible: nobody is removed.

        Columns: r; for each value with shared rows e_v >= 0, with z_v = 1 - sum r + e_v for its
        first row; the slack of the group with the most; then the basis: z_v for the first row of
        each such value and the slack for its others, the slacks of the groups (0 for the one with
        the most), and that of k.
        """
        names, codes = np.unique(self.values[self.shared], return_inverse=True)
        taken, kept, sums = self._by_group(names)
        top = int(sums.argmax())
        rows, people, groups = len(codes), self.people, len(sums)
        basis = people + len(names) + 1
        table = np.zeros((rows + groups + 1, basis + rows + groups + 1), object)
        table[:rows, : basis - 1] = self._of_rows(codes, len(names))
        table[rows:-1, :people] = taken[top] - taken
        table[rows:-1, people : basis - 1] = kept - kept[top]
        table[rows:-1, basis - 1] = -1
        table[rows + top, basis - 1] = 0
        table[-1, :people] = 1
        table[:, basis:] = np.eye(rows + groups + 1, dtype=np.int64)
        costs = np.zeros(table.shape[1], object)
        costs[:basis] = np.concatenate([-taken[top], kept[top], [1]])
        return Tableau(
            table,
            np.concatenate([np.diff(codes, prepend=-1), sums[top] - sums, [removals]]).astype(
                object
            ),
            costs,
            int(sums[top]),
            [1] * people + [None] * (len(costs) - people),
            list(range(basis, len(costs))),
        )

    def _of_rows(self, codes: np.ndarray, values: int) -> np.ndarray:
        """Return the columns of r and e in the rows of the tableau that stand for rows."""
        owned = np.zeros((len(codes), self.people), object)
        for index, owners in enumerate(self.owners[self.shared].tolist()):
            owned[index, [person for person in owners if person >= 0]] = 1
        opens = np.diff(codes, prepend=-1) > 0
        first, others = np.flatnonzero(opens), np.flatnonzero(~opens)
        # The first row: z + sum r - e = 1. Of the others this is subtracted: slack - ... = 0.
        left = owned.copy()
        left[others] = owned[first[codes[others]]] - owned[others]
        right = np.zeros((len(codes), values), object)
        right[np.arange(len(codes)), codes] = -1
        return np.concatenate([left, right], axis=1)

    def _by_group(self, names: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what first rows lose with each person, the weights of values, and the sums."""
        groups = int(self.groups.max()) + 1
        taken = np.zeros((groups, self.people), object)
        kept = np.zeros((groups, len(names)), object)
        sums = np.zeros(groups, object)
        weights = self.weights.astype(object)
        kept[self.groups[names], np.arange(len(names))] = weights[names]
        np.add.at(sums, self.groups, weights)
        first = np.flatnonzero(np.diff(self.values, prepend=-1))
        for owners in self.owners[first].T:
            there = np.flatnonzero(owners >= 0)
            np.add.at(taken, (self.groups[there], owners[there]), weights[there])
        return taken, kept, sums

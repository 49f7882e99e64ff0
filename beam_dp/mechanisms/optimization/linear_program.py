"""The linear program of the most frequent item, and exact bounds of it from any guess.

With groups of equal people j (u_j of them, each with c_jv rows of item v) and totals C_v:

    LP[k] = min { m : m >= C_v - sum_j c_jv r_j for all v, sum_j r_j <= k, 0 <= r_j <= u_j }.

*Upper bounds.* Any feasible r has m = max_v (C_v - sum_j c_jv r_j) >= LP[k].

*Lower bounds.* For weights w >= 0 of the items that add up to at most 1, and p_j = sum_v c_jv w_v,

    LP[k] >= sum_v w_v C_v - (the sum of the k largest p_j, each group standing there u_j times):

m >= sum_v w_v m >= sum_v w_v C_v - sum_j p_j r_j, as m >= 0, and no feasible r makes the last sum
larger. One w bounds all k at once.

Both bounds are computed without rounding, from r and w that are integers over 2^bits. They hold
wherever r and w come from (`highs_proposals`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.optimization.rational_simplex import Tableau


@dataclass(frozen=True)
class LinearProgram:
    """The linear program for all k up to some K.

    Attributes:
        totals: C_v.
        items: the item v of each entry of the matrix c; entries stand by group.
        groups: the group j of each entry; every group and every item has an entry.
        counts: c_jv of each entry, at least 1.
        sizes: u_j, at most K.
    """

    totals: np.ndarray
    items: np.ndarray
    groups: np.ndarray
    counts: np.ndarray
    sizes: np.ndarray

    @property
    def highest(self) -> int:
        """The largest of the totals."""
        return int(self.totals.max())

    @property
    def numbers(self) -> int:
        """How many numbers its simplex tableau has."""
        return (len(self.totals) + 1) * (len(self.totals) + len(self.sizes) + 2)

    @functools.cached_property
    def bits(self) -> int:
        """Bits of a first guess: with so many, rounding moves no total by more than 2^-20."""
        return max(30, self.highest.bit_length() + 20)

    def guess(self, removals: int, removed: np.ndarray, weights: np.ndarray, bits: int) -> Guess:
        """Return a guess, with r and w moved between their bounds.

        Args:
            removals: k.
            removed: r, integers over 2^bits.
            weights: w, integers over 2^bits.
            bits: the precision of r and w.
        """
        removed = np.minimum(np.maximum(removed, 0), shifted(self.sizes, bits))
        weights = np.maximum(weights, 0)
        taken, most = total(removed), removals << bits
        if taken > most:
            removed = integers.widen(integers.product(removed, single(most))) // taken
        weights = integers.widen(shifted(weights, bits)) // max(1, total(weights))
        return Guess(self, removals, integers.narrow(removed), integers.narrow(weights), bits)

    def largest(self, prices: np.ndarray, removals: int) -> np.ndarray:
        """Return the prices of the `removals` people with the highest ones; 0 beyond all people."""
        order = np.argsort(-prices, kind="stable")[:removals]
        highest = np.repeat(prices[order], self.sizes[order])[:removals]
        return np.append(highest, np.zeros(removals - len(highest), np.int64))

    @functools.cached_property
    def by_group(self) -> np.ndarray:
        """Where the entries of each group start."""
        return np.flatnonzero(np.diff(self.groups, prepend=-1))

    @functools.cached_property
    def by_item(self) -> tuple[np.ndarray, np.ndarray]:
        """The entries in order of items, and where those of each item start."""
        order = np.argsort(self.items, kind="stable")
        return order, np.flatnonzero(np.diff(self.items[order], prepend=-1))

    def solved(self, removals: int) -> tuple[Fraction, list[Fraction]]:
        """Return LP[k] and weights that prove it, by the simplex method in rational numbers.

        Args:
            removals: k.
        """
        rows, columns = len(self.totals), len(self.sizes)
        tableau = self._tableau(removals)
        least = tableau.minimum()
        # The cost of a constraint's slack is its weight (complementary slackness).
        spare = tableau.costs[columns + 1 : columns + 1 + rows].tolist()
        return least, [Fraction(cost, tableau.scale) for cost in spare]

    def _tableau(self, removals: int) -> Tableau:
        """Return the program in (r, m, s, t), s and t being the slacks of the constraints.

        The row of the highest total gives m. From the others this row is subtracted, and they give
        their s: no right side is below 0 while nobody is removed.
        """
        rows, columns = len(self.totals), len(self.sizes)
        totals, top = self.totals.astype(object), int(self.totals.argmax())
        counts = np.zeros((rows, columns), object)
        counts[self.items, self.groups] = self.counts.astype(object)
        table = np.zeros((rows + 1, columns + rows + 2), object)
        table[:rows, :columns] = counts[top] - counts
        table[:rows, columns + 1 : -1] = np.eye(rows, dtype=np.int64)
        table[:rows, columns + 1 + top] = -1
        table[top, :columns], table[top, columns] = counts[top], 1
        table[rows, :columns], table[rows, -1] = 1, 1
        right = np.append(totals[top] - totals, removals)
        right[top] = totals[top]
        costs = -table[top]
        costs[columns] = 0
        basis = [columns + 1 + row for row in range(rows + 1)]
        basis[top] = columns
        bounds = [*self.sizes.tolist(), *[None] * (rows + 2)]
        return Tableau(table, right, costs, int(totals[top]), bounds, basis)


@dataclass(frozen=True)
class Guess:
    """A feasible r for k removals and feasible weights: two bounds; see `LinearProgram.guess`.

    Attributes:
        program: the program that it is a guess for.
        removals: k.
        removed: r, integers over 2^bits.
        weights: w, integers over 2^bits.
        bits: the precision of r and w.
    """

    program: LinearProgram
    removals: int
    removed: np.ndarray
    weights: np.ndarray
    bits: int

    @functools.cached_property
    def left(self) -> np.ndarray:
        """How many rows are left of each item, times 2^bits."""
        program, (order, starts) = self.program, self.program.by_item
        taken = integers.product(program.counts[order], self.removed[program.groups[order]])
        totals = shifted(program.totals, self.bits)
        return integers.add(totals, -integers.segment_sums(taken, starts))

    @functools.cached_property
    def prices(self) -> np.ndarray:
        """The p_j, times 2^bits."""
        priced = integers.product(self.program.counts, self.weights[self.program.items])
        return integers.segment_sums(priced, self.program.by_group)

    @functools.cached_property
    def upper(self) -> int:
        """An upper bound of LP[k], times 2^bits."""
        return int(self.left.max())

    @functools.cached_property
    def lower(self) -> int:
        """A lower bound of LP[k], times 2^bits."""
        return int(self.lowers(self.removals)[-1])

    def lowers(self, removals: int) -> np.ndarray:
        """Return lower bounds of LP[0..removals], times 2^bits, as Python integers."""
        whole = total(integers.product(self.program.totals, self.weights))
        largest = self.program.largest(self.prices, removals)
        cut = np.append(0, np.add.accumulate(largest.astype(object)))
        return np.asarray(np.maximum(whole - cut, 0))


def single(number: int) -> np.ndarray:
    """Return a column of one number."""
    return integers.narrow(np.array([number], object))


def shifted(column: np.ndarray, bits: int) -> np.ndarray:
    """Return a column times 2^bits."""
    return integers.product(column, single(1 << bits))


def total(column: np.ndarray) -> int:
    """Return the exact sum of a column that is not empty."""
    return int(integers.segment_sums(column, np.array([0]))[0])

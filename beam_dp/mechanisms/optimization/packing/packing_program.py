"""The most that rows can pack when no person carries more than a price, and its exact bounds.

A row t has owners O(t) and belongs to a value v. It packs y_t >= 0:

    E = max { sum of y_t : sum of y_t over the rows of v <= 1 for each value v,
                           sum of y_t over the rows of i <= D for each person i }
      = min { sum of z_v + D sum of r_i : z_v >= 1 - sum of r_i over O(t) for each row t of v,
                                          r, z >= 0 }

(duality of linear programs). No r_i above 1 is of use. So any r in [0, 1] gives an upper bound of
E, with z_v = max(0, 1 - the least sum of r over the rows of v). And any y >= 0 that packs at most 1
of each value gives a lower one, whatever it does to people: with l_i the load of person i,

    E >= sum of y_t - sum of max(0, l_i - D),

for sum of z_v + D sum of r_i >= sum of y_t (1 - sum of r_i over O(t)) + D sum of r_i
= sum of y_t - sum of r_i (l_i - D), and r_i <= 1. Both are computed without rounding, from integers
over 2^bits, so that it does not matter where r and y come from.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.optimization.rational_simplex import Tableau

_EXACT = 52  # integers of so many bits are floats, and so are sums of them that stay below
_MOST = 44


@dataclass(frozen=True)
class Packing:
    """The program; there is at least one row.

    Attributes:
        owners: shape (rows, roles): the people of each row, each once, numbered from 0, and -1
            where there are fewer. Every row has an owner.
        values: the value of each row, numbered from 0, rising; every value has a row. There are
            less than 2^40.
        price: D > 0, of a denominator of at most 2^12.
    """

    owners: np.ndarray
    values: np.ndarray
    price: Fraction

    @functools.cached_property
    def people(self) -> int:
        """How many people there may be."""
        return int(self.owners.max()) + 1

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(self.values[-1]) + 1

    @functools.cached_property
    def starts(self) -> np.ndarray:
        """Where the rows of each value start."""
        return np.flatnonzero(np.diff(self.values, prepend=-1))

    @functools.cached_property
    def roles(self) -> list[np.ndarray]:
        """The owner of each row, role by role; `people` for nobody."""
        return [np.where(role < 0, self.people, role) for role in self.owners.T]

    @functools.cached_property
    def bits(self) -> int:
        """The precision of guesses: all sums stay below 2^52."""
        return min(_MOST, _EXACT - self.size.bit_length())

    def taken(self, removed: np.ndarray) -> np.ndarray:
        """Return the sum of r over the owners of each row; r has a 0 at its end."""
        taken = removed[self.roles[0]]
        for role in self.roles[1:]:
            taken += removed[role]
        return np.asarray(taken)

    def loads(self, packed: np.ndarray) -> np.ndarray:
        """Return the sum of y over the rows of each person: exact for integers below 2^52."""
        counts = (np.bincount(role, packed, self.people + 1) for role in self.roles)
        return np.asarray(sum(counts))[:-1]

    def upper(self, removed: np.ndarray) -> tuple[Fraction, Fraction]:
        """Return an upper bound of E in two parts: the sum of z, and the sum of r.

        Args:
            removed: a guess of r, floats, one for each person.
        """
        one = 1 << self.bits
        parts = np.append(_integers(np.clip(removed, 0, 1), self.bits), 0)
        stays = np.maximum(one - np.minimum.reduceat(self.taken(parts), self.starts), 0)
        return Fraction(int(stays.sum()), one), Fraction(int(parts.sum()), one)

    def lower(self, packed: np.ndarray) -> Fraction:
        """Return a lower bound of E.

        Args:
            packed: a guess of y, floats, one for each row; a value of which more than 1 is
                packed packs nothing.
        """
        parts = _integers(np.maximum(packed, 0), self.bits)
        sums = np.add.reduceat(parts, self.starts)
        kept = sums <= 1 << self.bits
        parts = np.where(kept[self.values], parts, 0)
        most = int(self.price * (1 << self.bits))
        over = np.maximum(self.loads(parts).astype(np.int64) - most, 0)
        return Fraction(int(parts.sum()) - int(over.sum()), 1 << self.bits)

    @property
    def numbers(self) -> int:
        """How many numbers its simplex tableau has."""
        lines = self.people + self.size
        return lines * (lines + len(self.values) + 1)

    def solved(self) -> tuple[Fraction, np.ndarray]:
        """Return E and r, by the simplex method in rational numbers: slow, and it ends."""
        rows, lines = len(self.values), self.people + self.size
        table = np.zeros((lines, rows + lines), object)
        table[self.people + self.values, np.arange(rows)] = 1
        for role in self.roles:
            there = np.flatnonzero(role < self.people)
            table[role[there], there] = 1
        table[:, rows:] = np.eye(lines, dtype=np.int64)
        scale = self.price.denominator
        limits = [self.price.numerator] * self.people + [scale] * self.size
        costs = np.array([-1] * rows + [0] * lines, object)
        basis, bounds = list(range(rows, rows + lines)), [None] * (rows + lines)
        tableau = Tableau(table, np.array(limits, object), costs, 0, [*bounds], basis)
        value = -tableau.minimum() / scale
        prices = tableau.costs[rows : rows + self.people] / tableau.scale
        return value, prices.astype(np.float64)


def _integers(column: np.ndarray, bits: int) -> np.ndarray:
    """Return a column times 2^bits, rounded down, 2^53 at most; 0 for what is no number."""
    finite = np.minimum(np.nan_to_num(column), 2.0 ** (_EXACT + 1 - bits))
    return np.asarray(np.floor(np.ldexp(finite, bits)).astype(np.int64))

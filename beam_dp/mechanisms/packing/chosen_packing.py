"""The most that the rows of one value pack, where the value may be chosen by parts.

A row t has owners O(t), a value v and a weight w_t; of each value a part l_v is chosen, 1 in all:

    E = max { sum of u_t + sum of f_v l_v : 0 <= u_t <= w_t l_v for each row t of v,
              sum of l_v <= 1, sum of u_t over the rows of i <= D for each person i }
      = min { m + D sum of r_i : 0 <= r_i <= 1,
              f_v + sum of w_t max(0, 1 - sum of r_i over O(t)) <= m for each value v }

(duality of linear programs), f_v being the weight of rows without owners. So any r gives an upper
bound, with m the largest of the values. And any l and u that are within all other bounds give a
lower one, less what people carry above D: as much is taken from their rows. Everything is counted
in prices, as in `packing_program`, and in integers over 2^bits: where l, u and r come from does not
matter. What does not fit there is rounded down.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.packing.packing_refined import Matrix, Solution, summed


@dataclass(frozen=True)
class ChosenPacking:
    """The program, for `packing_refined`: its columns are rows, then values.

    Attributes:
        owners: shape (rows, roles): the people of each row, each once, numbered from 0, and -1
            where there are fewer. Every row has an owner.
        values: the value of each row, numbered from 0.
        weights: w_t, integers of at least 1, as objects.
        free: f_v, integers, as objects.
        price: D > 0.
    """

    owners: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    free: np.ndarray
    price: Fraction

    @functools.cached_property
    def people(self) -> int:
        """How many people there are."""
        return int(self.owners.max(initial=-1)) + 1

    @functools.cached_property
    def matrix(self) -> Matrix:
        """Rows need their owners, and a bound, which values give; values need a part of 1."""
        rows, count, below = np.arange(len(self.values)), len(self.free), self.people
        bottom, top = self.price.as_integer_ratio()
        needed = np.column_stack([self.owners, below + rows])
        there = needed >= 0
        given = np.argsort(self.values, kind="stable")
        columns = np.append(self.values[given], np.arange(count))
        lines = np.append(below + given, np.full(count, below + len(rows)))
        numbers = np.append(-top * self.weights[given], np.full(count, bottom, object))
        order = np.argsort(columns, kind="stable")
        return Matrix(
            np.append(np.nonzero(there)[0], len(rows) + columns[order]),
            np.append(needed[there], lines[order]),
            np.append(np.full(int(there.sum()), bottom, object), numbers[order]),
            bottom,
        )

    def gains(self, bits: int) -> np.ndarray:
        """Return 1 for each row, and f_v."""
        return np.append(np.full(len(self.values), 1 << bits, object), self._in_prices(bits))

    def rooms(self, bits: int) -> np.ndarray:
        """Return 1 for each person, 0 for what values must give, and 1 for the parts of values."""
        bounds = np.zeros(len(self.values), object)
        return np.append(np.append(np.full(self.people, 1 << bits, object), bounds), 1 << bits)

    def most(self, bits: int) -> None:
        """Return that no column has a limit of its own."""

    def _in_prices(self, bits: int) -> np.ndarray:
        bottom, top = self.price.as_integer_ratio()
        return np.asarray(self.free * top << bits) // bottom

    def low(self, guess: Solution) -> Fraction:
        """Return a lower bound of E / D."""
        rows, one = len(self.values), 1 << guess.bits
        bottom, top = self.price.as_integer_ratio()
        parts = np.maximum(guess.columns[rows:], 0)
        parts = parts * one // max(sum(parts), one)
        most = self.weights * top * parts[self.values] // bottom
        packed = np.minimum(np.maximum(guess.columns[:rows], 0), most)
        row, role = np.nonzero(self.owners >= 0)
        loads = summed(self.owners[row, role], packed[row], self.people)
        over = np.maximum(loads - one, 0)
        free = Fraction(sum(self.free * parts) * top, bottom * one)
        return Fraction(sum(packed) - sum(over), one) + free

    def removed(self, guess: Solution) -> np.ndarray:
        """Return r of each person."""
        return np.asarray(np.clip(guess.prices[: self.people], 0, 1 << guess.bits))

    def left(self, removed: np.ndarray, bits: int) -> Fraction:
        """Return what a removal, over 2^bits, leaves of the value of which most is left."""
        row, role = np.nonzero(self.owners >= 0)
        taken = summed(row, removed[self.owners[row, role]], len(self.values))
        kept = self.weights * np.maximum((1 << bits) - taken, 0)
        sums = (self.free << bits) + summed(self.values, kept, len(self.free))
        return Fraction(max(sums.tolist()), 1 << bits)

"""The most that rows can pack when no person carries more than a price, and its exact bounds.

A row t has owners O(t) and belongs to a value v, of weight w_v > 0. It packs u_t >= 0:

    E = max { sum of u_t : sum of u_t over the rows of v <= w_v for each value v,
                           sum of u_t over the rows of i <= D for each person i }
      = min { sum of w_v z_v + D sum of r_i : z_v >= 1 - sum of r_i over O(t) for each row t of v,
                                              r, z >= 0 }

(duality of linear programs). Each row has an owner and packs at most D, so that a weight above
n_v D, for n_v rows of the value, counts as that. Everything is counted in prices: nobody carries
more than 1, c_v = min(w_v / D, n_v), and E / D is at most the number of people, however far the
weights are apart.

No r_i above 1 is of use. So any r in [0, 1] gives an upper bound of E / D, with z_v = max(0, 1 -
the least sum of r over the rows of v). And any u >= 0 that packs at most c_v of each value gives a
lower one, whatever it does to people: with l_i the load of person i,

    E / D >= sum of u_t - sum of max(0, l_i - 1),

for sum of c_v z_v + sum of r_i >= sum of u_t (1 - sum of r_i over O(t)) + sum of r_i
= sum of u_t - sum of r_i (l_i - 1), and r_i <= 1. Both are computed from integers over 2^bits, so
that it does not matter where r and u come from. What does not fit there is rounded away from E: c_v
for the upper bound, and each c_v z_v, are rounded up, the others down. A product of floats, with a
relative error below 2^-51, is made safe by a factor of 1 + 2^-50.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.packing.packing_refined import Matrix, summed

_EXACT = 52  # integers of so many bits are floats, and so are sums of them that stay below
_MOST = 44
_SAFE = 2.0**-50


class PackingBounds(NamedTuple):
    """Bounds of E / D that a guess proves, and a line above E at all prices.

    Attributes:
        low: a lower bound.
        high: an upper bound.
        stays: the sum of w_v z_v of a removal. E at any price D' is at most that plus D' times the
            next.
        removed: the sum of r of it.
    """

    low: Fraction
    high: Fraction
    stays: Fraction
    removed: Fraction


@dataclass(frozen=True)
class Packing:
    """The program; there is at least one row.

    Attributes:
        owners: shape (rows, roles): the people of each row, each once, numbered from 0, and -1
            where there are fewer. Every row has an owner.
        values: the value of each row, numbered from 0, rising; every value has a row. There are
            less than 2^40.
        weights: w_v, integers from 1 to 2^52.
        price: D > 0.
    """

    owners: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    price: Fraction

    @functools.cached_property
    def people(self) -> int:
        """How many people there may be."""
        return int(self.owners.max()) + 1

    @functools.cached_property
    def room(self) -> np.ndarray:
        """c_v, to 52 bits."""
        numbers = self.weights * float(1 / self.price)
        return np.asarray(np.minimum(numbers, self.lengths))

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """n_v."""
        return np.diff(np.append(self.starts, len(self.values)))

    @functools.cached_property
    def single(self) -> bool:
        """Whether every value has one row."""
        return len(self.weights) == len(self.values)

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
        most = int(max(self.room.sum(), self.people)) + len(self.weights) // (1 << 20) + 2
        return min(_MOST, _EXACT - most.bit_length())

    def taken(self, removed: np.ndarray) -> np.ndarray:
        """Return the sum of r over the owners of each row; r has a 0 at its end."""
        taken = removed[self.roles[0]]
        for role in self.roles[1:]:
            taken += removed[role]
        return np.asarray(taken)

    def loads(self, packed: np.ndarray) -> np.ndarray:
        """Return the sum of u over the rows of each person: exact for integers below 2^52."""
        counts = (np.bincount(role, packed, self.people + 1) for role in self.roles)
        return np.asarray(sum(counts))[:-1]

    def stays(self, taken: np.ndarray) -> np.ndarray:
        """Return the least of a column over the rows of each value."""
        return taken if self.single else np.minimum.reduceat(taken, self.starts)

    def sums(self, packed: np.ndarray) -> np.ndarray:
        """Return the sum of a column over the rows of each value."""
        return packed if self.single else np.add.reduceat(packed, self.starts)

    @property
    def matrix(self) -> Matrix:
        """A row needs as much of its owners, and of its value if that has several rows."""
        lines = self.owners
        if not self.single:
            lines = np.column_stack([lines, self.people + self.values])
        there = lines >= 0
        ones = np.full(int(there.sum()), 1, object)
        return Matrix(np.nonzero(there)[0], lines[there], ones, 1)

    def gains(self, bits: int) -> np.ndarray:
        """Return 1 for each row."""
        return np.full(len(self.values), 1 << bits, object)

    def rooms(self, bits: int) -> np.ndarray:
        """Return 1 for each person, and c_v of values of several rows."""
        people = np.full(self.people, 1 << bits, object)
        return people if self.single else np.append(people, self.value_rooms(bits)[0])

    def most(self, bits: int) -> np.ndarray | None:
        """Return c_v of values of one row."""
        return self.value_rooms(bits)[0] if self.single else None

    def value_rooms(self, bits: int) -> tuple[np.ndarray, np.ndarray]:
        """Return c_v times 2^bits, rounded down and up, as integers."""
        weights, index = np.unique(self.weights, return_inverse=True)
        top, bottom = self.price.denominator << bits, self.price.numerator
        low = np.array([weight * top // bottom for weight in weights.tolist()], object)
        high = np.array([-(-weight * top // bottom) for weight in weights.tolist()], object)
        most = self.lengths.astype(object) << bits
        return np.minimum(low[index], most), np.minimum(high[index], most)

    @functools.cached_property
    def _rooms(self) -> tuple[np.ndarray, np.ndarray]:
        """The same for the precision of guesses, as floats."""
        low, high = self.value_rooms(self.bits)
        return low.astype(np.float64), high.astype(np.float64)

    def bounds(self, removed: np.ndarray, packed: np.ndarray) -> PackingBounds:
        """Return what a guess in floats proves: of r for each person, and of u for each row."""
        return PackingBounds(self.lower(packed), *self.upper(removed))

    def exact_bounds(self, removed: np.ndarray, packed: np.ndarray, bits: int) -> PackingBounds:
        """Return what a guess in integers over 2^bits proves: closer than floats can be."""
        one, (least, most) = 1 << bits, self.value_rooms(bits)
        parts = np.append(np.clip(removed[: self.people], 0, one), 0)
        stays = np.maximum(one - self.stays(self.taken(parts)), 0)
        kept = -(-most * stays >> bits)  # rounded up
        filled = np.maximum(packed, 0)
        sums = self.sums(filled)
        room = np.where(sums > least, least, sums)[self.values]
        filled = filled * room // np.maximum(sums, 1)[self.values]
        row, role = np.nonzero(self.owners >= 0)
        loads = summed(self.owners[row, role], filled[row], self.people)
        over = np.maximum(loads - one, 0)
        gone = Fraction(sum(parts), one)
        return PackingBounds(
            Fraction(sum(filled) - sum(over), one),
            Fraction(sum(kept), one) + gone,
            Fraction(sum(self.weights.tolist() * stays), one),
            gone,
        )

    def upper(self, removed: np.ndarray) -> tuple[Fraction, Fraction, Fraction]:
        """Return an upper bound of E / D, and a line above E at all prices.

        The line is in two parts, the sum of w_v z_v and the sum of r: E at any price D' is at most
        the first plus D' times the second.

        Args:
            removed: a guess of r, floats, one for each person.
        """
        one = float(1 << self.bits)
        parts = np.append(np.ceil(np.clip(np.nan_to_num(removed), 0, 1) * one), 0)
        stays = np.maximum(one - self.stays(self.taken(parts)), 0)
        room = self._rooms[1]
        kept = np.where(stays == one, room, np.ceil(room * stays * (1 + _SAFE) / one))
        number = Fraction(int(kept.sum()) + int(parts.sum()), 1 << self.bits)
        weight = float((self.weights * stays).sum()) * (1 + 2.0**-20) / one
        return number, Fraction(weight), Fraction(int(parts.sum()), 1 << self.bits)

    def lower(self, packed: np.ndarray) -> Fraction:
        """Return a lower bound of E / D.

        Args:
            packed: a guess of u / D, floats, one for each row; a value of which more than c_v is
                packed packs nothing.
        """
        one, room = float(1 << self.bits), self._rooms[0]
        parts = np.floor(np.clip(np.nan_to_num(packed), 0, 1) * one)
        if self.single:
            parts = np.minimum(parts, room)
        else:
            cut = np.minimum(room / np.maximum(self.sums(parts), 1), 1)
            parts = np.floor(parts * np.where(cut < 1, cut * (1 - _SAFE), 1)[self.values])
            parts = np.where((self.sums(parts) <= room)[self.values], parts, 0)
        over = np.maximum(self.loads(parts) - one, 0)
        return Fraction(int(parts.sum()) - int(over.sum()), 1 << self.bits)

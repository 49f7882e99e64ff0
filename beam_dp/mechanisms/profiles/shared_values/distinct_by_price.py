"""Removal profiles of the number of distinct values of rows with any number of owners.

A row disappears when any of its owners does, and a value when every of its rows does. Let people be
removed by parts r_i in [0, 1]: of a value the part z_v = max(0, 1 - the least sum of r_i over the
owners of one of its rows) stays. At a price D of a removal the Lipschitz extension is

    E_D = min { sum of z_v + D sum of r_i },

a linear program (`packing_program`). For x' = x + one person p, E_D <= E'_D <= E_D + D: leave p out
of any r' of x', and no less is gone of any value of x; to any r of x add r_p = 1, and nothing stays
of the rows of p. E_D is known in steps of s = D / 32 only,

    R_D = s (ceil(E_D / s - c) - 1),    c = sqrt(2) - 1,    E_D - 1.42 s < R_D < E_D,

and since D is 32 s, R_D <= R'_D <= R_D + D. Over a public grid of prices the profile is

    B[0] = the number of values,    B[k] = max(0, ceil(max over D of (R_D - k D))).

*It interlaces*, B'[k + 1] <= B[k] <= B'[k]: at each price R'_D - (k + 1) D <= R_D - k D <=
R'_D - k D; the largest of numbers, and ceil, never fall where these do not; and R_D < E_D <= B[0].
So the loss has sensitivity 1, in one direction, for any number of owners. It rests on the exact
E_D, and not on a solver: `packing_cells` proves the step of E_D in integers.

*What it is.* r in {0, 1} removes whole people, so that E_D - k D is at most the exact profile, an
integer, and so is B[k]. Over all D the largest would be the least sum of z_v with sum of r_i <= k,
the program of `shared_rows`. B[k] is below that by at most k / 16 + 0.045 of a price: there are 16
prices per octave.

*Few prices are tried.* A removal r at one price is a line, sum of z_v + D sum of r_i, above E_D at
all prices. A price is tried only while these lines leave it a chance to be the best for some k. The
first ones are high, where few people can pay for their removal and `price_rules` leave few rows.
None is tried above the first price D known to have E_D = B[0]: the next one, D' >= 17 D / 16,
gives less than B[0] - k D - k D / 16, and D itself more than B[0] - k D - 1.42 D / 32.

*Sizes*, K = 620, processor seconds of one core: 1.8 million order lines of customers, suppliers
and clerks with 200,000 different parts 14 s, 6 million of them 55 s and 2 GiB, 1.6 million
different prices 9 s; 2 million rows of 10,000 people who are alike, three to a row, with 200,000
values 35 s. The hard prices are those at which all people together can just pay for all values,
and those at which half of many people who are alike have little more than the price in values: K =
6,200 with 700,000 values in 900,000 rows of 100,000 people took more than two minutes.

*Whose row is it*: as in `shared_rows`.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.optimization.packing import packing_cells
from beam_dp.mechanisms.profiles import lipschitz_envelope, shared_rows
from beam_dp.mechanisms.profiles.shared_values.price_rules import ValueRows

_APART = 4  # every fourth price of `lipschitz_envelope`: 16 per octave
_FINE, _BITS = 12, 44  # prices are whole over 2^12, and lines over 2^44
_STRIDE = 8  # prices at most that the descent passes over


def profile(owners: np.ndarray, items: np.ndarray, removals: int) -> list[int]:
    """Return B[0..removals] of the number of distinct items.

    Args:
        owners: the person in each role (row of the array) of each row (column), -1 for nobody.
        items: any integer codes.
        removals: K, at least 1.
    """
    checks.positive_integer("distinct_by_price.profile", "removals", removals)
    kept = np.asarray((owners >= 0).any(axis=0))
    if not kept.any():
        return [0] * (removals + 1)
    return _Search(_different(owners[:, kept], items[kept]), removals).levels()


def price(index: int) -> Fraction:
    """Return the index-th price of the grid."""
    return lipschitz_envelope.price(_APART * index)


class _Line(NamedTuple):
    """What stays of a removal, and how many people it removes: over 2^44."""

    stays: int
    removed: int


class _Search:
    """The best of R_D - k D for each k.

    Attributes:
        best: B of the prices that were tried.
        prices: all prices that may be tried, times 2^12.
        above: upper bounds of E_D at these prices, times 2^56.
        left: which of them are left to be tried.
    """

    def __init__(self, rows: ValueRows, removals: int) -> None:
        self.rows, self.removals, self.degrees = rows, removals, rows.degrees()
        total, owners = int(rows.values[-1]) + 1, int(np.count_nonzero(self.degrees))
        self.best = np.append(total, np.zeros(removals, np.int64))
        top = -(-lipschitz_envelope.first_price(rows.heaviest()) // _APART)
        self.prices = np.array(
            [int(price(index) * (1 << _FINE)) for index in range(top + 1)], object
        )
        self.above = np.full(top + 1, total << _FINE + _BITS, object)
        self.left = np.ones(top + 1, np.bool_)
        self._lower(_Line(0, owners << _BITS))

    def levels(self) -> list[int]:
        """Return B[0..K]."""
        self._descend()
        while (index := self._most_promising()) is not None:
            self._try(index)
        levels: list[int] = self.best.tolist()
        return levels

    def _descend(self) -> None:
        """Try prices from the highest down until K people are removed.

        The steps grow while few people are removed, for programs of far lower prices are harder.
        """
        index, step, most = len(self.prices) - 1, 1, self.removals << _BITS
        before, line = 0, self._try(index)
        while index and line.removed < most and line.stays:
            near = 4 * line.removed > most and line.removed > before
            step, before = 1 if near else step, line.removed
            index = max(0, index - step)
            line, step = self._try(index), min(2 * step, _STRIDE)

    def _most_promising(self) -> int | None:
        """Return the price that may raise B most; None if none may."""
        gains = {index: self._gain(index) for index in np.flatnonzero(self.left).tolist()}
        best = max(gains, key=lambda index: (gains[index], index), default=None)
        return None if best is None or gains[best] <= 0 else best

    def _gain(self, index: int) -> int:
        """Return by how much a price may raise B."""
        each, above = self.prices[index], Fraction(self.above[index], 1 << _FINE + _BITS)
        levels = _levels(each, packing_cells.cell(above, price(index)), self.removals)
        return int((levels - self.best[1 : len(levels) + 1]).max(initial=0))

    def _try(self, index: int) -> _Line:
        """Take what a price gives; return a line."""
        rows = dataclasses.replace(self.rows)
        rows.reduce(price(index), self.degrees)
        number, line = _value(rows, price(index))
        levels = _levels(self.prices[index], number, self.removals)
        known = self.best[1 : len(levels) + 1]
        np.maximum(known, levels, out=known)
        self.left[index] = False
        self._lower(line)
        return line

    def _lower(self, line: _Line) -> None:
        self.above = np.minimum(self.above, (line.stays << _FINE) + self.prices * line.removed)


def _value(rows: ValueRows, at: Fraction) -> tuple[int, _Line]:
    """Return the cell of E_D, and a line above it for all prices."""
    known = rows.whole + at * rows.removed
    stays, removed = rows.whole << _BITS, rows.removed << _BITS
    if not len(rows.values):
        return packing_cells.cell(known, at), _Line(stays, removed)
    decided = packing_cells.decided(rows.packing(at), known)
    more = (int(part * (1 << _BITS)) for part in (decided.stays, decided.removed))
    return decided.number, _Line(stays + next(more), removed + next(more))


def _levels(each: int, number: int, removals: int) -> np.ndarray:
    """Return ceil(R_D - k D) for k = 1.. while it is above 0, up to K.

    Args:
        each: D times 2^12.
        number: the cell of E_D: R_D is `number` - 1 parts of D.
        removals: K.
    """
    parts = packing_cells.PARTS
    last = min(removals, -((1 - number) // parts) - 1)
    left = number - 1 - parts * np.arange(1, last + 1)
    return np.asarray(-(-left * each // (parts << _FINE)))


def _different(owners: np.ndarray, items: np.ndarray) -> ValueRows:
    """Return rows by value, with each owner once."""
    order = np.argsort(items, kind="stable")
    people = shared_rows.different(owners.T[order])
    values = np.cumsum(np.diff(items[order], prepend=items[order[0]]) != 0)
    return ValueRows(people, values, int(people.max()) + 1)

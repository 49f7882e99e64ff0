"""The part of the program of `removal_program` that HiGHS sees, in integers and in floats.

With one row of each value as its base (see `removal_bounds`), D_gi what the base rows of group g
lose without person i, C_g its sum, and e_v = z_v - 1 + (the sum of r over the base of v): minimise
m with

    sum r <= k,    m + sum of D_gi r_i - sum of w_v e_v >= C_g    for each group g,
    e_v - (sum of r over the base of v) + (sum of r over t) >= 0    for each row t of v,
    e_v - (sum of r over the base of v) >= -1    so that z_v >= 0,

for the people, groups and rows that have joined. m is less the largest C_g, and all weights are in
units of a power of 2, so that floats hold them without rounding, and the largest D_gi is about 1.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.optimization.highs_model import Limits, Matrix
from beam_dp.mechanisms.optimization.removal_bounds import BaseLosses, RemovalBounds
from beam_dp.mechanisms.optimization.scipy_loader import sparse

_FAR = 1e6  # bounds farther away, in magnified units, are not reached in one step


class Joined(NamedTuple):
    """Who and what HiGHS sees, each in the order in which they joined.

    Attributes:
        people: their numbers.
        groups: their numbers.
        values: the value of each row below.
        rows: rows, and -1 for z_v >= 0.
    """

    people: np.ndarray
    groups: np.ndarray
    values: np.ndarray
    rows: np.ndarray


class ExactPoint(NamedTuple):
    """Values of the columns and prices of the rows, as Python integers over 2^bits."""

    values: np.ndarray
    prices: np.ndarray
    bits: int


@dataclass(frozen=True)
class RemovalMatrix:
    """The program of who and what has joined.

    Attributes:
        bounds: of the whole program.
        joined: who and what has joined.
        lines: those of the people who have joined.
    """

    bounds: RemovalBounds
    joined: Joined
    lines: BaseLosses

    @functools.cached_property
    def _values(self) -> tuple[np.ndarray, np.ndarray]:
        """The values with rows that have joined, in this order, and the codes of the rows."""
        return _in_order(self.joined.values)

    @property
    def columns(self) -> tuple[int, int, int]:
        """How many columns stand for m, r and e."""
        return 1, len(self.joined.people), len(self._values[0])

    @property
    def rows(self) -> tuple[int, int, int]:
        """How many rows stand for the sum of r, the groups, and the rows of values."""
        return 1, len(self.joined.groups), len(self.joined.rows)

    @property
    def unit(self) -> int:
        """The power of 2 above the largest D_gi; all entries are integers over it."""
        return self.bounds.unit

    @functools.cached_property
    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The entries of the matrix times the unit, their rows and their columns."""
        program, joined, lines = self.bounds.program, self.joined, self.lines
        person = _indexes(joined.people, program.people + 1)
        group = _indexes(joined.groups, len(self.bounds.sums))
        actives, entry = self._values
        _, people, groups = 1, len(joined.people), len(joined.groups)
        firsts, index = 1 + people, np.arange(len(entry))
        parts = [
            _some(self.unit, np.zeros(people, int), 1 + np.arange(people)),
            _some(self.unit, 1 + np.arange(groups), np.zeros(groups, int)),
            (lines.amounts, 1 + group[lines.groups], 1 + person[lines.people]),
            (
                -program.weights[actives],
                1 + group[program.groups[actives]],
                firsts + np.arange(len(actives)),
            ),
            _some(self.unit, 1 + groups + index, firsts + entry),
        ]
        for rows, sign in ((self.bounds.base[joined.values], -1), (joined.rows, 1)):
            owners = np.where((rows >= 0)[:, None], person[program.owners[rows]], -1)
            which, role = np.nonzero(owners >= 0)
            parts.append(_some(sign * self.unit, 1 + groups + which, 1 + owners[which, role]))
        numbers = integers.concatenate([part[0] for part in parts])
        down, right = (np.concatenate([part[side] for part in parts]) for side in (1, 2))
        # Groups that have not joined have the number -1, so row 0, where only r has entries.
        kept = (down > 0) | (np.arange(len(down)) < people)
        return numbers[kept], down[kept], right[kept]

    @functools.cached_property
    def least(self) -> np.ndarray:
        """The lower bounds of all rows but the first, times the unit."""
        sums = integers.add(self.bounds.sums, -integers.narrow(np.array([self.top], object)))
        rows = np.where(self.joined.rows < 0, integers.narrow(np.array([-self.unit], object)), 0)
        return integers.concatenate([sums[self.joined.groups], rows])

    @property
    def top(self) -> int:
        """The largest C_g."""
        return int(self.bounds.sums.max())

    @property
    def matrix(self) -> Matrix:
        """The matrix in floats."""
        numbers, down, right = self.entries
        floats = numbers.astype(np.float64) / self.unit
        return _matrix(floats, down, right, (sum(self.rows), sum(self.columns)))

    def limits(self, removals: int) -> Limits:
        """Return the costs and bounds for k = `removals`, in floats."""
        _, people, values = self.columns
        none = np.zeros(people + values)
        return Limits(
            np.append(1.0, none),
            np.append(-self.top / self.unit, none),
            np.concatenate([[0.0], np.ones(people), np.full(values, np.inf)]),
            np.append(-np.inf, self.least.astype(np.float64) / self.unit),
            np.append(float(removals), np.full(len(self.least), np.inf)),
        )

    @property
    def equations(self) -> Matrix:
        """The matrix in floats, with a column for what each row comes to: rows that are all 0."""
        numbers, down, right = self.entries
        rows, columns = sum(self.rows), sum(self.columns)
        every = np.arange(rows)
        floats = np.append(numbers.astype(np.float64) / self.unit, -np.ones(rows))
        return _matrix(
            floats,
            np.append(down, every),
            np.append(right, columns + every),
            (rows, columns + rows),
        )

    def magnified(self, point: ExactPoint, removals: int, zoom: int) -> Limits:
        """Return the costs and bounds of the corrections of a point in `equations`, times 2^zoom.

        Args:
            point: values and prices; what they leave is computed without rounding.
            removals: k.
            zoom: bits.
        """
        numbers, down, right = self.entries
        wide, one, unit = numbers.astype(object), 1 << point.bits, self.unit
        _, people, values = self.columns
        rows, costs = np.zeros(sum(self.rows), object), np.zeros(sum(self.columns), object)
        np.add.at(rows, down, wide * point.values[right])
        np.add.at(costs, right, -wide * point.prices[down])
        costs[0] += one * unit
        low = -point.values * unit
        low[0] -= self.top * one
        high = (one - point.values[1 : 1 + people]) * unit
        least = self.least.astype(object) * one - rows[1:]
        most = np.array([removals * unit * one - rows[0]], object)
        scale = zoom - point.bits - unit.bit_length() + 1
        none, far = np.zeros(len(rows)), np.full(values, _FAR)
        return Limits(
            np.append(_floats(costs, scale), _floats(point.prices, zoom - point.bits)),
            np.concatenate([_floats(low, scale), [-_FAR], _floats(least, scale)]),
            np.concatenate(
                [[_FAR], _floats(high, scale), far, _floats(most, scale), none[1:] + _FAR]
            ),
            none,
            none,
        )


def _matrix(
    numbers: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> Matrix:
    """Return a matrix by column; entries of one place are added up."""
    by_column: Any = sparse().coo_array((numbers, (rows, columns)), shape=shape).tocsc()
    return Matrix(by_column.indptr, by_column.indices, by_column.data)


def _floats(column: np.ndarray, scale: int) -> np.ndarray:
    """Return a column times 2^scale in floats, about, clipped at `_FAR` on both sides."""
    cut = max(0, -scale - 64)  # (beyond this, integers may be too large for floats)
    whole = np.array([int(number) >> cut for number in column], np.float64)
    scaled = np.ldexp(whole, scale + cut)
    return np.asarray(np.clip(scaled, -_FAR, _FAR))


def _some(number: int, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return entries that are all the same number."""
    return np.full(len(rows), number), rows, columns


def _indexes(names: np.ndarray, size: int) -> np.ndarray:
    """Return the index of each number among the names, -1 where it is not."""
    indexes = np.full(size, -1)
    indexes[names] = np.arange(len(names))
    return indexes


def _in_order(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different values in the order in which they come first, and the codes of all."""
    names, first, codes = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    new_codes = np.empty_like(order)
    new_codes[order] = np.arange(len(order))
    return names[order], new_codes[codes]

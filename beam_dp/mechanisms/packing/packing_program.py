"""A linear program in integers, and the exact bounds of its value that any guess proves.

    E = max { g x : A x <= b, 0 <= x <= u }
      = min { b y + sum of u_j max(0, g_j - (y A)_j) : y >= 0 }

(duality of linear programs). So any y >= 0 gives an upper bound. Let h be such that a best y has
y <= h. Then any 0 <= x <= u gives a lower one, though A x may be above b:

    E >= g x - sum of h_i max(0, (A x - b)_i),

for g x = y A x + (g - y A) x <= y A x + E - b y = E + y (A x - b) for that best y. Both are
computed from integers over 2^bits without any rounding, so that it does not matter where x and y
come from.

*The lines.* The first are people, each of whom carries a price p at most. A part r_i <= 1 of a
person may be removed, at p each: y_i = r_i. Behind them are blocks of lines whose best prices
follow from r: each is the least at which no column of the line gains more than it pays. A column is
in one line of a block at most, with an entry of 1; all other entries of a block are below 0 or in
blocks before.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics import integers

_MOST = 50  # bits of a guess in floats
_NOBODY = np.zeros(0)


class PackingBounds(NamedTuple):
    """Bounds of E / p that a guess proves, and a line above E at all lower prices.

    Attributes:
        low: a lower bound.
        high: an upper bound.
        stays: what a removal leaves. E at a price p' <= p is at most that plus p' times the next.
        removed: the sum of r of it.
        parts: r.
    """

    low: Fraction
    high: Fraction
    stays: Fraction
    removed: Fraction
    parts: np.ndarray = _NOBODY


@dataclass(frozen=True, eq=False)
class Packing:
    """The program, with one entry of A per place of `columns`, `lines` and `numbers`.

    Attributes:
        price: D; E is counted in its denominator, where the price is its numerator, p.
        people: how many lines are people.
        columns: the column of each entry.
        lines: its line.
        numbers: the entry.
        gains: g.
        rooms: b.
        most: u; the lines imply it where there are blocks, so that no solver need know it.
        worth: h.
        column_sizes: about how large each column gets: p, or 1.
        line_sizes: and each line.
        blocks: where each block of lines behind the people ends.
        known: what is added to E.
        is_flow: whether each column has one person and one line of the only block.
    """

    price: Fraction
    people: int
    columns: np.ndarray
    lines: np.ndarray
    numbers: np.ndarray
    gains: np.ndarray
    rooms: np.ndarray
    most: np.ndarray
    worth: np.ndarray
    column_sizes: np.ndarray
    line_sizes: np.ndarray
    blocks: tuple[int, ...] = ()
    known: int = 0
    is_flow: bool = False

    @functools.cached_property
    def wide(self) -> Packing:
        """The same in Python integers."""
        names = "numbers", "gains", "rooms", "most", "worth", "column_sizes", "line_sizes"
        columns: dict[str, Any] = {name: getattr(self, name).astype(object) for name in names}
        return dataclasses.replace(self, **columns)

    @functools.cached_property
    def bits(self) -> int:
        """The most bits for which all sums stay below 2^62; below 0: not even whole numbers do."""
        numbers, most = np.abs(self.numbers.astype(float)), self.most.astype(float)
        worth, gains = self.worth.astype(float), self.gains.astype(float)
        needed = numbers * most[self.columns] * np.maximum(worth[self.lines], 1)
        whole = needed.sum() + (gains * most).sum() + (self.rooms * np.maximum(worth, 1)).sum()
        return min(_MOST, 60 - int(whole + worth.sum()).bit_length())

    def needed(self, columns: np.ndarray) -> np.ndarray:
        """Return A x."""
        return summed(self.lines, self.numbers * columns[self.columns], len(self.rooms))

    def paid(self, prices: np.ndarray) -> np.ndarray:
        """Return y A."""
        return summed(self.columns, self.numbers * prices[self.lines], len(self.gains))

    def bounds(self, columns: np.ndarray, removed: np.ndarray, bits: int) -> PackingBounds:
        """Return what a guess proves: of x, and of r, in integers over 2^bits."""
        exact = self if bits <= self.bits else self.wide
        kind, one, top = exact.most.dtype, 1 << bits, self.price.numerator
        low = Fraction(exact.lower(columns.astype(kind), one), one) + self.known
        parts = np.clip(removed.astype(kind), 0, one)
        left = Fraction(exact.left(parts, one), one) + self.known
        gone = Fraction(int(parts.sum()), one)
        stays, taken = left / self.price.denominator, np.asarray(parts / one, float)
        return PackingBounds(low / top, left / top + gone, stays, gone, taken)

    def lower(self, columns: np.ndarray, one: int) -> int:
        """Return a lower bound of E, from x; both over `one`."""
        columns = np.clip(columns, 0, self.most * one)
        over = np.maximum(self.needed(columns) - self.rooms * one, 0)
        return int((self.gains * columns).sum() - (self.worth * over).sum())

    def left(self, removed: np.ndarray, one: int) -> int:
        """Return what a removal leaves; both over `one`."""
        prices = np.zeros(len(self.rooms), removed.dtype)
        prices[: self.people] = removed
        start = self.people
        for end in self.blocks:
            gains = self.gains * one - self.paid(prices)
            own = np.flatnonzero((self.lines >= start) & (self.lines < end) & (self.numbers == 1))
            np.maximum.at(prices, self.lines[own], gains[self.columns[own]])
            start = end
        gains = np.maximum(self.gains * one - self.paid(prices), 0)
        kept = self.rooms[self.people :] * prices[self.people :]
        return int(kept.sum() + (self.most * gains).sum())


def summed(indexes: np.ndarray, column: np.ndarray, size: int) -> np.ndarray:
    """Return the sums of integers of any size by index, 0 to before `size`."""
    sums = np.zeros(size, column.dtype)
    np.add.at(sums, indexes, column)
    return sums


def of_rows(
    price: Fraction, owners: np.ndarray, weights: np.ndarray, values: np.ndarray, free: np.ndarray
) -> Packing:
    """Return the program of the most that rows of one value pack, the value chosen by parts.

        max { sum of u_t + sum of f_v l_v : 0 <= u_t <= w_t l_v for each row t of v,
              sum of l_v <= 1, sum of u_t over the rows of i <= D for each person i }.

    Lines are people, rows, and one for all values; the price of the last one is the most that a
    removal leaves of a value. Of one value alone l is 1, and no line but those of people is needed.

    Args:
        price: D; everything is counted in its denominator.
        owners: shape (rows, roles): people from 0, each once in a row; -1 where there are fewer.
        weights: w_t, at least 1.
        values: the value of each row.
        free: f_v.
    """
    top, parts = price.as_integer_ratio()
    factor, rows, size = np.array([parts]), len(values), len(free)
    room, free = integers.product(weights, factor), integers.product(free, factor)
    most = np.minimum(room, top)
    if size == 1:
        return _packing(price, owners, most, known=int(free[0]))
    own, ones = np.arange(rows), np.ones(size, np.int64)
    total = max(integers.add(free, integers.sums_at(values, room, size)).tolist())
    people = int(owners.max(initial=-1)) + 1
    return _packing(
        price,
        owners,
        most,
        columns=np.concatenate([own, rows + values, np.arange(rows, rows + size)]),
        lines=people + np.concatenate([own, own, np.full(size, rows)]),
        numbers=integers.concatenate([np.ones(rows, np.int64), -room, ones]),
        gains=free,
        rooms=np.append(0 * own, 1),
        most=ones,
        worth=integers.concatenate([0 * own + 1, integers.narrow(np.array([total], object))]),
        column_sizes=ones,
        line_sizes=np.append(np.full(rows, top), 1),
        blocks=(people + rows, people + rows + 1),
    )


def of_values(price: Fraction, owners: np.ndarray, values: np.ndarray, each: int) -> Packing:
    """Return the program of the most that rows pack where those of a value share a room.

        max { sum of u_t : 0 <= u_t, sum of u_t over the rows of v <= w for each value v,
                           sum of u_t over the rows of i <= D for each person i }.

    Args:
        price: D; everything is counted in its denominator.
        owners: shape (rows, roles): people from 0, each once in a row; -1 where there are fewer.
        values: the value of each row, numbered from 0.
        each: w.
    """
    top, parts = price.as_integer_ratio()
    people, size, rows = int(owners.max()) + 1, int(values.max()) + 1, len(values)
    return _packing(
        price,
        owners,
        np.full(rows, min(top, each * parts)),
        columns=np.arange(rows),
        lines=people + values,
        numbers=np.ones(rows, np.int64),
        rooms=np.full(size, each * parts),
        worth=np.ones(size, np.int64),
        line_sizes=np.full(size, top),
        blocks=(people + size,),
        is_flow=owners.shape[1] == 1,
    )


def _packing(price: Fraction, owners: np.ndarray, limit: np.ndarray, **more: Any) -> Packing:
    """Return the program of rows that gain 1 each, with lines for people, and what is behind."""
    top, rows, people = price.numerator, len(limit), int(owners.max(initial=-1)) + 1
    row, role = np.nonzero(owners >= 0)
    own = {
        "columns": row,
        "lines": owners[row, role],
        "numbers": np.ones(len(row), np.int64),
        "gains": np.ones(rows, np.int64),
        "rooms": np.full(people, top),
        "most": limit,
        "worth": np.ones(people, np.int64),
        "column_sizes": np.full(rows, top),
        "line_sizes": np.full(people, top),
    }
    joined: dict[str, Any] = {
        name: integers.concatenate([part, more.pop(name, part[:0])]) for name, part in own.items()
    }
    return Packing(price=price, people=people, **joined, **more)

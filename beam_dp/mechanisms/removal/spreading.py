"""The linear program of the most frequent item: floats propose, integers prove.

With groups of equal people j (u_j of them, each with c_jv rows of item v) and totals C_v:

    LP[k] = min { m : m >= C_v - sum_j c_jv r_j for all v, sum_j r_j <= k, 0 <= r_j <= u_j }.

*Upper bounds.* Any r that is feasible gives m = max_v (C_v - sum_j c_jv r_j) >= LP[k].

*Lower bounds.* For weights w >= 0 of the items that add up to at most 1, and p_j = sum_v c_jv w_v,

    LP[k] >= sum_v w_v C_v - (the sum of the k largest p_j, group j standing there u_j times),

since m >= sum_v w_v m >= sum_v w_v C_v - sum_j p_j r_j (m >= 0), and no feasible r takes more. This
holds for all k at once.

Both are computed in integers, from r and w that are integers over 2^bits. HiGHS finds r and w in
floating point. What it says is rounded, put between its bounds, and then measured exactly; it may
be as wrong as it likes.

*Refinement* (Gleixner, Steffy, Wolter 2016, "Iterative refinement for linear programming", INFORMS
J. Comput. 28). Let r, m, s (what a constraint has to spare), t = k - sum r be feasible and w, theta
weights and price. What has to be added to r and w solves the same program with bounds [-r, u - r]
and so on, and with the costs that w leaves. All of this is known exactly and, multiplied by a
`zoom`, is of the size of 1 again, so that floating point finds the next digits of both.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from beam_dp.mechanisms import exact
from beam_dp.mechanisms.removal.simplex import Tableau

METHODS = ("highs-ds", "highs-ipm")
_OPTIONS = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
_FAR = 1e6  # what is farther away than this many times 1 / zoom is not reached in one step
STEP = 24  # bits of zoom that one step may add at most, well within the tolerances above


@dataclass(frozen=True)
class Guess:
    """A feasible r and feasible weights, in integers over 2^bits."""

    removed: np.ndarray
    weights: np.ndarray
    bits: int


@dataclass(frozen=True)
class Program:
    """The linear program for all k up to some K.

    Attributes:
        totals: C_v.
        items: of each entry of the matrix c; entries stand by group.
        groups: of each entry; every group has one.
        counts: of each entry, at least 1.
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
    def bits(self) -> int:
        """The bits of a first guess: rounding to them moves no total by more than 2^-12."""
        return max(30, self.highest.bit_length() + 12)

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        return np.flatnonzero(np.diff(self.groups, prepend=-1))

    @functools.cached_property
    def _by_item(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the entries that are in order of items, and where each item starts."""
        order = np.argsort(self.items, kind="stable")
        return order, np.flatnonzero(np.diff(self.items[order], prepend=-1))

    @functools.cached_property
    def _matrix(self) -> sparse.csc_array:
        """Return the constraints on (r, m, s, t), the totals in units of the highest one."""
        rows, columns = len(self.totals), len(self.sizes)
        values = self.counts.astype(np.float64) / self.highest
        counts = sparse.coo_array((values, (self.items, self.groups)), shape=(rows, columns))
        above = sparse.hstack([counts, np.ones((rows, 1)), -sparse.eye_array(rows)])
        below = sparse.coo_array(np.append(np.ones(columns), np.zeros(rows + 1))[None])
        return sparse.block_array([[above, None], [below, np.ones((1, 1))]], format="csc")

    def left(self, guess: Guess) -> np.ndarray:
        """Return of each item how many rows a guess leaves, times 2^bits."""
        order, starts = self._by_item
        taken = exact.product(self.counts[order], guess.removed[self.groups[order]])
        return exact.add(_shifted(self.totals, guess.bits), -exact.segment_sums(taken, starts))

    def prices(self, guess: Guess) -> np.ndarray:
        """Return p_j times 2^bits."""
        priced = exact.product(self.counts, guess.weights[self.items])
        return exact.segment_sums(priced, self._starts)

    def upper(self, guess: Guess) -> int:
        """Return an upper bound of LP[k], times 2^bits, for a guess of that k."""
        return int(self.left(guess).max())

    def lower(self, guess: Guess, removals: int) -> np.ndarray:
        """Return lower bounds of LP[0..removals], times 2^bits, as Python integers."""
        whole = _sum(exact.product(self.totals, guess.weights))
        largest = self._largest(self.prices(guess), removals)
        cut = np.append(0, np.add.accumulate(largest.astype(object)))
        return np.asarray(np.maximum(whole - cut, 0))

    def _largest(self, prices: np.ndarray, removals: int) -> np.ndarray:
        """Return the prices of the `removals` people with the highest ones; 0 beyond all people."""
        order = np.argsort(-prices, kind="stable")[:removals]
        found = np.repeat(prices[order], self.sizes[order])[:removals]
        return np.append(found, np.zeros(removals - len(found), np.int64))

    def start(self) -> Guess:
        """Return the guess that nobody is removed, with no weights."""
        nobody = np.zeros(len(self.sizes), np.int64)
        return Guess(nobody, np.zeros(len(self.totals), np.int64), self.bits)

    def step(self, guess: Guess, removals: int, zoom: int, method: str) -> Guess | None:
        """Return another guess, by a solution in floating point; None where there is none.

        Args:
            guess: feasible for these removals.
            removals: k, at least 1.
            zoom: the bits by which what the guess leaves open is magnified.
            method: of `scipy.optimize.linprog`.
        """
        costs, bounds = self._magnified(guess, removals, zoom)
        right = np.zeros(len(self.totals) + 1)
        found = linprog(
            costs, A_eq=self._matrix, b_eq=right, bounds=bounds, method=method, options=_OPTIONS
        )
        if found.x is None or found.eqlin.marginals is None:
            return None
        bits = self.bits + zoom
        removed = _moved(guess.removed, found.x[: len(self.sizes)], bits - guess.bits, self.bits)
        weights = _moved(guess.weights, found.eqlin.marginals[:-1], bits - guess.bits, self.bits)
        return self._feasible(Guess(removed, weights, bits), removals)

    def _magnified(self, guess: Guess, removals: int, zoom: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the costs and the bounds of what is to be added to (r, m, s, t)."""
        one = 1 << guess.bits
        part, row = Fraction(1 << zoom, one), Fraction(1 << zoom, one * self.highest)
        left, prices = self.left(guess), self.prices(guess)
        top, theta = _single(int(left.max())), self._largest(prices, removals)[-1:]
        used, given = _single(_sum(guess.removed)), _single(_sum(guess.weights))
        costs = (
            _floats(exact.add(theta, -prices), row),
            _floats(exact.add(_single(one), -given), part),
            _floats(guess.weights, part),
            _floats(theta, row),
        )
        low = (
            _floats(-guess.removed, part),
            _floats(-top, row),
            _floats(exact.add(left, -top), row),
            _floats(exact.add(used, _single(-removals * one)), part),
        )
        room = exact.add(_shifted(self.sizes, guess.bits), -guess.removed)
        high = np.append(_floats(room, part), np.full(len(left) + 2, np.inf))
        return np.concatenate(costs), np.stack([np.concatenate(low), high], axis=1)

    def _feasible(self, guess: Guess, removals: int) -> Guess:
        """Return a guess that is moved between its bounds."""
        removed = np.minimum(np.maximum(guess.removed, 0), _shifted(self.sizes, guess.bits))
        weights = np.maximum(guess.weights, 0)
        taken, most = _sum(removed), removals << guess.bits
        if taken > most:
            removed = exact.widen(exact.product(removed, _single(most))) // taken
        weights = exact.widen(_shifted(weights, guess.bits)) // max(1, _sum(weights))
        return Guess(exact.narrow(removed), exact.narrow(weights), guess.bits)

    def exactly(self, removals: int) -> Fraction:
        """Return LP[k] by the simplex method in rational numbers."""
        rows, columns = len(self.totals), len(self.sizes)
        counts = np.zeros((rows, columns), object)
        counts[self.items, self.groups] = self.counts.astype(object)
        totals, top = self.totals.astype(object), int(self.totals.argmax())
        # The order of variables is (r, m, s, t). The row of the highest total gives m, the others,
        # less that one, their s: all right sides are at least 0.
        table = np.zeros((rows + 1, columns + rows + 2), object)
        table[:rows, :columns] = counts[top] - counts
        table[top, :columns] = counts[top]
        table[:rows, columns + 1 : -1] = np.eye(rows, dtype=np.int64)
        table[:rows, columns + 1 + top] = -1
        table[top, columns] = 1
        table[rows, :columns] = 1
        table[rows, -1] = 1
        right = np.append(totals[top] - totals, removals)
        right[top] = totals[top]
        costs = -table[top]
        costs[columns] = 0
        basis = [columns + 1 + row for row in range(rows + 1)]
        basis[top] = columns
        bounds = [*self.sizes.tolist(), *[None] * (rows + 2)]
        return Tableau(table, right, costs, int(totals[top]), bounds, basis).minimum()


def _single(number: int) -> np.ndarray:
    return exact.narrow(np.array([number], object))


def _shifted(column: np.ndarray, bits: int) -> np.ndarray:
    return exact.product(column, _single(1 << bits))


def _sum(column: np.ndarray) -> int:
    """Return the exact sum of a column that is not empty."""
    return int(exact.segment_sums(column, np.array([0]))[0])


def _floats(column: np.ndarray, unit: Fraction) -> np.ndarray:
    """Return numbers in a unit, about; those beyond `_FAR` become that."""
    if column.dtype == object:
        most = int(_FAR / unit) + 1
        column = np.clip(column, -most, most)
    return np.clip(column.astype(np.float64) * float(unit), -_FAR, _FAR)


def _moved(column: np.ndarray, change: np.ndarray, shift: int, bits: int) -> np.ndarray:
    """Return a column with `shift` more bits, and a change whose unit is 2^-bits of them added."""
    rounded = np.rint(np.ldexp(np.nan_to_num(change), bits))
    if np.abs(rounded).max(initial=0) < 1 << 61:
        return exact.add(_shifted(column, shift), rounded.astype(np.int64))
    return exact.add(_shifted(column, shift), np.array([int(number) for number in rounded], object))

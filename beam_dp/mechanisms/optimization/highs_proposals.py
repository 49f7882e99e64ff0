"""Propose solutions of the program of `linear_program`, found in floating point by HiGHS.

A solution of HiGHS is rounded to integers over 2^bits, moved between its bounds, and judged exactly
by `Guess`: it may be as wrong as it likes. Everything is in units of the highest total.

*Sifting.* Few items bind and few people are worth removing. The program is solved for some of both.
Items of which more is left than of these join, and people whose price is above that of a removal
(Dantzig and Wolfe 1960; Bixby et al. 1992), until there are none. They stay for the next k.

*Refinement* (Gleixner, Steffy, Wolter 2016, "Iterative refinement for linear programming", INFORMS
J. Comput. 28). Let s be the slack of the items' constraints at a feasible r, t what is left of k,
w the weights and theta the price of a removal. The corrections of (r, m, s, t) and of (w, theta)
solve a program with the same matrix, the bounds -r, u - r, -s and so on, and the costs that w
leaves. These are known exactly; magnified by 2^zoom they are of the size of 1 again, so that
floating point finds the next digits.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.optimization.linear_program import (
    Guess,
    LinearProgram,
    shifted,
    single,
    total,
)
from beam_dp.mechanisms.optimization.scipy_loader import linprog, sparse

METHODS = ("highs-ds", "highs-ipm")
"""The methods of `scipy.optimize.linprog` that are tried, in this order."""

_OPTIONS = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
_FAR = 1e6  # bounds farther away, in magnified units, are not reached in one step
_STEP = 24  # bits of zoom that one step may add, within the tolerances above
_FIRST = 64  # items to begin with
_LARGEST = 2.0**60  # of a proposal: no better ones are larger
_SLACK = 40  # nothing joins that is beyond its bound by less than 2^-40 of the highest total


@dataclass
class Proposer:
    """Make ever better guesses for one program; earlier calls change its speed only.

    Attributes:
        program: the program.
        items: flags of the items that have joined.
        groups: flags of the groups of people that have joined.
    """

    program: LinearProgram
    items: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, program: LinearProgram, removals: int) -> Proposer:
        """Return a proposer with the first items and the people who own most of them."""
        items = np.arange(len(program.totals)) < _FIRST
        proposer = cls(program, items, np.zeros(len(program.sizes), bool))
        guess = program.guess(removals, np.zeros_like(program.sizes), items.astype(np.int64), 30)
        order = np.argsort(-guess.prices, kind="stable")
        proposer.groups[order[: 2 * removals + _FIRST]] = True
        return proposer

    def sifted(self, removals: int, method: str) -> Iterator[Guess]:
        """Yield guesses for k = `removals`, until no item and no group joins, or HiGHS fails."""
        guess = self._solved(removals, method)
        while guess is not None:
            yield guess
            guess = self._solved(removals, method) if self._widened(guess) else None

    def guesses(self, removals: int, method: str) -> Iterator[Guess]:
        """Yield the sifted guesses, then refined ones, until HiGHS gets no closer."""
        guess = None
        for guess in self.sifted(removals, method):
            yield guess
        zoom, before = (0, 0) if guess is None else (self._closeness(guess), 0)
        while guess is not None and zoom > before:
            guess = self._refined(guess, zoom, method)
            if guess is not None:
                yield guess
                zoom, before = min(zoom + _STEP, self._closeness(guess)), zoom

    def _closeness(self, guess: Guess) -> int:
        """Return how many leading bits of the highest total are certain; 0 if all are."""
        gap = guess.upper - guess.lower
        return self.program.highest.bit_length() + guess.bits - gap.bit_length() if gap else 0

    def _solved(self, removals: int, method: str) -> Guess | None:
        """Return the solution for the items and groups that have joined, or None if HiGHS fails."""
        rows, columns = np.flatnonzero(self.items), np.flatnonzero(self.groups)
        high = np.append(self.program.sizes[columns], np.inf)
        solution = linprog(
            np.append(np.zeros(len(columns)), 1.0),
            A_ub=self._constraints[np.append(rows, -1)][:, np.append(columns, -1)],
            b_ub=np.append(-self._totals[rows], removals),
            bounds=np.stack([np.zeros(len(columns) + 1), high], axis=1),
            method=method,
            options=_OPTIONS,
        )
        if not _complete(solution):
            return None
        removed, weights = np.zeros(len(self.groups)), np.zeros(len(self.items))
        removed[columns], weights[rows] = solution.x[:-1], -solution.ineqlin.marginals[:-1]
        bits = self.program.bits
        return self.program.guess(removals, _rounded(removed, bits), _rounded(weights, bits), bits)

    def _widened(self, guess: Guess) -> bool:
        """Let items and groups join whose bounds the guess violates; return whether any did."""
        slack = self.program.highest << guess.bits >> _SLACK
        known = self.program.largest(np.where(self.groups, guess.prices, 0), guess.removals)
        most, price = int(guess.left[self.items].max()), int(known[-1])
        items = _join(self.items, integers.add(guess.left, single(-most - slack)))
        return _join(self.groups, integers.add(guess.prices, single(-price - slack))) or items

    def _refined(self, guess: Guess, zoom: int, method: str) -> Guess | None:
        """Return the guess with more digits, from the magnified program of its corrections."""
        costs, bounds = self._magnified(guess, zoom)
        solution = linprog(
            costs,
            A_eq=self._equations,
            b_eq=np.zeros(len(self.items) + 1),
            bounds=bounds,
            method=method,
            options=_OPTIONS,
        )
        if not _complete(solution):
            return None
        bits, digits = self.program.bits + zoom, self.program.bits
        before = bits - guess.bits
        removed = _rounded(solution.x[: len(self.groups)], digits)
        weights = _rounded(solution.eqlin.marginals[:-1], digits)
        removed = integers.add(shifted(guess.removed, before), removed)
        weights = integers.add(shifted(guess.weights, before), weights)
        return self.program.guess(guess.removals, removed, weights, bits)

    def _magnified(self, guess: Guess, zoom: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the costs and the bounds of the corrections of (r, m, s, t)."""
        one = 1 << guess.bits
        part = Fraction(1 << zoom, one)
        row = part / self.program.highest
        top, theta = single(guess.upper), self.program.largest(guess.prices, guess.removals)[-1:]
        used, weight = single(total(guess.removed)), single(total(guess.weights))
        costs = (
            _floats(integers.add(theta, -guess.prices), row),
            _floats(integers.add(single(one), -weight), part),
            _floats(guess.weights, part),
            _floats(theta, row),
        )
        low = (
            _floats(-guess.removed, part),
            _floats(-top, row),
            _floats(integers.add(guess.left, -top), row),
            _floats(integers.add(used, single(-guess.removals * one)), part),
        )
        room = integers.add(shifted(self.program.sizes, guess.bits), -guess.removed)
        high = np.append(_floats(room, part), np.full(len(self.items) + 2, np.inf))
        return np.concatenate(costs), np.stack([np.concatenate(low), high], axis=1)

    @functools.cached_property
    def _totals(self) -> np.ndarray:
        return self.program.totals.astype(np.float64) / self.program.highest

    @functools.cached_property
    def _constraints(self) -> Any:
        """The matrix of the inequalities in (r, m): at most -C_v per item, at most k removals."""
        program = self.program
        rows, columns = len(program.totals), len(program.sizes)
        counts = program.counts.astype(np.float64) / program.highest
        values = np.concatenate([-counts, -np.ones(rows), np.ones(columns)])
        down = np.concatenate([program.items, np.arange(rows), np.full(columns, rows)])
        right = np.concatenate([program.groups, np.full(rows, columns), np.arange(columns)])
        return sparse().csr_array((values, (down, right)), shape=(rows + 1, columns + 1))

    @functools.cached_property
    def _equations(self) -> Any:
        """The matrix of the equations between r, m, s and t."""
        signs = np.append(-np.ones(len(self.items)), 1.0)
        constraints = sparse().diags_array(signs) @ self._constraints
        return sparse().csc_array(sparse().hstack([constraints, sparse().diags_array(signs)]))


def _complete(found: Any) -> bool:
    """Return whether HiGHS has solved the program and its dual."""
    return found.status == 0 and found.x is not None


def _join(flags: np.ndarray, scores: np.ndarray) -> bool:
    """Set the flags of scores above 0, and of the next highest; return whether any is above 0.

    The next highest would mostly join in the next round. At most the flags are doubled.
    """
    able = np.flatnonzero(~flags)
    above, known = int(np.count_nonzero(scores[able] > 0)), int(flags.sum())
    if above:
        order = np.argsort(-scores[able], kind="stable")
        flags[able[order[: min(known, max(above, known // 4))]]] = True
    return above > 0


def _floats(column: np.ndarray, unit: Fraction) -> np.ndarray:
    """Return a column times `unit` in floats, about, clipped at `_FAR` on both sides."""
    if column.dtype == object:
        most = int(_FAR / unit) + 1
        column = np.clip(column, -most, most)
    return np.asarray(np.clip(column.astype(np.float64) * float(unit), -_FAR, _FAR))


def _rounded(column: np.ndarray, bits: int) -> np.ndarray:
    """Return the nearest integers to a column times 2^bits."""
    whole = np.rint(np.ldexp(np.clip(np.nan_to_num(column), -_LARGEST, _LARGEST), bits))
    if np.abs(whole).max(initial=0) < 1 << 61:
        return np.asarray(whole.astype(np.int64))
    return np.array([int(number) for number in whole.tolist()], object)

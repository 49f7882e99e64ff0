"""Propose solutions of the program of `removal_program`, found in floating point by HiGHS.

A proposal may be as wrong as it likes: `removal_bounds` proves bounds from it in integers.

*Sifting.* Few people are worth removing, few rows have two of them, and few groups are near the
largest. So the program is solved for some people, groups and rows (`removal_matrix`). Groups join
of which more is left than of these, people whose load is above the price of a removal, and rows
that keep more of their value than was thought, until there are none (Dantzig and Wolfe 1960; Bixby
et al. 1992). They stay for the next k, which starts from the last basis.

*Refinement* (Gleixner, Steffy, Wolter 2016, "Iterative refinement for linear programming", INFORMS
J. Comput. 28). What a solution leaves of the bounds and of the costs is known exactly. The program
of the corrections has the same matrix; magnified, it is of the size of 1 again, so that floating
point finds the next digits.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.optimization.highs_model import HighsModel, Solution
from beam_dp.mechanisms.optimization.interior import interior_points
from beam_dp.mechanisms.optimization.removal_bounds import (
    BaseLosses,
    RemovalBounds,
    Touched,
    Weights,
)
from beam_dp.mechanisms.optimization.removal_matrix import ExactPoint, Joined, RemovalMatrix

_FIRST = 64  # groups to begin with, and people beyond those that can be removed
_SMALL = 5000  # rows of a program that HiGHS sees from the start
_SLACK = 1e-8  # what is beyond its bound by less does not join
_DIGITS = 48  # bits that are read of a float
_FAR = 1e15  # no proposal is as large
_STEP = 40  # bits that one step of a refinement adds
_STEPS = 6
_PART, _NEAR = 1e-3, 0.9  # who is removed by more, or has a larger part of the price, plays
INSIDE = -1
"""A way beside those of HiGHS: interior points."""


class Proposal(NamedTuple):
    """What HiGHS says in floats of those who have joined.

    Attributes:
        joined: whom and what HiGHS has seen.
        removed: r of each person, and a 0.
        left: the largest sum of a group.
        price: of a removal.
        groups: mu of each group.
        amounts: y of each row that has joined.
    """

    joined: Joined
    removed: np.ndarray
    left: float
    price: float
    groups: np.ndarray
    amounts: np.ndarray


class Guess(NamedTuple):
    """What HiGHS says in integers over 2^bits: r and a 0, and weights."""

    removed: np.ndarray
    weights: Weights
    bits: int


class _Cast(NamedTuple):
    """Who plays for some k, and what is left then."""

    people: np.ndarray
    left: float


@dataclass
class RemovalProposals:
    """Make proposals for one program; earlier calls change their speed only.

    Attributes:
        bounds: of the program.
        joined: whom and what HiGHS sees.
    """

    bounds: RemovalBounds
    joined: Joined
    _model: HighsModel = field(default_factory=HighsModel, repr=False)
    _fresh: bool = True
    _casts: dict[int, _Cast] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, bounds: RemovalBounds, removals: int) -> RemovalProposals:
        """Return proposals that begin with the largest groups and who has most of them."""
        groups = np.argsort(-bounds.sums, kind="stable")[:_FIRST]
        lines = bounds.lines.chosen(np.isin(bounds.lines.groups, groups))
        loads = np.bincount(lines.people, lines.amounts.astype(np.float64), bounds.program.people)
        people = np.argsort(-loads, kind="stable")[: removals + _FIRST]
        # Of a small program of rows nearly all that are shared would join, a few at a time.
        small = len(bounds.sums) == 1 and len(bounds.starts) == len(bounds.program.values) <= _SMALL
        values = bounds.program.shared if small else np.zeros(0, np.int64)
        return cls(bounds, Joined(people, groups, values, np.full(len(values), -1)))

    def guesses(self, removals: int, way: int, bits: int) -> Iterator[tuple[Guess, Proposal]]:
        """Yield guesses for k = `removals`, each closer, until HiGHS fails.

        Args:
            removals: k.
            way: how HiGHS solves it, an index of `highs_model.WAYS`.
            bits: the precision of the first guess, at most 48.
        """
        solution = None
        inside = way == INSIDE
        for solution in self._inside(removals) if inside else self._solutions(removals, way):
            proposal, cut = self._read(solution), _DIGITS - bits
            point = ExactPoint(_wide(solution.values), _wide(solution.prices), _DIGITS)
            guess = self._guess(ExactPoint(point.values >> cut, point.prices >> cut, bits))
            self._joins(proposal)
            if inside:
                self._remember(removals, proposal)
            yield guess, proposal
        if solution is None or self._fresh or inside:
            return
        matrix = self._matrix
        yield self._guess(point), proposal
        equations, size, model = matrix.equations, len(point.values), HighsModel()
        for step in range(1, _STEPS):
            limits = matrix.magnified(point, removals, step * _STEP)
            model.take(equations, limits, (len(limits.costs),), (len(point.prices),))
            more = model.solved(way)
            if more is None:
                return
            shift = step * _STEP + _DIGITS - point.bits
            values = point.values * (1 << shift) + _wide(more.values[:size])
            prices = point.prices * (1 << shift) + _wide(more.prices)
            point = ExactPoint(values, prices, point.bits + shift)
            yield self._guess(point), proposal

    def _solutions(self, removals: int, way: int) -> Iterator[Solution]:
        """Yield solutions for k until nobody and nothing has joined since, or HiGHS fails."""
        self._fresh = self._fresh or not self._model.columns
        while True:
            if self._fresh:
                matrix = self._matrix
                limits = matrix.limits(removals)
                self._model.take(matrix.matrix, limits, matrix.columns, matrix.rows)
            self._model.bound(0, -np.inf, removals)
            solution = self._model.solved(way)
            if solution is None:
                self._fresh = True
                return
            self._fresh = False
            yield solution
            if not self._fresh:
                return

    def _inside(self, removals: int) -> Iterator[Solution]:
        """Yield interior points for k, closer where nobody and nothing has joined since."""
        self._recast(removals)
        self._model, self._fresh = HighsModel(), True
        while self._fresh:
            for solution in interior_points.proposals(self._matrix, removals):
                self._fresh = False
                yield solution
                if self._fresh:
                    break

    def _recast(self, removals: int) -> None:
        """Begin with those who play for the nearest k that were solved before.

        More is left without fewer people: groups that have less from the start do not matter.
        """
        below = max((k for k in self._casts if k <= removals), default=None)
        above = min((k for k in self._casts if k >= removals), default=None)
        if above is None:
            return
        casts = [self._casts[k].people for k in (below, above) if k is not None]
        groups = np.flatnonzero(self.bounds.sums >= self._casts[above].left)
        groups = np.intersect1d(self.joined.groups, groups)
        people = functools.reduce(np.union1d, casts)
        if len(groups) and len(people):
            self.joined = self.joined._replace(people=people, groups=groups)
            self._forget()

    def _remember(self, removals: int, proposal: Proposal) -> None:
        """Note who plays for k, for others that are near."""
        near = self.loads(proposal) >= _NEAR * proposal.price
        plays = np.flatnonzero((proposal.removed[:-1] > _PART) | near)
        people = np.intersect1d(plays, proposal.joined.people)
        self._casts[removals] = _Cast(people, proposal.left)

    def _forget(self) -> None:
        for name in ("touched", "lines"):
            self.__dict__.pop(name, None)

    def _read(self, solution: Solution) -> Proposal:
        unit, joined = self.bounds.unit, self.joined
        removed = np.zeros(self.bounds.program.people + 1)
        removed[joined.people] = np.clip(solution.values[1 : 1 + len(joined.people)], 0, 1)
        price, of_groups, amounts = np.split(solution.prices, [1, 1 + len(joined.groups)])
        groups = np.zeros(len(self.bounds.sums))
        groups[joined.groups] = np.maximum(of_groups, 0)
        left = float(solution.values[0]) * unit + float(self.bounds.sums.max())
        return Proposal(
            joined, removed, left, -float(price[0]) * unit, groups, np.maximum(amounts, 0) * unit
        )

    def _guess(self, point: ExactPoint) -> Guess:
        """Return the guess of a point."""
        joined, program = self.joined, self.bounds.program
        removed = np.zeros(program.people + 1, object)
        removed[joined.people] = point.values[1 : 1 + len(joined.people)]
        _, of_groups, amounts = np.split(point.prices, [1, 1 + len(joined.groups)])
        groups = np.zeros(len(self.bounds.sums), object)
        groups[joined.groups] = of_groups
        amounts = integers.narrow(amounts * self.bounds.unit)
        weights = Weights(integers.narrow(groups), joined.values, joined.rows, amounts)
        return Guess(integers.narrow(removed), weights, point.bits)

    @functools.cached_property
    def touched(self) -> Touched:
        """The values that matter to the people who have joined."""
        flags = np.zeros(self.bounds.program.people, np.bool_)
        flags[self.joined.people] = True
        return self.bounds.touched(flags)

    @functools.cached_property
    def lines(self) -> BaseLosses:
        """The lines of the people who have joined."""
        flags = np.zeros(self.bounds.program.people, np.bool_)
        flags[self.joined.people] = True
        return self.bounds.lines.chosen(flags[self.bounds.lines.people])

    @property
    def _matrix(self) -> RemovalMatrix:
        return RemovalMatrix(self.bounds, self.joined, self.lines)

    @np.errstate(all="ignore")
    def loads(self, proposal: Proposal) -> np.ndarray:
        """Return the loads of all people, about; whatever a solver gives, nothing is warned of."""
        program, joined = self.bounds.program, proposal.joined
        lines = self.bounds.lines_of(np.flatnonzero(proposal.groups))
        amounts = lines.amounts.astype(np.float64) * proposal.groups[lines.groups]
        loads = np.zeros(program.people + 1)
        loads += np.bincount(lines.people, amounts, len(loads))
        for rows, sign in ((self.bounds.base[joined.values], -1.0), (joined.rows, 1.0)):
            owners = np.where((rows >= 0)[:, None], program.owners[rows], -1)
            np.add.at(loads, owners.ravel(), np.repeat(sign * proposal.amounts, owners.shape[1]))
        return loads[:-1]

    def _joins(self, proposal: Proposal) -> None:
        """Let those join whose bounds the proposal violates."""
        excess = self.bounds.excess(proposal.removed, self.touched, 1.0)
        groups = self._groups(proposal, excess)
        values, rows = self._rows(proposal, excess)
        people = self._people(proposal)
        old = self.joined
        self._fresh = len(groups) + len(rows) + len(people) > 0
        self.joined = Joined(
            np.append(old.people, people),
            np.append(old.groups, groups),
            np.append(old.values, values),
            np.append(old.rows, rows),
        )
        if len(people):
            self._forget()

    def _groups(self, proposal: Proposal, excess: np.ndarray) -> np.ndarray:
        """Return groups of which more is left."""
        bounds, lines, values = self.bounds, self.lines, self.touched.values
        size, left = len(bounds.sums), bounds.sums.astype(np.float64)
        taken = lines.amounts.astype(np.float64) * proposal.removed[lines.people]
        left -= np.bincount(lines.groups, taken, size)
        weights = bounds.program.weights[values].astype(np.float64)
        left += np.bincount(bounds.program.groups[values], weights * excess, size)
        left[self.joined.groups] = -np.inf
        return _largest(left, proposal.left + _SLACK * bounds.unit, len(self.joined.groups))

    def _rows(self, proposal: Proposal, excess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values that stay by more than was thought, and the row of each that says so."""
        bounds, touched, joined = self.bounds, self.touched, self.joined
        owners, removed = bounds.program.owners, proposal.removed
        known = np.zeros(len(bounds.program.weights))
        base = removed[owners[bounds.base[joined.values]]].sum(axis=1)
        there = removed[owners[joined.rows]].sum(axis=1)
        np.maximum.at(known, joined.values, np.where(joined.rows < 0, base - 1, base - there))
        seen = np.zeros(len(bounds.sums), np.bool_)
        seen[joined.groups] = True
        seen = seen[bounds.program.groups[touched.values]]
        able = np.flatnonzero(seen & (excess > known[touched.values] + _SLACK))
        if not len(able):
            return able, able
        taken = removed[owners[touched.rows]].sum(axis=1)
        least = np.minimum.reduceat(taken, touched.starts)
        lengths = np.diff(np.append(touched.starts, len(touched.rows)))
        index = _first(taken == np.repeat(least, lengths), touched.starts)
        rows = np.where(least[able] < 1, touched.rows[index[able]], -1)
        return touched.values[able], rows

    def _people(self, proposal: Proposal) -> np.ndarray:
        """Return people whose load is above the price of a removal."""
        loads = self.loads(proposal)
        loads[self.joined.people] = -np.inf
        least = proposal.price + _SLACK * max(proposal.price, self.bounds.unit * 1e-3)
        return _largest(loads, least, len(self.joined.people) // 4)


def _wide(column: np.ndarray) -> np.ndarray:
    """Return the nearest integers to a column times 2^48; 0 for what is no number."""
    finite = np.clip(np.nan_to_num(column, posinf=0.0, neginf=0.0), -_FAR, _FAR)
    rounded = np.rint(np.ldexp(finite, _DIGITS))
    return np.array([int(number) for number in rounded.tolist()], object)


def _largest(scores: np.ndarray, least: float, known: int) -> np.ndarray:
    """Return the indexes of the highest scores above `least`, at most a few more than `known`."""
    above = np.flatnonzero(scores > least)
    return above[np.argsort(-scores[above], kind="stable")[: known + _FIRST]]


def _first(flags: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return where the first flag of each segment is set."""
    index = np.where(flags, np.arange(len(flags)), len(flags))
    return np.asarray(np.minimum.reduceat(index, starts))

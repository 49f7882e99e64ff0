"""Guess solutions of the program of `removal_program` without a solver, where rows have one owner.

Let every value have one row of one owner, C_g be the sum of group g, and D_gi what it loses without
person i. Then the program is a game of r against weights mu of the groups that add up to 1,

    LP[k] = min over r of max over mu of    sum of mu_g C_g - sum of mu_g D_gi r_i,

which `numerics.matrix_game` solves about. People who are alike start alike and stay so, and groups
too: lines that are all alike are solved by the start, where the simplex method would take them one
by one.

*The start.* Of the groups with at least C rows all have the same weight, for the C of the best
lower bound; r takes everybody by the same part, or those with most rows of these groups as a whole.

*Few people play.* Whose load is far above the price of a removal is removed, and whose is far below
is not. The others play a round, which costs little, and then all loads are computed again. Who was
left out with a load near the price joins them. If that ends too far from a solution, interior
points of HiGHS find the rest.

A guess may be as wrong as it likes: `removal_bounds` proves bounds from it in integers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics.matrix_game import (
    MatrixGame,
    Sides,
    Strategies,
    largest_sum,
    shifted,
)
from beam_dp.mechanisms.optimization import scipy_loader
from beam_dp.mechanisms.optimization.highs_model import HighsModel, Limits, Matrix
from beam_dp.mechanisms.optimization.removal_bounds import RemovalBounds, Weights
from beam_dp.mechanisms.optimization.removal_proposals import Guess

_ROUNDING = math.sqrt(2) - 1
_HALVES = 20  # levels of sums that are tried, each with half of the groups of the one before
_CLOSE = 0.3  # part of the price of a removal: bounds as close as this help for other k, too
_PATIENCE, _SLOW = 6, 0.8  # after so many rounds the gap should be at most this part of what it was
_NEAR = 1.25  # who plays has at most so many times the price, which is at most as many times hers
_TURNS, _FEW, _PLAY = 2, 512, 5_000  # rounds before interior points; groups and people they take
_ROUNDS = 100
_NOTHING = Sides(-math.inf, math.inf)


class _Cast(NamedTuple):
    """Who is removed for sure, and who plays."""

    sure: np.ndarray
    plays: np.ndarray

    @classmethod
    def near(cls, loads: np.ndarray, removals: int) -> _Cast:
        """Return those above the price, and near it."""
        price = _price(loads, removals)
        sure = loads > price * _NEAR
        return cls(sure, (loads * _NEAR >= price) & ~sure)

    @property
    def size(self) -> int:
        """How many people play."""
        return int(np.count_nonzero(self.plays))

    def joined(self, other: _Cast) -> _Cast:
        """Return this with those who play in another, or are sure in one only."""
        plays = self.plays | other.plays | (self.sure != other.sure)
        return _Cast(self.sure & ~plays, plays)


@dataclass
class RemovalGame:
    """The game of the people and the groups that matter.

    Attributes:
        bounds: of the program.
        groups: the groups that matter.
        level: the sums of groups that have a weight at the start.
    """

    bounds: RemovalBounds
    groups: np.ndarray
    level: float
    _best: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, bounds: RemovalBounds, removals: int) -> RemovalGame:
        """Return the game of the groups with more rows than a level says of LP[removals]."""
        lines, sums = bounds.lines, bounds.sums.astype(np.float64)
        amounts, best = lines.amounts.astype(np.float64), (-math.inf, -math.inf)
        for level in np.unique(np.quantile(sums, 1 - 0.5 ** np.arange(_HALVES))).tolist():
            flags = sums >= level
            loads = np.bincount(lines.people, amounts * flags[lines.groups])
            low = float(sums[flags].sum()) - largest_sum(loads, removals)
            best = max(best, (low / int(np.count_nonzero(flags)), level))
        return cls(bounds, np.flatnonzero(sums >= min(best)), best[1])

    @functools.cached_property
    def _inside(self) -> np.ndarray:
        """The lines of the groups that matter."""
        flags = np.zeros(len(self.bounds.sums), np.bool_)
        flags[self.groups] = True
        return np.asarray(flags[self.bounds.lines.groups])

    @functools.cached_property
    def people(self) -> np.ndarray:
        """The people with rows of these groups."""
        flags = np.zeros(self.bounds.program.people, np.bool_)
        flags[self.bounds.lines.people[self._inside]] = True
        return np.flatnonzero(flags)

    @functools.cached_property
    def _whole(self) -> MatrixGame:
        """The game of everybody, for no k yet."""
        lines = self.bounds.lines.chosen(self._inside)
        group = np.searchsorted(self.groups, lines.groups)
        cells = group, np.searchsorted(self.people, lines.people)
        shape = len(self.groups), len(self.people)
        matrix = scipy_loader.matrix((lines.amounts.astype(np.float64), cells), shape)
        return MatrixGame(matrix, self.bounds.sums[self.groups].astype(np.float64), 0, 1)

    @functools.cached_property
    def _columns(self) -> Any:
        return self._whole.matrix.tocsc()

    def guesses(self, removals: int, bits: int, known: Sides) -> Iterator[Guess]:
        """Yield guesses for k = `removals`: the first that should prove B[k], or else the last.

        Args:
            removals: k.
            bits: the precision of a guess.
            known: bounds of LP[k].
        """
        whole, self._whole.most, gaps = self._whole, removals, [math.inf] * _PATIENCE
        best = whole.at(*self._start(removals))
        cast, decided, inside = _Cast.near(best.loads, removals), False, False
        for turn in range(_ROUNDS):
            self._best = best.removed, best.groups
            sides, close = known.within(whole.sides(best)), _CLOSE * _price(best.loads, removals)
            gaps = [*gaps[1:], sides.gap]
            done, stuck = _decide(sides) and sides.gap <= close, gaps[-1] > _SLOW * gaps[0]
            if done or stuck or (_decide(sides) and not decided):
                yield self._guess(*self._best, bits)
            if done or (stuck and inside):
                return
            decided, small = _decide(sides), len(self.groups) <= _FEW and cast.size <= _PLAY
            if stuck or (turn >= _TURNS and small):
                inside, gaps = True, gaps if inside else [math.inf] * _PATIENCE
            point, low = self._played(best, cast, None if inside else sides, close)
            near = _Cast.near(point.loads, removals)
            cast = near if whole.sides(point).low >= low - close / 2 else cast.joined(near)
            best = self._better(best, point)

    def _played(
        self, start: Strategies, cast: _Cast, known: Sides | None, close: float
    ) -> tuple[Strategies, float]:
        """Return r and mu after a round, by interior points without `known`; what would be left."""
        whole, everybody = self._whole, cast.sure.astype(np.float64)
        plays = np.flatnonzero(cast.plays)
        part = MatrixGame(
            self._columns[:, plays].tocsr(),
            whole.sums - whole.matrix @ everybody,
            whole.most - np.count_nonzero(cast.sure),
            1 / math.sqrt(max(whole.most, 1) * len(self.groups)),
        )
        solved = _solved(part) if known is None else None
        if solved is None:
            first = part.at(shifted(start.removed[plays], part.most)[0], start.groups)
            solved = part.best(first, functools.partial(_enough, known or _NOTHING, close))
        everybody[plays], groups, sides = solved
        return whole.at(everybody, groups), sides.low

    def _better(self, *points: Strategies) -> Strategies:
        """Return the r and the mu of the best bounds."""
        sides = [self._whole.sides(point) for point in points]
        by_r = points[min(range(len(points)), key=lambda index: sides[index].high)]
        by_mu = points[max(range(len(points)), key=lambda index: sides[index].low)]
        return Strategies(by_r.removed, by_mu.groups, by_mu.loads, by_r.losses)

    def _start(self, removals: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the last r and mu, for this k, or where to begin."""
        whole = self._whole
        if self._best is not None:
            return shifted(self._best[0], removals)[0], self._best[1]
        flags = whole.sums >= self.level
        weights = flags / np.count_nonzero(flags)
        loads = whole.turned @ weights
        most = np.zeros(len(self.people))
        most[np.argsort(-loads, kind="stable")[:removals]] = 1
        part = min(1.0, removals / len(self.people))
        starts = [whole.at(removed, weights) for removed in (np.full(len(most), part), most)]
        return min(starts, key=lambda point: whole.sides(point).high)[:2]

    def order(self, most: int) -> np.ndarray:
        """Return whom the last guess removes first, at most so many people."""
        if self._best is None:
            return self.people[:0]
        loads = self._whole.turned @ self._best[1]
        order = np.argsort(-loads - self._best[0], kind="stable")
        return self.people[order[:most]]

    def _guess(self, removed: np.ndarray, groups: np.ndarray, bits: int) -> Guess:
        """Return a guess in integers."""
        program, one, none = self.bounds.program, 1 << bits, np.zeros(0, np.int64)
        everybody = np.zeros(program.people + 1, np.int64)
        weights = np.zeros(len(self.bounds.sums), np.int64)
        everybody[self.people] = (removed * one).astype(np.int64)
        weights[self.groups] = (groups * one).astype(np.int64)
        return Guess(everybody, Weights(weights, none, none, none), bits)


def _price(loads: np.ndarray, removals: int) -> float:
    """Return the load of the last one that is removed."""
    if removals >= len(loads):
        return 0.0
    return float(np.partition(loads, len(loads) - removals - 1)[len(loads) - removals - 1])


def _enough(known: Sides, close: float, sides: Sides) -> bool:
    """Return whether bounds decide, with what is known, and are close."""
    both = known.within(sides)
    return _decide(both) and both.gap <= close


def _decide(sides: Sides) -> bool:
    """Return whether B[k] is the same for both bounds."""
    return math.ceil(sides.low - _ROUNDING) >= math.ceil(sides.high - _ROUNDING)


def _solved(game: MatrixGame) -> tuple[np.ndarray, np.ndarray, Sides] | None:
    """Return r, mu and their bounds as HiGHS finds them, of m + D r >= C and sum r <= most."""
    groups, people = game.matrix.shape
    sparse, model = scipy_loader.sparse(), HighsModel()
    entries = sparse.bmat([
        [None, np.ones((1, people))], [np.ones((groups, 1)), game.matrix]
    ]).tocsc()  # fmt: skip
    top, none = float(game.sums.max()), np.zeros(people)
    limits = Limits(
        np.append(1.0, none), np.append(-np.inf, none), np.append(top, none + 1),
        np.append(-np.inf, game.sums), np.append(game.most, np.full(groups, np.inf)),
    )  # fmt: skip
    matrix = Matrix(entries.indptr, entries.indices, entries.data)
    model.take(matrix, limits, (1, people), (1, groups))
    solution = model.inside()
    if solution is None:
        return None
    prices = np.maximum(solution.prices[1:], 0)
    point = game.at(np.clip(solution.values[1:], 0, 1), prices / max(float(prices.sum()), 1e-9))
    return point.removed, point.groups, game.sides(point)

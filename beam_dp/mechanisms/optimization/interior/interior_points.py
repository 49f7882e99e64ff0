"""Interior points of a removal program, feasible from the first to the last one.

The predictor and corrector of Mehrotra (1992, "On the implementation of a primal-dual interior
point method", SIAM J. Optim. 2). A point that is feasible on both sides is known from the start, so
that the sum of all products is how far its bounds are apart, and each point is a guess by itself.
Where floats end, so do the steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from beam_dp.mechanisms.optimization import scipy_loader
from beam_dp.mechanisms.optimization.highs_model import Solution
from beam_dp.mechanisms.optimization.interior.newton_system import (
    InteriorPoint,
    InteriorProgram,
    NewtonSystem,
)
from beam_dp.mechanisms.optimization.removal_matrix import RemovalMatrix

_CLOSE = (1e-3, 1e-4, 1e-6, 1e-9)  # gaps in parts of the largest loss of a group
_STALLS = 10  # steps that may leave more than this part of the gap
_APART, _CENTRED = 1e-3, 0.3
_SHORT = 0.995  # part of the way to the nearest bound
_STUCK = 0.9


def proposals(matrix: RemovalMatrix, removals: int) -> Iterator[Solution]:
    """Yield points of who and what has joined, each closer to a solution; e is left out.

    Args:
        matrix: of them.
        removals: k, at least 1.
    """
    program, rows = _program(matrix, removals)
    for point in points(program, _CLOSE):
        yield _solution(matrix, program, point, rows)


@np.errstate(all="ignore")
def _solution(
    matrix: RemovalMatrix, program: InteriorProgram, point: InteriorPoint, rows: np.ndarray
) -> Solution:
    left = program.sums - program.losses @ point.removed + program.weights @ point.excess
    of_rows = np.zeros(matrix.rows[2])
    of_rows[rows] = point.of_rows
    return Solution(
        np.concatenate([[left.max()], point.removed, np.zeros(matrix.columns[2])]),
        np.concatenate([-point.of_spare, point.of_groups, of_rows]),
    )


def _program(matrix: RemovalMatrix, removals: int) -> tuple[InteriorProgram, np.ndarray]:
    """Return the program in blocks, and which rows of values of its groups it has."""
    shape = sum(matrix.rows), sum(matrix.columns)
    starts, entries, numbers = matrix.matrix
    whole = scipy_loader.sparse().csc_matrix((numbers, entries, starts), shape=shape)
    groups, people = 1 + matrix.rows[1], 1 + matrix.columns[1]
    least, top, below = matrix.limits(removals).least, whole[1:groups], whole[groups:].tocsr()
    weights, picks = -top[:, people:], below[:, people:]
    values = np.flatnonzero(np.diff(weights.indptr))
    rows = np.flatnonzero(picks @ np.diff(weights.indptr))
    return InteriorProgram(
        losses=top[:, 1:people].tocsr(),
        weights=weights[:, values].tocsr(),
        picks=picks[rows][:, values],
        owners=below[rows, 1:people],
        sums=least[1:groups],
        least=least[groups:][rows],
        removals=float(removals),
    ), rows


def points(program: InteriorProgram, gaps: Sequence[float]) -> Iterator[InteriorPoint]:
    """Yield feasible points whose bounds are at most so far apart, or the closest in the end.

    Args:
        program: with k above 0.
        gaps: falling.
    """
    point, stalls = start(program), 0
    for close in gaps:
        while point.gap > close and stalls < _STALLS:
            after = _next(program, point)
            if after is None or not math.isfinite(after.gap):
                yield point
                return
            stalls += after.gap > _STUCK * point.gap
            point = after
        yield point


def _next(program: InteriorProgram, point: InteriorPoint) -> InteriorPoint | None:
    """Return the next point; None where floats end."""
    try:
        with np.errstate(all="ignore"):
            return _moved(point, _step(program, point), _SHORT)
    except scipy_loader.dense().LinAlgError:
        return None


def start(program: InteriorProgram) -> InteriorPoint:
    """Return a point in the middle: everybody is removed by the same part."""
    groups, people = program.losses.shape
    part = program.removals / (people + program.removals)
    removed = np.full(people, part)
    room = program.owners @ removed - program.least
    needed = np.zeros(program.picks.shape[1])
    np.maximum.at(needed, program.picks.indices, -room)
    excess = needed + part
    left = program.sums - program.losses @ removed + program.weights @ excess
    unit = max(float(np.abs(program.losses.data).max(initial=0)), 1e-9)
    top = float(left.max()) + unit
    of_groups = np.full(groups, 1 / groups)
    each = program.weights.T @ of_groups / (1 + program.picks.T @ np.ones(len(room)))
    of_rows = program.picks @ each
    loads = program.losses.T @ of_groups + program.owners.T @ of_rows
    rank = max(0, people - 1 - int(program.removals))
    price = max(float(np.partition(loads, rank)[rank]), 1e-3 * unit / groups)
    over = np.maximum(loads - price, 0) + price
    return InteriorPoint(
        spare=np.array([program.removals - removed.sum()]),
        groups=top - left,
        rows=room + program.picks @ excess,
        excess=excess,
        removed=removed,
        kept=1 - removed,
        of_spare=np.array([price]),
        of_groups=of_groups,
        of_rows=of_rows,
        of_excess=each,
        of_removed=over - loads + price,
        of_kept=over,
    )


def _step(program: InteriorProgram, point: InteriorPoint) -> InteriorPoint:
    """Return the change of a step."""
    system = NewtonSystem(program, point)
    pairs = list(zip(point.numbers, point.multipliers, strict=True))
    products = tuple(-one * other for one, other in pairs)
    first = system.step(products)
    ahead = _moved(point, first, 1.0).gap
    mean = point.gap / point.size
    # Where one product is far below the others, they are made more alike.
    apart = min(float((one * other).min(initial=mean)) for one, other in pairs) < _APART * mean
    target = max((ahead / point.gap) ** 3, _CENTRED if apart else 0.0) * mean
    both = zip(first.numbers, first.multipliers, strict=True)
    second = tuple(
        product + target - one * other for product, (one, other) in zip(products, both, strict=True)
    )
    return system.step(second)


def _moved(point: InteriorPoint, change: InteriorPoint, short: float) -> InteriorPoint:
    """Return the point after a part of the longest step of either side."""
    sides = (point.numbers, change.numbers), (point.multipliers, change.multipliers)
    parts: list[np.ndarray] = []
    for ones, changes in sides:
        part = min(1.0, short * _longest(ones, changes))
        parts += [one + part * by for one, by in zip(ones, changes, strict=True)]
    return InteriorPoint(*parts)


def _longest(ones: tuple[np.ndarray, ...], changes: tuple[np.ndarray, ...]) -> float:
    """Return the longest step, 2 at most, after which no number is below 0."""
    longest = 2.0
    for one, by in zip(ones, changes, strict=True):
        falls = by < 0
        if falls.any():
            longest = min(longest, float((-one[falls] / by[falls]).min()))
    return longest

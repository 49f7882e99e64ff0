"""The Newton step of interior points for a removal program, solved for the people alone.

The program is that of `removal_matrix`, in floats: minimise m with

    sum r <= k,    s = m + D r - W e - C >= 0,    f = P e + F r - b >= 0,    e >= 0,    0 <= r <= 1.

P has one 1 in each row, W has one entry in each column. With multipliers h for the sum, mu, y, x,
p and q for the others, in this order, the dual one is

    sum mu = 1,    P'y + x = W'mu,    D'mu + F'y + p - q = h,    all of them >= 0.

A step changes all of them so that they stay feasible and each product of a number and its
multiplier becomes a given one, up to the product of both changes. Let S = mu / s, Y = y / f,
d = P'Y + x / e, all of them diagonal. What changes e and y follows from what changes r and mu, and
what changes mu from what changes r and m. What is left is a system of the people,

    [ A'TA + F'YF - G'G / d + p / r + q / (1 - r) ] dr + (a border for m and for h) = a right side,

with G = P'YF, A = D + W G / d, and 1 / T = 1 / S + W W' / d, diagonal as e has one group. It is
symmetric and positive, and dense: an entry for each pair of people. So a step costs time for
the cube of the number of people, and rows, values and groups cost no more than a pass each.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.optimization import scipy_loader


class InteriorPoint(NamedTuple):
    """Numbers and multipliers, or changes of them.

    Attributes:
        spare: k less the sum of r.
        groups: s.
        rows: f.
        excess: e.
        removed: r.
        kept: 1 - r.
        of_spare: h.
        of_groups: mu.
        of_rows: y.
        of_excess: x.
        of_removed: p.
        of_kept: q.
    """

    spare: np.ndarray
    groups: np.ndarray
    rows: np.ndarray
    excess: np.ndarray
    removed: np.ndarray
    kept: np.ndarray
    of_spare: np.ndarray
    of_groups: np.ndarray
    of_rows: np.ndarray
    of_excess: np.ndarray
    of_removed: np.ndarray
    of_kept: np.ndarray

    @property
    def numbers(self) -> tuple[np.ndarray, ...]:
        """The numbers, without their multipliers."""
        return self[:6]

    @property
    def multipliers(self) -> tuple[np.ndarray, ...]:
        """The multipliers, in the same order."""
        return self[6:]

    @property
    def gap(self) -> float:
        """The sum of all products: how far the bounds of a feasible point are apart."""
        return sum(
            float(one @ other) for one, other in zip(self.numbers, self.multipliers, strict=True)
        )

    @property
    def size(self) -> int:
        """How many products there are."""
        return sum(len(part) for part in self.numbers)


@dataclass(frozen=True)
class InteriorProgram:
    """The program.

    Attributes:
        losses: D, groups by people, sparse.
        weights: W, groups by values, sparse.
        picks: P, rows by values, sparse.
        owners: F, rows by people, sparse.
        sums: C.
        least: b.
        removals: k.
    """

    losses: Any
    weights: Any
    picks: Any
    owners: Any
    sums: np.ndarray
    least: np.ndarray
    removals: float

    @functools.cached_property
    def squares(self) -> Any:
        """The squares of the entries of W."""
        return self.weights.multiply(self.weights).tocsr()


class NewtonSystem:
    """The system at a point, factorised."""

    def __init__(self, program: InteriorProgram, point: InteriorPoint) -> None:
        """Eliminate all but the people, m and h."""
        self.program, self.point = program, point
        rates = [other / one for one, other in zip(point.numbers, point.multipliers, strict=True)]
        self.of_spare, self.of_groups, self.of_rows, self.of_excess = rates[:4]
        self.of_people = rates[4] + rates[5]
        scaled = _rows_times(program.owners, self.of_rows)
        self.joint = (program.picks.T @ scaled).tocsr()
        self.bound = program.picks.T @ self.of_rows + self.of_excess
        self.eased = _rows_times(self.joint, 1 / self.bound)
        self.losses = (program.losses + program.weights @ self.eased).tocsr()
        self.rate = 1 / (1 / self.of_groups + program.squares @ (1 / self.bound))
        system: Any = self.losses.T @ _rows_times(self.losses, self.rate)
        system = system + program.owners.T @ scaled - self.joint.T @ self.eased
        dense = np.asarray(system.todense())
        dense[np.diag_indices_from(dense)] += self.of_people
        dense += float(self.of_spare[0])
        self.factor = scipy_loader.dense().cho_factor(
            dense, lower=True, overwrite_a=True, check_finite=False
        )
        self.border = self.losses.T @ self.rate
        self.answer = self._solved(self.border)

    def _solved(self, right: np.ndarray) -> np.ndarray:
        solved = scipy_loader.dense().cho_solve(self.factor, right, check_finite=False)
        return np.asarray(solved)

    def step(self, products: tuple[np.ndarray, ...]) -> InteriorPoint:
        """Return the change of a point.

        Args:
            products: for each number what is to be added to its product with its multiplier.
        """
        program = self.program
        # A multiplier changes by `wanted` less its rate times the change of its number.
        wanted = [part / one for part, one in zip(products, self.point.numbers, strict=True)]
        # x + P'y = W'mu: d de = P'wanted_y + wanted_x - W'dmu - G dr.
        fixed = program.picks.T @ wanted[2] + wanted[3]
        ahead = wanted[1] / self.of_groups + program.weights @ (fixed / self.bound)
        right = self.losses.T @ (self.rate * ahead)
        right += program.owners.T @ wanted[2] - self.joint.T @ (fixed / self.bound)
        right += wanted[4] - wanted[5] - wanted[0][0]
        # The change of m is such that mu adds up to 1 still.
        plain = self._solved(right)
        most = float((self.rate * ahead).sum() - self.border @ plain)
        top = most / float(self.rate.sum() - self.border @ self.answer)
        removed = plain - top * self.answer
        return self._whole(removed, top, wanted, fixed, ahead)

    def _whole(
        self,
        removed: np.ndarray,
        top: float,
        wanted: list[np.ndarray],
        fixed: np.ndarray,
        ahead: np.ndarray,
    ) -> InteriorPoint:
        """Return all changes from those of r and m."""
        program = self.program
        of_groups = self.rate * (ahead - top - self.losses @ removed)
        excess = fixed - program.weights.T @ of_groups - self.joint @ removed
        excess = excess / self.bound
        groups = top + program.losses @ removed - program.weights @ excess
        rows = program.picks @ excess + program.owners @ removed
        spare = np.array([-removed.sum()])
        return InteriorPoint(
            spare=spare,
            groups=groups,
            rows=rows,
            excess=excess,
            removed=removed,
            kept=-removed,
            of_spare=wanted[0] - self.of_spare * spare,
            of_groups=of_groups,
            of_rows=wanted[2] - self.of_rows * rows,
            of_excess=wanted[3] - self.of_excess * excess,
            of_removed=wanted[4] - self.point.of_removed / self.point.removed * removed,
            of_kept=wanted[5] + self.point.of_kept / self.point.kept * removed,
        )


def _rows_times(matrix: Any, factors: np.ndarray) -> Any:
    """Return a sparse matrix with each row times its factor."""
    product = matrix.tocsr(copy=True)
    product.data *= np.repeat(factors, np.diff(product.indptr))
    return product

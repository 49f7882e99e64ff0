"""Solve a linear program exactly, by the simplex method in integers: slow, and never wrong."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass
class Tableau:
    """A linear program, solved for a feasible basis: x_basis + rows x = right, 0 <= x <= bounds.

    All numbers are Python integers over the one denominator `scale`, which is the determinant of
    the basis (Edmonds 1967; Bareiss 1968): the division in `_pivot` leaves no remainder.

    A variable that leaves at its bound gives way to its complement, bound - x. This is the simplex
    method for the program in which every x_j + y_j = bound_j is a row of its own, with x_j and y_j
    side by side in the order of variables: of each pair one at most is out of the basis. Therefore
    Bland's rule (1977), the first variable that may enter and the first of those that must leave,
    ends here as it does there.

    Attributes:
        rows: object array; the columns of the basis are unit vectors times the scale.
        right: the values of the basis, between 0 and its bounds.
        costs: what one unit of each variable adds to the objective, 0 for the basis.
        value: the objective, to be minimised.
        bounds: the upper bound of each variable, not scaled; None: no bound.
        basis: the variable of each row.
        scale: the denominator of rows, right, costs and value.
    """

    rows: np.ndarray
    right: np.ndarray
    costs: np.ndarray
    value: int
    bounds: list[int | None]
    basis: list[int]
    scale: int = 1

    def minimum(self) -> Fraction:
        """Return the least value of the objective, which must not be unbounded."""
        while True:
            negative = np.flatnonzero(self.costs < 0)
            if not len(negative):
                return Fraction(self.value, self.scale)
            self._enter(int(negative[0]))

    def _enter(self, variable: int) -> None:
        """Let a variable grow until it or a variable of the basis reaches a bound."""
        limits = self._limits(variable)
        room, rate, first, row = limits[0]
        for limit in limits[1:]:
            gap = limit[0] * rate - room * limit[1]
            if gap < 0 or (gap == 0 and limit[2] < first):
                room, rate, first, row = limit
        if row < 0:
            self._mirror(variable)
            return
        if self.rows[row, variable] < 0:
            self._mirror_basic(row, first)
        self._pivot(row, variable)

    def _limits(self, variable: int) -> list[tuple[int, int, int, int]]:
        """Return all limits of its growth: (room, rate, limiting variable, its row or -1)."""
        own, limits = self.bounds[variable], []
        if own is not None:
            limits.append((own, 1, variable, -1))
        column, right = self.rows[:, variable].tolist(), self.right.tolist()
        for row, rate in enumerate(column):
            first = self.basis[row]
            bound = self.bounds[first]
            if rate > 0:
                limits.append((right[row], rate, first, row))
            elif rate < 0 and bound is not None:
                limits.append((bound * self.scale - right[row], -rate, first, row))
        return limits

    def _mirror(self, variable: int) -> None:
        """Replace a variable out of the basis, now at its bound, by its complement, which is 0."""
        bound = self.bounds[variable] or 0
        self.right = self.right - self.rows[:, variable] * bound
        self.value += self.costs[variable] * bound
        self.rows[:, variable] = -self.rows[:, variable]
        self.costs[variable] = -self.costs[variable]

    def _mirror_basic(self, row: int, variable: int) -> None:
        """Replace a variable of the basis by its complement."""
        self.right[row] = (self.bounds[variable] or 0) * self.scale - self.right[row]
        self.rows[row] = -self.rows[row]
        self.rows[row, variable] = self.scale

    def _pivot(self, row: int, variable: int) -> None:
        pivot, line, right = self.rows[row, variable], self.rows[row].copy(), self.right[row]
        cost, column = self.costs[variable], self.rows[:, variable].copy()
        column[row] = 0
        rows = (self.rows * pivot - np.outer(column, line)) // self.scale
        values = (self.right * pivot - column * right) // self.scale
        rows[row], values[row] = line, right
        self.rows, self.right = rows, values
        self.costs = (self.costs * pivot - line * cost) // self.scale
        self.value = (self.value * pivot + cost * right) // self.scale
        self.basis[row], self.scale = variable, pivot

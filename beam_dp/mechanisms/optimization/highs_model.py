"""One linear program in HiGHS that grows, and is solved again from where it was solved before.

Floating point only proposes here: what becomes of a solution is proved elsewhere, in integers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

TOLERANCE = 1e-9
WAYS: tuple[dict[str, Any], ...] = (
    {"solver": "simplex", "presolve": "off"},
    {"solver": "simplex", "presolve": "on"},
    {"solver": "ipm", "presolve": "on"},
)
"""Options of HiGHS that are tried in this order; only the first one starts from the last basis."""
_INSIDE = {"solver": "ipx", "presolve": "off", "run_crossover": "off"}
_PIVOTS = 1_000_000  # of one solution, after which the next way is tried: nothing depends on time


class Matrix(NamedTuple):
    """The entries of a matrix by column, as HiGHS takes them."""

    starts: np.ndarray
    rows: np.ndarray
    numbers: np.ndarray


class Limits(NamedTuple):
    """The costs and bounds of the columns, and the bounds of the rows."""

    costs: np.ndarray
    low: np.ndarray
    high: np.ndarray
    least: np.ndarray
    most: np.ndarray


class Solution(NamedTuple):
    """The values of the columns, and the prices of the rows: what a unit more of a bound costs."""

    values: np.ndarray
    prices: np.ndarray


@functools.cache
def highs() -> Any:
    """Return `highspy`, which takes a quarter of a second to load, and is not always needed."""
    import highspy

    return highspy


@dataclass
class HighsModel:
    """A program whose columns and rows stand in blocks, each of which may grow at its end.

    Attributes:
        columns: the length of each block of columns in the last program.
        rows: the same for rows.
    """

    columns: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    _solver: Any = field(default=None, repr=False)
    _basis: tuple[list[Any], list[Any]] | None = field(default=None, repr=False)

    def take(
        self, matrix: Matrix, limits: Limits, columns: tuple[int, ...], rows: tuple[int, ...]
    ) -> None:
        """Take a program in place of the last one, of which it keeps the basis.

        Args:
            matrix: of the program.
            limits: of the program.
            columns: the lengths of the blocks of columns, none of them shorter than before.
            rows: the same for rows.
        """
        library = highs()
        program = library.HighsLp()
        program.num_col_, program.num_row_ = len(limits.costs), len(limits.least)
        program.col_cost_, program.col_lower_, program.col_upper_ = limits[:3]
        program.row_lower_, program.row_upper_ = limits[3:]
        program.a_matrix_.format_ = library.MatrixFormat.kColwise
        program.a_matrix_.start_, program.a_matrix_.index_ = matrix.starts, matrix.rows
        program.a_matrix_.value_ = matrix.numbers
        self._solver = self._solver or _quiet()
        self._solver.passModel(program)
        if self._basis is not None:
            self._start(columns, rows)
        self.columns, self.rows = columns, rows

    def _start(self, columns: tuple[int, ...], rows: tuple[int, ...]) -> None:
        """Start from the last basis: new columns at their lower bounds, new rows basic."""
        status, (known, slack) = highs().HighsBasisStatus, self._basis or ([], [])
        basis = highs().HighsBasis()
        basis.col_status = _grown(known, self.columns, columns, status.kLower)
        basis.row_status = _grown(slack, self.rows, rows, status.kBasic)
        basis.valid = True
        self._solver.setBasis(basis)

    def bound(self, row: int, least: float, most: float) -> None:
        """Change the bounds of one row."""
        self._solver.changeRowBounds(row, least, most)

    def solved(self, way: int) -> Solution | None:
        """Return the solution, or None if HiGHS finds none this way, an index of `WAYS`."""
        return self._run(WAYS[way])

    def inside(self) -> Solution | None:
        """Return a point close to a solution, by interior points and no simplex method, or None."""
        return self._run(_INSIDE)

    def _run(self, options: dict[str, Any]) -> Solution | None:
        for name, option in options.items():
            self._solver.setOptionValue(name, option)
        self._solver.run()
        done = self._solver.getModelStatus() == highs().HighsModelStatus.kOptimal
        solution = self._solver.getSolution()
        if not (done and solution.value_valid and solution.dual_valid):
            self._basis = None
            self._solver.clearSolver()
            return None
        basis = self._solver.getBasis()
        self._basis = (list(basis.col_status), list(basis.row_status)) if basis.valid else None
        return Solution(np.array(solution.col_value), np.array(solution.row_dual))


def _quiet() -> Any:
    """Return a solver that writes nothing and uses one thread."""
    solver = highs().Highs()
    for name, option in {
        "output_flag": False,
        "threads": 1,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        "simplex_iteration_limit": _PIVOTS,
    }.items():
        solver.setOptionValue(name, option)
    return solver


def _grown(
    known: list[Any], before: tuple[int, ...], after: tuple[int, ...], fresh: Any
) -> list[Any]:
    """Return the states of blocks that have grown, `fresh` for what is new."""
    states: list[Any] = []
    start = 0
    for old, new in zip(before, after, strict=True):
        states += known[start : start + old] + [fresh] * (new - old)
        start += old
    return states

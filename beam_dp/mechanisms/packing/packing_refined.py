"""Solutions of linear programs by HiGHS, each closer than the last.

HiGHS proposes in floats. What is missing of its solution is a program of the same form again, with
what is left of every bound, and of every price, as its numbers: exact integers, multiplied by a
scale until floats see them. Its solution, divided by the scale, is added, and so on (iterative
refinement: Gleixner, Steffy, Wolter, "Iterative refinement for linear programming", 2016). Where
HiGHS ends with the best vertex, a round adds some 30 bits and takes no pivot. Nothing depends on
time: each round ends after so many pivots or steps.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "ipm_iteration_limit": 200,
}
SOLVERS = "simplex", "ipx"
"""They are asked in turn, until one finds the best: with twice the pivots in each turn."""
_PIVOTS, _MOST = 200_000, (1 << 31) - 1
_MORE = 30  # bits that a round adds
_FLOATS = 52  # bits of a float
_FAR = 2.0**33  # what is further is no solution: it would take many rounds to take it back


class Matrix(NamedTuple):
    """What the columns of a program need of its lines.

    Attributes:
        columns: the column of each entry, rising.
        lines: its line.
        numbers: the entry, times the divisor: an integer, as an object.
        divisor: at least 1.
    """

    columns: np.ndarray
    lines: np.ndarray
    numbers: np.ndarray
    divisor: int


class LinearProgram(Protocol):
    """max { gains x : matrix x <= rooms, 0 <= x <= most }; numbers are integers over 2^bits."""

    @property
    def matrix(self) -> Matrix:
        """What the columns need of the lines."""

    def gains(self, bits: int) -> np.ndarray:
        """Return what each column brings."""

    def rooms(self, bits: int) -> np.ndarray:
        """Return what each line has."""

    def most(self, bits: int) -> np.ndarray | None:
        """Return the most of each column; None: no limit."""


class Solution(NamedTuple):
    """A guess at the best: integers over 2^bits.

    Attributes:
        columns: x.
        prices: the price of each line.
        bits: the precision.
    """

    columns: np.ndarray
    prices: np.ndarray
    bits: int


@functools.cache
def highs() -> Any:
    """Return `highspy`, which takes a quarter of a second to load, and is not always needed."""
    import highspy

    return highspy


def solutions(program: LinearProgram, solvers: Sequence[str] | None = None) -> Iterator[Solution]:
    """Yield guesses that come as close to the best as one likes.

    Args:
        program: what is asked.
        solvers: who is asked for the first of them; None: the same as for others.
    """
    refined, asked, order = _Refined(program), 0, solvers or SOLVERS
    while True:
        turn, solver = divmod(asked, len(order))
        best = refined.round(order[solver], min(_PIVOTS << turn, _MOST))
        yield Solution(refined.columns, refined.prices, refined.bits)
        refined.scale += _MORE if best else 0
        asked, order = (0, SOLVERS) if best else (asked + 1, order)


class _Refined:
    """A solution in integers over 2^bits, and the program of what is missing.

    What is missing has a column for what is left to each line too, as each has a price by now.

    Attributes:
        columns: x.
        spare: what is left to each line.
        prices: the price of each line.
        scale: the numbers of the next program are multiplied by 2^scale.
        bits: the precision.
    """

    def __init__(self, program: LinearProgram) -> None:
        self._program, self._matrix = program, program.matrix
        self.columns = np.zeros(len(program.gains(0)), object)
        self.prices = np.zeros(len(program.rooms(0)), object)
        self.spare = np.zeros(0, object)
        self.scale, self.bits = 0, _FLOATS
        self._basis: Any = None

    def round(self, solver: str, pivots: int) -> bool:
        """Add a solution of what is missing; return whether HiGHS holds it to be the best."""
        more = self.scale + _FLOATS - self.bits
        self.columns, self.spare, self.prices = (
            numbers << more for numbers in (self.columns, self.spare, self.prices)
        )
        self.bits += more
        asked = highs().Highs()
        options = {**_OPTIONS, "solver": solver, "simplex_iteration_limit": pivots}
        for name, option in options.items():
            asked.setOptionValue(name, option)
        asked.passModel(self._missing())
        if self._basis is not None:
            asked.setBasis(self._basis)
        asked.run()
        found = asked.getSolution()
        numbers = np.abs(np.append(found.col_value, found.row_dual))
        if found.value_valid and found.dual_valid and bool((numbers <= _FAR).all()):
            size, columns = len(self.columns), _whole(found.col_value)
            self.columns = self.columns + columns[:size]
            self.prices = self.prices - _whole(found.row_dual)
            known, self._basis = len(columns) > size, asked.getBasis()
            if known:
                self.spare = self.spare + columns[size:]
            else:
                self._add_spare()
        return bool(asked.getModelStatus() == highs().HighsModelStatus.kOptimal)

    def _add_spare(self) -> None:
        """Make a column of what is left to each line, where the basis had the line itself."""
        self.spare = np.maximum(self._left(), 0)
        basis, status = self._basis, highs().HighsBasisStatus
        spare = [
            status.kBasic if line == status.kBasic else status.kLower for line in basis.row_status
        ]
        basis.col_status = [*basis.col_status, *spare]
        basis.row_status = [status.kLower] * len(self.prices)

    def _left(self) -> np.ndarray:
        """Return what the columns leave to each line."""
        columns, lines, numbers, divisor = self._matrix
        needed = summed(lines, numbers * self.columns[columns], len(self.prices))
        return np.asarray(self._program.rooms(self.bits) - needed // divisor)

    def _missing(self) -> Any:
        """Return the program of what is missing, for HiGHS."""
        columns, lines, numbers, divisor = self._matrix
        size, line_count, spare = len(self.columns), len(self.prices), len(self.spare)
        paid = summed(columns, numbers * self.prices[lines], size) // divisor
        costs = np.append(paid - self._program.gains(self.bits), self.prices[:spare])
        limit, most = self._program.most(self.bits), np.full(size + spare, np.inf)
        if limit is not None:
            most[:size] = self._seen(limit - self.columns)
        left = self._left()
        program = highs().HighsLp()
        program.num_col_, program.num_row_ = size + spare, line_count
        program.col_cost_, program.col_upper_ = self._seen(costs), most
        program.col_lower_ = self._seen(-np.append(self.columns, self.spare))
        program.row_upper_ = self._seen(left - self.spare if spare else left)
        program.row_lower_ = program.row_upper_ if spare else np.full(line_count, -np.inf)
        counts = np.append(np.bincount(columns, minlength=size), np.ones(spare, np.int64))
        entries = (numbers / divisor).astype(np.float64)
        matrix = program.a_matrix_
        matrix.format_ = highs().MatrixFormat.kColwise
        matrix.start_ = np.append(0, np.cumsum(counts)).astype(np.int32)
        matrix.index_ = np.append(lines, np.arange(spare)).astype(np.int32)
        matrix.value_ = np.append(entries, np.ones(spare))
        return program

    def _seen(self, numbers: np.ndarray) -> np.ndarray:
        """Return integers over 2^bits, times the scale, as floats."""
        return np.ldexp(numbers.astype(np.float64), self.scale - self.bits)


def summed(indexes: np.ndarray, column: np.ndarray, size: int) -> np.ndarray:
    """Return the sums of integers of any size by index, 0 to before `size`."""
    sums = np.zeros(size, object)
    np.add.at(sums, indexes, column)
    return sums


def _whole(numbers: Sequence[float]) -> np.ndarray:
    """Return what floats of the scaled program are in integers over 2^bits."""
    scaled = np.rint(np.ldexp(np.array(numbers), _FLOATS))
    return np.array([int(number) for number in scaled.tolist()], object)

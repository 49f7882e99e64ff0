"""Solutions of packing programs by HiGHS, each closer than the last.

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
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.packing.packing_program import Packing

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


class Solution(NamedTuple):
    """A guess at the best: integers over 2^bits.

    Attributes:
        columns: x.
        prices: y.
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


def solutions(program: Packing) -> Iterator[Solution]:
    """Yield guesses that come as close to the best as one likes.

    The first one is by "ipx", which is quick where many values are nearly equal.
    """
    refined, asked = _Refined(program.wide), 1
    while True:
        turn, solver = divmod(asked, len(SOLVERS))
        best = refined.round(SOLVERS[solver], min(_PIVOTS << turn, _MOST))
        yield Solution(refined.columns, refined.prices, refined.bits)
        refined.scale += _MORE if best else 0
        asked = 0 if best else asked + 1


class _Refined:
    """A solution in integers over 2^bits, and the program of what is missing.

    What is left to each line is a column too.

    Attributes:
        columns: x.
        spare: what is left to each line.
        prices: the price of each line.
        scale: the numbers of the next program are multiplied by 2^scale.
        bits: the precision.
    """

    def __init__(self, program: Packing) -> None:
        self._program = program
        self.columns = np.zeros(len(program.gains), object)
        self.spare, self.prices = (np.zeros(len(program.rooms), object) for _ in range(2))
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
        found, program, size = asked.getSolution(), self._program, len(self.columns)
        numbers = np.abs(np.append(found.col_value, found.row_dual))
        if found.value_valid and found.dual_valid and bool((numbers <= _FAR).all()):
            columns = _whole(found.col_value)
            self.columns = self.columns + columns[:size] * program.column_sizes
            self.spare = self.spare + columns[size:] * program.line_sizes
            prices = _whole(found.row_dual) * program.price.numerator
            self.prices = self.prices - prices // program.line_sizes
            self._basis = asked.getBasis()
        return bool(asked.getModelStatus() == highs().HighsModelStatus.kOptimal)

    def _missing(self) -> Any:
        """Return the program of what is missing, for HiGHS."""
        asked, size, line_count = self._program, len(self.columns), len(self.prices)
        columns, lines = asked.column_sizes.astype(float), asked.line_sizes.astype(float)
        gains = self._seen(asked.gains * (1 << self.bits) - asked.paid(self.prices))
        most = np.full(size, np.inf)
        if not asked.blocks:
            most = self._seen(asked.most * (1 << self.bits) - self.columns) / columns
        left = asked.rooms * (1 << self.bits) - asked.needed(self.columns) - self.spare
        sizes = np.append(columns, lines)
        program = highs().HighsLp()
        program.num_col_, program.num_row_ = size + line_count, line_count
        costs = np.append(-gains, self._seen(self.prices))
        program.col_cost_ = costs * sizes / asked.price.numerator
        program.col_lower_ = -self._seen(np.append(self.columns, self.spare)) / sizes
        program.col_upper_ = np.append(most, np.full(line_count, np.inf))
        program.row_lower_ = program.row_upper_ = self._seen(left) / lines
        order = np.argsort(asked.columns, kind="stable")
        counts = np.append(np.bincount(asked.columns, minlength=size), np.ones(line_count, int))
        numbers = asked.numbers.astype(float) * columns[asked.columns] / lines[asked.lines]
        matrix = program.a_matrix_
        matrix.format_ = highs().MatrixFormat.kColwise
        matrix.start_ = np.append(0, np.cumsum(counts)).astype(np.int32)
        matrix.index_ = np.append(asked.lines[order], np.arange(line_count)).astype(np.int32)
        matrix.value_ = np.append(numbers[order], np.ones(line_count))
        return program

    def _seen(self, numbers: np.ndarray) -> np.ndarray:
        """Return integers over 2^bits, times the scale, as floats."""
        return np.ldexp(numbers.astype(np.float64), self.scale - self.bits)


def _whole(numbers: Sequence[float]) -> np.ndarray:
    """Return what floats of the scaled program are in integers over 2^bits."""
    scaled = np.rint(np.ldexp(np.array(numbers), _FLOATS))
    return np.array([int(number) for number in scaled.tolist()], object)

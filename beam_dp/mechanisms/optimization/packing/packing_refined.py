"""Solutions of the program of `packing_program` by HiGHS, each closer than the last.

HiGHS proposes in floats. What is missing of its solution is a program of the same rows again, with
what is left of every bound, and of every price, as its numbers: exact integers, multiplied by a
scale until floats see them. Its solution, divided by the scale, is added, and so on (iterative
refinement: Gleixner, Steffy, Wolter, "Iterative refinement for linear programming", 2016). Where
HiGHS ends with the best vertex, a round adds some 30 bits and takes no pivot. Nothing depends on
time: each round ends after so many pivots or steps.

It is asked in prices, in which no number of the program is above 1. A column is a row of the data,
with what it packs; a line is a person, or a value of several rows, with what is left to it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from beam_dp.mechanisms.optimization.packing.packing_program import (
    Packing,
    PackingBounds,
    summed,
)

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
_FAR = 2.0**900  # what is further is no solution


@functools.cache
def highs() -> Any:
    """Return `highspy`, which takes a quarter of a second to load, and is not always needed."""
    import highspy

    return highspy


def bounds(packing: Packing) -> Iterator[PackingBounds]:
    """Yield bounds of the program that come as close as one likes."""
    refined, asked = _Refined(packing), 0
    while True:
        turn, solver = divmod(asked, len(SOLVERS))
        best = refined.round(SOLVERS[solver], min(_PIVOTS << turn, _MOST))
        yield packing.exact_bounds(refined.prices, refined.packed, refined.bits)
        refined.scale += _MORE if best else 0
        asked = 0 if best else asked + 1


class _Refined:
    """A solution in integers over 2^bits, and the program of what is missing.

    What is missing has a column for what is left to each line too, as each has a price by now.

    Attributes:
        packed: u of each row of the data.
        spare: what is left to each line.
        prices: the price of each line; r of the people first.
        scale: the numbers of the next program are multiplied by 2^scale.
        bits: the precision.
    """

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._lines = packing.people + packing.shared
        index = np.where(packing.owners < 0, self._lines, packing.owners)
        if packing.shared:
            index = np.column_stack([index, packing.people + packing.values])
        self._index = index
        self.packed = np.zeros(len(packing.values), object)
        self.spare = np.zeros(0, object)
        self.prices = np.zeros(self._lines, object)
        self.scale, self.bits = 0, _FLOATS
        self._basis: Any = None

    def round(self, solver: str, pivots: int) -> bool:
        """Add a solution of what is missing; return whether HiGHS holds it to be the best."""
        more = self.scale + _FLOATS - self.bits
        self.packed, self.spare, self.prices = (
            numbers << more for numbers in (self.packed, self.spare, self.prices)
        )
        self.bits += more
        asked = highs().Highs()
        options = {**_OPTIONS, "solver": solver, "simplex_iteration_limit": pivots}
        for name, option in options.items():
            asked.setOptionValue(name, option)
        asked.passModel(self._program())
        if self._basis is not None:
            asked.setBasis(self._basis)
        asked.run()
        found = asked.getSolution()
        if found.value_valid and found.dual_valid:
            rows, columns = len(self.packed), _whole(found.col_value)
            self.packed = self.packed + columns[:rows]
            self.prices = self.prices - _whole(found.row_dual)
            known, self._basis = len(columns) > rows, asked.getBasis()
            if known:
                self.spare = self.spare + columns[rows:]
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
        basis.row_status = [status.kLower] * self._lines

    def _left(self) -> np.ndarray:
        """Return what the rows leave to each line."""
        packing, one = self._packing, 1 << self.bits
        room = packing.rooms(self.bits)[0]
        left = np.append(np.full(packing.people, one, object), room)[: self._lines]
        for role in self._index.T:
            left = left - summed(role, self.packed, self._lines)
        return left

    def _program(self) -> Any:
        packing, rows, lines, spare = self._packing, len(self.packed), self._lines, len(self.spare)
        paid = sum(np.append(self.prices, 0)[role] for role in self._index.T)
        most = np.full(rows + spare, np.inf)
        if not packing.shared:
            most[:rows] = self._seen(packing.rooms(self.bits)[0] - self.packed)
        program = highs().HighsLp()
        program.num_col_, program.num_row_ = rows + spare, lines
        costs = np.append(paid - (1 << self.bits), self.prices[:spare])
        program.col_cost_, program.col_upper_ = self._seen(costs), most
        program.col_lower_ = self._seen(-np.append(self.packed, self.spare))
        if spare:
            program.row_upper_ = program.row_lower_ = self._seen(self._left() - self.spare)
        else:
            program.row_upper_, program.row_lower_ = (
                self._seen(self._left()),
                np.full(lines, -np.inf),
            )
        there = self._index < lines
        ends = np.append(np.cumsum(there.sum(axis=1)), there.sum() + 1 + np.arange(spare))
        matrix = program.a_matrix_
        matrix.format_ = highs().MatrixFormat.kColwise
        matrix.start_ = np.append(0, ends).astype(np.int32)
        matrix.index_ = np.append(self._index[there], np.arange(spare)).astype(np.int32)
        matrix.value_ = np.ones(int(ends[-1]))
        return program

    def _seen(self, numbers: np.ndarray) -> np.ndarray:
        """Return integers over 2^bits, times the scale, as floats."""
        return np.ldexp(numbers.astype(np.float64), self.scale - self.bits)


def _whole(numbers: Sequence[float]) -> np.ndarray:
    """Return what floats of the scaled program are in integers over 2^bits."""
    known = np.clip(np.nan_to_num(np.array(numbers)), -_FAR, _FAR)
    scaled = np.rint(np.ldexp(known, _FLOATS))
    return np.array([int(number) for number in scaled.tolist()], object)

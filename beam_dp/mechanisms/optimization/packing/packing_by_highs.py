"""Guesses of the program of `packing_program` by HiGHS, which only proposes.

It is asked in prices, in which no number of the program is above 1, for the packing: a column per
row, with its bound, and a line per person, and per value of several rows. Nothing depends on time:
each way ends after so many pivots or steps.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from beam_dp.mechanisms.optimization.packing.packing_program import Packing
from beam_dp.mechanisms.optimization.packing.packing_proposals import PackingGuess

_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "simplex_iteration_limit": 200_000,
    "ipm_iteration_limit": 200,
}
WAYS: tuple[dict[str, Any], ...] = (
    {"solver": "simplex", "presolve": "on"},
    {"solver": "simplex", "presolve": "off"},
    {"solver": "ipx", "presolve": "on", "run_crossover": "off"},
)
"""Options that are tried in this order."""


@functools.cache
def highs() -> Any:
    """Return `highspy`, which takes a quarter of a second to load, and is not always needed."""
    import highspy

    return highspy


def guesses(packing: Packing) -> Iterator[PackingGuess]:
    """Yield a solution for each of the ways that finds one."""
    program = _program(packing)
    for way in WAYS:
        solver = highs().Highs()
        for name, option in {**_OPTIONS, **way}.items():
            solver.setOptionValue(name, option)
        solver.passModel(program)
        solver.run()
        found = solver.getSolution()
        if found.value_valid and found.dual_valid:
            prices = np.array(found.row_dual)[: packing.people]
            yield PackingGuess(-prices, np.array(found.col_value))


def _program(packing: Packing) -> Any:
    """Return the program as HiGHS takes it: least of minus the packing."""
    rows, people = len(packing.values), packing.people
    lines = people + (0 if packing.single else len(packing.weights))
    index = np.where(packing.owners < 0, lines, packing.owners)
    if not packing.single:
        index = np.column_stack([index, people + packing.values])
    there = index < lines
    program = highs().HighsLp()
    program.num_col_, program.num_row_ = rows, lines
    program.col_cost_, program.col_lower_ = np.full(rows, -1.0), np.zeros(rows)
    program.col_upper_ = packing.room[packing.values]
    program.row_lower_ = np.full(lines, -np.inf)
    program.row_upper_ = np.append(np.ones(people), packing.room)[:lines]
    matrix = program.a_matrix_
    matrix.format_ = highs().MatrixFormat.kColwise
    matrix.start_ = np.append(0, np.cumsum(there.sum(axis=1))).astype(np.int32)
    matrix.index_ = index[there].astype(np.int32)
    matrix.value_ = np.ones(int(there.sum()))
    return program

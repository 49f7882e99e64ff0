"""A Newton step: feasible points stay feasible, and the products change as they were told to."""

import numpy as np
import pytest
from scipy import sparse

from beam_dp.mechanisms.optimization.interior import interior_points
from beam_dp.mechanisms.optimization.interior.newton_system import InteriorProgram, NewtonSystem


def some_program(generator, most=20):
    """Return a program of groups, people, values, and rows of values."""
    groups, people, values = (int(size) for size in generator.integers(1, most, 3))
    rows = values + int(generator.integers(0, most))
    picked = np.append(np.arange(values), generator.integers(0, values, rows - values))
    places = generator.integers(0, groups, values), np.arange(values)
    losses = generator.random((groups, people)) * (generator.random((groups, people)) < 0.5)
    return InteriorProgram(
        sparse.csr_matrix(losses),
        sparse.csr_matrix((generator.random(values) + 0.1, places), shape=(groups, values)),
        sparse.csr_matrix((np.ones(rows), (np.arange(rows), picked)), shape=(rows, values)),
        sparse.csr_matrix(-1.0 * (generator.random((rows, people)) < 2 / people)),
        3 * generator.random(groups),
        -1.0 * (generator.random(rows) < 0.5),
        float(generator.integers(1, people + 1)),
    )


def unfeasible(program, point):
    """Return what a point leaves of the equations of either side; m is whatever fits best."""
    top = program.sums + point.groups - program.losses @ point.removed
    top = top + program.weights @ point.excess
    rows = program.picks @ point.excess + program.owners @ point.removed - program.least
    loads = program.losses.T @ point.of_groups + program.owners.T @ point.of_rows
    shared = program.picks.T @ point.of_rows + point.of_excess
    return np.concatenate([
        top - top.mean(),
        rows - point.rows,
        point.spare - program.removals + point.removed.sum(),
        1 - point.removed - point.kept,
        [point.of_groups.sum() - 1],
        shared - program.weights.T @ point.of_groups,
        loads + point.of_removed - point.of_kept - point.of_spare,
    ])  # fmt: skip


def test_a_start_is_feasible_and_a_step_stays_so():
    generator = np.random.default_rng(1)
    for _ in range(40):
        program = some_program(generator)
        point = interior_points.start(program)
        assert min(float(part.min(initial=1)) for part in point) > 0
        assert np.abs(unfeasible(program, point)).max() < 1e-12
        after = interior_points._moved(point, interior_points._step(program, point), 0.9)
        assert min(float(part.min(initial=1)) for part in after) > 0
        assert np.abs(unfeasible(program, after)).max() < 1e-9


def test_products_change_as_they_are_told_to():
    generator = np.random.default_rng(2)
    for _ in range(40):
        program = some_program(generator)
        point = interior_points.start(program)
        wanted = tuple(generator.standard_normal(len(part)) for part in point.numbers)
        change = NewtonSystem(program, point).step(wanted)
        for side, goal in enumerate(wanted):
            there = point.numbers[side] * change.multipliers[side]
            there = there + point.multipliers[side] * change.numbers[side]
            assert there == pytest.approx(goal, abs=1e-7)

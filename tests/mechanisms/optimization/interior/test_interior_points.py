"""Interior points: as far apart as they say from what HiGHS finds, and never matter otherwise."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from beam_dp.mechanisms.optimization import removal_levels
from beam_dp.mechanisms.optimization.interior import interior_points
from beam_dp.mechanisms.optimization.removal_levels import RemovalLevels
from beam_dp.mechanisms.optimization.removal_program import RemovalProgram
from tests.mechanisms.optimization.interior.test_newton_system import some_program


def value_of(program):
    """Return the least m, by scipy."""
    groups, people = program.losses.shape
    values = program.picks.shape[1]
    matrix = sparse.bmat([
        [np.ones((1, people)), None, np.zeros((1, 1))],
        [-program.losses, program.weights, -np.ones((groups, 1))],
        [-program.owners, -program.picks, None],
    ])  # fmt: skip
    found = linprog(
        np.append(np.zeros(people + values), 1),
        matrix.tocsr(),
        np.concatenate([[program.removals], -program.sums, -program.least]),
        bounds=[(0, 1)] * people + [(0, None)] * values + [(None, None)],
    )
    return found.fun


def shared_rows(generator, rows, people, groups):
    """Return a program of rows of three people, a value each."""
    owners = np.sort(generator.integers(0, people, (rows, 3)), axis=1)
    owners[:, 1:][owners[:, 1:] == owners[:, :-1]] = -1
    owners = -np.sort(-owners, axis=1)
    items = np.unique(generator.integers(0, groups, rows), return_inverse=True)[1]
    return RemovalProgram(owners, np.arange(rows), generator.integers(1, 4, rows), items)


@pytest.fixture
def inside(monkeypatch):
    """Let programs of any size be proved by interior points, and by nobody else."""
    for name in ("_TINY", "_MANY", "_FEW", "_VARIED"):
        monkeypatch.setattr(removal_levels, name, 0)
    monkeypatch.setattr(removal_levels.highs_model, "WAYS", ())
    return monkeypatch


def test_points_come_as_close_as_they_say():
    generator = np.random.default_rng(3)
    for _ in range(12):
        program = some_program(generator)
        least = value_of(program)
        for close, point in zip(
            (1e-2, 1e-8), interior_points.points(program, (1e-2, 1e-8)), strict=True
        ):
            left = program.sums - program.losses @ point.removed
            left = left + program.weights @ point.excess
            assert least - 1e-8 <= left.max() <= least + close + 1e-8


def test_profiles_are_proved_by_interior_points_alone(inside):
    generator = np.random.default_rng(4)
    programs = [shared_rows(generator, 12, 6, 3) for _ in range(8)]
    exact = [[removal_levels.rounded(*p.solved(k).as_integer_ratio()) for k in range(5)]
             for p in programs]  # fmt: skip
    inside.setattr(RemovalProgram, "solved", None)
    assert [RemovalLevels(program, 4).values() for program in programs] == exact


def test_those_who_play_for_one_k_are_joined_by_those_of_others(inside):
    """600 rows of 150 people in 12 groups: more people than begin."""
    program = shared_rows(np.random.default_rng(5), 600, 150, 12)
    inside.setattr(RemovalProgram, "solved", None)
    found = RemovalLevels(program, 12)
    several = found.values()
    assert len(found.proposals._casts) > 2
    alone = [RemovalLevels(program, 12) for _ in (2, 7)]
    for levels, k in zip(alone, (2, 7), strict=True):
        levels._settle(k)
        assert levels.known[k] == several[k]


def test_few_removals_leave_the_groups_that_matter(inside):
    """Rows of one group count 30 times: the others are too small to matter to one removal."""
    generator, divided, of_groups = np.random.default_rng(7), [], RemovalProgram.of_groups
    programs = [shared_rows(generator, 20, 16, 6) for _ in range(8)]
    programs = [
        dataclasses.replace(program, weights=program.weights * (1 + 29 * (program.groups < 1)))
        for program in programs
    ]
    exact = [[removal_levels.rounded(*program.solved(k).as_integer_ratio()) for k in range(5)]
             for program in programs]  # fmt: skip

    def counted(program, kept):
        divided.append(kept)
        return of_groups(program, kept)

    inside.setattr(RemovalProgram, "of_groups", counted)
    assert [RemovalLevels(program, 4).values() for program in programs] == exact
    assert len(divided) >= 3


@pytest.mark.filterwarnings("error")  # a warning would show that floats ended
@pytest.mark.parametrize("wrong", [-1.0, 0.0, 3.0, np.nan, np.inf])
def test_points_that_lie_or_stall_leave_it_to_others(inside, wrong):
    program = shared_rows(np.random.default_rng(6), 10, 5, 2)
    expected = RemovalLevels(program, 3).values()

    def lie(given, gaps):
        yield type(point := interior_points.start(given))(*(wrong + 0 * part for part in point))

    inside.setattr(interior_points, "points", lie)
    assert RemovalLevels(program, 3).values() == expected

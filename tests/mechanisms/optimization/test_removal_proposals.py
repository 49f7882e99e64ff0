"""What HiGHS proposes: close, and closer with each refinement."""

from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.optimization.highs_model import HighsModel
from beam_dp.mechanisms.optimization.removal_bounds import RemovalBounds
from beam_dp.mechanisms.optimization.removal_levels import RemovalLevels
from beam_dp.mechanisms.optimization.removal_matrix import ExactPoint, RemovalMatrix
from beam_dp.mechanisms.optimization.removal_program import RemovalProgram
from beam_dp.mechanisms.optimization.removal_proposals import RemovalProposals


def some_rows(generator, rows=300, people=60, weight=1000):
    """Return a total of rows of two people each."""
    owners = np.sort(generator.integers(0, people, (rows, 2)), axis=1)[:, ::-1].copy()
    owners[owners[:, 0] == owners[:, 1], 1] = -1
    weights = generator.integers(1, weight, rows)
    return RemovalProgram(owners, np.arange(rows), weights, np.zeros(rows, np.int64))


def bounds_of(levels, guess, k):
    """Return the proved bounds of a guess."""
    low, high = levels._proved(guess, k, levels.proposals.touched, levels.proposals.lines)
    return Fraction(low, 1 << guess.bits), Fraction(high, 1 << guess.bits)


def test_refinement_adds_digits():
    levels = RemovalLevels(some_rows(np.random.default_rng(1), weight=1 << 50), 5)
    gaps = []
    for guess, _ in levels.proposals.guesses(5, 0, levels.bits):
        lows = levels.bounds.lowers(guess.weights, 5, guess.bits)
        gaps.append(bounds_of(levels, guess, 5)[1] - Fraction(int(lows[5]), 1 << guess.bits))
    assert min(gaps) < Fraction(1, 1 << 60)


def test_a_solver_that_stalls_leaves_it_to_rational_numbers(monkeypatch):
    program = some_rows(np.random.default_rng(2), rows=12, people=6, weight=5)
    expected = RemovalLevels(program, 4).values()
    monkeypatch.setattr("beam_dp.mechanisms.optimization.removal_levels._TINY", 0)
    monkeypatch.setattr(HighsModel, "solved", lambda self, way: None)
    assert RemovalLevels(program, 4).values() == expected


@pytest.mark.parametrize("zoom", [0, 30])
def test_what_a_point_leaves_is_exact(zoom):
    bounds = RemovalBounds(some_rows(np.random.default_rng(3), rows=40, people=8))
    proposals = RemovalProposals.of(bounds, 2)
    matrix = RemovalMatrix(bounds, proposals.joined, proposals.lines)
    columns, rows = sum(matrix.columns), sum(matrix.rows)
    point = ExactPoint(np.array([7] * columns, object), np.array([3] * rows, object), 40)
    numbers, down, right = matrix.entries
    sums = np.zeros(rows)
    np.add.at(sums, down, numbers / matrix.unit)
    limits = matrix.magnified(point, 2, zoom)
    scale = 2.0**zoom
    assert limits.costs[columns:] == pytest.approx(3 * scale / 2**40)
    most = min(1e6, scale * (2 - 7 * sums[0] / 2**40))
    assert limits.high[columns] == pytest.approx(most)
    assert limits.low[1] == pytest.approx(-7 * scale / 2**40)
    assert right.max() < columns


def test_rows_of_a_small_program_are_seen_from_the_start(monkeypatch):
    """Which changes nothing but the time: whoever has not joined would."""
    program = some_rows(np.random.default_rng(4))
    bounds = RemovalBounds(program)
    shared = np.flatnonzero((program.owners >= 0).sum(axis=1) > 1)
    assert RemovalProposals.of(bounds, 5).joined.values.tolist() == shared.tolist()
    expected = RemovalLevels(program, 5).values()
    monkeypatch.setattr("beam_dp.mechanisms.optimization.removal_proposals._SMALL", 299)
    assert RemovalProposals.of(bounds, 5).joined.values.tolist() == []
    assert RemovalLevels(program, 5).values() == expected

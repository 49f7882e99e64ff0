"""The linear program of rows with any number of owners."""

from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.optimization.removal_program import RemovalProgram


@pytest.fixture
def triangle():
    """Three rows, one per pair of three people."""
    owners = np.array([[0, 1], [0, 2], [1, 2]])
    return owners, np.arange(3), np.ones(3, np.int64), np.zeros(3, np.int64)


def test_half_of_each_of_three_people_covers_a_triangle(triangle):
    # One whole person leaves one row; LP is convex: a third of 3/2 people takes a third.
    program = RemovalProgram(*triangle)
    assert [program.solved(k) for k in range(3)] == [3, 1, 0]


def test_rows_of_one_value_stay_as_the_largest_of_them(triangle):
    # Without anybody less than 2 people one row stays: all of the value, until parts add up to 1.
    owners, *_ = triangle
    program = RemovalProgram(owners, np.zeros(3, int), np.ones(1, int), np.zeros(1, int))
    assert [program.solved(k) for k in range(3)] == [1, Fraction(1, 3), 0]


def test_the_largest_group_counts(triangle):
    # Rows of three groups: every person takes two of them.
    owners, values, weights, _ = triangle
    program = RemovalProgram(owners, values, weights * 3, np.arange(3))
    assert [program.solved(k) for k in range(3)] == [3, 1, 0]


def test_the_program_of_some_groups_has_their_rows_and_people(triangle):
    # Without the group of the middle row: one row of the people 0 and 1, and one of 1 and 2.
    owners, values, weights, _ = triangle
    program = RemovalProgram(owners + 1, values, weights * 3, np.arange(3))
    some = program.of_groups(np.array([True, False, True]))
    assert some.owners.tolist() == [[0, 1], [1, 2]] and some.weights.tolist() == [3, 3]
    assert some.values.tolist() == some.groups.tolist() == [0, 1]
    assert [some.solved(k) for k in range(2)] == [3, 0]

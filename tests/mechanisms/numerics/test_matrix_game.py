"""Games of two players: as linear programs say, and what their steps stand on."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from beam_dp.mechanisms.numerics import matrix_game
from beam_dp.mechanisms.numerics.matrix_game import MatrixGame, Sides


def some_game(generator, groups=12, people=40, most=5):
    """Return a game in which some of the entries are 0."""
    matrix = generator.integers(1, 9, (groups, people)) * (generator.random((groups, people)) < 0.4)
    sums = matrix.sum(axis=1).astype(float)
    return MatrixGame(csr_matrix(matrix.astype(float)), sums, most, 1 / np.sqrt(most * groups))


def value(game):
    """Return the value of the linear program."""
    groups, people = game.matrix.shape
    rows = np.hstack([-game.matrix.toarray(), -np.ones((groups, 1))])
    rows = np.vstack([rows, [*[1.0] * people, 0.0]])
    bounds = [*[(0, 1)] * people, (None, None)]
    costs = [*[0.0] * people, 1.0]
    return linprog(costs, rows, [*-game.sums, game.most], bounds=bounds).fun


def first(game):
    groups, people = game.matrix.shape
    return game.at(np.full(people, game.most / people), np.full(groups, 1 / groups))


def test_bounds_are_on_both_sides_of_the_program_and_close():
    generator = np.random.default_rng(1)
    for _ in range(8):
        game = some_game(generator)
        removed, groups, sides = game.best(first(game), lambda sides: sides.gap < 1e-3)
        assert sides.low - 1e-9 <= value(game) <= sides.high + 1e-9
        assert sides.gap < 0.05
        assert game.sides(game.at(removed, groups)) == pytest.approx(sides)
        assert removed.min() >= 0 and removed.max() <= 1 and removed.sum() <= game.most + 1e-6
        assert groups.min() >= 0 and groups.sum() == pytest.approx(1)


def test_players_who_are_alike_are_solved_by_the_start():
    game = MatrixGame(csr_matrix(np.ones((30, 50))), np.full(30, 50.0), 7, 0.1)
    points = game.points(first(game))
    _, sides = next(points)
    assert sides == pytest.approx((43, 43))


def test_a_game_without_people_is_the_largest_sum():
    game = MatrixGame(csr_matrix((3, 0)), np.array([4.0, 9.0, 2.0]), 2, 0.1)
    _, groups, sides = game.best(game.at(np.zeros(0), np.full(3, 1 / 3)), lambda _: False)
    assert sides == pytest.approx((9, 9)) and groups[1] == pytest.approx(1)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9, 1e18])
def test_shares_are_the_nearest_point(scale):
    """The point x of a simplex nearest to v: (v - x) (y - x) <= 0 for every corner y."""
    generator = np.random.default_rng(2)
    for size in (1, 2, 30):
        numbers = generator.normal(size=size) * scale
        found = matrix_game.shares(numbers)
        assert found.min() >= 0 and found.sum() == pytest.approx(1)
        corners = (numbers - found) @ (np.eye(size) - found).T
        assert corners.max() <= 1e-9 * max(scale, 1)
    assert matrix_game.shares(np.full(5, scale)) == pytest.approx([0.2] * 5)


def test_shifted_numbers_are_the_nearest_point_from_any_start():
    generator = np.random.default_rng(3)
    for most in (0, 1, 7, 25):
        numbers = generator.normal(size=20) * 2
        found, shift = matrix_game.shifted(numbers, most)
        assert found.sum() <= most + 1e-6 and shift >= 0
        assert found == pytest.approx(np.clip(numbers - shift, 0, 1), abs=1e-9)
        assert shift == 0 or found.sum() == pytest.approx(most, abs=1e-6)
        for start in (-1.0, 0.5, 1.9, 100.0):
            again, _ = matrix_game.shifted(numbers, most, start)
            assert again.sum() <= most + 1e-6 and again == pytest.approx(found, abs=1e-6)


def test_largest_sums():
    numbers = np.array([3.0, 1.0, 2.0])
    found = [matrix_game.largest_sum(numbers, most) for most in (0, 1, 2.9, 3, 9)]
    assert found == [0, 3, 5, 6, 6]


def test_sides():
    assert Sides(1, 4).gap == 3
    assert Sides(1, 4).within(Sides(2, 9)) == (2, 4)

"""The simplex method in integers: against HiGHS, against all vertices, and where it could cycle."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.optimization.rational_simplex import Tableau


def tableau(matrix, right, costs, bounds) -> Tableau:
    """Return min costs x for matrix x <= right, 0 <= x <= bounds, right >= 0; basis: the slacks."""
    rows, columns = matrix.shape
    table = np.append(matrix, np.eye(rows, dtype=np.int64), axis=1).astype(object)
    slack = list(range(columns, columns + rows))
    padded = np.append(costs, np.zeros(rows, np.int64)).astype(object)
    return Tableau(table, right.astype(object), padded, 0, [*bounds, *[None] * rows], slack)


def solution(matrix: np.ndarray, right: np.ndarray) -> list[Fraction] | None:
    """Return x with matrix x = right, in rational numbers; None if there are none or many."""
    rows = [[*map(Fraction, map(int, line)), Fraction(int(b))] for line, b in zip(matrix, right)]
    size = len(rows)
    for column in range(size):
        pivot = next((r for r in range(column, size) if rows[r][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(size):
            if row != column:
                rate = rows[row][column]
                rows[row] = [a - rate * b for a, b in zip(rows[row], rows[column])]
    return [row[-1] for row in rows]


def by_vertices(matrix, right, costs, bounds) -> Fraction:
    """Return the least objective over all vertices."""
    size = len(costs)
    walls = np.vstack([matrix, np.eye(size, dtype=np.int64), -np.eye(size, dtype=np.int64)])
    limits = np.concatenate([right, bounds, np.zeros(size, np.int64)])
    found = []
    for chosen in map(list, itertools.combinations(range(len(walls)), size)):
        point = solution(walls[chosen], limits[chosen])
        if point is not None and all(
            sum(int(a) * x for a, x in zip(wall, point)) <= int(limit)
            for wall, limit in zip(walls, limits)
        ):
            found.append(sum((int(c) * x for c, x in zip(costs, point)), Fraction(0)))
    return min(found)


def random_program(random, rows: int, columns: int):
    matrix = random.integers(-4, 5, (rows, columns))
    right = random.integers(0, 9, rows) * random.integers(0, 2, rows)  # many are degenerate
    return matrix, right, random.integers(-5, 6, columns), random.integers(1, 6, columns)


def test_the_least_value_is_that_of_a_vertex():
    random = np.random.default_rng(1)
    for _ in range(60):
        program = random_program(random, 3, 3)
        assert tableau(*program).minimum() == by_vertices(*program)


def test_the_least_value_is_that_of_highs():
    random = np.random.default_rng(2)
    for _ in range(200):
        matrix, right, costs, bounds = random_program(random, *random.integers(1, 9, 2))
        expected = linprog(costs, matrix, right, bounds=np.stack([bounds * 0, bounds], axis=1))
        found = tableau(matrix, right, costs, bounds.tolist()).minimum()
        assert float(found) == pytest.approx(expected.fun, abs=1e-6)


def test_prices_and_values_of_the_end_prove_each_other():
    """Costs of the slacks are weights of the rows: with them no x is below the least value."""
    random = np.random.default_rng(3)
    for _ in range(50):
        matrix, right, costs, bounds = random_program(random, 4, 5)
        made = tableau(matrix, right, costs, bounds.tolist())
        least = made.minimum()
        weights = [Fraction(cost, made.scale) for cost in made.costs[5:].tolist()]
        assert min(weights) >= 0
        reduced = [int(c) + sum(w * int(a) for w, a in zip(weights, column))
                   for c, column in zip(costs, matrix.T)]  # fmt: skip
        below = -sum(w * int(b) for w, b in zip(weights, right))
        assert least == below + sum(min(0, r) * int(u) for r, u in zip(reduced, bounds))


def test_a_program_that_cycles_without_blands_rule_ends():
    """Beale 1955, in integers: the rule of the largest gain returns to its first basis here."""
    matrix = np.array([[25, -6000, -4, 900], [50, -9000, -2, 300], [0, 0, 1, 0]])
    right, costs = np.array([0, 0, 1]), np.array([-75, 15000, -2, 600])
    expected = linprog(costs, matrix, right)
    made = tableau(matrix, right, costs, [None] * 4)
    assert float(made.minimum()) == pytest.approx(expected.fun)

"""Bounds from any guess: never wrong, whatever the guess says."""

import numpy as np
import pytest

from beam_dp.mechanisms.optimization.removal_bounds import RemovalBounds
from beam_dp.mechanisms.optimization.removal_program import RemovalProgram
from benchmarks.neighbours import BITS, any_guess, some_program

REMOVALS = 3


@pytest.mark.parametrize("of_values", [False, True])
def test_wrong_weights_prove_nothing_wrong(of_values):
    generator = np.random.default_rng(1)
    tight = 0
    for _ in range(60):
        program = some_program(generator, of_values)
        bounds = RemovalBounds(program)
        exact = [program.solved(k) for k in range(REMOVALS + 1)]
        for _ in range(20):
            lows = bounds.lowers(any_guess(generator, program), REMOVALS, BITS)
            assert all(low <= value * (1 << BITS) for low, value in zip(lows, exact, strict=True))
            tight += lows[1] > 0
    assert tight > 20


@pytest.mark.parametrize("of_values", [False, True])
def test_any_removal_bounds_from_above_and_is_what_it_leaves(of_values):
    generator = np.random.default_rng(2)
    for _ in range(200):
        program = some_program(generator, of_values)
        bounds, one = RemovalBounds(program), 1 << BITS
        removed = np.append(generator.integers(0, one + 1, program.people), 0)
        removed[:-1] *= generator.random(program.people) < 0.6
        chosen = removed[:-1] > 0
        touched, lines = bounds.touched(chosen), bounds.lines
        found = bounds.left(removed, touched, lines.chosen(chosen[lines.people]), BITS)
        stays = np.maximum(one - removed[program.owners].sum(axis=1), 0)
        left = np.zeros(len(bounds.sums), np.int64)
        for value, (weight, group) in enumerate(zip(program.weights, program.groups, strict=True)):
            left[group] += weight * stays[program.values == value].max()
        assert found.tolist() == left.tolist()
        k = -(-int(removed.sum()) // one)
        assert found.max() >= program.solved(k) * one


@pytest.mark.parametrize("of_values", [False, True])
def test_what_is_left_in_turn_is_what_whole_removals_leave(of_values):
    generator = np.random.default_rng(3)
    for _ in range(200):
        program = some_program(generator, of_values)
        bounds, one = RemovalBounds(program), 1 << BITS
        order = generator.permutation(program.people)[: generator.integers(0, program.people + 1)]
        chosen = np.isin(np.arange(program.people), order)
        found = bounds.left_in_turn(order, bounds.touched(chosen))
        for count, most in enumerate(found.tolist()):
            removed = np.zeros(program.people + 1, np.int64)
            removed[order[:count]] = one
            left = bounds.left(removed, bounds.touched(chosen), bounds.lines, BITS)
            assert most * one == left.max()
        assert len(found) == len(order) + 1


def test_the_base_of_a_value_is_the_row_whose_owners_have_few_rows():
    owners = np.array([[0, 1], [2, 3], [0, 4], [0, 5]])
    program = RemovalProgram(owners, np.array([0, 0, 1, 2]), np.ones(3, int), np.zeros(3, int))
    assert RemovalBounds(program).base.tolist() == [1, 2, 3]

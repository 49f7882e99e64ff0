"""The game of frequencies: it proposes well where lines are alike, and nothing it says is believed."""

import itertools
import time
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.numerics.matrix_game import MatrixGame, Sides
from beam_dp.mechanisms.optimization import removal_game, removal_levels
from beam_dp.mechanisms.optimization.highs_model import HighsModel
from beam_dp.mechanisms.optimization.removal_bounds import RemovalBounds
from beam_dp.mechanisms.optimization.removal_game import RemovalGame
from beam_dp.mechanisms.optimization.removal_levels import RemovalLevels
from beam_dp.mechanisms.optimization.removal_program import RemovalProgram
from beam_dp.mechanisms.profiles import frequency
from tests.sizes import tries as sized


def of_lines(people, items, counts=None) -> RemovalProgram:
    """Return the program of lines, each of which has one owner."""
    given = np.ones(len(people), np.int64) if counts is None else counts
    owned = frequency.owned(people, items, given)
    return RemovalProgram(
        np.unique(owned.people, return_inverse=True)[1][:, None],
        np.arange(len(owned.items)),
        owned.counts,
        np.unique(owned.items, return_inverse=True)[1],
    )


def some_lines(generator, size=80, people=15, items=9, most=4):
    counts = generator.integers(1, most, size)
    return generator.integers(0, people, size), generator.integers(0, items, size), counts


@pytest.fixture
def always(monkeypatch):
    """Play the game for programs of any size."""
    for name in ("_TINY", "_MANY", "_FEW"):
        monkeypatch.setattr(removal_levels, name, 0)


@pytest.fixture
def alone(monkeypatch, always):
    """Let nothing but the game solve a program."""
    monkeypatch.setattr(RemovalLevels, "_guessed", None)
    monkeypatch.setattr(RemovalProgram, "solved", None)


def without_the_game(program, removals, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(removal_levels, "_MANY", 1 << 60)
        return RemovalLevels(program, removals).values()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("inside", [False, True], ids=["steps", "interior points"])
@sized(1, 20)
def test_levels_are_those_without_the_game(inside, monkeypatch, tries):
    if inside:
        monkeypatch.setattr(removal_game, "_TURNS", 0)
    generator = np.random.default_rng(1)
    for most in (2, 4, 100, 1 << 24) * tries:
        program = of_lines(*some_lines(generator, most=most))
        expected = without_the_game(program, 6, monkeypatch)
        assert RemovalLevels(program, 6).values() == expected


def lying(generator):
    """Return a method of games that says anything."""
    calls = itertools.count()

    def best(self, start, enough):
        groups, people = self.matrix.shape
        removed = generator.normal(size=people) * 10.0 ** generator.integers(-3, 9)
        weights = generator.normal(size=groups)
        if next(calls) % 3 == 0:
            removed, weights = removed * np.nan, weights * np.nan
        return removed, weights, Sides(*generator.normal(size=2) * 100)

    return best


@pytest.mark.usefixtures("always")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_game_that_lies_does_not_matter(monkeypatch):
    generator = np.random.default_rng(2)
    for _ in range(5):
        program = of_lines(*some_lines(generator))
        expected = without_the_game(program, 6, monkeypatch)
        for turns in (0, 2):
            with monkeypatch.context() as patch:
                patch.setattr(MatrixGame, "best", lying(generator))
                patch.setattr(HighsModel, "inside", lambda self: None)
                patch.setattr(removal_game, "_TURNS", turns)
                assert RemovalLevels(program, 6).values() == expected


@pytest.mark.usefixtures("always")
def test_interior_points_that_fail_do_not_matter(monkeypatch):
    generator = np.random.default_rng(3)
    honest = HighsModel.inside

    def wrong(self):
        found = honest(self)
        return found._replace(prices=np.full(len(found.prices), -1.0))

    monkeypatch.setattr(removal_game, "_TURNS", 0)
    for inside in (lambda self: None, wrong):
        program = of_lines(*some_lines(generator))
        expected = without_the_game(program, 6, monkeypatch)
        with monkeypatch.context() as patch:
            patch.setattr(HighsModel, "inside", inside)
            assert RemovalLevels(program, 6).values() == expected


def numbered(size):
    return np.arange(size)


ALIKE = {
    "a value each": (lambda size: (numbered(size), numbered(size)), 1, 1),
    "two values each, two people each": (
        lambda size: (numbered(size) // 2, numbered(size) % (size // 2)), 2, 4
    ),
    "a value each of 100, tied": (lambda size: (numbered(size), numbered(size) % 100), 200, 200),
    "everybody has everything": (
        lambda size: (numbered(size) // 100, numbered(size) % 100), 200, 20_000
    ),
    "two rows of most values": (
        lambda size: (
            numbered(size) * 7919 % (size // 10),
            np.minimum(numbered(size) * 104729 % size, numbered(size)),
        ), 2, None
    ),
    "three people of each value": (
        lambda size: (numbered(size) * 7 % 2000, numbered(size) // 3), 3, None
    ),
}  # fmt: skip
"""Lines, the most rows of a value, and how many of these go with a removal, times 20,000."""


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("name", ALIKE)
def test_lines_that_are_alike_need_no_solver(name):
    """20,000 of them in a tenth of a second or so: the simplex method took ten seconds and more."""
    lines, top, slope = ALIKE[name]
    program = of_lines(*lines(20_000))
    start = time.process_time()
    found = RemovalLevels(program, 60).values()
    assert time.process_time() - start < 5
    assert found[0] == top and found == sorted(found, reverse=True)
    if slope is not None:
        lowest = [Fraction(top) - Fraction(slope * k, 20_000) for k in range(61)]
        assert found == [removal_levels.rounded(*level.as_integer_ratio()) for level in lowest]


def test_groups_that_cannot_matter_do_not_play():
    people = np.append(np.arange(400), np.arange(400))
    items = np.append(np.arange(400) % 4, 4 + np.arange(400))
    game = RemovalGame.of(RemovalBounds(of_lines(people, items)), 20)
    assert game.groups.tolist() == [0, 1, 2, 3]
    assert game.order(5).tolist() == []

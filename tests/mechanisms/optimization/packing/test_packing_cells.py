"""The cell of a packing program: the same whoever proposes, and never a wrong one."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.optimization.highs_model import HighsModel
from beam_dp.mechanisms.optimization.packing import packing_cells
from beam_dp.mechanisms.optimization.packing.packing_proposals import (
    PackingGuess,
    PackingProposals,
)
from tests.mechanisms.optimization.packing.test_packing_program import some_packing

ADDED = Fraction(7, 3)


def nothing(self, steps):
    return iter(())


def lies(self, steps):
    generator = np.random.default_rng(5)
    for _ in range(20):
        packed = generator.exponential(5.0, len(self.packing.values))
        yield PackingGuess(generator.normal(0, 9, self.packing.people), packed)
    yield PackingGuess(np.full(self.packing.people, math.nan), packed * math.nan)


WAYS = {
    "rational": (None, None, 1 << 60),
    "first order": (None, None, 0),
    "HiGHS": (nothing, None, 0),
    "lies, then HiGHS": (lies, None, 0),
    "lies and failures": (lies, lambda self, way: None, 0),
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("roles", [1, 2, 3, 4])
def test_whoever_proposes_the_cell_is_that_of_the_exact_value(way, roles, monkeypatch):
    guesses, solved, tiny = WAYS[way]
    monkeypatch.setattr(packing_cells, "_TINY", tiny)
    if guesses:
        monkeypatch.setattr(PackingProposals, "guesses", guesses)
    if solved:
        monkeypatch.setattr(HighsModel, "solved", solved)
    generator = np.random.default_rng(roles)
    for _ in range(10):
        packing = some_packing(generator, roles)
        found = packing_cells.decided(packing, ADDED)
        value = packing.solved()[0]
        assert found.number == packing_cells.cell(value + ADDED, packing.price)
        assert found.stays + packing.price * found.removed >= value


@pytest.mark.parametrize("price", [Fraction(1, 8), Fraction(1), Fraction(200)])
def test_a_cell_moves_by_its_parts_with_the_price_and_is_below_its_value(price):
    for value in (Fraction(0), Fraction(1), Fraction(17, 3), Fraction(1000, 7)):
        number = packing_cells.cell(value, price)
        assert packing_cells.cell(value + price, price) == number + packing_cells.PARTS
        step = price / packing_cells.PARTS
        assert value - 1.42 * float(step) < float((number - 1) * step)
        assert (number - 1) * step < value

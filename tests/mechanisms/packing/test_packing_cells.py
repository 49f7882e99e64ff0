"""The cell of a packing program: the same whoever proposes, and never a wrong one."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.packing import packing_cells
from beam_dp.mechanisms.packing.packing_cells import CellSearch
from beam_dp.mechanisms.packing.packing_proposals import PackingProposals
from tests.mechanisms.packing.test_packing_program import some_packing, value_of

ADDED = Fraction(7, 3)


HIGHS = packing_cells.refined


def lies(packing):
    generator = np.random.default_rng(5)
    for _ in range(20):
        packed = generator.exponential(5.0, len(packing.values))
        yield packing.bounds(generator.normal(0, 9, packing.people), packed)
    yield packing.bounds(np.full(packing.people, math.nan), packed * math.nan)
    yield from HIGHS(packing)


def first_order(packing):
    proposals = PackingProposals(packing)
    while True:
        for guess in proposals.guesses(1_000):
            yield packing.bounds(guess.removed, guess.packed)


WAYS = {"HiGHS": HIGHS, "first order": first_order, "lies, then HiGHS": lies}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("roles", [1, 2, 3, 4])
def test_whoever_proposes_the_cell_is_that_of_the_value(way, roles, monkeypatch):
    """No value of so few rows is within 1e-6 of a step: of the `EDGE` of tests."""
    monkeypatch.setattr(packing_cells, "refined", WAYS[way])
    generator = np.random.default_rng(roles)
    for _ in range(10):
        packing = some_packing(generator, roles)
        found = CellSearch.of(packing, ADDED).decided()
        parts = (value_of(packing) + float(ADDED)) * 32 - float(packing_cells.EDGE)
        assert abs(parts - round(parts)) > 1e-6
        assert found.number == math.ceil(parts)
        line = found.stays + packing.price * found.removed
        assert float(line / packing.price) >= value_of(packing) - 1e-9


def test_bounds_come_closer_and_hold_the_cell():
    generator = np.random.default_rng(9)
    for _ in range(10):
        packing = some_packing(generator, 3, most=30)
        search, number = (
            CellSearch.of(packing, ADDED),
            CellSearch.of(packing, ADDED).decided().number,
        )
        before = search.low, search.high
        for _ in range(3):
            search.step()
            assert before[0] <= search.low <= number <= search.high <= before[1]
            before = search.low, search.high


def test_a_cell_moves_by_its_parts_with_the_price_and_is_near_its_value():
    for value in (Fraction(0), Fraction(1), Fraction(17, 3), Fraction(1000, 7)):
        number = packing_cells.cell(value)
        assert packing_cells.cell(value + 1) == number + packing_cells.PARTS
        assert -0.42 < number - packing_cells.PARTS * value < 0.59

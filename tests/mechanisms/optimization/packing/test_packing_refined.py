"""Solutions by HiGHS come as close to the value as one likes, whatever the weights."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.optimization.packing import packing_cells, packing_refined
from beam_dp.mechanisms.optimization.packing.packing_cells import CellSearch
from tests.mechanisms.optimization.packing.test_packing_program import some_packing, value_of


@pytest.mark.parametrize("solver", packing_refined.SOLVERS)
@pytest.mark.parametrize("single", [False, True])
def test_a_round_brings_the_bounds_closer_by_many_bits(single, solver, monkeypatch):
    monkeypatch.setattr(packing_refined, "SOLVERS", (solver,))
    generator = np.random.default_rng(1)
    for _ in range(15):
        packing = some_packing(generator, single=single)
        rounds = list(itertools.islice(packing_cells.refined(packing), 6))
        for bounds in rounds:
            assert bounds.low <= bounds.high
            assert float(bounds.low) <= value_of(packing) + 1e-7
            assert float(bounds.high) >= value_of(packing) - 1e-7
        assert rounds[-1].high - rounds[-1].low < Fraction(1, 1 << 60)


@pytest.mark.parametrize("below", [True, False])
def test_a_value_that_is_nearly_on_the_edge_of_a_cell_is_decided(below):
    """Within 2^-100 of an edge: a hundred bits are too few, and floats have half of them."""
    root = Fraction(math.isqrt(2 << 400), 1 << 200)  # of 2, from below
    near = Fraction(-1 if below else 1, 1 << 100)
    generator = np.random.default_rng(2)
    for _ in range(5):
        packing = some_packing(generator, most=30)
        known = next(packing_cells.refined(packing))
        value = ((known.low + known.high) / 2).limit_denominator(1000)
        added = (10_000 + root - 1) / packing_cells.PARTS - value + near
        found = CellSearch.of(packing, added).decided()
        assert found.number == 10_000 + (not below)


def test_a_solver_that_may_take_few_pivots_gets_more_until_it_is_done(monkeypatch):
    """Bounds of what it finds before that hold too."""
    monkeypatch.setattr(packing_refined, "_PIVOTS", 1)
    monkeypatch.setitem(packing_refined._OPTIONS, "ipm_iteration_limit", 1)
    monkeypatch.setitem(packing_refined._OPTIONS, "presolve", "off")
    packing = some_packing(np.random.default_rng(2), most=30)
    value = value_of(packing)
    rounds = list(itertools.islice(packing_cells.refined(packing), 30))
    for bounds in rounds:
        assert float(bounds.low) <= value + 1e-9 and float(bounds.high) >= value - 1e-9
    assert rounds[0].high - rounds[0].low > 0.1
    assert rounds[-1].high - rounds[-1].low < Fraction(1, 1 << 60)

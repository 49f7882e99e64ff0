"""Solutions by HiGHS come as close to the value as one likes, whatever the weights."""

import importlib.util
import itertools
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.packing import packing_cells, packing_refined
from beam_dp.mechanisms.packing.packing_cells import CellSearch
from tests.mechanisms.packing.test_packing_program import some_packing, value_of


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
    near = Fraction(-1 if below else 1, 1 << 100)
    generator = np.random.default_rng(2)
    for _ in range(5):
        packing = some_packing(generator, most=30)
        known = next(packing_cells.refined(packing))
        value = ((known.low + known.high) / 2).limit_denominator(1000)
        added = (10_000 + packing_cells.EDGE) / packing_cells.PARTS - value + near
        found = CellSearch.of(packing, added).decided()
        assert found.number == 10_000 + (not below)


def test_nobody_can_make_a_database_that_is_decided_late(monkeypatch):
    """On the edge of one process each other process is quick, but for a chance of 1e-20."""
    guessed, others = packing_cells.EDGE, [drawn_edge() for _ in range(3)]
    assert len({guessed, *others}) == 4 and all(0.4142 <= edge <= 0.4143 for edge in others)
    generator = np.random.default_rng(3)
    for edge in others:
        packing = some_packing(generator, most=30)
        known = next(packing_cells.refined(packing))
        value = ((known.low + known.high) / 2).limit_denominator(1000)
        search = CellSearch.of(packing, (10_000 + guessed) / packing_cells.PARTS - value)
        monkeypatch.setattr(packing_cells, "EDGE", edge)
        for _ in range(4):
            if search.low < search.high:
                search.step()
        assert search.low == search.high == 10_000 + (guessed > edge)


def drawn_edge():
    """Return the number that another process has."""
    spec = importlib.util.find_spec(packing_cells.__name__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EDGE


@pytest.mark.parametrize("far", [1e10, 1e300, np.inf, np.nan])
def test_a_solution_far_off_is_none(far, monkeypatch):
    packing, lies = some_packing(np.random.default_rng(4), most=30), [True]
    solution = packing_refined.highs().Highs.getSolution

    def lying(asked):
        found = solution(asked)
        if lies:
            lies.clear()
            found.col_value = [far] * len(found.col_value)
        return found

    monkeypatch.setattr(packing_refined.highs().Highs, "getSolution", lying)
    rounds = list(itertools.islice(packing_cells.refined(packing), 6))
    assert rounds[-1].high - rounds[-1].low < Fraction(1, 1 << 60)


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

"""The cell of a packing program: the same whoever proposes, and never a wrong one."""

import importlib.util
import itertools
import math
from fractions import Fraction

import highspy
import numpy as np
import pytest

from beam_dp.mechanisms.packing import packing_program
from beam_dp.mechanisms.packing.packing_program import (
    CellSearch,
    PackingBounds,
    PackingProposals,
    of_values,
)
from tests.mechanisms.packing.test_packing_program import KINDS, some_packing, value_of

HIGHS = packing_program.refined
NOTHING = PackingBounds(Fraction(0), Fraction(1 << 40), Fraction(0), Fraction(0))


def cell_of(packing):
    return CellSearch(NOTHING, packing_program.bounds(packing)).decided()


def lies(packing):
    generator = np.random.default_rng(5)
    for _ in range(20):
        removed, columns = (
            generator.integers(-(1 << 30), 1 << 30, size)
            for size in (packing.people, len(packing.gains))
        )
        yield packing.bounds(columns, removed, 20)
    yield from HIGHS(packing)


def first_order(packing):
    while True:
        yield from PackingProposals(packing).bounds(10_000)


WAYS = {"HiGHS": HIGHS, "first order": first_order, "lies, then HiGHS": lies}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_whoever_proposes_the_cell_is_that_of_the_value(way, kind, monkeypatch):
    """No value of so few rows is within 1e-6 of a step: of the `EDGE` of tests."""
    monkeypatch.setattr(packing_program, "refined", WAYS[way])
    for roles in (1, 2, 4):
        generator = np.random.default_rng(roles)
        for _ in range(3):
            packing = some_packing(generator, kind, roles)
            parts = value_of(packing) * 32 - float(packing_program.EDGE)
            assert abs(parts - round(parts)) > 1e-6
            assert cell_of(packing) == math.ceil(parts)


def test_a_cell_moves_by_its_parts_with_the_price_and_is_near_its_value():
    for value in (Fraction(0), Fraction(1), Fraction(17, 3), Fraction(1000, 7)):
        number = packing_program.cell(value)
        assert packing_program.cell(value + 1) == number + packing_program.PARTS
        assert -0.42 < number - packing_program.PARTS * value < 0.59


def rounds_of(packing, count=6):
    return list(itertools.islice(HIGHS(packing), count))


@pytest.mark.parametrize("solvers", [("simplex",), packing_program.SOLVERS])
@pytest.mark.parametrize("kind", KINDS)
def test_a_round_brings_the_bounds_closer_by_many_bits(kind, solvers, monkeypatch):
    monkeypatch.setattr(packing_program, "SOLVERS", solvers)
    generator = np.random.default_rng(1)
    for _ in range(5):
        packing = some_packing(generator, kind)
        rounds, value = rounds_of(packing), value_of(packing)
        for bounds in rounds:
            assert float(bounds.low) <= value + 1e-7
            assert float(bounds.high) >= value - 1e-7
        assert rounds[-1].high - rounds[-1].low < Fraction(1, 1 << 60)


def shifted(packing, added):
    """Yield bounds of the value and something more."""
    for each in packing_program.bounds(packing):
        yield each._replace(low=each.low + added, high=each.high + added)


def on_edge(packing, edge):
    """Return what makes the value stand on an edge of a cell, and that cell."""
    known = next(HIGHS(packing))
    value = ((known.low + known.high) / 2).limit_denominator(1000)
    return (10_000 + edge) / packing_program.PARTS - value


@pytest.mark.parametrize("below", [True, False])
def test_a_value_that_is_nearly_on_the_edge_of_a_cell_is_decided(below):
    """Within 2^-100 of an edge: a hundred bits are too few, and floats have half of them."""
    generator = np.random.default_rng(2)
    for kind in KINDS:
        packing = some_packing(generator, kind, most=30)
        near = Fraction(-1 if below else 1, 1 << 100)
        added = on_edge(packing, packing_program.EDGE) + near
        found = CellSearch(NOTHING, shifted(packing, added)).decided()
        assert found == 10_000 + (not below)


def test_nobody_can_make_a_database_that_is_decided_late(monkeypatch):
    """On the edge of one process each other process is quick, but for a chance of 1e-20."""
    guessed, others = packing_program.EDGE, [drawn_edge() for _ in range(3)]
    assert len({guessed, *others}) == 4 and all(0.4142 <= edge <= 0.4143 for edge in others)
    generator = np.random.default_rng(3)
    for edge in others:
        packing = some_packing(generator, "rows of one value", most=30)
        monkeypatch.setattr(packing_program, "EDGE", edge)
        search = CellSearch(NOTHING, shifted(packing, on_edge(packing, guessed)))
        for _ in range(4):
            if search.low < search.high:
                search.step()
        assert search.low == search.high == 10_000 + (guessed > edge)


def drawn_edge():
    """Return the number that another process has."""
    spec = importlib.util.find_spec(packing_program.__name__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EDGE


@pytest.mark.parametrize("far", [1e10, 1e300, np.inf, np.nan])
def test_a_solution_far_off_is_none(far, monkeypatch):
    packing, wrong = some_packing(np.random.default_rng(4), KINDS[1], most=30), [True]
    solution = highspy.Highs.getSolution

    def lying(asked):
        found = solution(asked)
        if wrong:
            wrong.clear()
            found.col_value = [far] * len(found.col_value)
        return found

    monkeypatch.setattr(highspy.Highs, "getSolution", lying)
    rounds = rounds_of(packing)
    assert rounds[-1].high - rounds[-1].low < Fraction(1, 1 << 60)


def test_a_solver_that_may_take_few_pivots_gets_more_until_it_is_done(monkeypatch):
    """Bounds of what it finds before that hold too."""
    monkeypatch.setattr(packing_program, "_PIVOTS", 1)
    monkeypatch.setitem(packing_program._OPTIONS, "ipm_iteration_limit", 1)
    monkeypatch.setitem(packing_program._OPTIONS, "presolve", "off")
    packing = some_packing(np.random.default_rng(2), KINDS[0], most=30)
    value, rounds = value_of(packing), rounds_of(packing, 30)
    for bounds in rounds:
        assert float(bounds.low) <= value + 1e-9 and float(bounds.high) >= value - 1e-9
    assert rounds[0].high - rounds[0].low > 0.1
    assert rounds[-1].high - rounds[-1].low < Fraction(1, 1 << 60)


def test_the_bounds_of_a_flow_meet_on_the_value():
    generator = np.random.default_rng(1)
    for _ in range(30):
        packing = some_packing(generator, "values", 1)
        found = packing.bounds(*packing_program.guess(packing), 0)
        assert found.low == found.high == pytest.approx(value_of(packing), abs=1e-9)


def test_numbers_that_the_solver_has_not_room_for_are_left_to_others():
    one = np.zeros(1, int)
    packing = of_values(Fraction(1 << 35), one[None], one, np.array([1 << 40]))
    flow, best = itertools.islice(packing_program.bounds(packing), 2)
    assert 0 < flow.low < flow.high == best.low == best.high == 1


FAULTS = {"too much flows": 3, "it flows back": -1, "nothing flows": 0}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_flow_proves_nothing_wrong(fault, monkeypatch):
    """Whatever a faulty solver returns the cell is the same."""
    generator, guess = np.random.default_rng(3), packing_program.guess
    packings = [some_packing(generator, "values", 1) for _ in range(20)]
    cells = [cell_of(each) for each in packings]

    def faulty(packing):
        columns, removed = guess(packing)
        return columns * FAULTS[fault], removed

    monkeypatch.setattr(packing_program, "guess", faulty)
    assert [cell_of(each) for each in packings] == cells

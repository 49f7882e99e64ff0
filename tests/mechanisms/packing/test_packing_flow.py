"""Flows of rows with one owner: bounds that meet, on the value, and no bounds of a wrong flow."""

import types
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.packing import packing_cells, packing_flow
from beam_dp.mechanisms.packing.packing_program import Packing
from tests.mechanisms.packing.test_packing_program import PRICES, value_of


def rows_of_one_owner(generator, people=6, values=5):
    """Return a program in which nobody owns two rows of a value."""
    owned = generator.random((values, people)) < 0.4
    owned[np.arange(values), generator.integers(0, people, values)] = True
    value, person = np.nonzero(owned)
    weights = generator.integers(1, 9, values)
    price = PRICES[generator.integers(0, len(PRICES))]
    return Packing(person[:, None], value, weights, price)


def test_the_bounds_of_a_flow_meet_on_the_value():
    generator = np.random.default_rng(1)
    for _ in range(100):
        packing = rows_of_one_owner(generator)
        found = packing_flow.bounds(packing)
        assert found.low == found.high == pytest.approx(value_of(packing), abs=1e-9)
        line = found.stays / packing.price + found.removed
        assert line >= found.low


def test_large_chains_are_exact():
    """Person v shares an item with v + 1: at a price of 1 each pays for one."""
    size = 50_000
    owners = np.append(np.arange(size), np.arange(1, size))
    values = np.append(np.arange(size), np.arange(size - 1))
    order = np.argsort(values, kind="stable")
    packing = Packing(owners[order][:, None], values[order], np.ones(size, int), Fraction(1))
    found = packing_flow.bounds(packing)
    assert found.low == found.high == size


def test_numbers_that_the_solver_has_not_room_for_are_left_to_others():
    one = np.zeros((1, 1), int)
    packing = Packing(one, one[0], np.array([1 << 40]), Fraction(1 << 35))
    assert packing_flow.bounds(packing) is None
    assert next(packing_cells.bounds(packing)).low == 1


FAULTS = {"too much flows": 3, "it flows back": -1, "nothing flows": 0}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_flow_proves_nothing_wrong(fault, monkeypatch):
    """Whatever a faulty solver returns, bounds hold, and the cell is the same."""
    factor = FAULTS[fault]
    generator = np.random.default_rng(3)
    packings = [rows_of_one_owner(generator) for _ in range(20)]
    cells = [packing_cells.CellSearch.of(each, Fraction(0)).decided().number for each in packings]
    sparse = packing_flow._sparse()

    def faulty(*given, method):
        true = sparse.csgraph.maximum_flow(*given, method=method)
        return types.SimpleNamespace(flow=true.flow * factor)

    graphs = types.SimpleNamespace(
        maximum_flow=faulty, breadth_first_order=sparse.csgraph.breadth_first_order
    )
    broken = types.SimpleNamespace(csr_matrix=sparse.csr_matrix, csgraph=graphs)
    monkeypatch.setattr(packing_flow, "_sparse", lambda: broken)
    for packing, number in zip(packings, cells, strict=True):
        found = packing_flow.bounds(packing)
        if found is not None:
            assert float(found.low) <= value_of(packing) + 1e-9 <= float(found.high) + 2e-9
        assert packing_cells.CellSearch.of(packing, Fraction(0)).decided().number == number

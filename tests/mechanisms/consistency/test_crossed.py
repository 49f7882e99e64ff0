"""Crossed tables: both margins exact, estimates by dense least squares, small cases by search.

All cases are drawn with fixed seeds, so no test has a false alarm.
"""

import itertools

import numpy as np
import pytest

from beam_dp.mechanisms.consistency import crossed
from tests.mechanisms.consistency.test_tree import table_of

SIGNS = {"counts": True, "both signs": False}
SIZES = {"small": 2.0, "usual": 1e4, "money": 1e12, "beyond floats": 1e18}


def some_tables(generator, size, is_open=False, **more):
    """Return a total, margins and cells that do not agree; open cells are some of all pairs."""
    height, width = generator.integers(1, 8, 2)
    pairs = generator.permutation(height * width)
    if is_open:
        pairs = pairs[: generator.integers(1, len(pairs) + 1)]
    noise = [float(each) for each in generator.uniform(0.3, 3, 4)]
    values = [generator.normal(size / 4, size, n) for n in (1, height, width, len(pairs))]
    sides = np.divmod(pairs, width)
    cells = [table_of(values[3], noise[3], side, is_open, **more) for side in sides]
    zeros = [np.zeros(n) for n in (height, width)]
    margins = [table_of(values[1 + at], noise[1 + at], zeros[at], is_open, **more) for at in (0, 1)]
    return table_of(values[0], noise[0], **more), margins, cells


def assert_agree(total, margins, cells):
    found = crossed.agree(total, margins, cells)
    is_open, nonnegative = cells[0].is_open, cells[0].nonnegative
    for at, (side, margin) in enumerate(zip(found.margins, margins, strict=True)):
        sums = np.zeros(len(margin.values), np.int64)
        np.add.at(sums, cells[at].parents, found.cells.whole)
        if is_open:
            other = found.others[at].whole
            assert not nonnegative or other.min() >= 0
            sums += other
        assert (sums == side.whole).all()
        if found.total is not None:
            left = side.other.whole.sum() if is_open else 0
            assert side.whole.sum() + left == found.total.whole[0]
    for each in (*found.margins, found.cells, *found.others):
        assert not nonnegative or each.whole.min() >= 0
        assert (each.low <= each.whole).all() and (each.whole <= each.high).all()
    return found


@pytest.mark.parametrize("steps", [100, 1])
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sign", SIGNS)
def test_both_margins_and_the_total_are_exact(sign, size, is_open, steps, monkeypatch):
    monkeypatch.setattr(crossed, "_STEPS", steps)
    generator = np.random.default_rng(1)
    for _ in range(12):
        more = {"nonnegative": SIGNS[sign]}
        total, *tables = some_tables(generator, SIZES[size], is_open, **more)
        assert_agree(total, *tables)
        assert (assert_agree(None, *tables).total is None) or not is_open


def test_cells_are_those_of_dense_least_squares():
    generator = np.random.default_rng(2)
    for _ in range(30):
        total, margins, cells = some_tables(generator, 50.0)
        rows, columns = (cell.parents for cell in cells)
        eye = np.eye(len(rows))
        sums = [
            np.array([eye[side == at].sum(axis=0) for at in set(side)]) for side in (rows, columns)
        ]
        design = np.concatenate([eye, *sums, np.ones((1, len(rows)))])
        tables = [cells[0], *margins, total]
        roots = np.concatenate([np.full(len(t.values), 1 / t.deviation) for t in tables])
        values = np.concatenate([table.values for table in tables])
        wanted = np.linalg.lstsq(design * roots[:, None], values * roots, rcond=None)[0]
        found = crossed._cells(tables, [rows, columns])
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_cells_are_the_nearest_ones_of_at_least_0():
    """A table of 2 x 2 with given margins has one free cell: it is searched."""
    generator = np.random.default_rng(3)
    rows, columns = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    for _ in range(40):
        margins = [np.array([30, 12]), np.array([20, 22])]
        values = generator.normal(10, 15, 4)
        cells = [table_of(values, 1.0, side) for side in (rows, columns)]
        found = crossed._whole(values, cells, margins)
        corner = np.linspace(0, 20, 20_001)
        every = np.array([corner, 30 - corner, 20 - corner, corner - 8])
        far = np.where(every.min(axis=0) >= 0, ((every.T - values) ** 2).sum(axis=1), np.inf)
        assert np.abs(every[:, far.argmin()] - found).max() < 1.01


def test_whole_cells_are_near_those_that_are_not():
    """No other rounding up or down with the same margins has fewer wrong ones by the halves."""
    generator = np.random.default_rng(4)
    for _ in range(20):
        parents = [np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)]
        units = generator.integers(0, 2, 9)
        fractions = np.clip(units + generator.uniform(-0.45, 0.45, 9), 0.01, 0.99)
        missing = [np.bincount(side, units).astype(np.int64) for side in parents]
        assert crossed._units(fractions, parents, missing, False).tolist() == units.tolist()


def test_an_open_table_passes_no_margin_and_rounds_to_the_nearest():
    cells = [table_of([2.6, 2.4, 9.0], 1.0, side, True) for side in ([0, 0, 1], [0, 1, 1])]
    margins = [table_of([20.0, 5.0], 1.0, [0, 0], True), table_of([3.0, 30.0], 1.0, [0, 0], True)]
    found = assert_agree(table_of([60.0]), margins, cells)
    assert found.cells.whole.tolist() == [3, 2, 5]
    assert [other.whole.tolist() for other in found.others] == [[15, 0], [0, 23]]
    assert [side.other.whole.tolist() for side in found.margins] == [[35], [27]]


def test_counts_that_agree_by_themselves_stay_as_they_are():
    counts = np.arange(12.0).reshape(3, 4)
    cells = [table_of(counts.ravel(), 1.0, side) for side in np.divmod(np.arange(12), 4)]
    margins = [table_of(counts.sum(axis=at), 2.0, np.zeros(n)) for at, n in ((1, 3), (0, 4))]
    found = assert_agree(table_of([counts.sum()]), margins, cells)
    assert found.cells.whole.tolist() == counts.ravel().tolist()
    for losses in itertools.product((0.0, 5.0), repeat=2):
        lossy = [m._replace(above=m.above + more) for m, more in zip(margins, losses, strict=True)]
        again = assert_agree(None, lossy, cells)
        assert again.cells.whole.tolist() == counts.ravel().tolist()


def test_more_than_the_solver_of_flows_can_hold_may_be_missing():
    parents, missing = [np.zeros(1, np.int64)] * 2, [np.array([(1 << 31) + 1])] * 2
    assert crossed._units(np.array([0.9]), parents, missing, False).tolist() == [1]
    assert crossed._left(parents, missing).tolist() == [(1 << 31) + 1]

"""Tables that nest: exact sums, and estimates that are those of dense least squares.

All trees are drawn with fixed seeds, so no test has a false alarm.
"""

import itertools
import math

import numpy as np
import pytest

from beam_dp.mechanisms.consistency import tree
from beam_dp.mechanisms.consistency.tables import LAPLACE, UNKNOWN, ReleasedTable

SIGNS = {"counts": True, "both signs": False}
SIZES = {"small": 3.0, "usual": 1e4, "money": 1e12, "beyond floats": 1e18}


def table_of(values, deviation=1.0, parents=(), is_open=False, **more):
    """Return a table whose intervals are of noise alone, but for a loss above."""
    values = np.array(values, float)
    loss, width = np.array(more.pop("loss", np.zeros(len(values)))), np.full(len(values), 2.0)
    parents = np.array(parents, np.int64)
    return ReleasedTable(values, width, width + loss, 2.0, deviation, parents, is_open, **more)


def some_tables(generator, levels=None, size=1e4, is_open=None, most=12, **more):
    """Return random tables that nest: some parents without children, keys in any order."""
    count, tables = int(generator.integers(1, 4)), []
    for level in range(levels or int(generator.integers(2, 6))):
        rows = count if level == 0 else int(generator.integers(1, most))
        parents = generator.integers(0, count, rows) if level else []
        values = generator.normal(0, size, rows) * (generator.random(rows) < 0.8)
        values = np.rint(values) if generator.random() < 0.5 else values
        hidden = bool(level and (generator.random() < 0.4 if is_open is None else is_open))
        loss = generator.exponential(9, rows) * more.get("lossy", False)
        rule = {"loss": loss, "nonnegative": more.get("nonnegative", True)}
        tables.append(table_of(values, generator.uniform(0.3, 3), parents, hidden, **rule))
        count = rows
    return tables


def sums_of(column, parents, size):
    """Return exact sums of integers of any size."""
    sums = [0] * size
    for value, parent in zip(column.tolist(), parents.tolist(), strict=True):
        sums[parent] += value
    return sums


def assert_agree(tables):
    agreed = tree.agree(tables)
    for (above, _), (below, table) in itertools.pairwise(zip(agreed, tables, strict=True)):
        size = len(above.whole)
        total = sums_of(below.whole, table.parents, size)
        assert (below.other is not None) == table.is_open
        if table.is_open:
            other = below.other.whole.tolist()
            assert not table.nonnegative or min(other) >= 0
            total = [a + b for a, b in zip(total, other, strict=True)]
        has = np.bincount(table.parents, minlength=size) > 0
        for parent in np.flatnonzero(has | table.is_open):
            assert total[parent] == int(above.whole[parent])
    for each, table in zip(agreed, tables, strict=True):
        assert each.whole.dtype == np.int64
        assert not table.nonnegative or each.whole.min() >= 0
        assert (each.low <= each.whole).all() and (each.whole <= each.high).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sign", SIGNS)
def test_every_parent_is_the_sum_of_its_children_exactly(sign, size):
    generator = np.random.default_rng(1)
    for _ in range(150):
        lossy = bool(generator.integers(0, 2))
        more = {"nonnegative": SIGNS[sign], "lossy": lossy}
        assert_agree(some_tables(generator, size=SIZES[size], **more))


@pytest.mark.parametrize("sign", SIGNS)
def test_numbers_that_contradict_each_other_agree_too(sign):
    more = {"nonnegative": SIGNS[sign]}
    for top, is_open in itertools.product((-1e30, 0.0, 1.0, 1e30), (True, False)):
        parts = table_of([1e30, -1e30, 1e30, 0.0], 1.0, [0] * 4, is_open, **more)
        assert_agree([table_of([top], **more), parts])


def test_nothing_is_needed_but_one_table():
    [agreed] = tree.agree([table_of([2.5, -3.0])])
    assert agreed.whole.tolist() == [2, 0] and agreed.other is None
    assert agreed.low.tolist() == [0.5, 0.0] and agreed.high.tolist() == [4.5, 2.0]


def test_the_intervals_are_those_of_the_table_and_hold_the_whole_number():
    agreed = tree.agree([table_of([10.0]), table_of([20.0, 7.0], 1e-3, [0, 0])])
    assert agreed[0].whole.tolist() == [27]
    assert agreed[0].low.tolist() == [8.0] and agreed[0].high.tolist() == [27.0]
    assert agreed[1].low.tolist() == [18.0, 5.0] and agreed[1].high.tolist() == [22.0, 9.0]


def dense(tables):
    """Return what generalised least squares say of all rows, and the covariance, by matrices.

    The unknowns are the rows that are the sum of no others; each row is a sum of unknowns.
    """
    ends = np.cumsum([0, *(len(table.values) for table in tables)])
    shares = np.eye(ends[-1])
    for level in range(len(tables) - 1, 0, -1):
        table = tables[level]
        for parent in range(len(tables[level - 1].values)):
            rows = ends[level] + np.flatnonzero(table.parents == parent)
            if len(rows) and not table.is_open:
                shares[ends[level - 1] + parent] = shares[rows].sum(axis=0)
    design = shares[:, np.flatnonzero(shares.any(axis=0))]
    values = np.concatenate([table.values for table in tables])
    noise = np.concatenate([np.full(len(t.values), t.deviation**2) for t in tables])
    covariance = np.diag(noise)
    for start, table in zip(ends, tables, strict=False):
        block = slice(start, start + len(table.values))
        covariance[block, block] += np.outer(table.loss, table.loss)
    half = np.linalg.inv(np.linalg.cholesky(covariance))
    found = np.linalg.lstsq(half @ design, half @ values, rcond=None)[0]
    return np.split(design @ found, ends[1:-1])


def test_estimates_are_those_of_dense_least_squares():
    generator = np.random.default_rng(2)
    for _ in range(150):
        tables = some_tables(generator)
        for (found, weights), table, value in zip(
            tree.estimates(tables), tables, dense(tables), strict=True
        ):
            np.testing.assert_allclose(found, value, atol=1e-6)
            assert len(weights) == len(table.values) and (weights > 0).all()


def test_with_what_clipping_errs_they_are_so_for_one_parent():
    generator = np.random.default_rng(9)
    moved = 0.0
    for _ in range(50):
        size = int(generator.integers(1, 8))
        top = table_of([generator.normal(0, 99)], 2.0, loss=generator.exponential(50, 1))
        values, loss = generator.normal(0, 99, size), generator.exponential(50, size)
        parts = table_of(values, generator.uniform(0.3, 3), [0] * size, loss=loss)
        found = [values for values, _ in tree.estimates([top, parts])]
        for one, other in zip(found, dense([top, parts]), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
        apart = tree.estimates([top, parts._replace(above=parts.below)])
        moved = max(moved, abs(apart[0][0][0] - found[0][0]))
    assert moved > 1, "losses matter"


def test_a_table_that_is_not_known_counts_for_nothing():
    generator = np.random.default_rng(3)
    first, second = some_tables(generator, levels=2, is_open=False)
    third = table_of(generator.normal(0, 99, 40), 1.5, np.arange(40) % len(second.values))
    straight = third._replace(parents=second.parents[third.parents])
    unknown = second._replace(deviation=UNKNOWN)
    found = [values for values, _ in tree.estimates([first, unknown, third])]
    wanted = [values for values, _ in tree.estimates([first, straight])]
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-6)
    np.testing.assert_allclose(found[2], wanted[1], atol=1e-6)


def test_where_parts_are_not_listed_a_parent_tells_nothing_about_the_others():
    generator = np.random.default_rng(4)
    for _ in range(50):
        tables = some_tables(generator, is_open=True)
        for table, (values, _) in zip(tables, tree.estimates(tables), strict=True):
            assert values.tolist() == table.values.tolist()


def test_what_is_not_listed_is_what_is_left_of_the_parent():
    top = table_of([100.0], 1.0, loss=[5.0])
    parts = table_of([30.0, 20.0], 2.0, [0, 0], True, loss=[3.0, 4.0])
    [_, agreed] = tree.agree([top, parts])
    noise = LAPLACE * 3 + 0.5
    assert agreed.whole.tolist() == [30, 20] and agreed.other.whole.tolist() == [50]
    assert agreed.other.low.tolist() == [50 - noise - 7]
    assert agreed.other.high.tolist() == [50 + noise + 5]
    [_, agreed] = tree.agree([top._replace(values=np.array([40.0])), parts])
    assert agreed.other.whole.tolist() == [0] and agreed.other.low.tolist() == [0.0]
    assert agreed.whole.sum() == 40 and agreed.whole[0] > agreed.whole[1]


def nearest(values, weights, total):
    """Return the nearest numbers of at least 0 that add up, the best of all sets above 0."""
    best, least = None, math.inf
    for kept in itertools.product((False, True), repeat=len(values)):
        kept = np.array(kept)
        if not kept.any():
            continue
        price = (values[kept].sum() - total) / weights[kept].sum()
        found = np.where(kept, values - price * weights, 0.0)
        far = float(((found - values) ** 2 / weights).sum())
        if found.min() >= -1e-12 and far < least:
            best, least = found, far
    return best


def test_the_cut_is_the_nearest_one_of_all():
    generator = np.random.default_rng(5)
    for _ in range(60):
        sizes = generator.integers(1, 6, 3)
        parents = generator.permutation(np.repeat(np.arange(3), sizes))
        values = generator.normal(2, 8, len(parents))
        weights = generator.uniform(0.2, 5, len(parents))
        totals = generator.integers(0, 30, 3) * generator.integers(0, 2, 3)
        prices = tree.thresholds(table_of(values, 1.0, parents), values, weights, totals)
        found = np.maximum(values - prices[parents] * weights, 0.0)
        for parent in range(3):
            mine = parents == parent
            wanted = nearest(values[mine], weights[mine], totals[parent])
            np.testing.assert_allclose(found[mine], wanted, atol=1e-9)


def remainders(values, total):
    """Return whole numbers by the textbook: all down, then the largest remainders up."""
    down = [math.floor(value) for value in values]
    order = sorted(range(len(values)), key=lambda at: down[at] - values[at])
    for at in order[: total - sum(down)]:
        down[at] += 1
    return down


def test_whole_numbers_are_those_of_the_largest_remainders():
    generator = np.random.default_rng(6)
    for _ in range(100):
        parents = generator.integers(0, 4, 20)
        values = np.rint(generator.normal(0, 9, 20) * 8) / 8  # many ties
        totals = np.zeros(4, np.int64)
        for parent in np.unique(parents):
            last = np.flatnonzero(parents == parent)[-1]
            totals[parent] = round(values[parents == parent].sum())
            values[last] += totals[parent] - values[parents == parent].sum()
        found = tree.whole_parts(values + 2.0**-20, parents, totals)
        for parent in range(4):
            mine = parents == parent
            assert found[mine].tolist() == remainders(values[mine] + 2.0**-20, totals[parent])


def test_ties_are_broken_by_the_order_of_the_rows():
    parents, halves = np.zeros(4, np.int64), np.full(4, 2.5)
    assert tree.whole_parts(halves, parents, np.array([10])).tolist() == [3, 3, 2, 2]
    whole = tree.whole_parts(np.array([1.0, 1.0, 1.0]), parents[:3], np.array([3]))
    assert whole.tolist() == [1, 1, 1]


def test_rounding_moves_no_row_by_a_unit():
    generator = np.random.default_rng(7)
    for _ in range(60):
        tables = some_tables(generator, levels=2, is_open=False, nonnegative=False)
        (above, _), (parts, weights) = tree.estimates(tables)
        top, agreed = tree.agree(tables)
        parents = tables[1].parents
        shares = weights / tree.sums(parents, weights, len(above))[parents]
        moved = (top.whole - above)[parents] * shares
        assert np.abs(agreed.whole - parts - moved).max() < 1
        assert np.abs(top.whole - above).max() <= 0.5


def test_counts_that_agree_by_themselves_stay_as_they_are():
    generator = np.random.default_rng(8)
    cells, parents = generator.integers(0, 50, 60).astype(float), np.arange(60) // 6
    groups = np.bincount(parents, cells)
    tables = [
        table_of([cells.sum()], 3.0),
        table_of(groups, 2.0, np.zeros(10)),
        table_of(cells, 1.0, parents),
    ]
    for table, agreed in zip(tables, tree.agree(tables), strict=True):
        assert agreed.whole.tolist() == table.values.tolist()

"""Agreement: sums are exact; estimates are those of dense least squares, small cases by search.

All cases are drawn with fixed seeds, so no test has a false alarm.
"""

import itertools
import math

import numpy as np
import pytest

from beam_dp.mechanisms.consistency import agreement
from beam_dp.mechanisms.consistency.agreement import UNKNOWN, Level, Link
from beam_dp.mechanisms.numerics.flows import largest_flow

SIGNS = {"counts": True, "both signs": False}
SIZES = {"small": 3.0, "beyond floats": 1e18}
FINE = 1e6
"""Units are so much finer than the noise where whole numbers are compared with estimates."""


def level(values, variance=1.0, losses=None):
    values = np.array(values, float)
    return Level(values, variance, np.zeros(len(values)) if losses is None else np.array(losses))


def link(coarse, fine, parents, is_open=False):
    return Link(coarse, fine, np.array(parents, np.int64), is_open)


def chain(generator, size=1e4, is_open=None, lossy=False):
    """Return random tables that nest: some parents without children, keys in any order."""
    count, levels, links = int(generator.integers(1, 4)), [], []
    for at in range(int(generator.integers(2, 6))):
        rows = count if at == 0 else int(generator.integers(1, 12))
        values = generator.normal(0, size, rows) * (generator.random(rows) < 0.8)
        values = np.rint(values) if generator.random() < 0.5 else values
        losses = generator.exponential(9, rows) * lossy
        levels.append(level(values, generator.uniform(0.1, 9), losses))
        if at:
            hidden = generator.random() < 0.4 if is_open is None else is_open
            links.append(link(at - 1, at, generator.integers(0, count, rows), bool(hidden)))
        count = rows
    return levels, links


def crossed(generator, size=1e4, is_open=False, with_total=True, lossy=False):
    """Return a total, margins and cells that do not agree; open cells are some of all pairs."""
    height, width = generator.integers(1, 8, 2)
    pairs = generator.permutation(height * width)
    if is_open:
        pairs = pairs[: generator.integers(0, len(pairs) + 1)]
    counts = [1] * with_total + [height, width, len(pairs)]
    levels = [
        level(generator.normal(size / 4, size, n), generator.uniform(0.1, 9), lossy * generator.exponential(9, n))
        for n in counts
    ]  # fmt: skip
    last = len(counts) - 1
    links = [link(0, at, np.zeros(counts[at]), is_open) for at in (1, 2) if with_total]
    sides = np.divmod(pairs, width)
    links += [link(last - 2 + at, last, side, is_open) for at, side in enumerate(sides)]
    return levels, links


def assert_agree(levels, links, nonnegative=True):
    found = agreement.agree(levels, links, nonnegative)
    for coarse, fine, parents, is_open in links:
        total = [0] * len(found[coarse])
        for value, parent in zip(found[fine].tolist(), parents.tolist(), strict=True):
            total[parent] += value
        has = np.bincount(parents, minlength=len(total)) > 0
        for parent in np.flatnonzero(has):
            left = int(found[coarse][parent]) - total[parent]
            assert left == 0 or (is_open and (left > 0 or not nonnegative))
    for each, given in zip(found, levels, strict=True):
        assert each.dtype == np.int64 and each.shape == given.values.shape
        assert not nonnegative or each.min(initial=0) >= 0
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sign", SIGNS)
def test_every_parent_is_the_sum_of_its_children_exactly(sign, size):
    generator = np.random.default_rng(1)
    for at in range(60):
        assert_agree(*chain(generator, SIZES[size], lossy=bool(at % 2)), SIGNS[sign])


@pytest.mark.parametrize("steps", [100, 1])
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sign", SIGNS)
def test_both_margins_and_the_total_are_exact(sign, size, is_open, steps, monkeypatch):
    monkeypatch.setattr(agreement, "_STEPS", steps)
    generator = np.random.default_rng(2)
    for with_total, lossy in 2 * list(itertools.product([True, False], repeat=2)):
        tables = crossed(generator, SIZES[size], is_open, with_total, lossy)
        assert_agree(*tables, SIGNS[sign])


@pytest.mark.parametrize("sign", SIGNS)
def test_numbers_that_contradict_each_other_agree_too(sign):
    for top, is_open in itertools.product((-1e30, 0.0, 1.0, 1e30), (True, False)):
        parts = level([1e30, -1e30, 1e30, 0.0])
        assert_agree([level([top]), parts], [link(0, 1, [0] * 4, is_open)], SIGNS[sign])


def problem(levels, links):
    """Return the shares that rows have of the unknowns, and the covariance of what is known.

    The unknowns are the rows that are the sum of no others; each row is a sum of unknowns.
    """
    ends = np.cumsum([0, *(len(each.values) for each in levels)])
    shares = np.eye(ends[-1])
    for coarse, fine, parents, _ in reversed(links):
        for parent in np.unique(parents):
            rows = ends[fine] + np.flatnonzero(parents == parent)
            shares[ends[coarse] + parent] = shares[rows].sum(axis=0)
    covariance = np.diag(np.concatenate([np.full(len(e.values), e.variance) for e in levels]))
    for start, each in zip(ends, levels, strict=False):
        block = slice(start, start + len(each.values))
        covariance[block, block] += np.outer(each.losses, each.losses)
    return shares[:, np.flatnonzero(shares.any(axis=0))], covariance


def best(levels, links):
    """Return the matrix of generalised least squares, from all numbers to their estimates."""
    design, covariance = problem(levels, links)
    half = np.linalg.inv(np.linalg.cholesky(covariance))
    return design @ np.linalg.pinv(half @ design) @ half


def estimated(levels, links):
    """Return what the tables agree on, hardly rounded."""
    in_units = [Level(e.values * FINE, e.variance * FINE**2, e.losses * FINE) for e in levels]
    return np.concatenate(agreement.agree(in_units, links, nonnegative=False)) / FINE


def test_estimates_are_those_of_dense_least_squares():
    generator = np.random.default_rng(3)
    for _ in range(40):
        levels, links = chain(generator, 50.0, is_open=False)
        wanted = best(levels, links) @ np.concatenate([each.values for each in levels])
        np.testing.assert_allclose(estimated(levels, links), wanted, atol=1e-4)


def test_with_what_clipping_errs_they_are_so_for_one_parent():
    generator = np.random.default_rng(4)
    moved = 0.0
    for _ in range(50):
        size = int(generator.integers(1, 8))
        top = level(generator.normal(0, 99, 1), 4.0, generator.exponential(50, 1))
        parts = level(generator.normal(0, 99, size), 2.0, generator.exponential(50, size))
        links = [link(0, 1, [0] * size)]
        found = estimated([top, parts], links)
        wanted = best([top, parts], links) @ np.concatenate([top.values, parts.values])
        np.testing.assert_allclose(found, wanted, atol=1e-4)
        without = estimated([top, parts._replace(losses=np.zeros(size))], links)
        moved = max(moved, abs(without[0] - found[0]))
    assert moved > 1, "losses matter"


def test_crossed_tables_have_at_most_a_tenth_more_variance_than_the_best_estimate():
    """The estimate is linear and without bias, so its variance is known from unit vectors."""
    generator, worst = np.random.default_rng(5), 1.0
    for _ in range(5):
        levels, links = crossed(generator)
        sizes = np.cumsum([len(each.values) for each in levels])[:-1]
        columns = []
        for unit in np.eye(sizes[-1] + len(levels[-1].values)):
            values = np.split(unit, sizes)
            given = [e._replace(values=v) for e, v in zip(levels, values, strict=True)]
            columns.append(estimated(given, links))
        matrix, (design, covariance) = np.array(columns).T, problem(levels, links)
        np.testing.assert_allclose(matrix @ design, design, atol=1e-3)
        least = best(levels, links)
        spread, lowest = (np.diag(m @ covariance @ m.T) for m in (matrix, least))
        worst = max(worst, float((spread / lowest).max()))
    assert worst < 1.1


def test_a_table_that_is_not_known_counts_for_nothing():
    generator = np.random.default_rng(6)
    top, middle = level([50.0]), np.arange(40) % 5
    cells, unknown = level(generator.normal(0, 9, 40)), level(np.full(5, 9e9), UNKNOWN)
    found = estimated([top, unknown, cells], [link(0, 1, [0] * 5), link(1, 2, middle)])
    straight = estimated([top, cells], [link(0, 1, [0] * 40)])
    np.testing.assert_allclose(np.delete(found, np.arange(1, 6)), straight, atol=1e-4)


def test_where_parts_are_not_listed_a_parent_tells_nothing_about_the_others():
    generator = np.random.default_rng(7)
    for _ in range(20):
        levels, links = chain(generator, is_open=True)
        for given, (values, _) in zip(levels, agreement.estimates(levels, links), strict=True):
            assert values.tolist() == given.values.tolist()


def test_an_open_table_passes_no_margin():
    levels = [level([60.0]), level([20.0, 5.0]), level([3.0, 30.0]), level([2.6, 2.4, 9.0])]
    links = [link(0, at, [0, 0], True) for at in (1, 2)]
    links += [link(1, 3, [0, 0, 1], True), link(2, 3, [0, 1, 1], True)]
    found = assert_agree(levels, links)
    assert [each.tolist() for each in found[:3]] == [[60], [20, 5], [3, 30]]
    assert found[3][0] in (2, 3) and found[3][1] in (2, 3) and found[3][2] == 5


def nearest(values, weights, total):
    """Return the nearest numbers of at least 0 that add up, the best of all sets above 0."""
    chosen, least = None, math.inf
    for kept in itertools.product((False, True), repeat=len(values)):
        kept = np.array(kept)
        if not kept.any():
            continue
        price = (values[kept].sum() - total) / weights[kept].sum()
        found = np.where(kept, values - price * weights, 0.0)
        far = float(((found - values) ** 2 / weights).sum())
        if found.min() >= -1e-12 and far < least:
            chosen, least = found, far
    return chosen


def test_the_cut_is_the_nearest_one_of_all():
    generator = np.random.default_rng(8)
    for _ in range(30):
        sizes = generator.integers(1, 6, 3)
        parents = generator.permutation(np.repeat(np.arange(3), sizes))
        values = generator.normal(2, 8, len(parents))
        weights = generator.uniform(0.2, 5, len(parents))
        totals = generator.integers(0, 30, 3) * generator.integers(0, 2, 3)
        found = agreement._nearest(values, weights, [link(0, 1, parents)], [totals], True)
        for parent in range(3):
            mine = parents == parent
            wanted = nearest(values[mine], weights[mine], totals[parent])
            np.testing.assert_allclose(found[mine], wanted, atol=1e-9)


def test_cells_are_the_nearest_ones_of_at_least_0():
    """A table of 2 x 2 with given margins has one free cell: it is searched."""
    generator = np.random.default_rng(9)
    sides, margins = [[0, 0, 1, 1], [0, 1, 0, 1]], [np.array([30, 12]), np.array([20, 22])]
    links = [link(at, 2, side) for at, side in enumerate(sides)]
    for _ in range(20):
        values = generator.normal(10, 15, 4)
        found = agreement._nearest(values, np.ones(4), links, margins, True)
        corner = np.linspace(0, 20, 20_001)
        every = np.array([corner, 30 - corner, 20 - corner, corner - 8])
        far = np.where(every.min(axis=0) >= 0, ((every.T - values) ** 2).sum(axis=1), np.inf)
        assert np.abs(every[:, far.argmin()] - found).max() < 0.02
        assert np.abs(agreement._whole(found, links, margins, True) - found).max() < 1.01


def test_whole_numbers_are_those_of_the_largest_remainders():
    generator = np.random.default_rng(10)
    for _ in range(40):
        values = generator.normal(0, 9, 20)
        total = round(values.sum())
        values[-1] += total - values.sum()
        [top, parts] = agreement.agree(
            [level([total], 1e-9), level(values)], [link(0, 1, [0] * 20)], False
        )
        wanted = np.floor(values).astype(int)
        order = sorted(range(20), key=lambda at: wanted[at] - values[at])
        wanted[order[: total - wanted.sum()]] += 1
        assert top.tolist() == [total] and parts.tolist() == wanted.tolist()
    ties = agreement.agree([level([10], 1e-9), level([2.5] * 4)], [link(0, 1, [0] * 4)])
    assert ties[1].tolist() == [3, 3, 2, 2], "by the order of the rows"


def test_counts_that_agree_by_themselves_stay_as_they_are():
    generator = np.random.default_rng(11)
    cells = generator.integers(0, 50, (6, 7)).astype(float)
    rows, columns = np.divmod(np.arange(42), 7)
    tables = [[cells.sum()], cells.sum(axis=1), cells.sum(axis=0), cells.ravel()]
    links = [link(0, 1, [0] * 6), link(0, 2, [0] * 7), link(1, 3, rows), link(2, 3, columns)]
    without_total = [each._replace(coarse=each.coarse - 1, fine=2) for each in links[2:]]
    for given, joins in ((tables, links), (tables[1:], without_total)):
        found = agreement.agree([level(each, 1.0 + max(each)) for each in given], joins)
        assert [each.tolist() for each in found] == [[*each] for each in given]


def test_more_than_the_solver_of_flows_can_hold_may_be_missing():
    sides, missing = [link(at, 2, [0]) for at in (0, 1)], [np.array([(1 << 31) + 1])] * 2
    cells = sides[0].parents, sides[1].parents
    assert largest_flow(cells, np.array([True]), *missing)[0].tolist() == [1]
    assert agreement._corners(sides, missing).tolist() == [(1 << 31) + 1]

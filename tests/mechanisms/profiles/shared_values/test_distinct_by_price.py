"""Distinct values of rows of any number of owners: sensitivity exactly 1, for every shape."""

import functools
import itertools
import math
import operator

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.optimization.highs_model import HighsModel
from beam_dp.mechanisms.optimization.packing import packing_cells
from beam_dp.mechanisms.profiles import shared_rows
from beam_dp.mechanisms.profiles.shared_values import distinct_by_price
from tests.sizes import tries as sized

REMOVALS = 5
STEP_ROUNDING = math.sqrt(2) - 1


def some_rows(generator, roles, people=6, most=12, items=5):
    size = int(generator.integers(0, most + 1))
    return generator.integers(-1, people, (roles, size)), generator.integers(0, items, size)


def without(owners, items, gone):
    kept = ~np.isin(owners, list(gone)).any(axis=0) & (owners >= 0).any(axis=0)
    return owners[:, kept], items[kept]


def interlace(before, after):
    """Whether after, the profile with one person more, interlaces with before."""
    up = all(low <= high for low, high in zip(before, after, strict=True))
    return up and all(low <= high for low, high in zip(after[1:], before, strict=False))


@pytest.fixture(params=[1, 2, 3, 4])
def roles(request):
    return request.param


@pytest.mark.sampled(3)
@sized(15, 1_000)
def test_profiles_of_neighbours_interlace(roles, tries):
    generator = np.random.default_rng(roles)
    for _ in range(tries):
        owners, items = some_rows(generator, roles)
        fewer = without(owners, items, [generator.integers(0, 6)])
        before = distinct_by_price.profile(*fewer, REMOVALS)
        after = distinct_by_price.profile(owners, items, REMOVALS)
        assert interlace(before, after)
        assert before == sorted(before, reverse=True)


@sized(6, 100)
def test_it_is_exact_for_nobody_and_at_most_the_exact_profile(roles, tries):
    """All sets of up to 8 people."""
    generator = np.random.default_rng(10 + roles)
    for _ in range(tries):
        owners, items = some_rows(generator, roles, people=8)
        found = distinct_by_price.profile(owners, items, REMOVALS)
        for k, level in enumerate(found):
            sets = itertools.combinations(range(8), k)
            exact = min(len(np.unique(without(owners, items, gone)[1])) for gone in sets)
            assert level <= exact
            assert k or level == exact


def extension(owners, items, price):
    """Return E_D by an independent solver."""
    kept = (owners >= 0).any(axis=0)
    owners, values = owners[:, kept], np.unique(items[kept], return_inverse=True)[1]
    people, size = int(owners.max()) + 1, int(values.max()) + 1
    above = np.zeros((len(values), people + size))
    for row, each in enumerate(owners.T):
        above[row, [*set(each[each >= 0].tolist()), people + values[row]]] = -1
    costs = [float(price)] * people + [1.0] * size
    return float(linprog(costs, above, -np.ones(len(values))).fun)


@pytest.mark.sampled(3)
@sized(2, 20)
def test_it_is_the_formula_over_all_prices_by_an_independent_solver(roles, tries):
    """No extension of so few rows is within 1e-7 of a step: those points are irrational."""
    generator = np.random.default_rng(20 + roles)
    for _ in range(tries):
        owners, items = some_rows(generator, roles)
        owners[0, :1] = 0
        count = len(np.unique(without(owners, items, [])[1]))
        best = [float(count)] + [0.0] * REMOVALS
        prices = map(distinct_by_price.price, itertools.count())
        for at in itertools.takewhile(functools.partial(operator.ge, count), prices):
            parts = extension(owners, items, at) * 32 / float(at) - STEP_ROUNDING
            assert abs(parts - round(parts)) > 1e-7
            start = (math.ceil(parts) - 1) * at / 32
            for k in range(1, REMOVALS + 1):
                best[k] = max(best[k], math.ceil(start - k * at))
        assert distinct_by_price.profile(owners, items, REMOVALS) == best


def test_it_is_near_the_program_by_rows(roles):
    """It gives away at most 1/16 of what k people hold, a part of one person, and rounding."""
    generator = np.random.default_rng(30 + roles)
    owners = generator.integers(0, 30, (roles, 300))
    items = generator.integers(0, 100, 300)
    found = distinct_by_price.profile(owners, items, 8)
    by_rows = shared_rows.distinct(owners, items, 8)
    lost = by_rows[0] - by_rows[1]
    for k, (level, other) in enumerate(zip(found, by_rows, strict=True)):
        assert other - (by_rows[0] - other) / 16 - 0.1 * lost - 1 <= level <= other + 1


def test_a_person_in_two_roles_is_one_owner_and_an_empty_role_is_nobody():
    owners = np.array([[0, 0, 1, -1], [0, -1, 1, -1], [-1, 0, 1, -1]])
    assert distinct_by_price.profile(owners, np.array([5, 5, 6, 7]), 3) == [2, 1, 0, 0]
    nobody = np.full((3, 2), -1)
    assert distinct_by_price.profile(nobody, np.array([1, 2]), 2) == [0, 0, 0]
    assert distinct_by_price.profile(np.zeros((2, 0), int), np.zeros(0, int), 2) == [0, 0, 0]


def test_order_names_and_copies_of_rows_change_nothing():
    generator = np.random.default_rng(40)
    owners, items = some_rows(generator, 3, most=30)
    expected = distinct_by_price.profile(owners, items, REMOVALS)
    order = generator.permutation(np.append(np.arange(len(items)), np.arange(len(items))))
    named = np.where(owners < 0, -1, 7 - owners)[::-1]
    found = distinct_by_price.profile(named[:, order], -3 * items[order], REMOVALS)
    assert found == expected


EVERYWHERE = np.zeros(4_000, np.int64)


def three_alike(size, people=150):
    generator = np.random.default_rng(50)
    return generator.integers(0, people, (3, size))


SHAPES = {
    "one value has all rows": (three_alike(4_000), EVERYWHERE, 1, 1),
    "all values have one row": (three_alike(1_000), np.arange(1_000), 930, 1_000),
    "a person is in everything": (
        np.stack([EVERYWHERE, 1 + np.arange(4_000) % 200, 201 + np.arange(4_000) % 77]),
        np.arange(4_000) % 500,
        0,
        0,
    ),
    "three equal roles": (three_alike(2_000), np.arange(2_000) % 100, 95, 100),
    "everybody owns every value": (
        np.stack([np.arange(4_000) % 80, 80 + np.arange(4_000) // 80]),
        np.arange(4_000) % 50,
        40,
        50,
    ),
}
"""Owners, items, and bounds of B[2] of extreme shapes."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_extreme_shapes_end_soon_and_interlace(shape):
    owners, items, least, most = SHAPES[shape]
    found = distinct_by_price.profile(owners, items, 20)
    assert found[0] == len(np.unique(items)) and least <= found[2] <= most
    rows = np.append(owners, np.full((len(owners), 30), 10_000), axis=1)
    rows[1, -30:] = owners[0, :30]  # a new person shares new values and old ones with others
    more = np.append(items, np.append(items[:15], 20_000 + np.arange(15)))
    assert interlace(found, distinct_by_price.profile(rows, more, 20))


@pytest.mark.audit
def test_the_number_of_tries_and_lying_solvers_do_not_matter(monkeypatch):
    generator = np.random.default_rng(60)
    given = [some_rows(generator, 3, people=12, most=40, items=15) for _ in range(3)]
    expected = [distinct_by_price.profile(*rows, REMOVALS) for rows in given]
    monkeypatch.setattr(distinct_by_price, "_STRIDE", 2)
    monkeypatch.setattr(packing_cells, "_TINY", 0)
    assert [distinct_by_price.profile(*rows, REMOVALS) for rows in given] == expected
    honest = HighsModel.solved

    def lying(self, way):
        found = honest(self, way)
        return found and found._replace(values=found.values[::-1], prices=-found.prices)

    monkeypatch.setattr(packing_cells, "_STEPS", (0, 200))
    monkeypatch.setattr(HighsModel, "solved", lying)
    assert [distinct_by_price.profile(*rows, REMOVALS) for rows in given] == expected


def test_bounds_that_need_not_meet_are_noticed(monkeypatch):
    """Mutant: the first guess is believed."""
    monkeypatch.setattr(packing_cells, "_TINY", 0)
    monkeypatch.setattr(packing_cells._Search, "closed_by", lambda self, guesses: True)
    generator = np.random.default_rng(70)
    pairs = []
    for _ in range(20):
        owners, items = some_rows(generator, 3, most=20, items=12)
        fewer = without(owners, items, [0])
        pairs.append([distinct_by_price.profile(*one, 5) for one in (fewer, (owners, items))])
    assert not all(interlace(before, after) for before, after in pairs)

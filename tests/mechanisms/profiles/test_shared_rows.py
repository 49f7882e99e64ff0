"""Rows of any number of owners: the linear program, rounded, with sensitivity exactly 1."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.optimization import removal_levels, removal_program
from beam_dp.mechanisms.optimization.highs_model import HighsModel
from beam_dp.mechanisms.profiles import shared_rows
from benchmarks.neighbours import REMOVALS, falls, interlace, some_rows
from benchmarks.neighbours import SHARED as STATISTICS
from tests.sizes import tries as sized

ROUNDING = math.sqrt(2) - 1


@pytest.fixture(params=STATISTICS)
def statistic(request):
    return STATISTICS[request.param]


@pytest.fixture(params=[1, 2, 3, 4])
def roles(request):
    return request.param


@pytest.fixture(params=["as it is", "HiGHS"])
def way(request, monkeypatch):
    """Solve tiny programs by HiGHS, too, which rational numbers solve faster."""
    if request.param == "HiGHS":
        monkeypatch.setattr(removal_levels, "_TINY", 0)


@pytest.mark.sampled(17)
@sized(8, 100)
def test_profiles_of_neighbours_interlace(statistic, roles, way, tries):
    generator = np.random.default_rng(roles)
    for _ in range(tries):
        rows = some_rows(generator, roles)
        fewer = rows.without([generator.integers(0, 6)])
        before, after = statistic.profile(fewer), statistic.profile(rows)
        assert interlace(before, after)
        assert falls(before)


@pytest.mark.sampled(11)
@sized(5, 40)
def test_it_is_exact_for_nobody_and_at_most_the_exact_profile(statistic, roles, tries):
    generator = np.random.default_rng(10 + roles)
    for _ in range(tries):
        rows = some_rows(generator, roles, people=8)
        found = statistic.profile(rows)
        assert found[0] == statistic.exact(rows.owned)
        for k in range(1, REMOVALS + 1):
            sets = itertools.combinations(range(8), k)
            assert found[k] <= min(statistic.exact(rows.owned.without(gone)) for gone in sets)


def program(rows, k, of_items, largest):
    """Return LP[k] by an independent solver: the sum over items, or the largest of them."""
    people, size = int(rows.owners.max(initial=-1)) + 1, len(rows.items)
    names = np.unique(rows.items)
    columns = people + size + len(names) + 1
    above, limits = np.zeros((size * 2 + len(names) + 1, columns)), []
    for row in range(size):
        owners = [person for person in rows.owners[:, row].tolist() if person >= 0]
        above[row, [*owners, people + row]] = -1
        limits.append(-1)
    for place, item in enumerate(names, size):
        chosen = people + np.flatnonzero(rows.items == item)
        above[place, chosen] = 0 if of_items else rows.weights[rows.items == item]
        above[place, -1 if largest else people + place] = -1
        limits.append(0)
    for row in range(size):  # the part of an item that stays is that of its largest row
        place = size + len(names) + row
        if of_items:
            above[place, people + row] = 1
            above[place, people + size + int(np.searchsorted(names, rows.items[row]))] = -1
        limits.append(0)
    above[-1, :people] = 1
    costs = np.zeros(columns)
    costs[people + size :] = [0] * len(names) + [1] if largest else [1] * len(names) + [0]
    found = linprog(costs, above, [*limits, k], bounds=[(0, None)] * columns)
    return float(found.fun)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", ["total", "most frequent", "distinct"])
@sized(5, 40)
def test_it_is_the_linear_program_of_an_independent_solver(name, roles, way, tries):
    generator = np.random.default_rng(20 + roles)
    for turn in range(tries):
        people, most = (12, 30) if turn % 5 == 0 else (6, 10)
        rows = some_rows(generator, roles, people, most).owned
        found = STATISTICS[name].profile(rows)
        of_items, largest = name == "distinct", name == "most frequent"
        for k in range(REMOVALS + 1):
            lowest = program(rows, k, of_items, largest) if len(rows.items) else 0.0
            assert found[k] == math.ceil(lowest - ROUNDING - 1e-9)


def test_a_person_in_two_roles_is_one_owner_and_an_empty_role_is_nobody():
    twice, once = np.array([[0], [0], [-1]]), np.array([[0], [-1], [-1]])
    assert shared_rows.total(twice, np.array([5]), 2) == [5, 0, 0]
    assert shared_rows.total(once, np.array([5]), 2) == [5, 0, 0]


def test_a_row_of_nobody_is_left_out():
    owners = np.array([[0, -1], [1, -1]])
    items, counts = np.array([3, 9]), np.array([1, 1])
    assert shared_rows.total(owners, counts, 1) == [1, 0]
    assert shared_rows.distinct(owners, items, 1) == [1, 0]
    assert shared_rows.most_frequent(owners, items, counts, 1) == [1, 0]
    assert shared_rows.kth_largest(owners, items, counts, 1, 1, -7) == [3, -7]


def test_lying_failing_and_stalling_solvers_do_not_matter(statistic, monkeypatch):
    monkeypatch.setattr(removal_levels, "_TINY", 0)
    generator, honest, calls = np.random.default_rng(30), HighsModel.solved, itertools.count()

    def lying(self, way):
        found, call = honest(self, way), next(calls)
        if call % 3 == 0 or found is None:
            return None
        if call % 3 == 1:
            return found._replace(values=generator.normal(size=len(found.values)) * 1e3)
        return found._replace(prices=np.full(len(found.prices), math.nan))

    for _ in range(5):
        rows = some_rows(generator, 3)
        monkeypatch.setattr(HighsModel, "solved", honest)
        expected = statistic.profile(rows)
        monkeypatch.setattr(HighsModel, "solved", lying)
        assert statistic.profile(rows) == expected
        monkeypatch.setattr(HighsModel, "solved", lambda self, way: None)
        assert statistic.profile(rows) == expected


def ranked(rows, k, removals):
    """The definition of the k-th largest: the first item whose rows and those above keep k."""
    owned = rows.owned
    losses = {
        item: shared_rows.total(owned.owners[:, there], owned.weights[there], removals)
        for item in sorted(set(owned.items.tolist()), reverse=True)
        for there in [owned.items >= item]
    }
    return [
        next((item for item, levels in losses.items() if levels[r] >= k), -math.inf)
        for r in range(removals + 1)
    ]


@sized(40, 400)
def test_the_kth_largest_is_that_of_its_definition(tries):
    generator = np.random.default_rng(40)
    for _ in range(tries):
        rows = some_rows(generator, int(generator.integers(1, 5)), most=12)
        k, removals = generator.integers(1, 9, 2).tolist()
        if k > 1 or len(rows.owners) != 2:
            found = shared_rows.kth_largest(*rows, k, removals, -math.inf)
            assert found == ranked(rows, k, removals)


@pytest.mark.parametrize(("k", "most"), [(1, 64), (20, 256)])
def test_rows_far_below_the_kth_largest_are_left_out(k, most, monkeypatch):
    """20,000 rows of 40 clerks, each with two others: of few removals the largest rows decide."""
    generator, sizes = np.random.default_rng(41), []
    people = [generator.integers(0, 40, 20_000), *generator.integers(40, 2_000, (2, 20_000))]
    owners, items = np.stack(people), np.arange(20_000)

    def recorded(*given):
        sizes.append(len(given[1]))
        return removal_program.RemovalProgram(*given)

    monkeypatch.setattr(shared_rows, "RemovalProgram", recorded)
    ones = np.ones(20_000, np.int64)
    found = shared_rows.kth_largest(owners, items, ones, k, 12, -math.inf)
    assert found[0] == 20_000 - k and found == sorted(found, reverse=True)
    assert 0 < max(sizes) <= most
    # None of the others matters.
    few = slice(20_000 - 2 * most, None)
    assert found == shared_rows.kth_largest(owners[:, few], items[few], ones[few], k, 12, -math.inf)

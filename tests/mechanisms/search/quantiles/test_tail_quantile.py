"""TailSearch: its first scan, its formula by brute force, its draws, its floor and its errors."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import DecimalGrid, FinerGrid, default_values
from beam_dp.mechanisms.search.quantiles import tail_quantile
from beam_dp.mechanisms.search.quantiles.node import RESOLUTION, Node, increments
from beam_dp.mechanisms.search.quantiles.tail_quantile import (
    FALSE_STOP,
    NOBODY,
    NOTHING,
    Line,
    ScanResult,
    TailSearch,
)
from tests import laws
from tests.mechanisms.search.quantiles.test_node import chosen, whole

SIZE = 1_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.109.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))
GRID = default_values(Fraction(1, 10**6))


@functools.cache
def at_least(least: int, rate: float) -> float:
    """Return the chance that discrete Laplace noise is so large, by its sum."""
    q = math.exp(-rate)
    span = math.ceil(40 / rate) + abs(least)
    terms = (q ** abs(k) for k in range(-span, span + 1) if k >= least)
    return (1 - q) / (1 + q) * math.fsum(terms)


def beyond(level: float) -> float:
    """Return P(U > level), ln U of Laplace's distribution of scale 1."""
    side = math.exp(-abs(math.log(level))) / 2
    return side if level > 1 else 1 - side


def stops(rate: float, excesses) -> list[float]:
    """Return the chance of each stop, and that to pass all: excesses are A - T."""
    left = [1.0, *map(beyond, np.cumsum(np.exp(rate * np.array(excesses, float))))]
    return [*(-np.diff(left)), left[-1]]


def brute(search: TailSearch, values, points) -> list[float]:
    """Return the probabilities of the docstring, for whole people."""
    n, size = len(values), len(points)
    order = points[::-1] if search.upper else points
    beyond_all = [sum(v >= y if search.upper else v <= y for v in values) for y in order]
    level, *questions = tail_quantile._asked_at_first(search, size)
    places = list(range(tail_quantile.STEP, size, tail_quantile.STEP))
    results = [ScanResult(place, level) for place in places]
    results += [ScanResult(None, people) for people in questions]
    counts = [n if result.edge is None else beyond_all[result.edge] for result in results]
    excesses = [a - math.ceil(result.people) for a, result in zip(counts, results, strict=True)]
    seen = stops(float(search._rates[1]), excesses)
    found = dict.fromkeys([*points, None], 0.0)
    for chance, result in zip(seen, [*results, NOTHING], strict=True):
        levels = tail_quantile._levels(search, size, result)
        asked = float(levels.share) * n + float(levels.more)
        needs = [max(asked, levels.floor_at(place)) for place in range(size)]
        scanned = stops(float(levels.rate), [a - t for a, t in zip(beyond_all, needs, strict=True)])
        for y, stop, here in zip(order, scanned[:-1], beyond_all, strict=True):
            behind = at_least(math.ceil(levels.behind) - (n - here), float(levels.rate))
            kept = 1.0 if levels.many else behind
            found[y] += chance * stop * kept
            found[None] += chance * stop * (1 - kept)
        found[None] += chance * scanned[-1]
    return list(found.values())


@pytest.mark.parametrize("share", [0, Fraction(1, 2), Fraction(1, 10)])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("size", [0, 15, 70])
def test_the_distribution_is_the_formula(share, upper, size, monkeypatch):
    monkeypatch.setattr(tail_quantile, "STEP", 2)
    points = [0, 1, 2, 3, 5, 8]
    candidates = Candidates.of(points)
    values = np.random.default_rng(size).choice(points, size)
    search = TailSearch(Budget(1.5), share, 3, upper, 0.3, 1)
    found = laws.chances_at(search, whole(candidates.indexes(values), candidates), candidates)
    # Levels are rounded up to 1 / 1024 of a person.
    assert found == pytest.approx(brute(search, values, points), rel=3e-3, abs=1e-12)


@pytest.mark.parametrize(
    ("share", "rank", "upper"),
    [(Fraction(1, 10), 0, True), pytest.param(0, 2, False, marks=pytest.mark.audit)],
)
def test_choose_follows_the_distribution(share, rank, upper, monkeypatch):
    monkeypatch.setattr(tail_quantile, "STEP", 3)
    random = np.random.default_rng(3)
    people, buckets = random.integers(0, 14, 30), random.integers(0, 12, 30)
    node = Node.of(*increments(people, buckets, np.ones(30, np.int64), 6), 12)
    candidates = Candidates.of(range(12))
    search = TailSearch(Budget(2), share, rank, upper, 0.3, 6)
    drawn = [chosen(search, node, candidates) for _ in range(SIZE)]
    places = [12 if math.isnan(y) else int(y) for y in drawn]
    counts = np.bincount(places, minlength=13).cumsum() / SIZE
    chances = np.cumsum(laws.chances_at(search, node, candidates))
    assert np.abs(counts - chances).max() < TOLERANCE
    # The broken twin: noise for half of the epsilon.
    twin = laws.chances_at(TailSearch(Budget(1), share, rank, upper, 0.3, 6), node, candidates)
    assert np.abs(counts - np.cumsum(twin)).max() > TOLERANCE


def test_the_budget_is_spent_as_the_theorem_allows():
    for share, epsilon in itertools.product(
        [0, Fraction(1, 10), Fraction(1, 3)], [Fraction(1, 3), 10**400]
    ):
        pure, zcdp = (TailSearch(each(epsilon), share) for each in (Budget, Budget.zcdp))
        for people in (0, 10**9):
            result = ScanResult(None, Fraction(people))
            one, other = (tail_quantile._levels(search, 1000, result) for search in (pure, zcdp))
            assert one.share in ({share} if people else {0, share})
            assert pure._rates[1] + (1 + one.share) * one.rate <= epsilon
            span = 2 * (zcdp._rates[1] + (1 + other.share) * other.rate)
            assert 0 < span**2 <= 8 * epsilon


@pytest.mark.parametrize("budget", [Budget(Fraction(1, 5)), Budget.zcdp(0.5)])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("first", [0, -63])  # the smallest of numbers from 0 on is a scan from 0 up
def test_nobody_is_passed_for_somebody(budget, upper, first):
    # 64 candidates without anybody: stopped at with `false_stop` at most.
    search = TailSearch(budget, 0, 0, upper, 0.1, 1)
    candidates, here = Candidates.of(range(first, first + 64)), 0 if upper else 63
    chances = laws.chances_at(search, whole([here] * 5000, candidates), candidates)
    assert 0.03 < math.fsum(chances) - chances[here] - chances[-1] <= 0.1
    assert chances[here] > 0.85  # all have one value, with nobody behind it
    # Few people far outside: all other candidates have nobody behind them.
    few = laws.chances_at(search, whole([63 - here] * 5, candidates), candidates)
    assert math.fsum(few[:-1]) <= NOBODY + 0.01 + 0.001


@pytest.mark.parametrize(("upper", "n"), [(True, 1), (False, 3), (True, 12)])
def test_few_people_have_no_extreme(upper, n):
    # 100 draws; an answer has at most a chance of 0.5%, or somebody behind it.
    values = 1000 + np.arange(n)
    node = whole(GRID.indexes(values), GRID, RESOLUTION)
    search = TailSearch(Budget(1), upper=upper, false_stop=1e-3)
    drawn = [chosen(search, node, GRID) for _ in range(100)]
    far = [y for y in drawn if not math.isnan(y) and not 0 < y < 1e4]
    assert len(far) <= 15  # of 100 with a chance below 0.6% each: below 1e-15


def test_the_floor_and_the_stated_error():
    search = TailSearch(Budget(1), false_stop=1e-3)
    rate = 0.95  # a twentieth is for the first scan
    assert search.floor(GRID) == math.ceil(math.log(190_000 / (2 * 0.99e-3)) / rate) == 20
    assert search.rank_error(GRID) == 20
    assert TailSearch(Budget(1), rank=100).rank_error(GRID) == 6
    assert TailSearch(Budget(Fraction(1, 5)), rank=100).rank_error(GRID) == 30
    # A tenth of 1,000 people is far above the floor of 20, a tenth of 20 is not.
    tenth = TailSearch(Budget(1), Fraction(1, 10), false_stop=1e-3)
    assert tenth.floor(GRID) == 20
    behind = [tenth._error(tenth._few(GRID), 0, n * tenth.resolution) for n in (900, 18)]
    assert behind == [6, 18]
    # Of candidates on one side of 0 all count.
    ten = Candidates.of(range(1, 11))
    expected = math.log(10 / (2 * 0.99 * FALSE_STOP)) / rate
    assert TailSearch(Budget(1)).floor(ten) == math.ceil(expected)


def test_with_an_edge_the_floor_is_lower_near_it():
    search = TailSearch(Budget(1))
    levels = tail_quantile._levels(search, 190_000, ScanResult(180_000, Fraction(200)))
    # All stretches weigh 2 of the first one.
    near = math.log(2 * 4096 / (2 * 0.75 * 0.99 * FALSE_STOP)) / 0.95
    assert levels.many and near - 0.2 < levels.floors[0] <= near
    assert levels.floors[0] + 2 < search.floor(GRID)
    floors = [levels.floor_at(place) for place in range(0, 190_000, 10_000)]
    assert floors == sorted(floors, reverse=True)
    assert floors[-1] == levels.floors[0]
    far = math.log(190_000 / (2 * 0.25 * 0.99 * FALSE_STOP)) / 0.95
    assert floors[0] == pytest.approx(far)
    assert floors[17] == pytest.approx(levels.floors[0] + math.log(4) / 0.95)


def test_stretches_beyond_an_edge_double_and_weigh_a_quarter():
    first = tail_quantile.STEP
    cuts, weight = tail_quantile.stretches(10 * first)
    assert cuts == (9 * first, 7 * first, 3 * first)
    assert weight == math.ceil(first * (1 + 2 / 4 + 4 / 16 + 3 / 64))
    assert tail_quantile.stretches(first - 1) == ((), first - 1)
    assert tail_quantile.stretches(10**9)[1] == 2 * first


def test_rows_of_which_so_many_are_worth_a_person_are_counted_in_people():
    """900 people at 0, and 100 at 5 with 4 rows each: the 300th largest row is their 75th person."""
    search = TailSearch(Budget(1000), 0, 300, worth=4)
    ten = Candidates.of(range(10))
    node = Node.of(np.array([0, 5, 9]), np.array([900, 60, 40]) * RESOLUTION, 10)
    assert search._asked == 299.5 / 4
    assert chosen(search, node, ten) == 5
    assert chosen(TailSearch(Budget(1000), 0, 300), node, ten) == 0


def test_nobody_is_behind_but_with_the_chance_given():
    levels = tail_quantile._levels(TailSearch(Budget(1)), 1000, NOTHING)
    bound, rate = math.ceil(levels.behind), float(levels.rate)
    enough, less = laws.laplace_at_least(np.array([bound, bound - 1]), rate)
    assert enough <= NOBODY < less


def test_nobody_reaches_the_floor_but_with_the_chance_given():
    floor = tail_quantile._floor(Fraction(1, 2), 1000, 0.01)
    assert 1000 * math.exp(-floor / 2) / 2 == pytest.approx(0.01)
    assert (
        tail_quantile._floor(Fraction(1, 2), 1, 0.9)
        == tail_quantile._floor(Fraction(400), 1000, 0.01)
        == 0.5
    )


# ------------------------------------------------------------------------- slots of a finer grid


@pytest.mark.parametrize("upper", [True, False])
def test_a_finer_grid_is_walked_by_slots_that_weigh_as_the_grid(upper):
    coarse = DecimalGrid(0, 1, 2)
    grid = FinerGrid(coarse)
    values = np.array([-35.0, 2, 2, 17, 30, 30, 31, 88])
    node = whole(grid.indexes(values), grid)
    line = Line.of(node, grid, upper)
    assert line.size == coarse.size * grid.slots and line.side == 20
    for slot in [0, line.size - 1, *np.random.default_rng(1).integers(0, line.size, 200).tolist()]:
        y = grid[grid.index_of_slot(line.size - 1 - slot if upper else slot)]
        there = int(((values >= y) if upper else (values <= y)).sum())
        assert int(line.reached(np.array([slot]))[0]) == there
    # With nobody there, all slots together weigh what the candidates of the grid do.
    search = TailSearch(Budget(1), 0, 0, upper, 0.1, 1)
    weights = []
    for candidates in (grid, coarse):
        empty = Line.of(whole([], candidates), candidates, upper)
        levels = tail_quantile._levels(search, empty.side, NOTHING)
        _, scan = search._scan(empty, levels)
        weights.append(scan._floats()[1][-1])
    assert weights[0] == pytest.approx(weights[1], rel=2e-3)


def test_where_people_lie_denser_than_candidates_less_is_asked_for():
    usual, sparse, dense = (
        TailSearch(Budget(Fraction(1, 16)), Fraction(1, 10), people=n) for n in (0, 1 << 7, 1 << 20)
    )
    more, less, known = (
        tail_quantile._levels(each, 190_000, ScanResult(180_000, Fraction(200))).more
        for each in (usual, dense, sparse)
    )
    rate = float(usual._rates[0] / (1 + usual.share))
    assert known == more and less == pytest.approx(math.log(1300 / (1 << 20) * 10 / rate) / rate)

"""TailSearch: its formula by brute force, its draws, its floor, and what it refuses."""

import functools
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.defaults import default_values
from beam_dp.mechanisms.search import RankProfile, increments
from beam_dp.mechanisms.search.ranks import first_look
from beam_dp.mechanisms.search.ranks.first_look import Line, Sight
from beam_dp.mechanisms.search.ranks.node import Node
from beam_dp.mechanisms.search.ranks.rank_profile import RESOLUTION
from beam_dp.mechanisms.search.ranks.tail import NOBODY, STRAY, TailSearch

SIZE = 2_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.077.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))
GRID = default_values(Fraction(1, 10**6))


def whole(buckets, resolution: int = 1) -> RankProfile:
    """Return the profile of people with one row each."""
    return RankProfile(np.array(buckets, np.int64), np.full(len(buckets), resolution), resolution)


@functools.cache
def at_least(least: int, rate: float) -> float:
    """Return the chance that discrete Laplace noise is so large, by its sum."""
    q = math.exp(-rate)
    reach = math.ceil(40 / rate) + abs(least)
    terms = (q ** abs(k) for k in range(-reach, reach + 1) if k >= least)
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
    look = search._look(size)
    places = list(range(first_look.STEP, size, first_look.STEP))
    least = [math.ceil(look.level)] * len(places) + [math.ceil(each) for each in look.questions]
    people = [beyond_all[place] for place in places] + [n] * len(look.questions)
    seen = stops(float(look.rate), [a - t for a, t in zip(people, least, strict=True)])
    found = dict.fromkeys([*points, None], 0.0)
    for chance, (sight, _) in zip(seen, look.chances(LINE), strict=True):
        levels = search._levels(size, sight)
        asked = float(levels.share) * n + float(levels.more)
        needs = [max(asked, levels.floor_at(place)) for place in range(size)]
        walked = stops(float(levels.rate), [a - t for a, t in zip(beyond_all, needs, strict=True)])
        for y, stop, here in zip(order, walked[:-1], beyond_all, strict=True):
            behind = at_least(math.ceil(levels.behind) - (n - here), float(levels.rate))
            kept = 1.0 if levels.many else behind
            found[y] += chance * stop * kept
            found[None] += chance * stop * (1 - kept)
        found[None] += chance * walked[-1]
    return list(found.values())


LINE = Line.of(Node.of(whole([0]), 6), True)
"""Somebody: what can be seen does not depend on them."""


@pytest.mark.parametrize("share", [0, Fraction(1, 2), Fraction(1, 10)])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("size", [0, 2, 15, 70])
def test_the_distribution_is_the_formula(share, upper, size, monkeypatch):
    monkeypatch.setattr(first_look, "STEP", 2)
    points = [0, 1, 2, 3, 5, 8]
    candidates = Candidates.of(points)
    values = np.random.default_rng(size).choice(points, size)
    search = TailSearch(Budget(1.5), share, 3, upper, 0.3, 1)
    found = search.distribution(whole(candidates.indexes(values)), candidates)
    # Levels are rounded up to 1 / 1024 of a person.
    assert found == pytest.approx(brute(search, values, points), rel=3e-3, abs=1e-12)


@pytest.mark.parametrize(
    ("share", "rank", "upper"),
    [(0.1, 0, True), pytest.param(0, 2, False, marks=pytest.mark.audit)],
)
def test_choose_follows_the_distribution(share, rank, upper, monkeypatch):
    monkeypatch.setattr(first_look, "STEP", 3)
    random = np.random.default_rng(3)
    people, buckets = random.integers(0, 14, 30), random.integers(0, 12, 30)
    profile = RankProfile(*increments(people, buckets, np.ones(30, np.int64), 6), 6)
    candidates = Candidates.of(range(12))
    search = TailSearch(Budget(2), share, rank, upper, 0.3, 6)
    drawn = [search.choose_from(profile, candidates) for _ in range(SIZE)]
    places = [12 if math.isnan(y) else int(y) for y in drawn]
    counts = np.bincount(places, minlength=13).cumsum() / SIZE
    chances = np.cumsum(search.distribution(profile, candidates))
    assert np.abs(counts - chances).max() < TOLERANCE
    # The broken twin: noise for half of the epsilon.
    twin = TailSearch(Budget(1), share, rank, upper, 0.3, 6).distribution(profile, candidates)
    assert np.abs(counts - np.cumsum(twin)).max() > TOLERANCE


def test_both_directions_are_mirror_images():
    values, points = [0, 1, 1, 2, 6, 6, 6, 7], range(8)
    candidates = Candidates.of(points)
    up = TailSearch(Budget(2), 0.2, 0, False, 0.3, 1)
    down = TailSearch(Budget(2), 0.2, 0, True, 0.3, 1)
    one = up.distribution(whole(values), candidates)
    other = down.distribution(whole([7 - value for value in values]), candidates)
    assert one == pytest.approx([*other[-2::-1], other[-1]])


def test_the_budget_is_spent_as_the_theorem_allows():
    for share, epsilon in itertools.product([0, 0.1, Fraction(1, 3)], [Fraction(1, 3), 10**400]):
        pure, zcdp = (TailSearch(each(epsilon), share) for each in (Budget, Budget.zcdp))
        for people in (0, 10**9):
            sight = Sight(None, Fraction(people))
            one, other = (search._levels(1000, sight) for search in (pure, zcdp))
            exact = Fraction(str(share))
            assert one.share in ({exact} if people else {0, exact})
            assert pure._look(1000).rate + (1 + one.share) * one.rate <= epsilon
            reach = 2 * (zcdp._look(1000).rate + (1 + other.share) * other.rate)
            assert 0 < reach**2 <= 8 * epsilon


@pytest.mark.parametrize("budget", [Budget(1), Budget(Fraction(1, 5)), Budget.zcdp(0.5)])
@pytest.mark.parametrize("upper", [True, False])
def test_nobody_is_passed_for_somebody(budget, upper):
    # 64 candidates without anybody: stopped at with `stray` at most.
    search = TailSearch(budget, 0, 0, upper, 0.1, 1)
    size, here = 64, 0 if upper else 63
    chances = search.distribution(whole([here] * 5000), Candidates.of(range(size)))
    assert 0.03 < math.fsum(chances) - chances[here] - chances[-1] <= 0.1
    assert chances[here] > 0.85  # all have one value, with nobody behind it
    # Few people far outside: all other candidates have nobody behind them.
    few = search.distribution(whole([63 - here] * 5), Candidates.of(range(size)))
    assert math.fsum(few[:-1]) <= NOBODY + 0.01 + 0.001


@pytest.mark.parametrize(("rank", "stray"), [(0, 1e-3), (100, 1e-3), (0, 0.5)])
def test_ranks_on_the_default_grid(rank, stray):
    values = np.random.default_rng(5).lognormal(3, 1, 1000)
    profile = whole(GRID.indexes(values), RESOLUTION)
    search = TailSearch(Budget(1), 0, rank, stray=stray)
    for draw in range(20):
        beyond = (values >= search.choose_from(profile, GRID)).sum()
        if stray < 0.1:  # noise of 40 people: below e^-40 each; else anywhere above
            assert beyond <= max(rank, 20) + 40, draw
            assert beyond >= rank - 60


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("n", [1, 3, 8, 12])
def test_few_people_have_no_extreme(upper, n):
    # 100 draws; an answer has at most a chance of 0.5%, or somebody behind it.
    values = 1000 + np.arange(n)
    profile = whole(GRID.indexes(values), RESOLUTION)
    drawn = [
        TailSearch(Budget(1), upper=upper, stray=1e-3).choose_from(profile, GRID)
        for _ in range(100)
    ]
    far = [y for y in drawn if not math.isnan(y) and not 0 < y < 1e4]
    assert len(far) <= 15  # of 100 with a chance below 0.6% each: below 1e-15


def test_the_floor_and_the_stated_error():
    search = TailSearch(Budget(1), stray=1e-3)
    rate = 0.95  # a twentieth is for the first look
    assert search.floor(GRID) == math.ceil(math.log(190_000 / (2 * 0.99e-3)) / rate) == 20
    assert search.rank_error(GRID) == search.rank_error(GRID, 10**6) == 20
    assert TailSearch(Budget(1), rank=100).rank_error(GRID) == 6
    assert TailSearch(Budget(Fraction(1, 5)), rank=100).rank_error(GRID) == 30
    # A tenth of 1,000 people is far above the floor of 20, a tenth of 20 is not.
    tenth = TailSearch(Budget(1), 0.1, stray=1e-3)
    assert tenth.floor(GRID) == 20
    assert (tenth.rank_error(GRID, 900), tenth.rank_error(GRID, 18)) == (6, 18)
    # Of candidates on one side of 0 all count.
    ten = Candidates.of(range(1, 11))
    expected = math.log(10 / (2 * 0.99 * STRAY)) / rate
    assert TailSearch(Budget(1)).floor(ten) == math.ceil(expected)


def test_with_an_edge_the_floor_is_lower_near_it():
    search = TailSearch(Budget(1))
    levels = search._levels(190_000, Sight(180_000, Fraction(200)))
    # All stretches weigh 2 of the first one.
    near = math.log(2 * 4096 / (2 * 0.75 * 0.99 * STRAY)) / 0.95
    assert levels.many and near - 0.2 < levels.floor <= near
    assert levels.floor + 2 < search.floor(GRID)
    floors = [levels.floor_at(place) for place in range(0, 190_000, 10_000)]
    assert floors == sorted(floors, reverse=True)
    assert floors[-1] == levels.floor
    far = math.log(190_000 / (2 * 0.25 * 0.99 * STRAY)) / 0.95
    assert floors[0] == pytest.approx(far)
    assert floors[17] == pytest.approx(float(levels.floor) + math.log(4) / 0.95)


def test_few_people_have_no_share():
    # Of so few people a tenth is below the floor: what is left of s pays for less noise.
    search = TailSearch(Budget(1), 0.1)
    few, many = (search._levels(190_000, Sight(None, Fraction(n))) for n in (100, 150))
    assert (few.share, many.share) == (0, Fraction(1, 10))
    assert few.rate == Fraction(19, 20) and many.rate == few.rate / Fraction(11, 10)


def test_one_candidate():
    alone = Candidates.of([4])
    chances = TailSearch(Budget(1), 0, 3, resolution=1).distribution(whole([0] * 50), alone)
    assert NOBODY < chances[0] < 0.2  # nobody is behind it, and 50 are hardly many
    assert TailSearch(Budget(1), resolution=1).distribution(whole([0] * 500), alone)[0] > 0.99
    assert math.fsum(chances) == pytest.approx(1)


def test_what_it_costs_and_how_it_travels():
    search = TailSearch(Budget(1, 1e-6), 0.1)
    assert search.cost == Budget(1)
    assert pickle.loads(pickle.dumps(search)) == search


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: TailSearch(1.0), TypeError, "budget must be a Budget, not 1.0"),
        (lambda: TailSearch(Budget(1), 1), ValueError, "share must be from 0 to below 1, not 1"),
        (lambda: TailSearch(Budget(1), 0, -1), ValueError, "rank must be at least 0, not -1"),
        (lambda: TailSearch(Budget(1), stray=0), ValueError, "stray must be above 0 and below 1"),
        (lambda: TailSearch(Budget(1), resolution=0), ValueError, "resolution must be an int"),
    ],
)
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_rows_of_which_so_many_are_worth_a_person_are_counted_in_people():
    """900 people at 0, and 100 at 5 with 4 rows each: the 300th largest row is their 75th person."""
    search = TailSearch(Budget(1000), 0, 300, worth=4)
    profile = RankProfile(np.array([0, 5, 9]), np.array([900, 60, 40]) * RESOLUTION)
    assert search._asked == 299.5 / 4
    assert search.choose_from(profile, Candidates.of(range(10))) == 5
    assert TailSearch(Budget(1000), 0, 300).choose_from(profile, Candidates.of(range(10))) == 0
    with pytest.raises(ValueError, match="worth must be"):
        TailSearch(Budget(1), worth=0)

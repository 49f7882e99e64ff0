"""SplitSearch: its parts, its draws and its order."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import FinerGrid, default_values
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.search.quantiles import several_quantiles
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import RESOLUTION, Answer, Node, increments
from beam_dp.mechanisms.search.quantiles.several_quantiles import NO_TIES, SplitSearch
from beam_dp.mechanisms.search.quantiles.tail_quantile import TailSearch
from tests import laws
from tests.doubles import ZeroNoise

HALF = Fraction(1, 2)
SIZE = 2_000
# Hoeffding, two-sided, for one probability: above this with a chance of 1e-12 at most.
TOLERANCE = math.sqrt(math.log(2e12) / (2 * SIZE))
GRID = default_values(Fraction(1, 10**6))
FINER = FinerGrid(GRID)


def chosen(search: SplitSearch, node: Node, candidates: Candidates) -> list:
    """Return one candidate per share, NaN for none."""
    answers = search.answers(node, candidates, Noise())
    return [answer.value(candidates) for answer in answers]


def test_one_share_is_the_search_itself():
    node, candidates = Node.of(np.arange(9), np.full(9, 2), 9), Candidates.of(range(9))
    found = laws.chances_at(SplitSearch(Budget(2), (HALF,), 2), node, candidates)
    alone = laws.chances_at(CentralSearch(Budget(2), HALF, 2), node, candidates)
    assert list(found.values()) == alone
    assert list(found) == [*((i,) for i in range(9)), (None,)]


@pytest.mark.audit
@pytest.mark.parametrize(
    ("shares", "are_ends"),
    [
        ((HALF / 2, HALF, 3 * HALF / 2), False),
        ((HALF / 5, HALF), False),
        ((HALF, 1 - HALF / 5), False),
        ((HALF / 2, HALF, 3 * HALF / 2), True),
    ],
)
def test_choose_follows_the_distribution(shares, are_ends):
    random = np.random.default_rng(3)
    people, buckets = random.integers(0, 14, 40), random.integers(0, 4, 40)
    node = Node.of(*increments(people, buckets, np.ones(40, np.int64), 2), 4, are_ends)
    candidates = Candidates.of(range(4))
    search = SplitSearch(Budget(8), shares, 2)
    chances = laws.chances_at(search, node, candidates)
    assert math.fsum(chances.values()) == pytest.approx(1)
    counts = dict.fromkeys(chances, 0)
    for _ in range(SIZE):
        drawn = chosen(search, node, candidates)
        counts[tuple(None if math.isnan(y) else int(y) for y in drawn)] += 1
    for answers, chance in chances.items():
        assert abs(counts[answers] / SIZE - chance) < TOLERANCE


@pytest.mark.parametrize(
    ("shares", "first"),
    [("0.5", 0), ("0.25 0.75", 0), ("0.75 0.95", 0), ("0.05 0.25", 1), ("0.1 0.5 0.9", 1)],
)
def test_of_two_the_one_nearer_to_the_middle_is_first(shares, first):
    assert several_quantiles._middle(tuple(map(Fraction, shares.split()))) == first


def test_between_answers_and_public_ends_no_answer_weighs_little():
    weights = {}
    for are_ends in (False, True):
        node = Node.of(np.arange(8), np.full(8, 6), 8, are_ends)
        lower, upper = node.split(4)
        between, _ = upper.split(6)
        [_, (alone, *_)] = several_quantiles._parts(node, (HALF, 2 * HALF / 3), None, NO_TIES)
        parts = (node, 0), (lower, 1), (upper, 1), (between, 2), (alone, 1)
        weights[are_ends] = [several_quantiles._none(*part) for part in parts]
    assert weights == {False: [128, 128, 128, 1, 128], True: [128, 1, 1, 1, 128]}


def test_every_search_has_the_weight_of_its_node(monkeypatch):
    weights, choose_at = [], CentralSearch.choose_at

    def noted(search, *rest):
        weights.append(search.none)
        return choose_at(search, *rest)

    monkeypatch.setattr(CentralSearch, "choose_at", noted)
    amounts = np.full(9, 10**4 * RESOLUTION)
    for are_ends, found in ((False, [128, 128, 128]), (True, [128, 1, 1])):
        node = Node.of(np.arange(9), amounts, 9, are_ends)
        shares = (HALF * 3 / 4, HALF, HALF * 5 / 4)
        chosen(SplitSearch(Budget(1), shares), node, Candidates.of(range(9)))
        assert weights == found
        weights.clear()


@pytest.mark.parametrize("share", [Fraction(3, 10), HALF])
def test_the_weight_of_no_answer_is_that_of_the_search(share):
    node, candidates = Node.of(np.arange(8), np.full(8, 3), 8), Candidates.of(range(8))
    few, many = (
        laws.chances_at(CentralSearch(Budget(2), share, 2, none), node, candidates)
        for none in (1, 128)
    )
    assert many[-1] / many[3] == pytest.approx(128 * few[-1] / few[3])


def test_answers_rise_and_are_near():
    values = np.random.default_rng(4).lognormal(3, 1, 3000)
    node = Node.of(GRID.indexes(values), np.full(3000, RESOLUTION), GRID.size)
    shares = [Fraction(part, 20) for part in (2, 5, 10, 15, 18)]
    for _ in range(10):
        found = chosen(SplitSearch(Budget(1), tuple(shares)), node, GRID)
        assert found == sorted(found)
        ranks = np.searchsorted(np.sort(values), found, side="right")
        # Noise of e^-60 for each third of epsilon, 380,001 candidates: below 1e-15.
        assert np.abs(ranks - 3000 * np.array(shares, float)).max() < 250


def test_without_a_root_the_part_nearest_to_the_middle_goes_on(monkeypatch):
    # 18 people: too few for the 0.9-quantile in the root, enough for the median.
    node = Node.of(np.arange(30), np.full(30, RESOLUTION), 30)
    candidates = Candidates.of(range(30))
    monkeypatch.setattr(TailSearch, "choose_at", lambda *_: Answer())
    found = chosen(SplitSearch(Budget(40), (HALF, 1 - HALF / 5, 1 - HALF / 50)), node, candidates)
    assert abs(found[0] - 15) < 5  # a rank 5 off has a chance below e^-90
    assert math.isnan(found[1]) and math.isnan(found[2])


# ------------------------------------------------------------------------- people of one value

QUARTERS = (HALF / 2, HALF, 3 * HALF / 2)
TIED = {
    "6,000 at 100": np.concatenate([np.full(6000, 100.0), np.arange(4000) % 99 + 1]),
    "ages": np.round(np.random.default_rng(1).normal(42, 15, 10_000)),
    "flags": np.repeat([0.0, 1.0], [7000, 3000]),
    "prices": np.floor(np.random.default_rng(2).lognormal(2, 1, 10_000)) + 0.99,
    "one value": np.full(10_000, 5.0),
    "zeros": np.append(np.zeros(9000), np.arange(1000) + 1.0),
}


def rank_errors(values: np.ndarray, found: list[float], shares) -> np.ndarray:
    """Return how many people each answer is off; NaN is off by all."""
    ordered, asked = np.sort(values), len(values) * np.array(shares, float)
    below, until = (np.searchsorted(ordered, found, side) for side in ("left", "right"))
    off = np.maximum(np.maximum(below - asked, asked - until), 0)
    return np.where(np.isnan(found), len(values), off)


def of_values(values: np.ndarray) -> Node:
    return Node.of(FINER.indexes(values), np.full(len(values), RESOLUTION), FINER.size)


@pytest.mark.sampled(len(TIED))
@pytest.mark.parametrize("kind", TIED)
@pytest.mark.parametrize("shares", [QUARTERS, tuple(Fraction(i, 10) for i in range(1, 10))])
def test_ranks_hold_where_many_people_have_one_value(kind, shares):
    """The 0.25-quantile of 6,000 people of 100, and 4,000 below, was 100, the 0.75-quantile NaN."""
    values, held, number = TIED[kind], 0, 10
    node = of_values(values)
    for _ in range(number):
        answers = SplitSearch(Budget(1), shares).answers(node, FINER, Noise(), len(values))
        found = [answer.value(FINER) for answer in answers]
        assert found == sorted(found)
        errors = rank_errors(values, found, shares)
        # The places of three levels, of which one is off by 100 with a chance below e^-14 / 2;
        # three are so much off, or a search is, with a chance below 1e-15.
        assert errors.max() < 500
        held += int((errors <= [answer.error for answer in answers]).sum())
    # 95% hold each, and those of one draw may fail together: of 10 draws fewer than 3 hold wholly
    # with a chance of 5%^8 * 45 < 2e-9 * 1e-1 at most.
    assert held >= 0.3 * number * len(shares)


def test_few_people_of_one_value_are_not_counted():
    search = SplitSearch(Budget(1), QUARTERS)
    few = search._ties((500 * RESOLUTION, RESOLUTION, 500 * RESOLUTION), HALF, 1, ZeroNoise())
    assert few == NO_TIES and search._left(1, few) == search.level_cost(1)
    # 400 below, 500 here and 100 above: 100 of the 500 are below the median.
    many = search._ties(tuple(n * RESOLUTION for n in (400, 500, 100)), HALF, 1, ZeroNoise())
    assert (many.below, many.above) == (100 * RESOLUTION, 400 * RESOLUTION)
    assert many.error is not None and 0 < many.error < 20
    assert search._left(1, many) == search.level_cost(1).scaled(Fraction(3, 4))
    # The median is not among these at all: the place is within them all the same.
    beyond = search._ties(tuple(n * RESOLUTION for n in (900, 100, 300)), HALF, 1, ZeroNoise())
    assert (beyond.below, beyond.above) == (0, 100 * RESOLUTION)


@pytest.mark.parametrize(("tied", "left"), [(0, 1), (6_000, Fraction(3, 4))])
def test_nobody_pays_for_more_than_the_levels(tied, left, monkeypatch):
    """Levels cost the whole together; whoever is at a split pays there for the ties, else below."""
    values = np.append(np.full(tied, 50.0), np.arange(1, 10_001) / 100)
    searches, sums = [], []
    adder, index = several_quantiles.AdditiveNoise, int(FINER.indexes(np.array([50.0]))[0])

    def searched(_search, _p, cost, *_):
        searches.append(cost)
        return SimpleNamespace(choose_at=lambda *_: Answer(index, 1, 0))

    def added(cost):
        sums.append(cost)
        return adder(cost)

    monkeypatch.setattr(SplitSearch, "_search", searched)
    monkeypatch.setattr(several_quantiles, "AdditiveNoise", added)
    whole = SplitSearch(Budget(1), QUARTERS)
    first, second = whole.level_cost(0), whole.level_cost(1)
    assert first.amount + second.amount == 1
    whole.answers(of_values(values), FINER, ZeroNoise(), len(values))
    assert searches == [first, second.scaled(left), second.scaled(left)]
    ties = [second.scaled(1 - several_quantiles._TIES), second.scaled(several_quantiles._TIES)]
    assert sums == (ties if tied else ties[:1])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shares", [(HALF,), (Fraction(9, 10),), QUARTERS])
def test_people_who_share_four_digits_are_told_apart(shares):
    """100,000 people from 1 on: 70 near the median have the same four digits."""
    values = np.round(1 + np.random.default_rng(6).pareto(2, 100_000), 6)
    node = of_values(values)
    search = SplitSearch(Budget(1), shares)
    drawn = [search.answers(node, FINER, Noise(), len(values)) for _ in range(12)]
    errors = [
        rank_errors(values, [answer.value(FINER) for answer in answers], shares)
        for answers in drawn
    ]
    # On the grid of four digits it was 50, or 90 of quarters. More than half of 12 draws are off
    # by 30, 20 people more than 95% are, with a chance below (0.05 e^-9)^6 * 924 < 1e-25.
    assert np.median(errors, axis=0).max() < 30

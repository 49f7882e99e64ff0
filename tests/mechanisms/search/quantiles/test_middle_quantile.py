"""CentralSearch: its formula, its draws, and its answer for too few."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import DecimalGrid
from beam_dp.mechanisms.search.quantiles.middle_quantile import NONE, CentralSearch
from beam_dp.mechanisms.search.quantiles.node import Node, increments
from tests import laws
from tests.mechanisms.search.quantiles.test_node import chosen, whole

SIZE = 4_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.0545.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))


def formula(values, points, weights, p: float, epsilon: float) -> list[float]:
    """Return the probabilities of the docstring for people with one value each, with floats."""
    n, most = len(values), max(p, 1 - p)
    scores, before = [], 0
    for point in points:
        until = sum(value <= point for value in values)
        scores.append(min(0, until - p * n, p * n - before))
        before = until
    terms = [w * math.exp(epsilon * u / (2 * most)) for w, u in zip(weights, scores, strict=True)]
    none = NONE * sum(weights) * math.exp(-epsilon * min(p, 1 - p) * n / (2 * most))
    return [term / (sum(terms) + none) for term in [*terms, none]]


@pytest.mark.parametrize(("p", "epsilon"), [(0.5, 0.5), (0.375, 3.0), (0.75, 0.5)])
@pytest.mark.parametrize("size", [0, 1, 30])
def test_the_distribution_is_the_formula(p, epsilon, size):
    random = np.random.default_rng(size)
    points = [0, 1, 2, 3, 5, 8, 13]
    values = random.choice([0, 1, 3, 5, 5, 13], size)
    candidates = Candidates.of(points)
    found = laws.chances_at(
        CentralSearch(Budget(epsilon), Fraction(p), 1),
        whole(candidates.indexes(values), candidates),
        candidates,
    )
    assert found == pytest.approx(formula(values, points, [1] * 7, p, epsilon), rel=1e-9)


@pytest.mark.audit
@pytest.mark.parametrize(
    ("candidates", "p"), [(DecimalGrid(0, 1, 1), 0.5), (Candidates.of(range(12)), 0.75)]
)
def test_choose_follows_the_distribution(candidates, p):
    random = np.random.default_rng(3)
    people, buckets = random.integers(0, 9, 20), random.integers(0, 12, 20)
    weights = increments(people, buckets, np.ones(20, np.int64), 6)
    node = Node.of(*weights, candidates.size)
    search = CentralSearch(Budget(3), Fraction(p), 6)
    drawn = [chosen(search, node, candidates) for _ in range(SIZE)]
    places = [candidates.size if math.isnan(y) else candidates.index(y) for y in drawn]
    counts = np.bincount(places, minlength=candidates.size + 1).cumsum() / SIZE
    chances = np.cumsum(laws.chances_at(search, node, candidates))
    assert np.abs(counts - chances).max() < TOLERANCE
    # The broken twin: noise for twice the epsilon, 0.12 or more away.
    twin = laws.chances_at(CentralSearch(Budget(6), Fraction(p), 6), node, candidates)
    assert np.abs(counts - np.cumsum(twin)).max() > TOLERANCE


def test_with_nobody_and_with_data_beyond_all_candidates():
    search = CentralSearch(Budget(1), resolution=1)
    three, one = Candidates.of([1, 2, 3]), Candidates.of([1])
    chances = laws.chances_at(search, whole([], three), three)
    assert chances == pytest.approx([1 / 3 / 129] * 3 + [128 / 129])
    # No candidate is so large: people count at the last one.
    assert laws.chances_at(search, whole([7] * 60, three), three)[2] > 0.999999
    assert laws.chances_at(search, whole([0] * 60, one), one)[0] > 0.99999


@pytest.mark.parametrize("size", [1, 5, 20, 40])
@pytest.mark.parametrize("p", [0.5, 0.75])
def test_far_from_all_data_comes_out_in_less_than_one_percent(size, p):
    # 40 values from 100 to 139; the others are beyond 10 ranges.
    points = [*range(-20, 0), *range(100, 100 + 20), *range(10**6, 10**6 + 20)]
    candidates = Candidates.of(points)
    values = np.linspace(100, 119, size)
    found = laws.chances_at(
        CentralSearch(Budget(1), Fraction(p), 1),
        whole(candidates.indexes(values), candidates),
        candidates,
    )
    assert math.fsum(found[:20]) + math.fsum(found[40:60]) < 1 / (NONE + 1)


def test_the_stated_rank_error():
    errors = [
        CentralSearch(Budget(e), Fraction(p)).usual_error
        for e, p in ((1, 0.5), (0.2, 0.5), (1, 0.75))
    ]
    assert errors == [4, 20, 6]
    assert CentralSearch(Budget.zcdp(0.5)).usual_error == 2  # epsilon = 2

"""SplitSearch: its parts, its draws and its order."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import default_values
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.search.quantiles.end_quantile import TailSearch
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import RESOLUTION, Answer, Node, increments
from beam_dp.mechanisms.search.quantiles.several_quantiles import SplitSearch
from tests import laws

HALF = Fraction(1, 2)
SIZE = 2_000
# Hoeffding, two-sided, for one probability: above this with a chance of 1e-12 at most.
TOLERANCE = math.sqrt(math.log(2e12) / (2 * SIZE))
GRID = default_values(Fraction(1, 10**6))


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


@pytest.mark.parametrize(
    "shares",
    [
        pytest.param((HALF / 2, HALF, 3 * HALF / 2), marks=pytest.mark.audit),
        pytest.param((HALF / 5, HALF), marks=pytest.mark.audit),
        (HALF, 1 - HALF / 5),
    ],
)
def test_choose_follows_the_distribution(shares):
    random = np.random.default_rng(3)
    people, buckets = random.integers(0, 14, 40), random.integers(0, 4, 40)
    node = Node.of(*increments(people, buckets, np.ones(40, np.int64), 2), 4)
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

"""FirstLook: its order of people, its law, how often it is misled, and stretches beyond an edge."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.search import RankProfile
from beam_dp.mechanisms.search.ranks import first_look
from beam_dp.mechanisms.search.ranks.first_look import (
    FirstLook,
    Line,
    Sight,
    level_for,
    stretches,
)
from beam_dp.mechanisms.search.ranks.node import Node
from tests.doubles import ZeroNoise

RATE = Fraction(1, 2)


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch):
    monkeypatch.setattr(first_look, "STEP", 10)


def line(buckets, amounts, size: int, upper: bool) -> Line:
    return Line.of(Node.of(RankProfile(np.array(buckets), np.array(amounts), 1), size), upper)


def test_people_are_in_the_order_of_the_walk():
    up, down = (line([2, 5, 9], [1, 3, 4], 12, upper) for upper in (False, True))
    assert up.indexes.tolist() == [2, 5, 9] and down.indexes.tolist() == [2, 6, 9]
    places = np.array([0, 2, 5, 6, 11])
    assert up.reached(places).tolist() == [0, 1, 4, 4, 8]
    assert down.reached(places).tolist() == [0, 4, 4, 7, 8]
    assert up.total == down.total == 8


def test_what_is_seen_first():
    people = line([5, 15, 25], [7, 40, 100], 45, False)
    look = FirstLook(RATE, Fraction(40), [Fraction(30), Fraction(20)], 1)
    # Without noise ln U is 0: 47 people are at the edge 20 or before, for a level of 40.
    assert look.see(people, ZeroNoise()) == Sight(20, Fraction(40))
    assert look._replace(level=Fraction(200)).see(people, ZeroNoise()) == Sight(None, Fraction(30))
    few = line([5], [4], 45, False)
    assert look.see(few, ZeroNoise()) == Sight(None, Fraction(0))
    assert look.see(line([5], [22], 45, False), ZeroNoise()) == Sight(None, Fraction(20))


def test_the_law():
    look = FirstLook(RATE, Fraction(9), [Fraction(8), Fraction(3)], 1)
    sights, chances = zip(*look.chances(line([5, 15], [2, 3], 25, True)), strict=True)
    assert [sight.edge for sight in sights] == [10, 20, None, None, None]
    assert [sight.people for sight in sights] == [9, 9, 8, 3, 0]
    weights = np.exp(0.5 * (np.array([3, 5, 5, 5]) - [9, 9, 8, 3]))
    ends = np.cumsum(weights)
    left = [1, *np.where(ends < 1, 1 - ends / 2, 1 / (2 * ends))]
    assert chances == pytest.approx([*-np.diff(left), left[-1]])


def test_an_edge_where_nobody_is():
    # 40 edges without anybody: one of them is seen with 1% at most, and hardly less.
    level = Fraction(level_for(RATE, 400, 0.01))
    look = FirstLook(RATE, level, [], 1000)
    seen = look.chances(line([405], [0], 411, False))
    chance = math.fsum(each for sight, each in seen if sight.edge)
    assert 0.009 < chance <= 0.01 * 41 / 40  # there are 41
    assert level_for(RATE, 5, 0.6) == 0.0


@pytest.mark.parametrize("people", [0, 30, 500])
def test_draws_are_among_what_can_be_seen(people):
    look = FirstLook(RATE, Fraction(60), [Fraction(20)], 1)
    made = line([15], [people], 45, False)
    sights = dict(look.chances(made))
    drawn = [look.see(made, Noise()) for _ in range(50)]
    assert set(drawn) <= set(sights)
    usual = {
        0: Sight(None, Fraction(0)),
        30: Sight(None, Fraction(20)),
        500: Sight(20, Fraction(60)),
    }
    # Less often than in half of 50 draws: below 1e-10, as its chance is above 0.9.
    assert sights[usual[people]] > 0.9 and drawn.count(usual[people]) > 25


def test_stretches_beyond_an_edge_double_and_weigh_a_quarter():
    assert stretches(100) == ((90, 70, 30), 10 + 20 // 4 + math.ceil(40 / 16 + 30 / 64))
    assert stretches(8) == ((), 8)
    assert stretches(30) == ((20,), 15)
    assert stretches(10**9)[1] == 20


def test_edges_are_few_however_many_candidates_there_are():
    assert first_look._edges(45).tolist() == [10, 20, 30, 40]
    many = first_look._edges(1 << 61)
    assert len(many) == first_look.EDGES - 1 and (np.diff(many) == 1 << 49).all()
    nobody = Line.of(Node.of(RankProfile(np.array([3]), np.array([0]), 1), 1 << 61), True)
    look = FirstLook(RATE, Fraction(level_for(RATE, 1 << 61, 0.01)), [], 1)
    assert math.fsum(each for sight, each in look.chances(nobody) if sight.edge) <= 0.01

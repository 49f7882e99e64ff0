"""Levels of walks: the floor by its place, and the chances of discrete Laplace noise."""

import math
from fractions import Fraction

import pytest

from beam_dp.mechanisms.search.ranks.levels import (
    Levels,
    exceeded,
    floor_of,
    laplace_at_least,
    rounded_up,
)


def test_the_floor_rises_at_cuts_up_to_the_most():
    numbers = map(Fraction, (3, 10, 13))
    rest = {"cuts": (70, 40), "behind": Fraction(5), "many": True}
    levels = Levels(Fraction(1, 2), Fraction(0), *numbers, **rest)
    step = math.log(4) / 0.5
    found = [levels.floor_at(place) for place in (99, 70, 69, 40, 39, 0)]
    assert found == pytest.approx([10, 10, 10 + step, 10 + step, 13, 13])


def test_nobody_reaches_the_floor_but_with_the_chance_given():
    floor = floor_of(Fraction(1, 2), 1000, 0.01)
    assert 1000 * math.exp(-floor / 2) / 2 == pytest.approx(0.01)
    assert floor_of(Fraction(1, 2), 1, 0.9) == floor_of(Fraction(400), 1000, 0.01) == 0.5


@pytest.mark.parametrize("rate", [0.05, 1.0, 7.0])
def test_laplace_noise_by_its_sum(rate):
    q = math.exp(-rate)
    whole = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-900, 901)]
    for least in (-3, 0, 1, 12):
        assert laplace_at_least(least, rate) == pytest.approx(math.fsum(whole[900 + least :]))
    bound = math.ceil(exceeded(0.005, rate))
    assert laplace_at_least(bound, rate) <= 0.005 * (1 + 1e-9)
    assert bound == 0 or laplace_at_least(bound - 1, rate) > 0.005


def test_levels_are_not_rounded_down():
    assert all(0 <= rounded_up(each) - Fraction(each) < 2.0**-40 for each in (0.1, 5.0, 1e6 + 0.3))

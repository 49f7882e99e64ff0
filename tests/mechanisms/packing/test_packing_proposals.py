"""The first-order method: guesses that come close, and never matter otherwise."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.packing.packing_program import Packing
from beam_dp.mechanisms.packing.packing_proposals import PackingProposals
from tests.mechanisms.packing.test_packing_program import some_packing


def gap(packing, steps):
    """Return how far the best bounds of guesses are apart, in prices."""
    guesses = list(PackingProposals(packing).guesses(steps))
    lows = [packing.lower(guess.packed) for guess in guesses]
    highs = [packing.upper(guess.removed)[0] for guess in guesses]
    return float(min(highs) - max(lows))


@pytest.mark.parametrize("single", [False, True])
def test_guesses_come_close_to_the_value(single):
    generator = np.random.default_rng(3)
    for _ in range(4):
        packing = some_packing(generator, single=single)
        assert gap(dataclasses.replace(packing, price=Fraction(3, 2)), 2_000) < 0.05


@pytest.mark.parametrize("price", [Fraction(5, 2), Fraction(3), Fraction(7, 2)])
def test_parts_of_everybody_are_found_in_few_steps(price):
    """200 values of 20 rows of three people out of 200 who are alike: about 3 values for each."""
    generator = np.random.default_rng(4)
    owners = np.sort(generator.integers(0, 200, (4_000, 3)), axis=1)
    owners[owners == np.roll(owners, 1, axis=1)] = -1
    values = np.repeat(np.arange(200), 20)
    assert gap(Packing(owners, values, np.ones(200, np.int64), price), 400) < 1 / 32

"""The profile is the maximum over the whole grid of prices, whatever the search leaves out."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.profiles import lipschitz_envelope
from beam_dp.mechanisms.profiles.lipschitz_envelope import Point
from tests.sizes import tries as sized

REMOVALS = 12


class Lines:
    """A relaxation with the given (removed, left) points: its twin is the least of their lines."""

    def __init__(self, generator):
        size = int(generator.integers(1, 9))
        scale = 2.0 ** generator.integers(-3, 20)
        self.total = int(generator.integers(1, 10) * scale) + 1
        removed = generator.integers(0, 3 * REMOVALS, size)
        left = [min(self.total, int(v)) for v in generator.random(size) * self.total]
        halves = [Fraction(int(r), int(generator.integers(1, 3))) for r in removed]
        # Without anybody removed, all is left; after enough of them, nothing.
        self.points = [(Fraction(0), self.total), (Fraction(3 * REMOVALS), 0)]
        self.points += [(r, v) for r, v in zip(halves, left, strict=True) if r > 0]
        self.steepest = max(
            (-(-(self.total - v) // r) for r, v in self.points[1:]), default=Fraction(1)
        )
        self.calls = 0

    def level(self, price, removals):
        return 0

    def everyone(self, level):
        return Point(Fraction(self.total), Fraction(3 * REMOVALS))

    def point(self, price, level):
        self.calls += 1
        least, removed = min((v + price * r, r) for r, v in self.points)
        return Point(Fraction(self.total - least), removed)


def scanned(lines, k):
    """Return the maximum over the grid, and the price 0, by trying every price that can be best."""
    prices = [lipschitz_envelope.price(i) for i in range(lipschitz_envelope.LAST + 1)]
    most = [p for p in prices if p <= 2 * lines.steepest]
    return max(0, *(lines.total - lines.point(p, 0).loss - k * p for p in most))


def wrong_somewhere(seed, runs):
    generator = np.random.default_rng(seed)
    for _ in range(runs):
        lines = Lines(generator)
        found = lipschitz_envelope.profile(lines, REMOVALS)
        assert lines.calls < 100
        assert found[0] == lines.total
        ks = generator.choice(np.arange(1, REMOVALS + 1), 2, replace=False).tolist()
        if any(found[k] != scanned(lines, k) for k in ks):
            return True
    return False


@sized(15, 60)
def test_the_search_finds_the_maximum_over_the_whole_grid(tries):
    assert not wrong_somewhere(1, tries)


def test_a_search_that_gives_up_early_is_noticed(monkeypatch):
    # The broken twin: of the two prices beside the best one it takes the lower, whatever it costs.
    monkeypatch.setattr(lipschitz_envelope._Lower, "at", lambda self, price, k: 0)
    assert wrong_somewhere(1, 60)


def test_the_grid_rises_by_a_64th_and_holds_the_small_integers():
    prices = [lipschitz_envelope.price(i) for i in range(lipschitz_envelope.LAST + 1)]
    assert prices[0] == Fraction(1, 64) and prices[-1] == 2**62
    pairs = list(itertools.pairwise(prices))
    assert all(1 < after / before <= Fraction(65, 64) for before, after in pairs)
    assert set(range(1, 129)) <= set(prices)


@pytest.mark.parametrize("value", [0, Fraction(1, 64), 1, Fraction(4, 3), 100, 1001, 2**62])
def test_first_price_is_the_first_that_is_enough(value):
    index = lipschitz_envelope.first_price(value)
    assert lipschitz_envelope.price(index) >= value
    assert index == 0 or lipschitz_envelope.price(index - 1) < value

"""SparseVectorScan: its law by an integral, its draws, its exact path, and what a person
changes."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.noise.sampling import Noise, Stop
from beam_dp.mechanisms.search.quantiles.tail_quantile import SparseVectorScan
from tests import laws
from tests.doubles import ZeroNoise
from tests.mechanisms.search.quantiles.test_tail_quantile import beyond

SIZE = 4_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.0545.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))
RUNS = ([9, 5, 6, 2, -1], [4, 1, 3, 2, 5])


def scan(needs, lengths, rate=Fraction(1, 2)) -> SparseVectorScan:
    return SparseVectorScan(rate, np.array(needs, np.int64), np.array(lengths, np.int64))


@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 2), Fraction(3)])
def test_the_chances_are_laplace_s(rate):
    needs, lengths = RUNS
    weights = np.repeat([math.exp(-rate * need) for need in needs], lengths)
    left = [1.0, *map(beyond, np.cumsum(weights))]
    expected = [before - after for before, after in itertools.pairwise(left)]
    found = laws.scan_chances(scan(*RUNS, rate))
    assert found == pytest.approx([*expected, left[-1]], rel=1e-6, abs=1e-15)
    assert math.fsum(found) == pytest.approx(1, abs=1e-12)


def places(stops, lengths) -> list[int]:
    begins = np.append(0, np.cumsum(lengths))
    return [
        int(begins[-1]) if stop is None else int(begins[stop.run]) + stop.passed for stop in stops
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("exact", [False, True])
def test_draws_follow_the_chances(exact, monkeypatch):
    size = SIZE // 4 if exact else SIZE
    if exact:
        monkeypatch.setattr(SparseVectorScan, "_by_floats", lambda *_: None)
    made = scan(*RUNS)
    drawn = places([made.stop(Noise()) for _ in range(size)], RUNS[1])
    counts = np.bincount(drawn, minlength=16).cumsum() / size
    tolerance = TOLERANCE * math.sqrt(SIZE / size)
    assert np.abs(counts - np.cumsum(laws.scan_chances(made))).max() < tolerance
    # The broken twin: noise for half of the rate.
    twin = np.cumsum(laws.scan_chances(scan(*RUNS, Fraction(1, 4))))
    assert np.abs(counts - twin).max() > tolerance


class Words(Noise):
    """Noise of given words, for both paths alike."""

    def __init__(self, words):
        object.__setattr__(self, "given", iter(words))

    def words(self, size):
        return np.array([next(self.given) for _ in range(size)], np.uint64)


def test_levels_that_floats_cannot_tell():
    # V is 0 as far as 64 bits go, and so is its inverse unknown: more bits are asked for.
    assert scan([40], [5]).stop(Words([1, 0, 0, 1 << 60, *[7] * 20])) is None
    assert scan([0], [5]).stop(Words([0, 0, 0, *[7] * 20])) == Stop(0, 0)
    # The level is 1, within 2^-64; the first three candidates weigh 3 e^-1 > 1.
    assert scan([2], [5]).stop(ZeroNoise()) == Stop(0, 2)


def test_weights_beyond_all_floats():
    far = scan([10**6, -(10**6)], [5, 3])
    assert far.stop(ZeroNoise()) == Stop(1, 0)
    assert far.stop(Words([1, 1, 1, 1, 1, 1])) == Stop(1, 0)  # U is about 2^64
    assert laws.scan_chances(far)[5] == pytest.approx(1)


def test_a_person_more_moves_every_chance_as_the_theorem_allows():
    # Random scans, persons of all shapes: shares that do not fall, levels that move by what does
    # not fall either.
    random, rate, worst = np.random.default_rng(9), 0.7, 0.0
    for _ in range(150):
        count = int(random.integers(1, 7))
        needs = random.normal(0, 6, count)
        g = np.sort(random.choice([0, 0.3, 1], count))
        d = np.sort(random.choice([0, 0.2], count))
        one, other = (
            np.array(laws.scan_chances(SparseVectorScan(rate, each, np.ones(count, np.int64))))
            for each in (needs, needs - g + d)
        )
        change = np.log(other / one)
        assert (np.abs(change[:-1]) <= rate * (g + d) + 1e-9).all()
        assert -rate - 1e-9 <= change[-1] <= rate * 0.2 + 1e-9
        worst = max(worst, float(np.abs(change[:-1]).max()))
    assert worst > 0.8

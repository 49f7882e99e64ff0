"""The draws that searches share follow their formulas exactly."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.search import exponential
from tests.mechanisms.search.test_searches import distance

SIZE = 20_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.0244.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))


def test_draw_below_is_uniform():
    noise = Noise()
    drawn = [exponential.draw_below(5, noise) for _ in range(SIZE)]
    assert distance(drawn, [0.2] * 5) < TOLERANCE
    # The broken twin: four of five values.
    assert distance([value % 4 for value in drawn], [0.2] * 5) > TOLERANCE
    assert exponential.draw_below(1, noise) == 0
    assert 0 <= exponential.draw_below(2**100, noise) < 2**100


RUNS = [(3, 4), (1, 0), (2**70, 300), (5, 2), (40, 9), (7, 4)]


def run_chances(rate: float) -> list[float]:
    """Return the probabilities of these runs by the formula."""
    weights = [size * math.exp(-rate * score) for size, score in RUNS]
    return [weight / math.fsum(weights) for weight in weights]


@pytest.mark.audit
@pytest.mark.parametrize("band", [exponential._FINE, 2.0])
def test_runs_follow_their_weights_by_floats_and_by_exact_intervals(band, monkeypatch):
    # A band as wide as the whole leaves everything to the exact intervals.
    monkeypatch.setattr(exponential, "_FINE", band)
    sizes = np.array([size for size, _ in RUNS], object)
    scores = np.array([score for _, score in RUNS], np.int64)
    size = SIZE if band < 1 else SIZE // 4
    drawn = [exponential.draw_run(sizes, scores, Fraction(1, 4), Noise()) for _ in range(size)]
    assert distance(drawn, run_chances(0.25)) < TOLERANCE * math.sqrt(SIZE / size)
    # The broken twin: half of the rate.
    assert distance(drawn, run_chances(0.125)) > TOLERANCE * math.sqrt(SIZE / size)


def test_sizes_beyond_all_floats():
    sizes, scores = np.array([2**2000, 3 * 2**2000, 1], object), np.array([0, 0, -4])
    drawn = [exponential.draw_run(sizes, scores, Fraction(1, 4), Noise()) for _ in range(2_000)]
    assert distance(drawn, [0.25, 0.75, 0.0]) < TOLERANCE * math.sqrt(10)

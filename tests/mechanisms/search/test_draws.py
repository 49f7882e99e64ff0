"""The thinned draws follow their formulas exactly."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.noise.sampling import LazyUniform, Noise
from beam_dp.mechanisms.search import draws

SIZE = 20_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.0244.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))


def distance(drawn: list[int], chances: list[float]) -> float:
    """Return sup |F_n - F| for values 0, 1, ... with these chances."""
    counts = np.bincount(drawn, minlength=len(chances))
    return float(np.abs(np.cumsum(counts) / len(drawn) - np.cumsum(chances)).max())


def stops(rate: float, limit: int) -> list[float]:
    """Return P(min(G, limit) = g) for g = 0..limit, success having probability e^-rate."""
    p = math.exp(-rate)
    return [*(p * (1 - p) ** g for g in range(limit)), (1 - p) ** limit]


# 4 e^-2.4 = 0.363 < 1/e: thinned. The others are not, or hardly ever stop.
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("unit", "multiple", "limit"),
    [(Fraction(3, 5), 4, 4), (Fraction(1, 2), 1, 3), (Fraction(1), 3, 7)],
)
def test_thinning_follows_first_success(unit, multiple, limit):
    noise = Noise()
    words = noise.words(SIZE).tolist()
    drawn = [draws.failures_before_success(unit, multiple, limit, w, noise) for w in words]
    assert distance(drawn, stops(float(unit * multiple), limit)) < TOLERANCE


def test_thinning_without_acceptance_would_be_noticed(monkeypatch):
    # The broken twin accepts every proposal: it stops with probability b = 0.363, not 0.316.
    monkeypatch.setattr(Noise, "bernoulli_below", lambda *_: True)
    monkeypatch.setattr(Noise, "first_success", lambda _self, _rate, limit: limit)
    noise = Noise()
    words = noise.words(SIZE).tolist()
    drawn = [draws.failures_before_success(Fraction(3, 5), 4, 4, w, noise) for w in words]
    assert distance(drawn, stops(2.4, 4)) > TOLERANCE


def test_the_bound_of_thinning_is_a_bound():
    for limit in (1, 7, 10**6, 2**64, 2**2000):
        for rate in (1e-3, 1.5, 40.0, 44.5, 700.0, 1500.0, 1e9):
            bound = draws._bound(rate, limit)
            exponent = math.log(limit) - rate
            if bound is None:
                assert exponent > -1 - 1e-6
            else:
                assert bound >= 1
                assert exponent < -700 or math.log(bound) >= exponent + 64 * math.log(2)


def test_without_trials_or_without_failures_the_answer_is_zero():
    noise = Noise()
    assert draws.failures_before_success(Fraction(1), 5, 0, 0, noise) == 0
    assert draws.failures_before_success(Fraction(1), 0, 5, 0, noise) == 0
    assert draws.failures_before_success(Fraction(1), -3, 2**70, 2**64 - 1, noise) == 0


def test_draw_below_is_uniform():
    noise = Noise()
    drawn = [draws.draw_below(5, noise) for _ in range(SIZE)]
    assert distance(drawn, [0.2] * 5) < TOLERANCE
    # The broken twin: four of five values.
    assert distance([value % 4 for value in drawn], [0.2] * 5) > TOLERANCE
    assert draws.draw_below(1, noise) == 0
    assert 0 <= draws.draw_below(2**100, noise) < 2**100


def test_draw_by_score_follows_its_weights():
    noise = Noise()
    groups = [(3, 2), (1, 0), (10, 5), (2, -1)]
    drawn = [draws.draw_by_score(groups, Fraction(3, 7), noise) for _ in range(4_000)]
    weights = [size * math.exp(-3 / 7 * score) for size, score in groups]
    chances = [weight / sum(weights) for weight in weights]
    # DKW as above, for 4,000 draws: 0.0545.
    assert distance(drawn, chances) < math.sqrt(math.log(2e10) / 8_000)
    # The broken twin: weights without the sizes.
    bare = [math.exp(-3 / 7 * score) for _, score in groups]
    twin = [weight / sum(bare) for weight in bare]
    assert distance(drawn, twin) > math.sqrt(math.log(2e10) / 8_000)


RUNS = [(3, 4), (1, 0), (2**70, 300), (5, 2), (40, 9), (7, 4)]


def run_chances(rate: float) -> list[float]:
    """Return the probabilities of these runs by the formula."""
    weights = [size * math.exp(-rate * score) for size, score in RUNS]
    return [weight / math.fsum(weights) for weight in weights]


@pytest.mark.parametrize("band", [draws._FINE, 2.0])
def test_runs_follow_their_weights_by_floats_and_by_exact_intervals(band, monkeypatch):
    # A band as wide as the whole leaves everything to the exact intervals.
    monkeypatch.setattr(draws, "_FINE", band)
    sizes = np.array([size for size, _ in RUNS], object)
    scores = np.array([score for _, score in RUNS], np.int64)
    size = SIZE if band < 1 else SIZE // 4
    drawn = [draws.draw_run(sizes, scores, Fraction(1, 4), Noise()) for _ in range(size)]
    assert distance(drawn, run_chances(0.25)) < TOLERANCE * math.sqrt(SIZE / size)
    # The broken twin: half of the rate.
    assert distance(drawn, run_chances(0.125)) > TOLERANCE * math.sqrt(SIZE / size)


@dataclasses.dataclass(frozen=True)
class Given(Noise):
    """Noise that gives one uniform."""

    kept: LazyUniform

    def uniform(self) -> LazyUniform:
        return self.kept


def test_floats_and_exact_intervals_agree_on_the_same_uniform():
    # Whatever the uniform, the run that floats take is the one that contains it.
    random = np.random.default_rng(7)
    for _ in range(200):
        sizes, scores = random.integers(1, 10**6, 50), random.integers(0, 60, 50)
        uniform = Noise().uniform()
        uniform.interval(64)
        pairs = list(zip(sizes.tolist(), scores.tolist(), strict=True))
        one = draws.draw_run(sizes, scores, Fraction(1, 3), Given(uniform))
        assert one == draws.draw_by_score(pairs, Fraction(1, 3), Noise(), uniform)

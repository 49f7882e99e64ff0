"""The best fixed clip: its formulas are those of simulated noise, its grid misses no better clip."""

import math

import numpy as np
import pytest

from benchmarks import best_clips, suites
from benchmarks.best_clips import Scale

SCALES = [Scale.laplace(1.0, 1), Scale.laplace(0.3, 3), Scale.normal(0.0171, 1)]
DRAWS = 400_000


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("bias", [0.0, -0.7, 2.0, 40.0])
def test_quantiles_and_means_are_those_of_noise(scale, bias):
    """5% of the errors are beyond the quantile: 7.5 standard errors of 400,000, below 1e-13."""
    clip = 1.5
    errors = abs(bias + clip * scale.drawn(DRAWS, 1))
    [bound] = scale.quantile(np.array([bias]), np.array([clip]))
    [mean] = scale.mean(np.array([bias]), np.array([clip]))
    assert abs((errors > bound).mean() - 0.05) < 7.5 * math.sqrt(0.05 * 0.95 / DRAWS)
    assert abs(errors.mean() - mean) < 7.5 * errors.std() / math.sqrt(DRAWS)


@pytest.mark.parametrize("kind", ["lognormal 1", "Pareto 1.5", "uniform", "one giant"])
def test_no_clip_does_better(kind):
    amounts = suites.numbers(kind, 500, 0)
    scale = Scale.laplace(1.0, 1)
    tried = np.geomspace(amounts.max() / 1e4, amounts.max(), 5000)
    least = scale.quantile(best_clips.biases(amounts, tried), tried).min()
    assert best_clips.quantile_error(amounts, scale) <= 1.005 * least

"""Intervals of shares and variances hold the truth."""

import numpy as np
import pytest

import beam_dp as dp
from benchmarks import draws, together

RUNS = 100

SPREAD = {dp.Variance: np.var, dp.StandardDeviation: np.std, dp.Ratio: np.mean}


@pytest.mark.parametrize("people", together.FEWER[:2])
@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("ages, one row", dp.StandardDeviation("v")),
        ("ages, one row", dp.Variance("v", low=0, high=110)),
        ("exponential, some rows", dp.Variance("v")),
        ("clicks, 50 rows", dp.Ratio("v")),
    ],
    ids=lambda each: getattr(each, "output", each),
)
def test_intervals_hold_the_truth(name, metric, people):
    """At 95% each, 100 intervals hold it less than 75 times with a chance of 3e-12."""
    rows = together.rows_of(name, people)
    [found] = draws.summarise(rows, [metric], dp.Budget(1.0)).draws(RUNS)
    truth = SPREAD[type(metric)](rows.columns["v"])
    assert found.holds(truth).sum() >= 75
    assert np.isfinite(found.value).all()

"""Other statistics and their experts: errors are what they are called, laws are those they claim."""

import math

import numpy as np
import pytest

from benchmarks import expert_laws
from benchmarks.other_statistics import OTHERS
from benchmarks.suites import Rows

NAMED = {other.name: other for other in OTHERS}
TEN = Rows(np.arange(10), np.zeros(10, np.int64), {"v": np.arange(1.0, 11.0)})


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("median", 5.0, 0.0),
        ("median", 5.5, 0.0),
        ("median", 4.0, 1.0),
        ("median", 8.0, 2.0),
        ("0.9-quantile", 9.0, 0.0),
        ("0.9-quantile", 3.0, 6.0),
        ("0.9-quantile", 99.0, 1.0),
        ("10th largest", 1.0, 0.0),
        ("10th largest", 3.0, 2.0),
        ("10th largest", 0.5, 1.0),
        ("largest", 10.0, 0.0),
        ("largest", 5.0, math.log(2)),
        ("largest", 20.0, math.log(2)),
        ("largest", -3.0, 10.0),
    ],
)
def test_errors_of_ranks_and_extremes(name, value, error):
    assert NAMED[name].errors(TEN, np.array([value]))[0] == pytest.approx(error)


def test_the_law_of_quantiles_is_that_of_noisy_maxima():
    """Of two candidates the better wins with 1 - e^-d / 2, d the distance over the scale.

    With 40,000 draws the share is within 7 standard errors, a chance below 1e-11.
    """
    drawn = expert_laws.noisy_best(
        np.array([1.0, 2.0]), np.array([-3.0, -1.0]), 1.0, np.random.default_rng(0), 40_000
    )
    chance = 1 - math.exp(-2) / 2
    assert abs((drawn == 2).mean() - chance) < 7 * math.sqrt(chance * (1 - chance) / 40_000)

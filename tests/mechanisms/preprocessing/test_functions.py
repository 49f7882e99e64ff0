"""g in double precision: that of the brute force to 12 digits, whatever the values."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms import preprocessing
from beam_dp.mechanisms.preprocessing import windows
from tests.mechanisms.preprocessing import brute

ORDERED = ["mean", "median", "maximum", "minimum"]


def called(name, values, delta, empty):
    if name == "trimmed_mean":
        return preprocessing.trimmed_mean(values, delta, empty, brute.TRIM)
    if "variance" in name:
        return preprocessing.variance(values, delta, sample=name == "sample_variance")
    return getattr(preprocessing, name)(values, delta, empty)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", brute.STATISTICS)
def test_it_is_the_definition(name):
    generator = np.random.default_rng(1)
    for _ in range(400):
        values = [value / 7 for value in brute.database(generator, 7)]
        delta = float(generator.exponential(5))
        empty = 0.0 if "variance" in name else float(generator.normal(0, 10))
        exact = brute.preprocessed(
            brute.STATISTICS[name],
            [Fraction(v) for v in values],
            [Fraction(delta)] * len(values),
            empty,
        )
        largest = max([1.0, abs(empty), *map(abs, values)]) ** (2 if "variance" in name else 1)
        assert abs(called(name, values, delta, empty) - exact) <= 1e-12 * largest


@pytest.mark.parametrize("name", [*ORDERED, "trimmed_mean", "variance"])
def test_extreme_values_and_deltas(name):
    empty = 0.0 if name == "variance" else 3.0
    assert called(name, [], 1, empty) == empty
    assert called(name, [1e308, -1e308, 5.0], 0, empty) == empty
    huge = called(name, [1e308, -1e308, 1e308], 1e308, empty)
    assert not math.isnan(huge)
    assert called(name, np.full(9, 4.0), 10**400, empty) == (0 if name == "variance" else 4)
    assert called(name, [7], 1, empty) == (0 if name == "variance" else 4)


@pytest.mark.parametrize("values", [[1.0, math.inf], [math.nan], [[1.0, 2.0]], 5.0])
def test_values_that_are_no_column_of_numbers_are_refused_and_not_shown(values):
    for name in (*ORDERED, "trimmed_mean", "variance"):
        with pytest.raises(ValueError, match="values must be (finite|one number per person)[.]$"):
            called(name, values, 1, 0)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="sensitivity must be at least 0, not -1"):
        preprocessing.mean([1], -1)
    with pytest.raises(ValueError, match="trim must be from 0 to below 1/2, not 0.5"):
        preprocessing.trimmed_mean([1], 1, 0, 0.5)
    with pytest.raises(TypeError, match="empty must be a real number"):
        preprocessing.median([1], 1, "0")


def test_the_mean_is_exact_from_the_delta_that_is_promised():
    generator = np.random.default_rng(2)
    cut = 0
    for _ in range(200):
        values = [0, *brute.database(generator, 30)]
        empty = int(generator.integers(-30, 31))
        middle, spread = brute.mean(values), max(values) - min(values)
        delta = preprocessing.enough_for_mean(len(values), spread, abs(middle - empty))
        assert brute.by_windows(brute.mean, values, delta, empty) == middle
        cut += brute.by_windows(brute.mean, values, delta * Fraction(9, 10), empty) != middle
    assert cut > 20  # and hardly before


def test_the_variance_is_exact_from_the_delta_that_is_promised():
    generator = np.random.default_rng(3)
    for f in (brute.variance, brute.sample_variance):
        for _ in range(60):
            values = [0, *brute.database(generator, 7)]
            spread = max(values) - min(values)
            for known in (f(values), None):
                delta = preprocessing.enough_for_variance(len(values), spread, known)
                exact = brute.preprocessed(f, values, [delta] * len(values), 0)
                assert exact == f(values)


def test_the_bounding_functions_hold_g():
    generator = np.random.default_rng(4)
    for _ in range(200):
        values = [0, *brute.database(generator, 30)]
        delta, empty = float(generator.exponential(3)), float(generator.normal(0, 10))
        low, high = preprocessing.mean_bounds(values, delta, empty)
        assert low - 1e-9 <= preprocessing.mean(values, delta, empty) <= high + 1e-9


@pytest.mark.parametrize("column", [[0, 0, 0], [], [0, 0, 1]])
def test_nothing_but_zeros_times_a_factor_beyond_64_bits(column: list[int]) -> None:
    given = np.array(column, np.int64)
    for factor in (2**63, 2**70):
        assert windows.fitting(given, factor).tolist() == [value * factor for value in column]
        values, kept = windows.scaled(given, factor)
        assert [value * kept for value in values.tolist()] == [value * factor for value in column]

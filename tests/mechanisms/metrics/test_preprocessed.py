"""A statistic for preprocessing is the same as `Preprocessed`, without options that do nothing."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics.preprocessed import grid, preprocessed
from tests.doubles import Asked, compile_program

SAME = {
    "mean": (dp.Mean("x"), "mean", "mean"),
    "mean of totals": (dp.Mean("x", per="person"), "mean", "sum"),
    "median": (dp.Median("x"), "median", "mean"),
    "max": (dp.Max("x"), "maximum", "max"),
    "min": (dp.Min("x"), "minimum", "min"),
    "variance": (dp.Variance("x"), "variance", "mean"),
    "root": (dp.StandardDeviation("x"), "standard_deviation", "mean"),
}


@pytest.mark.parametrize("name", SAME)
def test_it_is_the_preprocessed_metric(name: str) -> None:
    metric, of, person_value = SAME[name]
    same = dp.Preprocessed("x", of, person_value=person_value, name=metric.output)
    assert preprocessed(metric) == same


def test_wrong_options_are_refused() -> None:
    budget = dp.Budget(1.0)
    for metric in (dp.Mean("x", low=0), dp.Median("x", beta=0.1), dp.Max("x", search="auto")):
        with pytest.raises(ValueError, match="must be left out in PreprocessSensitivity"):
            dp.PreprocessSensitivity(metric, "p", budget)
    with pytest.raises(ValueError, match="empty must be 0, the variance of nobody"):
        dp.Preprocessed("x", "variance", empty=1)
    with pytest.raises(ValueError, match="of must be one of mean, median"):
        dp.Preprocessed("x", "mode")


@pytest.mark.parametrize(
    ("metric", "few", "many"),
    [
        (dp.TrimmedMean("x"), 100, 120),
        (dp.TrimmedMean("x", trim=0.3), 300, 320),
        (dp.Preprocessed("x", "median"), 250, 270),
        (dp.Preprocessed("x", "mean"), 0, 100),
        (dp.Preprocessed("x", "variance"), 0, 100),
        (dp.Preprocessed("x", "maximum"), 0, 100),
    ],
)
def test_a_bound_leaves_out_whom_the_statistic_leaves_out(metric, few: int, many: int) -> None:
    """So many are far up, half of them below 0, of whom the partition has 1,024 people.

    However many there are elsewhere, and whatever noise there is in other buckets.
    """
    [step] = compile_program([metric], dp.Budget(1), 1).steps
    thresholds = step.release.clip.measure.thresholds
    for above, index in ((few, 20), (many, 30)):
        noisy = np.zeros((1, 2, len(thresholds) + 1), np.int64)
        noisy[0, :, ::2], noisy[0, :, 1::2] = 4, -4
        noisy[0, :, 20:31] = 0
        noisy[0, :, 20], noisy[0, :, 30] = 10**6, above // 2
        assert step.release._bound(SimpleNamespace(clip_histogram=noisy), 40) == thresholds[index]


@pytest.mark.parametrize("delta", [Fraction(1, 3), Fraction(7), Fraction(10**9)])
def test_the_noise_has_the_scale_of_what_a_person_moves(delta: Fraction) -> None:
    metric, noise = dp.Preprocessed("x", "mean", sensitivity=delta), Asked()
    [step] = compile_program([metric], dp.Budget(1), 1).steps
    coarse, resolution = grid(delta, 1)
    nobody, far = (
        step.release._noisy(np.array(numbers, np.int64), np.array([0, len(numbers)]), delta, noise)
        for numbers in ([], [10**15])
    )
    unit = metric.exact_unit * Fraction(1 << coarse, resolution)
    moved = round(Fraction(far[0] - nobody[0]) / unit)
    assert 1 - Fraction(1, 10**4) <= moved * noise.rates[-1] <= 1

"""A statistic for preprocessing is the same as `Preprocessed`, without options that do nothing."""

import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics.preprocessed import preprocessed

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

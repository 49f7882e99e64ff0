"""Tests of `PreprocessSensitivity` and of the metrics of preprocessing in `PrivateAggregate`."""

import math
import statistics as stdlib

import pytest

import beam_dp as dp
from tests.hostile import support

ROWS = [
    {"person": person, "day": person % 2, "value": 10.0 + person % 7 + copy}
    for person in range(2000)
    for copy in range(1 + person % 3)
]
MANY = dp.Budget(10_000.0)


def released(transform, rows=None):
    return [vars(row) for row in support.released(ROWS if rows is None else rows, transform)]


def people(day, combine):
    values = {}
    for row in ROWS:
        if row["day"] == day:
            values.setdefault(row["person"], []).append(row["value"])
    return [combine(own) for own in values.values()]


def trimmed(values):
    cut = len(values) // 10
    return stdlib.fmean(sorted(values)[cut : len(values) - cut])


CASES = {
    "mean": (dp.Mean("value"), stdlib.fmean),
    "median": (dp.Median("value"), stdlib.median),
    "max": (dp.Max("value"), max),
    "min": (dp.Min("value"), min),
    "variance": (dp.Variance("value"), stdlib.pvariance),
    "deviation": (dp.StandardDeviation("value"), stdlib.pstdev),
    "trimmed mean": (dp.TrimmedMean("value"), trimmed),
}
PERSONS = {"mean": stdlib.fmean, "sum": sum, "max": max, "min": min}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "person_value"), [*zip(CASES, [*PERSONS, *PERSONS], strict=False)]
)
def test_with_a_large_budget_the_truth_comes_out(name, person_value):
    """A quarter of epsilon 10,000 is for noise of size Delta, which is beyond 30 of it with e^-30.

    Numbers are at most 64, and 1,000 people are taken for 800 at least.
    """
    statistic, truth = CASES[name]
    transform = dp.PreprocessSensitivity(
        statistic,
        "person",
        MANY,
        ["day"],
        partitions=dp.PublicPartitions([0, 1]),
        person_value=person_value,
    )
    column = statistic.output
    squares = name in ("variance", "sample variance", "deviation")
    noise = 30 * 4 * 64 ** (2 if squares else 1) / 800 / 2500
    for row in released(transform):
        expected = truth(people(row["day"], PERSONS[person_value]))
        assert abs(row[column] - expected) <= noise < 0.3
        # How far the preprocessed statistic is from the true one is not known.
        assert (row[f"{column}_low"], row[f"{column}_high"]) == (-math.inf, math.inf)


def test_a_given_sensitivity_needs_no_search():
    transform = dp.PreprocessSensitivity(
        dp.Mean("value"), "person", MANY, sensitivity=0.5, person_value="max"
    )
    [line] = transform.plan().rows
    assert "given sensitivity" in line.mechanism and line.shift == 0
    [row] = released(transform)
    expected = stdlib.fmean(people(0, max) + people(1, max))
    assert abs(row["mean_value"] - expected) <= 30 * 0.5 / 10_000 + 1e-5  # but for e^-30


def test_a_variance_is_never_below_0():
    """Nobody is in 200 partitions: noise of Delta = 1, at least 2^-20 in size, goes both ways."""
    metrics = [
        dp.Preprocessed("value", "variance", sensitivity=1.0, name="variance_value"),
        dp.Preprocessed("value", "mean", sensitivity=1.0, name="mean"),
    ]
    keys = dp.PublicPartitions(list(range(200)))
    transform = dp.PrivateAggregate("person", metrics, dp.Budget(1.0), ["day"], partitions=keys)
    found = released(transform, [])
    variances = [row["variance_value"] for row in found]
    # The noise is 0 or below in half of all cases, and above in nearly half: all 200 on one side
    # have a chance below 2^-190.
    assert min(variances) == 0 < max(variances)
    assert min(row["mean"] for row in found) < 0 < max(row["mean"] for row in found)


OF_PEOPLE = (
    "Max, Min, Mean, Median, Variance, StandardDeviation, TrimmedMean, Preprocessed, BlackBox"
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dp.TrimmedMean("value", trim=0.5), "trim must be above 0 and below 1/2"),
        (lambda: dp.Preprocessed("value", "variance", empty=1), "empty must be 0"),
        (lambda: dp.TrimmedMean("value", sensitivity=0), "sensitivity must be above 0"),
        (lambda: dp.TrimmedMean("value", person_value="next"), "person_value must be"),
        (lambda: dp.Preprocessed("value", "mode"), "of must be"),
        *(
            (
                lambda other=other: dp.PreprocessSensitivity(other, "p", MANY),
                f"statistic must be one of {OF_PEOPLE}, not {type(other).__name__} ",
            )
            for other in (dp.Count(), dp.Sum("x"), dp.Ratio("x"), dp.Quantile("x", 0.5))
        ),
    ],
)
def test_wrong_calls_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()

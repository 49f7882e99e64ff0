"""Tests of people with an epsilon of their own in `PreprocessSensitivity`."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

import beam_dp as dp
from tests.hostile import support

TIERS = [8000, 10_000]
BUDGET = dp.Budget(10_000)
ROWS = [
    {"p": n, "day": n % 2, "e": TIERS[n % 3 == 0], "v": float(n % 10 + copy)}
    for n in range(3000)
    for copy in range(1 + n % 2)
]


def released(statistic, rows=ROWS, **options):
    given = {"partition": ["day"], "partitions": dp.PublicPartitions([0, 1])}
    options = {**given, "person_epsilon": "e", "epsilons": TIERS, **options}
    transform = dp.PreprocessSensitivity(statistic, "p", BUDGET, **options)
    return {row.day: vars(row) for row in support.released(rows, transform)}


def near(row, name, truth):
    """Noise of scale Delta / 1,000 at most is beyond 30 of it with e^-30; Delta is at most 32.

    How far the preprocessed statistic is from the true one is not known, so the interval is open.
    """
    assert (row[f"{name}_low"], row[f"{name}_high"]) == (-math.inf, math.inf)
    return abs(row[name] - truth) <= 30 * 32 / 1000 < 1


def test_generous_people_lose_nothing():
    """A sum of at most 19 per person is cut at 32, and at 23 for the smaller epsilon."""
    found = released(dp.Sum("v"), [pa.Table.from_pylist(ROWS)])
    for day in (0, 1):
        truth = sum(row["v"] for row in ROWS if row["day"] == day)
        assert near(found[day], "sum_v", truth)


def test_extremes():
    top = {"sensitivity": 1.0, "person_value": "max"}
    for day, row in released(dp.Max("v"), **top).items():
        assert near(row, "max_v", max(r["v"] for r in ROWS if r["day"] == day))
    lowest = dp.Preprocessed("v", "minimum", empty=5, name="low")
    for day, row in released(lowest, **{**top, "person_value": "min"}).items():
        assert near(row, "low", min(r["v"] for r in ROWS if r["day"] == day))


def test_a_maximum_is_that_of_the_rows():
    """One person with 1 and 3 has a maximum of 3, not that of their mean."""
    rows = [{"p": 1, "day": 0, "e": 10_000, "v": v, "t": v} for v in (1.0, 3.0)]
    whole = {"sensitivity": 5.0}
    assert near(released(dp.Max("v"), rows, **whole)[0], "max_v", 3)
    assert near(released(dp.Max("v"), rows, person_value="mean", **whole)[0], "max_v", 2)
    assert near(released(dp.Sum("v"), rows, **whole)[0], "sum_v", 4)


GRID = dp.Candidates.linear(0, 9, 1)


@pytest.mark.parametrize(
    ("statistic", "name"),
    [
        (dp.Sum("v", clip=5), "clip"),
        (dp.Max("v", candidates=GRID), "candidates"),
        (dp.Median("v", per="person"), "per"),
    ],
)
def test_options_without_an_effect_are_refused(statistic, name):
    with pytest.raises(ValueError, match=f"{name} must be left out for people with an epsilon of"):
        released(statistic)


def test_a_median_of_weights():
    """More people have 11, but 300 of them count 0.8 each: that is less than the others' 260."""
    groups = [(300, 8000, 11.0), (260, 10_000, 7.0)]
    rows = [
        {"p": f"{value} {n}", "day": day, "e": epsilon if day else 10_000, "v": value}
        for size, epsilon, value in groups
        for n in range(size)
        for day in (0, 1)
    ]
    days = [[row for row in rows if row["day"] == day] for day in (0, 1)]
    assert released(dp.Median("v"), days[0])[0]["median_v"] == pytest.approx(11, rel=0.01)
    assert released(dp.Median("v"), days[1])[1]["median_v"] == pytest.approx(7, rel=0.01)


def test_the_lower_epsilon_is_cut_lower_and_the_lowest_row_decides():
    """Delta is 10 for the larger epsilon, 8 for the smaller; everybody has 100 (or 50 twice)."""
    rows = [
        {"p": 1, "day": 0, "e": 10_000, "v": 100.0},
        {"p": 2, "day": 1, "e": 8000.0, "v": 50.0},
        {"p": 2, "day": 1, "e": Decimal(10_000), "v": 50.0},
    ]
    found = released(dp.Sum("v"), rows, sensitivity=10)
    assert near(found[0], "sum_v", 10) and near(found[1], "sum_v", 8)
    elsewhere = [{**row, "p": 2} for row in rows]
    found = released(dp.Sum("v"), elsewhere, sensitivity=10)
    assert near(found[0], "sum_v", 8) and near(found[1], "sum_v", 8)


def test_rows_with_no_public_epsilon_are_dropped():
    odd = [None, 9000, "8000", float("nan"), float("inf"), True, 8000.0000019, -8000, [8000]]
    rows = [{"p": n, "day": 0, "e": e, "v": 5.0} for n, e in enumerate(odd)]
    found = released(
        dp.Sum("v"), [*rows, {"p": "x", "day": 0, "e": 8000, "v": 3.0}], sensitivity=10
    )
    assert near(found[0], "sum_v", 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": dp.Mean("v")}, "statistic must be Sum, Max"),
        ({"statistic": dp.Median("v"), "sensitivity": 3}, "sensitivity must be left out: a Media"),
        ({"statistic": dp.Preprocessed("v", "median", sensitivity=3)}, "statistic must be Sum, M"),
        ({"epsilons": None}, "epsilons must be a list"),
        ({"person_epsilon": None}, "person_epsilon must be"),
        ({"epsilons": [1.0, 2.0]}, "budget must be the largest"),
        ({"budget": dp.Budget.zcdp(1.0)}, "budget must be a pure epsilon"),
        ({"budget": dp.Budget(10_000, 1e-6)}, "budget must be a pure epsilon"),
        ({"partitions": dp.PrivatePartitions()}, "partitions must be public"),
    ],
)
def test_wrong_calls_are_refused(options, message):
    given = {
        "statistic": dp.Sum("v"),
        "budget": BUDGET,
        "partition": ["day"],
        "bounds": dp.ContributionBounds(1),
        "partitions": dp.PublicPartitions([1]),
        "person_epsilon": "e",
        "epsilons": TIERS,
    }
    with pytest.raises((TypeError, ValueError), match=message):
        dp.PreprocessSensitivity(person="p", **{**given, **options})

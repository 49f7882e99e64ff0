"""Transforms of one statistic: ShiftedInverse, PreprocessSensitivity and PrivateRatio."""

import math
import statistics as stdlib
from decimal import Decimal

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that

import beam_dp as dp
from beam_dp.mechanisms import ratio
from tests.hostile import support

# With epsilon 60 for one partition a search passes over its shift but for e^-30: no false alarms.
PLENTY = dp.Budget(60.0)
FIFTY = [{"person": n, "value": n % 50, "day": "a"} for n in range(2000)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("statistic", "column", "low", "high", "search"),
    [
        (dp.Max("value"), "max_value", 49, 49, dp.AboveThreshold),
        (dp.Min("value"), "min_value", 0, 0, dp.ExponentialMechanism),
        (dp.Count(), "count", 1900, 2000, dp.NoisyBinarySearch),
        (dp.Sum("value"), "sum_value", 44000, 49000, dp.AboveThreshold),
    ],
)
def test_the_released_value_lies_where_the_guarantee_says(
    statistic: object, column: str, low: int, high: int, search: type
) -> None:
    grid = {"candidates": dp.Candidates.linear(0, 50_000, 1), "search": search, "beta": 1e-12}
    release = dp.ShiftedInverse(statistic, "person", PLENTY, **grid)

    def check(released: list[beam.Row]) -> None:
        [row] = released
        assert low <= getattr(row, column) <= high

    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        assert_that(pipeline | beam.Create(FIFTY) | release, check)
        assert release.record().pipeline is pipeline


def test_the_options_of_the_statistic_hold_unless_others_are_given() -> None:
    statistic = dp.Max("value", search=dp.ExponentialMechanism, beta=0.01)
    own = dp.ShiftedInverse(statistic, "person", PLENTY).plan()
    assert "ExponentialMechanism" in str(own)
    other = dp.ShiftedInverse(statistic, "person", PLENTY, search=dp.AboveThreshold).plan()
    assert "AboveThreshold" in str(other)
    looser, tighter = (
        dp.ShiftedInverse(statistic, "person", dp.Budget(1.0), beta=beta).plan().rows[0].shift
        for beta in (0.5, None)
    )
    assert looser < tighter


def test_the_number_of_people_needs_no_search() -> None:
    with pytest.raises(
        TypeError,
        match="statistic must be Count, Sum, Max, Min, KthLargest, DistinctCount, MaxFrequency, ",
    ):
        dp.ShiftedInverse(dp.PeopleCount(), "person", PLENTY)


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
    how = {"partitions": dp.PublicPartitions([0, 1]), "person_value": person_value}
    transform = dp.PreprocessSensitivity(statistic, "person", MANY, ["day"], **how)
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
        (lambda: dp.TrimmedMean("value", sensitivity=0), "sensitivity must be above 0"),
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


TIERS = [8000, 10_000]
TIERED = [
    {"p": n, "day": n % 2, "e": TIERS[n % 3 == 0], "v": float(n % 10 + copy)}
    for n in range(3000)
    for copy in range(1 + n % 2)
]


def by_day(statistic, rows=TIERED, **options):
    given = {"partition": ["day"], "partitions": dp.PublicPartitions([0, 1])}
    options = {**given, "person_epsilon": "e", "epsilons": TIERS, **options}
    transform = dp.PreprocessSensitivity(statistic, "p", MANY, **options)
    return {row.day: vars(row) for row in support.released(rows, transform)}


def near(row, name, truth):
    """Noise of scale Delta / 1,000 at most is beyond 30 of it with e^-30; Delta is at most 32.

    How far the preprocessed statistic is from the true one is not known, so the interval is open.
    """
    assert (row[f"{name}_low"], row[f"{name}_high"]) == (-math.inf, math.inf)
    return abs(row[name] - truth) <= 30 * 32 / 1000 < 1


def test_generous_people_lose_nothing():
    """A sum of at most 19 per person is cut at 32, and at 23 for the smaller epsilon."""
    found = by_day(dp.Sum("v"), [pa.Table.from_pylist(TIERED)])
    for day in (0, 1):
        truth = sum(row["v"] for row in TIERED if row["day"] == day)
        assert near(found[day], "sum_v", truth)


def test_extremes():
    top = {"sensitivity": 1.0, "person_value": "max"}
    for day, row in by_day(dp.Max("v"), **top).items():
        assert near(row, "max_v", max(r["v"] for r in TIERED if r["day"] == day))
    lowest = dp.Preprocessed("v", "minimum", empty=5, name="low")
    for day, row in by_day(lowest, **{**top, "person_value": "min"}).items():
        assert near(row, "low", min(r["v"] for r in TIERED if r["day"] == day))


def test_a_maximum_is_that_of_the_rows():
    """One person with 1 and 3 has a maximum of 3, not that of their mean."""
    rows = [{"p": 1, "day": 0, "e": 10_000, "v": v, "t": v} for v in (1.0, 3.0)]
    whole = {"sensitivity": 5.0}
    assert near(by_day(dp.Max("v"), rows, **whole)[0], "max_v", 3)
    assert near(by_day(dp.Max("v"), rows, person_value="mean", **whole)[0], "max_v", 2)
    assert near(by_day(dp.Sum("v"), rows, **whole)[0], "sum_v", 4)


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
        by_day(statistic)


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
    assert by_day(dp.Median("v"), days[0])[0]["median_v"] == pytest.approx(11, rel=0.01)
    assert by_day(dp.Median("v"), days[1])[1]["median_v"] == pytest.approx(7, rel=0.01)


def test_the_lower_epsilon_is_cut_lower_and_the_lowest_row_decides():
    """Delta is 10 for the larger epsilon, 8 for the smaller; everybody has 100 (or 50 twice)."""
    rows = [
        {"p": 1, "day": 0, "e": 10_000, "v": 100.0},
        {"p": 2, "day": 1, "e": 8000.0, "v": 50.0},
        {"p": 2, "day": 1, "e": Decimal(10_000), "v": 50.0},
    ]
    found = by_day(dp.Sum("v"), rows, sensitivity=10)
    assert near(found[0], "sum_v", 10) and near(found[1], "sum_v", 8)
    elsewhere = [{**row, "p": 2} for row in rows]
    found = by_day(dp.Sum("v"), elsewhere, sensitivity=10)
    assert near(found[0], "sum_v", 8) and near(found[1], "sum_v", 8)


def test_rows_with_no_public_epsilon_are_dropped():
    odd = [None, 9000, "8000", float("nan"), float("inf"), True, 8000.0000019, -8000, [8000]]
    rows = [{"p": n, "day": 0, "e": e, "v": 5.0} for n, e in enumerate(odd)]
    found = by_day(dp.Sum("v"), [*rows, {"p": "x", "day": 0, "e": 8000, "v": 3.0}], sensitivity=10)
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
def test_wrong_calls_of_people_with_an_epsilon_are_refused(options, message):
    given = {
        "statistic": dp.Sum("v"),
        "budget": MANY,
        "partition": ["day"],
        "bounds": dp.ContributionBounds(1),
        "partitions": dp.PublicPartitions([1]),
        "person_epsilon": "e",
        "epsilons": TIERS,
    }
    with pytest.raises((TypeError, ValueError), match=message):
        dp.PreprocessSensitivity(person="p", **{**given, **options})


CLICKS = [
    {"person": person, "day": person % 2, "clicked": person % 5 == copy, "word": "abc"[copy % 3]}
    for person in range(1500)
    for copy in range(3)
]
ROWS_BOUND = dp.ContributionBounds(2, rows_per_partition=3)


def share(rows, counts, per):
    if per == "row":
        return sum(map(counts, rows)) / len(rows)
    people = {row["person"] for row in rows}
    return len({row["person"] for row in rows if counts(row)}) / len(people)


SHARES = {
    "booleans": ("clicked", 1, lambda row: row["clicked"]),
    "false": ("clicked", 0, lambda row: not row["clicked"]),
    "text": ("word", "b", lambda row: row["word"] == "b"),
    "function": ("word", lambda word: word in "ab", lambda row: row["word"] in "ab"),
    "never": ("word", 7, lambda row: False),
}

NAMED = {"false": "_0", "text": "_b", "never": "_7"}
"""What the names of the output columns say of the value that counts."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "per", "columnar"),
    [("booleans", "row", True), ("text", "person", False), ("false", "person", True),
     ("function", "row", False), ("never", "row", True)],
)  # fmt: skip
def test_with_a_large_budget_the_share_comes_out(name, per, columnar):
    """At epsilon 10,000 the noise is a few thousandths of a row, of some thousand rows."""
    column, equals, counts = SHARES[name]
    days = dp.PublicPartitions([0, 1])
    transform = dp.PrivateRatio(
        column, "person", MANY, ["day"], ROWS_BOUND, days, equals=equals, per=per
    )
    rows = [pa.RecordBatch.from_pylist(CLICKS)] if columnar else CLICKS
    found = released(transform, rows)
    assert sorted(row["day"] for row in found) == [0, 1]
    for row in found:
        expected = share([one for one in CLICKS if one["day"] == row["day"]], counts, per)
        shown = f"ratio_{column}{NAMED.get(name, '')}{'_per_person' * (per == 'person')}"
        assert abs(row[shown] - expected) < 1e-4


def test_shares_and_their_intervals_end_at_0_and_1():
    """Partitions of nobody, of few people and of many, whose share is 0, 1 or 1/2."""
    sizes, days = (0, 1, 3, 200), range(12)
    table = pa.Table.from_pylist(
        [
            {"person": f"{day} {place}", "day": day, "clicked": (0, 1, place % 2)[day // 4]}
            for day in days
            for place in range(sizes[day % 4])
        ]
    )
    metrics = [dp.Ratio("clicked", per="person", method=m, name=m) for m in ratio.METHODS]
    found = dp.release(
        table,
        person="person",
        partition=["day"],
        metrics=metrics,
        budget=dp.Budget(4.0, 1e-6),
        bounds=dp.ContributionBounds(1),
        partitions=dp.PublicPartitions(days),
    ).table
    for method in ratio.METHODS:
        for number, low, high in zip(
            *(found[f"{method}{end}"].to_pylist() for end in ("", "_low", "_high")), strict=True
        ):
            assert 0 <= low <= number <= high <= 1


def test_nobody_gives_nothing_and_a_function_that_raises_counts_nothing():
    [row] = released(dp.PrivateRatio("clicked", "person", MANY, per="person"), [])
    assert math.isnan(row["ratio_clicked_per_person"])
    asked = {"per": "person", "method": "kulesza_suresh_wang"}
    [row] = released(dp.PrivateRatio("clicked", "person", MANY, **asked), [])
    assert row["ratio_clicked_per_person"] == 0.5
    broken = dp.PrivateRatio("word", "person", MANY, per="person", equals=lambda word: 1 // 0)
    assert released(broken, CLICKS)[0]["ratio_word_per_person"] < 1e-3


@pytest.mark.parametrize("budget", [dp.Budget(3.0, 1e-6), dp.Budget.zcdp(2.0, 1e-6)], ids=repr)
def test_delta_is_shared_with_the_selection_and_costs_add_up(budget):
    metrics = [
        dp.Ratio("clicked", method="local_sensitivity"),
        dp.Ratio("word", equals="a", method="local_sensitivity"),
        dp.Count(),
    ]
    transform = dp.PrivateAggregate(
        "person", metrics, budget, ["day"], ROWS_BOUND, dp.PrivatePartitions()
    )
    entries = transform._program.entries
    assert sum(cost.delta * times for _, cost, times in entries) <= transform.budget.delta
    assert sum(cost.amount * times for _, cost, times in entries) <= transform.budget.amount
    assert sum(cost.delta > 0 for _, cost, _ in entries) == 3
    steps = transform._program.steps[:2]
    assert [len(step.release.spends) for step in steps] == [1, 1]
    assert {step.release.spends[0].cost.delta for step in steps} == {budget.delta / 2 / 2 / 2}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: dp.PrivateRatio("clicked", "person", MANY, method="naive"),
            r"^Ratio: bounds\.rows_per_partition must be given where every row counts",
        ),
        (lambda: dp.Ratio("x", equals=None), "equals must be"),
        (lambda: dp.Ratio("x", method="best"), "method must be one of clip, kulesza"),
        (
            lambda: dp.PrivateRatio("x", "p", MANY, per="person", method="local_sensitivity"),
            "delta",
        ),
    ],
)
def test_wrong_calls_of_ratios_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()

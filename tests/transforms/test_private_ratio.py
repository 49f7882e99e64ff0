"""Tests of `PrivateRatio` and of `Ratio` in `PrivateAggregate`."""

import apache_beam as beam
import pyarrow as pa
import pytest

import beam_dp as dp
from tests.hostile import support

ROWS = [
    {"person": person, "day": person % 2, "clicked": person % 5 == copy, "word": "abc"[copy % 3]}
    for person in range(1500)
    for copy in range(3)
]
MANY = dp.Budget(10_000.0)
ROWS_BOUND = dp.ContributionBounds(2, rows_per_partition=3)


def released(transform, rows=None):
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        found = support.keep(pipeline | beam.Create(ROWS if rows is None else rows) | transform)
    return [vars(row) for row in found]


def share(rows, counts, per):
    if per == "row":
        return sum(map(counts, rows)) / len(rows)
    people = {row["person"] for row in rows}
    return len({row["person"] for row in rows if counts(row)}) / len(people)


CASES = {
    "booleans": ("clicked", 1, lambda row: row["clicked"]),
    "true": ("clicked", True, lambda row: row["clicked"]),
    "false": ("clicked", 0, lambda row: not row["clicked"]),
    "text": ("word", "b", lambda row: row["word"] == "b"),
    "function": ("word", lambda word: word in "ab", lambda row: row["word"] in "ab"),
    "never": ("word", 7, lambda row: False),
}


@pytest.mark.sampled(15)
@pytest.mark.parametrize("columnar", [False, True], ids=["dicts", "batches"])
@pytest.mark.parametrize("per", ["row", "person"])
@pytest.mark.parametrize("name", CASES)
def test_with_a_large_budget_the_truth_comes_out(name, per, columnar):
    """At epsilon 10,000 the noise is 0 but for a chance below e^-1000."""
    column, equals, counts = CASES[name]
    days = dp.PublicPartitions([0, 1])
    transform = dp.PrivateRatio(
        column, "person", MANY, ["day"], ROWS_BOUND, days, equals=equals, per=per
    )
    rows = [pa.RecordBatch.from_pylist(ROWS)] if columnar else ROWS
    found = released(transform, rows)
    assert sorted(row["day"] for row in found) == [0, 1]
    for row in found:
        expected = share([one for one in ROWS if one["day"] == row["day"]], counts, per)
        assert abs(row[f"ratio_{column}"] - expected) < 1e-9


@pytest.mark.sampled(9)
@pytest.mark.parametrize("method", ["auto", "local_sensitivity", "naive", "kulesza_suresh_wang"])
@pytest.mark.parametrize("neighbours", ["add-remove", "substitution"])
def test_every_method_stays_within_its_interval(method, neighbours):
    """An interval fails with a chance of 5%, one of ten times its width with e^-30 at most."""
    budget = dp.Budget(20.0, 1e-6)
    transform = dp.PrivateRatio(
        "clicked", "person", budget, per="person", method=method, neighbours=neighbours
    )
    words = "Kulesza, Suresh, Wang" if method.startswith("kulesza") else method.replace("_", " ")
    assert words in transform.plan().rows[0].mechanism
    [row] = released(transform)
    expected = share(ROWS, lambda row: row["clicked"], "person")
    value, low, high = (row[f"ratio_clicked{end}"] for end in ("", "_low", "_high"))
    assert low <= value <= high
    assert value - 10 * (value - low) - 1e-9 <= expected <= value + 10 * (high - value) + 1e-9


def test_missing_values_count_on_neither_side():
    rows = [{"person": n, "clicked": value} for n, value in enumerate([1, 0, None, 1, [2], None])]
    [row] = released(dp.PrivateRatio("clicked", "person", MANY, per="person"), rows)
    assert abs(row["ratio_clicked"] - 2 / 3) < 1e-9


def test_nobody_gives_a_half_and_a_function_that_raises_counts_nothing():
    [row] = released(dp.PrivateRatio("clicked", "person", MANY, per="person"), [])
    assert row["ratio_clicked"] == 0.5
    broken = dp.PrivateRatio("word", "person", MANY, per="person", equals=lambda word: 1 // 0)
    assert released(broken)[0]["ratio_word"] < 1e-9


@pytest.mark.parametrize("budget", [dp.Budget(3.0, 1e-6), dp.Budget.zcdp(2.0, 1e-6)], ids=repr)
def test_delta_is_shared_with_the_selection_and_costs_add_up(budget):
    metrics = [
        dp.Ratio("clicked", method="auto"),
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
    costs = {step.request.method: step.release.spends[0].cost for step in steps}
    assert [len(step.release.spends) for step in steps] == [1, 1]
    assert costs["auto"].delta == costs["local_sensitivity"].delta == budget.delta / 2 / 2 / 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: dp.PrivateRatio("clicked", "person", MANY),
            r"^Ratio: bounds\.rows_per_partition must be given where every row counts",
        ),
        (lambda: dp.Ratio("x", per="day"), "per must be"),
        (lambda: dp.Ratio("x", method="best"), "method must be"),
        (lambda: dp.Ratio("x", equals=None), "equals must be"),
        (lambda: dp.Ratio("x", equals=float("nan")), "equals must be"),
        (lambda: dp.Ratio("x", neighbours="other"), "neighbours must be"),
        (
            lambda: dp.PrivateRatio("x", "p", MANY, per="person", method="local_sensitivity"),
            "delta",
        ),
    ],
)
def test_wrong_calls_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()

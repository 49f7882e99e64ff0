"""Tests of `PrivateRatio` and of `Ratio` in `PrivateAggregate`."""

import math

import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms import ratio
from tests.doubles import compile_program
from tests.hostile import support

ROWS = [
    {"person": person, "day": person % 2, "clicked": person % 5 == copy, "word": "abc"[copy % 3]}
    for person in range(1500)
    for copy in range(3)
]
MANY = dp.Budget(10_000.0)
ROWS_BOUND = dp.ContributionBounds(2, rows_per_partition=3)


def released(transform, rows=None):
    return [vars(row) for row in support.released(ROWS if rows is None else rows, transform)]


def share(rows, counts, per):
    if per == "row":
        return sum(map(counts, rows)) / len(rows)
    people = {row["person"] for row in rows}
    return len({row["person"] for row in rows if counts(row)}) / len(people)


CASES = {
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
def test_with_a_large_budget_the_truth_comes_out(name, per, columnar):
    """At epsilon 10,000 the noise is a few thousandths of a row, of some thousand rows."""
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
    assert released(broken)[0]["ratio_word_per_person"] < 1e-3


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
        (lambda: dp.Ratio("x", per="day"), "per must be"),
        (lambda: dp.Ratio("x", method="best"), "method must be"),
        (lambda: dp.Ratio("x", equals=None), "equals must be"),
        (
            lambda: dp.PrivateRatio("x", "p", MANY, per="person", method="local_sensitivity"),
            "delta",
        ),
    ],
)
def test_wrong_calls_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize("per", ["row", "person"])
@pytest.mark.parametrize("partitions", [1, 20])
@pytest.mark.parametrize("budget", [dp.Budget(1), dp.Budget(1, 1e-6), dp.Budget.zcdp(0.1)])
def test_both_parts_read_one_histogram_alike(per, partitions, budget):
    """Of people in one partition there is none; a variance beside has its own."""
    asked = [dp.Variance("y"), dp.Ratio("x", per=per), dp.Sum("z")]
    made = compile_program(asked, budget, 1, partitions=partitions)
    for steps in (made.steps, made.gaussian):
        ones, others = (step for step in steps if step.part.column_name == "x")
        assert ones.shared == others.shared
        if per == "person" and partitions == 1:
            assert ones.shared is None
        else:
            assert (
                ones.release.clip.choice == others.release.clip.choice
                and others.release.clip.borrowed
            )

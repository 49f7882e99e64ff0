"""Statistics of rows, values and owners through whole pipelines, in every form of rows.

What the profiles must be is brute force over all sets of people, and the direct call of the
functions in `removal`, both of `tests.relations`.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import beam_dp as dp
from tests.hostile.support import released as run
from tests.relations import (
    ONE_OWNER,
    PIPED,
    REMOVALS,
    Row,
    Rows,
    Statistic,
    as_dicts,
    brute,
    by_day,
    data_of,
    unnumbered,
)

HUGE = dp.Budget(1e6)
PUBLIC = dp.PublicPartitions([0, 1, 2, 77])


def person_of(statistic: Statistic) -> str | list[str]:
    return ["person", *statistic.others] if statistic.others else "person"


def as_table(rows: Rows) -> pa.Table:
    """Return rows as an Arrow table; items as a dictionary of texts, 7 and "7" alike."""
    items = pa.array([None if row.item is None else str(row.item) for row in rows])
    return pa.table(
        {
            "day": pa.array([row.day for row in rows], pa.int32()),
            "to": pa.array([None if row.to is None else str(row.to) for row in rows]),
            "by": pa.array([row.by for row in rows], pa.decimal128(9, 0)),
            "via": pa.array([row.via for row in rows], pa.int64()),
            "person": pa.array([row.person for row in rows], pa.uint16()),
            "item": items.dictionary_encode(),
            "value": pa.array([row.value for row in rows], pa.float64()),
        }
    )


def in_form(rows: Rows, form: str) -> list[Any]:
    """Return rows as dicts, or as some Arrow batches, tables and dicts."""
    table = as_table(rows[9:])
    mixed = [table.slice(0, 7), *table.slice(7).to_batches(max_chunksize=9)]
    return as_dicts(rows) if form == "dict" else [*as_dicts(rows[:9]), *mixed]


def found(
    given: Sequence[Any], statistic: Statistic, partition: Sequence[str] = ("day",), **options: Any
) -> dict[Any, list[float]]:
    options = {"removals": REMOVALS, **options}
    transform = dp.RemovalLoss(statistic.metric, person_of(statistic), partition, **options)
    seen = run(given, transform)
    assert all(type(level) is float for row in seen for level in row.profile)
    return {getattr(row, "day", None): list(row.profile) for row in seen}


def check(profile: list[float], rows: Rows, statistic: Statistic) -> None:
    """Exact where that is claimed; else B[0] is, and the rest is the direct call's."""
    exact = [float(level) for level in brute(rows, statistic.f)]
    if statistic.direct is None:
        assert profile == exact[: len(profile)]
        return
    assert profile[0] == exact[0]
    assert all(level <= bound for level, bound in zip(profile, exact, strict=True))
    assert profile == [float(level) for level in statistic.direct(rows)]


IN_TURN = list(zip(PIPED, itertools.cycle(["dict", "mixed"]), strict=False))
"""Each statistic in one form: that the forms are the same rows, `columns/test_layout` shows."""


@pytest.mark.sampled(11)
@pytest.mark.parametrize(("name", "form"), IN_TURN)
def test_losses_are_those_of_all_sets_of_people(name: str, form: str) -> None:
    """Per found partition, for public ones (one of them empty), and for everybody at once."""
    statistic = PIPED[name]
    rows = data_of(statistic, 12, seed=21).rows
    data = by_day(rows)
    losses = found(in_form(rows, form), statistic)
    assert set(losses) == {*data} - unnumbered(name, rows)
    for day, profile in losses.items():
        check(profile, data[day], statistic)
    public = found(in_form(rows, form), statistic, partitions=PUBLIC)
    assert set(public) == {0, 1, 2, 77}
    assert all(profile == losses[day] for day, profile in public.items() if day != 77)
    assert len(set(public[77])) == 1 and public[77][0] == float(statistic.f([]))
    few = [row._replace(day=0) for row in data[1]]
    check(found(in_form(few, form), statistic, ())[None], few, statistic)


METRICS = {
    "one owner": [
        dp.KthLargest("value", 2),
        dp.Median("value"),
        dp.Quantile("value", 0.25, per="row"),
        dp.DistinctCount("item"),
        dp.DistinctCount("item", search=dp.AboveThreshold, name="one_sided"),
        dp.MaxFrequency("item"),
        dp.SumOfSquares("item"),
        dp.CustomProfile(
            "value", ONE_OWNER["custom"].metric.profile, candidates=dp.Candidates.linear(0, 99, 1)
        ),
        dp.Sum("value"),
        dp.Count(),
    ],
    "several owners": [
        *(dp.Count(), dp.Sum("value"), dp.Max("value"), dp.Min("value")),
        dp.KthLargest("value", 2),
        *(dp.DistinctCount("item"), dp.MaxFrequency("item")),
    ],
}
KINDS: dict[str, Any] = {
    "public": dp.PublicPartitions(["a", "b", "empty"]),
    "private": dp.PrivatePartitions(),
    "none": None,
}


def crowd(size: int) -> list[Row]:
    """Return people with 3 rows each, of whom each tenth is in partition 1."""
    return [
        Row(person, "b" if person % 10 == 0 else "a", float(person % 50), person % 20, *others)
        for person in range(size)
        for others in [(person + 1, None if person % 7 else person + 2)] * 3
    ]


TRUTH = {
    "a": {"distinct_item": 18, "one_sided": 18, "count": 1620, "max_frequency_item": 90},
    "b": {"distinct_item": 2, "one_sided": 2, "count": 180, "max_frequency_item": 90},
    "empty": {"distinct_item": 0, "one_sided": 0, "count": 0, "max_frequency_item": 0},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "owners", "form"),
    [("public", 1, "dict"), ("private", 1, "Arrow"), ("none", 2, "Arrow"), ("public", 3, "dict")],
)
def test_all_metrics_are_released_together(kind: str, owners: int, form: str) -> None:
    """At epsilon 10^6 each released number strays with probability below e^-1000."""
    budget = dp.Budget(1e6, 1e-6) if kind == "private" else HUGE
    asked = METRICS["one owner" if owners == 1 else "several owners"]
    options: dict[str, Any] = {}
    if kind != "none":
        options = {"partition": ["day"], "partitions": KINDS[kind]}
    if kind == "private":
        options["bounds"] = dp.ContributionBounds(1)
    person = ["person", "to", "by"][:owners] if owners > 1 else "person"
    rows = crowd(600)
    given = as_dicts(rows) if form == "dict" else [table_of_text(rows)]
    transform = dp.PrivateAggregate(person, asked, budget, **options)
    seen = run(given, transform)
    days = {"public": ["a", "b", "empty"], "private": ["a", "b"], "none": [None]}[kind]
    assert sorted(str(getattr(row, "day", None)) for row in seen) == sorted(map(str, days))
    for row in seen:
        values = row._asdict()
        assert set(values) >= {name for one in transform.metrics for name in named(one)}
        for name, truth in TRUTH.get(values.get("day"), {}).items():
            assert name not in values or type(values[name]) is int
            assert name not in values or abs(values[name] - truth) <= 2**-10 * truth


def named(metric: Any) -> list[str]:
    """Return its columns: what is ranked has an error of its rank, all others an interval."""
    name = str(metric.output).replace(".", "_")
    ranked = metric.is_ranked
    return [f"{name}{end}" for end in (("", "_rank_error") if ranked else ("", "_low", "_high"))]


def table_of_text(rows: Rows) -> pa.Table:
    table = as_table([row._replace(day=0) for row in rows])
    place = table.schema.get_field_index("day")
    return table.set_column(place, "day", pa.array([str(row.day) for row in rows]))


def test_a_column_can_be_a_value_and_an_item_and_name_people_and_partitions() -> None:
    metrics = [dp.DistinctCount("value"), dp.Sum("value"), dp.MaxFrequency("person"),
               dp.DistinctCount("day")]  # fmt: skip
    given = [{"person": person, "day": 1, "value": person % 5} for person in range(300)]
    public = dp.PublicPartitions([1, 2])
    one, two = sorted(run(given, dp.PrivateAggregate(
        "person", metrics, HUGE, ["day"], partitions=public)), key=lambda row: row.day)  # fmt: skip
    assert (one.distinct_value, one.max_frequency_person, one.distinct_day) == (5, 1, 1)
    assert (two.distinct_value, two.max_frequency_person, two.distinct_day) == (0, 0, 0)
    assert abs(one.sum_value - 600) < 1


def test_a_partition_with_rows_but_no_valid_value_is_released() -> None:
    """Private partitions are named for their people, not for their values."""
    given = [{"person": person, "day": "a", "item": [1], "value": "x"} for person in range(200)]
    options = dp.Budget(1e6, 1e-6), ["day"], dp.ContributionBounds(1)
    [row] = run(given, dp.PrivateAggregate("person", METRICS["one owner"], *options))
    assert row.distinct_item == row.one_sided == row.max_frequency_item == 0
    assert row.sum_of_squares_item == 0 and math.isnan(row.largest_2_value)

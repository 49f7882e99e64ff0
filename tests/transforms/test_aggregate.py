"""PrivateAggregate as a whole: which rows come out, of which shape, and exact but for the noise."""

import datetime
import math
import typing
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.typehints.row_type import RowTypeConstraint

import beam_dp as dp
from beam_dp import testing
from tests.hostile.support import released


def visit(person: object, day: object, value: object) -> dict[str, object]:
    return {"person": person, "day": day, "value": value}


@pytest.mark.filterwarnings("ignore::beam_dp.testing.NotPrivate")
def test_people_who_are_cut_look_like_themselves() -> None:
    """Of 50 rows each, of which 10 are a click, 10 stay, of which 2 are one: whatever the key is."""
    rows = [
        {"p": person, "v": float(n < 10), "w": n < 10} for person in range(40) for n in range(50)
    ]
    metrics = [
        dp.Ratio("w", equals=True, per="row"), dp.Mean("v"), dp.Sum("v"),
        dp.Quantile("v", p=0.75, per="row", name="low"), dp.Quantile("v", p=0.85, per="row", name="high"),
    ]  # fmt: skip
    with testing.without_noise():
        released = dp.release(
            pa.Table.from_pylist(rows),
            person="p",
            metrics=metrics,
            budget=dp.Budget(1.0),
            bounds=dp.ContributionBounds(1, 10),
        )
    [row] = released.table.to_pylist()
    assert [row[metric.output] for metric in metrics] == pytest.approx([0.2, 0.2, 80.0, 0.0, 1.0])


def aggregate(**changes: Any) -> dp.PrivateAggregate:
    options: dict[str, Any] = {
        "person": "person",
        "partition": ["day"],
        "metrics": [dp.Count(), dp.Sum("value", name="total"), dp.Mean("value"), dp.Max("value")],
        "budget": dp.Budget(1.0, 1e-6),
        "bounds": dp.ContributionBounds(1),
    }
    return dp.PrivateAggregate(**{**options, **changes})


NUMBERS = [
    f"{name}{end}"
    for name in ("count", "total", "mean_value", "max_value")
    for end in ("", "_low", "_high")
]


def test_empty_input_releases_every_public_partition() -> None:
    public = dp.PublicPartitions(["b", "a", "2020-01-01"])
    found = released([], aggregate(partitions=public), direct_runner_bundle_repeat=1)
    assert {row.day for row in found} == {"a", "b", "2020-01-01"}
    assert len(found) == 6  # a repeated bundle is seen again
    for row in found:
        assert list(row.as_dict()) == ["day", *NUMBERS]
        assert type(row.count) is int and row.count_low >= 0
        # NaN where the search for a clip, or for a maximum, saw nobody; then nothing is known.
        for name in ("total", "mean_value", "max_value"):
            number, *ends = (getattr(row, f"{name}{end}") for end in ("", "_low", "_high"))
            assert isinstance(number, float)
            assert not math.isnan(number) or ends == [-math.inf, math.inf]


def test_empty_input_releases_the_one_partition_of_no_columns() -> None:
    [row] = released([], aggregate(partition=()))
    assert list(row.as_dict()) == NUMBERS


def test_private_partitions_with_many_people_are_released_with_their_keys() -> None:
    # P(a partition of 200 people is dropped) < 1e-40 at epsilon 1e6: the threshold is below 10.
    days = [1, "1", True, datetime.date(2020, 1, 1), "é", 'a,"b"\n', "../x", ""]
    given = [visit(f"{place} {n}", day, 1) for place, day in enumerate(days) for n in range(200)]
    given += [visit(None, "of nobody", 1)] * 50
    found = released(given, aggregate(metrics=[dp.Count()], budget=dp.Budget(1e6, 1e-6)))
    assert {(type(row.day), row.day) for row in found} == {(type(day), day) for day in days}
    assert len(found) == len(days)


class Visit(typing.NamedTuple):
    person: int
    day: str
    value: float


def schema_of(transform: beam.PTransform, kind: Any = None) -> dict[str, Any]:
    given = beam.Pipeline(runner="FnApiRunner") | beam.Create([visit(1, 2, 3)])
    given.element_type = kind or given.element_type
    found = (given | transform).element_type
    assert isinstance(found, RowTypeConstraint)
    return dict(found._fields)


def test_the_output_has_a_schema() -> None:
    numbers = {name: int if name == "count" else float for name in NUMBERS}
    # Private keys are not typed by the input's schema: one row that lies would fail a coder.
    assert schema_of(aggregate(), Visit) == {"day": Any, **numbers}
    assert list(schema_of(aggregate(), Visit)) == ["day", *NUMBERS]
    public = dp.PublicPartitions([1, 2])
    assert schema_of(aggregate(partitions=public))["day"] is int
    assert schema_of(aggregate())["day"] is Any
    assert schema_of(aggregate(partition=())) == numbers


def order_of(given: Iterable[object]) -> list[object]:
    public = dp.PublicPartitions([f"p{number}" for number in range(50)])
    return [row.day for row in released(given, aggregate(partitions=public, metrics=[dp.Count()]))]


def test_the_order_of_the_output_is_that_of_the_public_list() -> None:
    listed = [f"p{number}" for number in range(50)]
    backwards = [visit(n, f"p{49 - n % 50}", 1) for n in range(200)]
    assert order_of(backwards) == order_of([]) == order_of([visit(1, "p7", 1)]) == listed


def test_the_order_of_private_partitions_is_that_of_hashes() -> None:
    given = [visit(n, f"p{n % 20}", 1) for n in range(20 * 30)]
    options = {"metrics": [dp.Count()], "budget": dp.Budget(1e6, 1e-6)}
    orders = [[row.day for row in released(given, aggregate(**options))] for _ in range(2)]
    # Two keys put 20 partitions in the same order with probability at most about 1/20! < 1e-17.
    assert orders[0] != orders[1] and set(orders[0]) == set(orders[1])
    assert len(orders[0]) == 20


def test_a_bound_is_given_where_none_can_be_chosen() -> None:
    for metric, bounds in (
        (dp.BlackBox("v", len), None),
        (dp.Max("v"), dp.ContributionBounds(None)),
    ):
        with pytest.raises(
            ValueError, match="bounds.partitions must be given where partitions are"
        ):
            dp.PrivateAggregate("p", [metric], dp.Budget(1, 1e-6), ["day"], bounds)


def test_a_row_quantile_of_nobody_says_that_it_says_nothing():
    """Its number of rows may be 0, where no rank means anything. (The noise is 0 but for e^-100.)"""
    transform = dp.PrivateAggregate("person", [dp.Median("value", per="row")], dp.Budget(1e4))
    [row] = released([], transform)
    assert row.median_value_rank_error == math.inf


def test_a_number_of_people_has_the_box_beside_what_has_owner_lines() -> None:
    """And a rehearsal draws it as a run does; here in one bucket, whatever the metrics are."""
    rows = [visit(person, day, person % 7) for person in range(300) for day in range(3)]
    for metric in (dp.Median("value"), dp.DistinctCount("value"), dp.MaxFrequency("value")):
        asked = {"metrics": [dp.PeopleCount(), metric], "budget": dp.Budget(4), "bounds": None}
        release = aggregate(**asked, partitions=dp.PublicPartitions(range(3)))
        with beam.Pipeline("FnApiRunner") as pipeline:
            _ = pipeline | beam.Create(rows) | release
            found = release.record() | beam.Map(lambda record: record["releases"][0]["mechanism"])
            assert_that(found, equal_to(["joint noise for 3 numbers, nobody clipped"]))

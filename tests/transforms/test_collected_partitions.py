"""Public keys that the pipeline collects: released like a list that is known beforehand."""

import datetime
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.transforms.window import FixedWindows

import beam_dp as dp
from beam_dp.transforms.public_partitions import keys_in, listed

ROWS = [
    {"person": f"p{person}", "day": day, "country": country, "spent": 2.0}
    for person in range(400)
    for day, country in ((1, "DE"), (2, "DE"), (9, "DE"))
]
SEEN: list[Any] = []
TWO = dp.ContributionBounds(partitions=2)


def see(row: Any) -> None:
    SEEN.append(row)


def released(
    keys: Sequence[object],
    partition: Sequence[str] = ("day",),
    bounds: dp.ContributionBounds | None = TWO,
    rows: Sequence[Any] = ROWS,
) -> list[Any]:
    """Return the rows that are released for these keys, in a small in-memory run."""
    SEEN.clear()
    with beam.Pipeline("FnApiRunner") as pipeline:
        public = pipeline | "Keys" >> beam.Create(keys, reshuffle=False)
        release = dp.PrivateAggregate(
            "person",
            [dp.PeopleCount(), dp.Sum("spent")],
            dp.Budget(50),
            partition,
            bounds,
            dp.PublicPartitions.from_collection(public),
            columns=["person", "day", "country", "spent"],
        )
        output = pipeline | "Rows" >> beam.Create(rows) | "Release" >> release
        _ = output | "See" >> beam.Map(see)
    return sorted(SEEN, key=str)


def test_every_key_is_released_and_no_other() -> None:
    rows = released([1, 2, 3])
    assert [row.day for row in rows] == [1, 2, 3]
    # The noise has a scale of 1/10: beyond 8 with a probability below 1e-30.
    assert [abs(row.people_count - people) < 8 for row, people in zip(rows, (400, 400, 0))] == [
        True
    ] * 3
    assert [abs(row.sum_spent - spent) < 60 for row, spent in zip(rows, (800, 800, 0))] == [
        True
    ] * 3


def test_the_bound_is_chosen_where_it_is_not_given() -> None:
    rows = released([1, 2, 3], bounds=None)
    assert [row.day for row in rows] == [1, 2, 3]
    assert abs(rows[0].people_count - 400) < 100


def test_rows_with_the_partition_columns_are_keys() -> None:
    keys = [{"country": "DE", "day": 1, "else": 0}, ("FR", 1), beam.Row(country="DE", day=2)]
    rows = released(keys, ("country", "day"))
    assert [(row.country, row.day) for row in rows] == [("DE", 1), ("DE", 2), ("FR", 1)]
    assert rows[0].people_count > 300 and rows[2].people_count < 100


def test_batches_and_no_rows_and_no_keys() -> None:
    keys = pa.RecordBatch.from_pylist([{"day": 1}, {"day": 5}, {"day": None}])
    batch = pa.RecordBatch.from_pylist(ROWS)
    assert [row.day for row in released([keys], rows=[batch])] == [1, 5]
    assert [row.day for row in released([1, 5], rows=[])] == [1, 5]
    assert released([]) == [] and released([], rows=[batch]) == []


def test_keys_are_listed_once_in_one_order() -> None:
    date = datetime.date(2020, 1, 2)
    keys = [("b",), (1,), ("1",), (True,), (date,), ("2020-01-02",), ("a",), ("b",)]
    found = listed(keys)
    assert list(found.keys) == list(listed(keys[::-1]).keys)
    assert len(found) == 4


@pytest.mark.parametrize("element", [1.5, None, b"x", (1, 2), ("x", None), {"city": 1}, object()])
def test_what_is_no_key_is_left_out(element: object) -> None:
    assert list(keys_in(element, ("day",))) == []


def test_collections_that_cannot_be_a_list_are_refused() -> None:
    pipeline = beam.Pipeline("FnApiRunner")
    keys = pipeline | beam.Create([1])
    windowed = keys | beam.WindowInto(FixedWindows(5))
    with pytest.raises(ValueError, match="bounded and in the global window"):
        dp.PublicPartitions.from_collection(windowed)
    with pytest.raises(TypeError, match="be a PCollection of public keys, not \\[1\\]"):
        dp.PublicPartitions.from_collection([1])
    with pytest.raises(TypeError, match="from_collection"):
        dp.PublicPartitions(keys)
    collected = dp.PublicPartitions.from_collection(keys)
    asked = {"metrics": [dp.Count()], "budget": dp.Budget(1), "partition": ["day"]}
    release = dp.PrivateAggregate(
        "p", **asked, bounds=TWO, partitions=collected, columns=["p", "day"]
    )
    with pytest.raises(ValueError, match="be a collection of the pipeline that the rows are in"):
        beam.Pipeline("FnApiRunner") | beam.Create([{"p": 1, "day": 1}]) | release
    with pytest.raises(ValueError, match="batches must be False with private partitions, and"):
        dp.PrivateAggregate("p", **asked, partitions=collected, batches=True)
    with pytest.raises(TypeError, match="partitions must be PublicPartitions or left out"):
        dp.RemovalLoss(dp.Count(), "p", ["day"], partitions=collected)
    with pytest.raises(ValueError, match="or collected by the pipeline"):
        dp.PrivateAggregate(["p", "q"], **asked, partitions=collected)

"""Section B of the table of bad inputs: person identifiers."""

import apache_beam as beam
import numpy as np
import pyarrow as pa

import beam_dp as dp
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from tests.hostile import support
from tests.hostile.support import Content, as_batch


def test_35_one_person_with_many_rows() -> None:
    size = 2_000_000
    table = pa.table({"person": pa.nulls(size, pa.int64()).fill_null(1),
                      "day": pa.array(np.arange(size) % 10), "value": np.ones(size)})  # fmt: skip
    found = support.contents([table, as_batch((2, 3, 1.0))], ContributionBounds(2, 5))
    # Two partitions of the first person, 5 rows in each; the other person has one row more.
    assert sum(content.rows for content in found.values()) == 11
    assert sum(content.people for content in found.values()) == 3


def test_36_one_person_in_many_partitions() -> None:
    size = 1_000_000
    table = pa.table(
        {"person": np.ones(size, np.int64), "day": np.arange(size), "value": np.ones(size)}
    )
    found = support.contents([table, as_batch((2, 3, 1.0))], ContributionBounds(3))
    assert sum(content.people for content in found.values()) == 4


def test_38_identical_rows_are_rows_inside_the_bounds() -> None:
    rows = [support.as_dict((1, "a", 2.0))] * 10
    assert support.contents(rows)[("a",)] == Content(1, 10, 20_000_000, 10)
    assert support.contents(rows, ContributionBounds(1, 3))[("a",)] == Content(1, 3, 6_000_000, 3)
    assert support.contents(rows, ContributionBounds(1, None, 4))[("a",)].rows == 4


def test_37_all_rows_of_one_person_make_a_release() -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        rows = support.start(pipeline, [support.as_dict((1, n % 3, n)) for n in range(100)])
        transform = dp.PrivateAggregate(
            "person", [dp.Count(), dp.Max("value")], dp.Budget(1.0), ["day"],
            partitions=dp.PublicPartitions([0, 1, 2]),
        )  # fmt: skip
        seen = support.keep(rows | transform)
    assert sorted(row.day for row in seen) == [0, 1, 2]

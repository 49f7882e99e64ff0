"""Released blocks: cut, typed, as rows and as batches, all the same numbers."""

import datetime
import math
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beam_dp as dp
from beam_dp.mechanisms.summaries import wire
from beam_dp.transforms.columns import layout
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys
from beam_dp.transforms.stages import draw_once, output_names
from beam_dp.transforms.stages.draw_once import Block, cut, typed

NAMES = ("day", "place", "count", "count_low", "sum", "sum_low")
KEYS = PublicKeys(KeyList.of(((1, "a"), (2, "b"), (3, "c"))))
NUMBERS = (
    np.array([5, 2**80, -(2**70)], object),
    np.array([1.0, math.inf, 0.0]),
    np.array([1, 2, 3]),
    np.array([0.5, 0.25, 0.0]),
)


@given(st.integers(0, 40), st.integers(1, 12), st.sampled_from([0, 1000, 1 << 20]))
def test_a_cut_block_holds_everything_once(size: int, part: int, most: int) -> None:
    whole = Block(np.arange(size), (np.arange(size) * 2, np.arange(size) / 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw_once, "BLOCK_ROWS", part)
        patch.setattr(wire, "MOST_BYTES", most)
        parts = list(cut(whole))
    assert [row for block in parts for row in zip(*block.numbers, strict=True)] == list(
        zip(*whole.numbers, strict=True)
    )
    assert [key for block in parts for key in block.keys] == list(range(size))
    assert all(len(block.keys) <= part for block in parts)


def test_whole_numbers_saturate_at_64_bits_and_others_are_floats() -> None:
    assert typed(NUMBERS[0], True).tolist() == [5, 2**63 - 1, -(2**63) + 1]
    assert typed(np.array([2.0**63, -(2.0**63)]), True).tolist() == [2**63 - 1, -(2**63) + 1]
    assert typed(np.array([1.0, 2.0]), True).dtype == np.int64
    assert typed(NUMBERS[0], False).tolist() == [5.0, 2.0**80, -(2.0**70)]


def test_rows_and_batches_hold_the_same() -> None:
    block = Block(np.array([2, 0, 1]), NUMBERS)
    listed = [
        row.as_dict() for row in draw_once.as_rows(block, NAMES, [True, False, False, False], KEYS)
    ]
    assert [list(row) for row in listed] == [list(NAMES)] * 3
    assert [(row["day"], row["place"]) for row in listed] == [(3, "c"), (1, "a"), (2, "b")]
    batch = draw_once.as_batch(block, NAMES, [True, False, False, False], KEYS)
    assert batch.to_pylist() == listed
    kinds = [pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.float64(), pa.float64()]
    assert batch.schema.types == kinds


def release(**options: Any) -> dp.PrivateAggregate:
    days = [datetime.date(2020, 1, day) for day in range(1, 32)]
    partitions = options.pop("partitions", dp.PublicPartitions(days))
    bounds = dp.ContributionBounds(1)
    return dp.PrivateAggregate(
        "who", [dp.Count(), dp.Sum("x")], dp.Budget(1.0, 1e-6), ["day"], bounds, partitions,
        **options,
    )  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_of_batches_is_that_of_their_rows(tmp_path: Path, kind: str) -> None:
    """One release, read twice: its batches, and the same as rows."""
    given_rows = [{"who": who, "day": datetime.date(2020, 1, 1), "x": 1.5} for who in range(50)]
    schema = output_names.output_type(("day",), (dp.Count(), dp.Sum("x")), rows_layout())
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        found = pipeline | beam.Create(given_rows) | release(batches=True)
        _ = found | "WriteBatches" >> dp.WriteRows(str(tmp_path / f"batches.{kind}"))
        single = found | beam.FlatMap(pa.RecordBatch.to_pylist)
        single = single | beam.Map(lambda row: beam.Row(**row)).with_output_types(schema)
        _ = single | "WriteSingle" >> dp.WriteRows(str(tmp_path / f"rows.{kind}"))
    batches, single = tmp_path / f"batches.{kind}", tmp_path / f"rows.{kind}"
    if kind == "parquet":
        one, other = pq.read_table(batches), pq.read_table(single)
        assert one.schema.equals(other.schema) and one.num_rows == 31
        # As text: where too few people are, a sum is NaN.
        assert str(one.to_pylist()) == str(other.to_pylist())
    else:
        assert batches.read_bytes() == single.read_bytes()
        assert len(batches.read_bytes().splitlines()) == 32


def rows_layout() -> Any:
    days = tuple((datetime.date(2020, 1, day),) for day in range(1, 32))
    return layout.Layout("who", ("day",), (), PublicKeys(KeyList.of(days)), bytes(32))


def test_batches_are_refused_with_private_partitions() -> None:
    with pytest.raises(ValueError, match="batches must be False with private partitions"):
        release(partitions=dp.PrivatePartitions(), batches=True)
    with pytest.raises(TypeError, match="batches must be True or False, not 1"):
        release(batches=1)

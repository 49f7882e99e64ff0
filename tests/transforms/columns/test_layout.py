"""Rows of every kind become the same contributions; bad ones vanish alone."""

import collections
import dataclasses
import datetime
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_dp.mechanisms.bounding import table as bounding_table
from beam_dp.mechanisms.bounding.table import Column, Role, Table
from beam_dp.mechanisms.numerics import integers
from beam_dp.transforms.columns import layout as layouts
from beam_dp.transforms.columns import partition_keys, public_keys
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.row_fields import FieldLists

KEY = bytes(range(32))
UNIT = Fraction(1, 10**6)
VALUE = Column("value", Role.VALUE, UNIT)


class Visit(NamedTuple):
    person: Any
    day: Any
    value: Any


def layout(
    public: public_keys.PublicKeys | None = None, partition: tuple[str, ...] = ("day",)
) -> Layout:
    return Layout("person", partition, (VALUE,), public, KEY)


def lines(tables: Sequence[Table]) -> collections.Counter[Any]:
    """Return what tables hold, however it is laid out."""
    found: collections.Counter[Any] = collections.Counter()
    for table in tables:
        words = [
            bounding_table.join_identities([part, np.zeros((2, 0), np.uint64)]).T.tolist()
            for part in (table.person, table.partition)
        ]
        value = integers.widen(table.values[0]).tolist()
        for person, partition, number in zip(*words, value, strict=True):
            pair = (partition[0], partition[1])
            found[tuple(person), partition_keys.name_of(pair, table.names), number] += 1
    return found


def collected(rows: Sequence[object], found: Layout) -> list[Table]:
    lists = FieldLists(found.names)
    for row in rows:
        lists.add(row)
    return found.from_lists(lists.drain())


@given(st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from("ab"),
                          st.none() | st.floats(-5, 5)), min_size=1, max_size=12))  # fmt: skip
def test_batches_agree_with_rows(rows: list[tuple[Any, Any, Any]]) -> None:
    found = layout()
    batch = pa.RecordBatch.from_pylist(
        [Visit(*row)._asdict() for row in rows],
        pa.schema([("person", pa.int64()), ("day", pa.string()), ("value", pa.float64())]),
    )
    expected = lines(collected([Visit(*row) for row in rows], found))
    assert lines([found.from_batch(batch)]) == expected
    assert lines([found.from_batch(part) for part in layouts.batches(pa.table(batch))]) == expected
    assert (
        lines([found.from_batch(batch.slice(0, 1)), found.from_batch(batch.slice(1))]) == expected
    )


def keys(*values: Any) -> public_keys.PublicKeys:
    return public_keys.PublicKeys(public_keys.KeyList.of((value,) for value in values))


MIXED = (
    True,
    False,
    1,
    1.0,
    "true",
    "1",
    "n/a",
    None,
    2**70,
    Decimal(1),
    datetime.date(2026, 11, 24),
)
OF_LISTS = {
    "private partitions": layout(),
    "public partitions": layout(keys("true", "n/a", "1")),
    "periods": dataclasses.replace(layout(), period="value"),
    "periods of a ledger": dataclasses.replace(layout(), period="value", only=keys("true")),
    "lists of other tables": dataclasses.replace(
        layout(), also_listed=((("value",), keys("true", "n/a")), (("day",), keys(1, 2)))
    ),
}


@pytest.mark.parametrize("found", OF_LISTS.values(), ids=OF_LISTS)
@given(days=st.lists(st.tuples(*[st.sampled_from(MIXED)] * 2), min_size=2, max_size=4))
def test_the_type_of_a_key_matters_to_its_own_row_only(
    found: Layout, days: list[tuple[Any, Any]]
) -> None:
    rows = [Visit(person, day, value) for person, (day, value) in enumerate(days)]
    alone = [table for row in rows for table in collected([row], found)]
    assert lines(collected(rows, found)) == lines(alone)


def test_public_keys_drop_the_other_rows() -> None:
    found = layout(public_keys.PublicKeys(public_keys.KeyList.of((("1",), ("a",)))))
    rows = [Visit(1, day, 1) for day in (1, "1", True, "a", "b", None, 2.0, Decimal(1))]
    tables = collected(rows, found)
    places = [place for table in tables for place in table.partition[0].tolist()]
    assert sorted(places) == [0, 0, 0, 0, 1] and not any(table.names for table in tables)


def test_no_partition_columns() -> None:
    table = layout(partition=()).from_lists([[1, None, 2], [1, 1, None]])[0]
    assert len(table) == 2 and not table.partition.any()


NUMERIC = pa.opaque(pa.string(), "numeric", "PostgreSQL")
BAD_SCHEMAS = [
    ("person", pa.list_(pa.float64())), ("person", pa.binary()), ("person", pa.timestamp("us", "UTC")),
    ("day", pa.list_(pa.int64())), ("day", pa.duration("s")), ("day", pa.timestamp("us")), ("day", NUMERIC),
    ("value", pa.string()), ("value", pa.bool_()), ("value", pa.struct([("a", pa.int64())])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), BAD_SCHEMAS, ids=str)
def test_types_are_refused_by_name_without_a_value(name: str, kind: pa.DataType) -> None:
    good = {"person": pa.int64(), "day": pa.string(), "value": pa.float64(), name: kind}
    batch = pa.RecordBatch.from_pylist([], pa.schema(list(good.items())))
    with pytest.raises(TypeError, match=f"column '{name}' must hold") as caught:
        layout().from_batch(batch)
    assert str(kind) in str(caught.value)


def test_missing_and_doubled_columns_are_refused() -> None:
    one = pa.array([1])
    with pytest.raises(ValueError, match="column 'day' must occur once in every batch, not 0"):
        layout().from_batch(pa.RecordBatch.from_arrays([one, one], ["person", "value"]))
    doubled = pa.RecordBatch.from_arrays([one] * 4, ["person", "day", "day", "value"])
    with pytest.raises(ValueError, match="not 2 times"):
        layout().from_batch(doubled)


def test_batches_are_bounded_and_one_has_the_schema() -> None:
    table = pa.table({"person": pa.array(range((1 << 18) + 5))})
    assert [len(batch) for batch in layouts.batches(table)] == [1 << 18, 5]
    [none] = layouts.batches(table.slice(0, 0))
    assert none.schema == table.schema and not len(none)
    assert layouts.batches(pa.table({})) == []

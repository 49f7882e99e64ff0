"""Private partition keys keep type and value."""

import datetime
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from apache_beam.utils.timestamp import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from beam_dp.transforms.columns import ids, partition_keys
from beam_dp.transforms.columns.partition_keys import (
    Key,
    clean,
    name_keys,
    name_of,
)
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys
from tests.hostile import support

KEY = bytes(range(32))
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
PART = INT64 | TEXT | st.booleans() | st.dates()


def typed(key: Key) -> list[tuple[type, object]]:
    """Return a key in a form in which 1 and True differ."""
    return [(type(part), part) for part in key]


def names_of(*columns: pa.Array) -> list[Key | None]:
    """Return the key that a release would show for each row; None for dropped rows."""
    found, valid, names = name_keys(list(columns), KEY)
    second = found[1] if len(found) > 1 else np.zeros(len(valid), np.uint64)
    pairs = zip(found[0].tolist(), second.tolist(), strict=True)
    return [name_of(pair, names) if ok else None for pair, ok in zip(pairs, valid, strict=True)]


COLUMNS: list[tuple[st.SearchStrategy[Any], pa.DataType]] = [
    (st.integers(-128, 127), pa.int8()),
    (INT64, pa.int64()),
    (st.integers(0, (1 << 63) - 1), pa.uint64()),
    (st.integers(-(10**18), 10**18), pa.decimal128(38, 0)),
    (st.booleans(), pa.bool_()),
    (TEXT, pa.string()),
    (TEXT, pa.string_view()),
    (st.dates(), pa.date32()),
    (st.dates(), pa.date64()),
]


def drawn_column(data: st.DataObject, size: int) -> tuple[list[object], pa.Array]:
    """Return Python values, and a column of them that is sliced or a dictionary at random."""
    strategy, kind = data.draw(st.sampled_from(COLUMNS))
    values = data.draw(st.lists(st.none() | strategy, min_size=size + 1, max_size=size + 1))
    made = values
    if pa.types.is_decimal(kind):
        made = [None if value is None else Decimal(value) for value in values]
    column = pa.array(made, kind)
    if data.draw(st.booleans()) and kind != pa.string_view():
        column = column.dictionary_encode()
    return values[1:], column.slice(1)


def test_whole_floats_are_the_keys_of_their_integers() -> None:
    floats = [1.0, None, float("nan"), 2.5, -3.0, 2.0**53, float("inf")]
    keys = [(1,), None, None, None, (-3,), None, None]
    for column in (pa.array(floats), pa.array(floats).dictionary_encode()):
        assert names_of(column) == keys
        assert names_of(column, pa.array(["a"] * 7)) == [key and (*key, "a") for key in keys]
    integers = pa.array([1, None, None, None, -3, None, None])
    for one, other in zip(
        name_keys([pa.array(floats)], KEY), name_keys([integers], KEY), strict=True
    ):
        assert np.array_equal(one, other)


def test_no_unsigned_integer_is_touched_by_itself_where_all_are_below_2_to_the_63(monkeypatch):
    monkeypatch.delattr(partition_keys, "clean")
    column = pa.array([0, None, (1 << 63) - 1], pa.uint64())
    assert names_of(column, column) == [(0, 0), None, ((1 << 63) - 1, (1 << 63) - 1)]


@given(st.data())
def test_private_columns_keep_type_and_value(data: st.DataObject) -> None:
    drawn = [drawn_column(data, 5) for _ in range(data.draw(st.integers(1, 3)))]
    rows = zip(*(values for values, _ in drawn), strict=True)
    expected = [None if None in row else typed(row) for row in rows]
    assert [key and typed(key) for key in names_of(*(c for _, c in drawn))] == expected


@given(st.lists(PART, min_size=2, max_size=2))
def test_private_identities_are_equal_where_keys_are(parts: list[Any]) -> None:
    columns = [ids.to_array([part]) for part in parts]
    found = [name_keys([column], KEY)[0] for column in columns]
    assert (ids.join([found[0]]) == ids.join([found[1]])).all() == (
        typed((parts[0],)) == typed((parts[1],))
    )


def test_a_dictionary_with_null_and_with_doubles() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), pa.array(["a", None, "a", ""]))
    assert names_of(column) == [("a",), None, ("a",), ("",)]
    found = name_keys([column], KEY)[0]
    assert found[:, 0].tolist() == found[:, 2].tolist()


def test_text_that_is_no_utf8_is_no_key() -> None:
    offsets = pa.py_buffer(np.array([0, 2, 4, 6], np.int32))
    column = pa.Array.from_buffers(
        pa.string(), 3, [None, offsets, pa.py_buffer(b"\xff\xfe\xed\xa0ok")]
    )
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert names_of(column.cast(kind)) == [None, None, ("ok",)]
        public = PublicKeys(KeyList.of((("ok",),)))
        assert public.indexes([column.cast(kind)], KEY).tolist() == [-1, -1, 0]
    assert names_of(column.dictionary_encode()) == [None, None, ("ok",)]
    assert names_of(column, pa.array([1, None, 3])) == [None, None, ("ok", 3)]


def test_dates_that_python_cannot_name_are_no_keys() -> None:
    first, last = datetime.date.min, datetime.date.max
    days = pa.array([first, last]).cast(pa.int32()).to_pylist()
    days += [days[0] - 1, days[1] + 1, -(1 << 31), (1 << 31) - 1]
    column = pa.array(days, pa.int32()).cast(pa.date32())
    assert names_of(column) == [(first,), (last,), None, None, None, None]
    assert names_of(column, column)[1:3] == [(last, last), None]
    instants = pa.array([-(1 << 63), (1 << 63) - 1, -1, 86_400_001], pa.int64()).cast(pa.date64())
    assert names_of(instants)[:2] == [None, None]
    assert names_of(instants)[2:] == [(datetime.date(1969, 12, 31),), (datetime.date(1970, 1, 2),)]


CLEAN = [
    (1, 1), (np.int8(1), 1), (Decimal("1.0"), 1), (True, True), (np.bool_(False), False),
    ("a", "a"), (np.str_("a"), "a"), (datetime.date(2020, 1, 1), datetime.date(2020, 1, 1)),
    (1.0, 1), (np.float32(-2), -2), (1.5, None), (2.0**53, None), (float("inf"), None), (None, None), (float("nan"), None), (b"a", None), ("\ud800", None), (1 << 63, str(1 << 63)),
    (np.uint64(1 << 63), str(1 << 63)), (datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1)), (1 << 4096, None), ([1], None), ((1,), None),
    (np.timedelta64(1, "ns"), None), (np.timedelta64("NaT"), None), (Decimal("1.5"), None),
    (Decimal("NaN"), None), (Decimal("1E+999999999"), None), (object(), None), ({"a": 1}, None), ({1, 2}, None),
    (np.uint64(46), 46), (-0.0, 0), (Decimal(-(1 << 64)), str(-(1 << 64))), (uuid.UUID(int=45), str(uuid.UUID(int=45))),
    (datetime.datetime(2020, 1, 2, 13, 30), "2020-01-02 13:30:00"), (Timestamp(1.5), "1970-01-01 00:00:01.500000"),
    *((text, text) for text in ("", "../x", "=cmd|' /C calc'!A0", "a\0\n")), (support.Hostile(), None),
]  # fmt: skip


def test_clean() -> None:
    for part, expected in CLEAN:
        assert clean(part) == expected and type(clean(part)) is type(expected), expected

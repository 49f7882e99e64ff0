"""One person, one identity: from every type, every Arrow layout and every batch."""

import datetime
import decimal
import uuid
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from apache_beam.utils.timestamp import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from beam_dp.transforms.columns.ids import canonical, identify, without_uuids

KEY = bytes(range(32))
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
WIDE = st.integers(-(10**70), 10**70)
# What text must not be mistaken for: numbers of nearly the right form.
DIGITS = st.from_regex(r"[-+ 0]{0,2}[0-9]{0,21}[ \n.]?", fullmatch=True)
TEXT = st.text(st.characters(codec="utf-8"), max_size=30) | DIGITS
WHOLE = st.integers(1 - (1 << 53), (1 << 53) - 1).map(float)
IDS = (
    INT64
    | WIDE
    | WHOLE
    | st.booleans()
    | TEXT
    | st.dates()
    | st.datetimes()
    | st.uuids()
    | st.none()
)
NO_IDS = st.floats() | st.binary() | st.lists(st.integers()) | st.complex_numbers()


def ids_of(identity: np.ndarray, valid: np.ndarray) -> list[tuple[int, int] | None]:
    """Return comparable identities, None where there is none."""
    second = identity[1] if len(identity) > 1 else np.zeros(identity.shape[1], np.uint64)
    pairs = zip(identity[0].tolist(), second.tolist(), valid.tolist(), strict=True)
    return [(first, rest) if ok else None for first, rest, ok in pairs]


def of_column(column: pa.Array) -> list[tuple[int, int] | None]:
    return ids_of(*identify(column, KEY))


def of_values(values: list[object]) -> list[tuple[int, int] | None]:
    return ids_of(*identify(values, KEY))


def same(left: object, right: object) -> bool:
    """Return whether two values are one person, in a batch of both and each in its own."""
    together = of_values([left, right])
    apart = of_values([left]) + of_values([right])
    assert together == apart
    return together[0] is not None and together[0] == together[1]


ONE = [1, "1", True, np.int8(1), np.uint64(1), np.int64(1), np.bool_(True), np.str_("1")]
ONE += [Decimal(1), Decimal("1.00"), Decimal("1E+0")]
ONE += [1.0, np.float64(1), np.float32(1), np.float16(1), np.longdouble(1)]


def test_every_one_is_the_same_person() -> None:
    assert [canonical(value) for value in ONE] == ["1"] * len(ONE)
    assert all(same(value, 1) for value in ONE)


DIFFERENT = [
    ("1", "01"), ("1", "+1"), ("1", " 1"), ("1", "1 "), ("1", "1\n"), ("1", "١"), (0, "-0"),
    (0, ""), ("a", "A"), ("a", "a "), ("a", "a\0"), ("\u00e9", "e\u0301"), (1, -1), (True, "True"),
    (1 << 63, -(1 << 63)), (1 << 64, 0), ("1" * 30, "1" * 31), ("", "\0"), ("\0", "\0\0"),
]  # fmt: skip


def test_other_people_stay_apart() -> None:
    for left, right in DIFFERENT:
        assert canonical(left) != canonical(right), left
        assert not same(left, right), left


EQUAL = [
    (1 << 63, str(1 << 63)), (-(1 << 63), str(-(1 << 63))), ((1 << 64) - 1, np.uint64(2**64 - 1)),
    (10**50, Decimal(10**50)), (10**50, Decimal("1E+50")), (0, Decimal("0E+60")), (0, Decimal("-0")),
    (datetime.date(1, 1, 1), "0001-01-01"), (uuid.UUID(int=7), str(uuid.UUID(int=7))),
    (datetime.datetime(2026, 11, 24), datetime.date(2026, 11, 24)), (Timestamp(86_400), "1970-01-02"),
    (datetime.datetime(2026, 11, 24, 2, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")), "2026-11-24 01:00:00"),
    (datetime.datetime(2026, 11, 24, 1, tzinfo=datetime.UTC), datetime.datetime(2026, 11, 24, 1)),
    (Timestamp(-0.5), "1969-12-31 23:59:59.500000"), (Timestamp(1, 5, 9), "1970-01-01 00:00:01"),
    ("a\0b", np.str_("a\0b")), (0, -0.0), (-7, np.float32(-7)), ((1 << 53) - 1, float((1 << 53) - 1)),
    ((1 << 24) - 1, np.float32((1 << 24) - 1)), (2047, np.float16(2047)),
]  # fmt: skip


def test_one_id_in_two_spellings() -> None:
    assert [pair for pair in EQUAL if not same(*pair)] == []


@given(st.lists(st.none() | st.uuids(), max_size=6), st.integers(0, 3))
def test_uuids_of_arrow_are_their_text(values: list[uuid.UUID | None], start: int) -> None:
    column = pa.array([value and value.bytes for value in values], pa.uuid())[start:]
    assert without_uuids(column).to_pylist() == [value and str(value) for value in values[start:]]
    without_uuids(column).validate(full=True)


NOBODY = [
    None, 1.5, float("nan"), float("inf"), np.float64(-0.5), 2.0**53, -(2.0**53), 1e300, 5e-324,
    np.float32(1 << 24), np.float32("nan"), np.float16(2048), np.float16("inf"), np.longdouble(1 << 53),
    np.longdouble("nan"), np.longdouble(1) + np.finfo(np.longdouble).eps, b"1", np.bytes_(b"1"), [1], (1,), {1: 1},
    {1}, 1j, "\ud800", "a\udfff", datetime.timedelta(1), Timestamp(1 << 40), Timestamp(-(1 << 40)),
    datetime.datetime.max.replace(tzinfo=datetime.timezone(-datetime.timedelta(hours=1))),
    np.datetime64("2020-01-01"), np.timedelta64(1, "ns"), np.timedelta64("NaT"), Decimal("1.5"),
    Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1E+999999999"),
    Decimal("1E-999999999"), Fraction(1), 1 << 4096, 10**5000, range(3), object(), int, len,
    np.array([1]), np.array(1), pa.scalar(1), datetime.time(1), Ellipsis, (x for x in "a"),
]  # fmt: skip


def test_nobody_has_no_identity() -> None:
    assert [canonical(value) for value in NOBODY] == [None] * len(NOBODY)
    assert of_values(NOBODY) == [None] * len(NOBODY)
    assert of_values([7, *NOBODY])[0] == of_values([7])[0]


@given(st.lists(IDS | NO_IDS, max_size=12))
def test_a_value_is_its_canonical_form_in_every_batch(values: list[object]) -> None:
    """Two identities are equal where the forms are, and nobody has none."""
    found, forms = of_values(values), list(map(canonical, values))
    assert found == [one for value in values for one in of_values([value])]
    named = dict(zip(forms, found, strict=True))
    assert found == [named[form] for form in forms] and len({*found}) == len(named)
    assert named.get(None) is None


def typed(values: st.SearchStrategy[Any], *types: pa.DataType) -> st.SearchStrategy[pa.Array]:
    """Return columns of one of the types, with nulls."""
    lists = st.lists(values | st.none(), max_size=8)
    return st.tuples(lists, st.sampled_from(types)).map(lambda pair: pa.array(*pair))


def floats(width: int, below: int) -> st.SearchStrategy[Any]:
    """Return floats of a width, whole ones about the largest that is an id among them."""
    near = st.integers(below - 3, below + 3).map(float) | st.integers(-below, below).map(float)
    kinds = {16: np.float16, 32: np.float32, 64: np.float64}
    return (st.floats(width=width) | near.filter(lambda x: abs(x) < 60_000 or width > 16)).map(
        kinds[width]
    )


def whole_decimal(value: int) -> Decimal:
    return decimal.Context(prec=80).create_decimal(value)


COLUMNS = st.one_of(
    typed(st.integers(-128, 127), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    typed(st.integers(0, 255), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    typed(INT64, pa.int64()),
    typed(st.integers(0, (1 << 64) - 1), pa.uint64()),
    typed(st.booleans(), pa.bool_()),
    typed(TEXT, pa.string(), pa.large_string(), pa.string_view()),
    typed(st.dates(), pa.date32(), pa.date64()),
    typed(st.integers(-(10**38) + 1, 10**38 - 1).map(whole_decimal), pa.decimal128(38, 0)),
    typed(WIDE.map(whole_decimal), pa.decimal256(76, 0)),
    typed(st.integers(-(10**9) + 1, 10**9 - 1).map(whole_decimal), pa.decimal32(9, 0)),
    typed(st.none(), pa.null()),
    typed(floats(16, 1 << 11), pa.float16()),
    typed(floats(32, 1 << 24), pa.float32()),
    typed(floats(64, 1 << 53), pa.float64()),
)


@given(COLUMNS, st.data())
def test_columns_and_values_agree(column: pa.Array, data: st.DataObject) -> None:
    listed = column.to_pylist()
    if pa.types.is_floating(column.type):  # Arrow's own list has floats of 64 bits
        kind = column.type.to_pandas_dtype()
        listed = [None if value is None else kind(value) for value in listed]
    expected = of_values(listed)
    assert of_column(column) == expected
    start = data.draw(st.integers(0, len(column)))
    length = data.draw(st.integers(0, len(column) - start))
    part = column.slice(start, length)
    assert of_column(part) == expected[start : start + length]
    if column.type not in (pa.string_view(), pa.null(), pa.decimal32(9, 0), pa.float16()):
        encoded = column.dictionary_encode()
        assert of_column(encoded) == expected
        assert of_column(encoded.slice(start, length)) == expected[start : start + length]


def test_unsigned_integers_of_64_bits_have_one_word_where_all_are_below_2_to_the_63() -> None:
    numbers = [0, None, (1 << 63) - 1]
    (signed, there), (unsigned, valid) = (
        identify(pa.array(numbers, kind), KEY) for kind in (pa.int64(), pa.uint64())
    )
    assert np.array_equal(signed, unsigned) and np.array_equal(there, valid)
    assert len(identify(pa.array([*numbers, 1 << 63], pa.uint64()), KEY)[0]) == 2


def test_null_is_read_from_the_bitmap_whatever_lies_below_it() -> None:
    bitmap = pa.py_buffer(b"\x05")  # rows 0 and 2
    numbers = pa.py_buffer(np.array([1, 2, 3], np.int64))
    column = pa.Array.from_buffers(pa.int64(), 3, [bitmap, numbers])
    assert of_column(column) == of_values([1, None, 3])
    assert of_column(column.slice(1)) == of_values([None, 3])


def test_a_part_of_long_texts_begins_where_it_does() -> None:
    column = pa.array(["a", "b", "c"], pa.large_string())
    assert of_column(column.slice(1)) == of_values(["b", "c"])


def test_text_that_is_no_utf8_is_somebody_and_breaks_nothing() -> None:
    offsets = pa.py_buffer(np.array([0, 2, 4, 6, 7], np.int32))
    text = pa.py_buffer(b"\xff\xfe\xed\xa017\xff")
    column = pa.Array.from_buffers(pa.string(), 4, [None, offsets, text])
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        found = of_column(column.cast(kind))
        assert len(set(found)) == 4 and None not in found
        assert found[2] == of_values([17])[0]
    assert of_column(column.dictionary_encode()) == of_column(column)


def test_dates_that_python_cannot_name_are_nobody() -> None:
    days = pa.array([-(1 << 31), (1 << 31) - 1, 0], pa.int32()).cast(pa.date32())
    assert of_column(days) == [None, None, of_values(["1970-01-01"])[0]]
    instants = pa.array([-(1 << 63), (1 << 63) - 1, 86_400_001], pa.int64()).cast(pa.date64())
    assert of_column(instants) == [None, None, of_values(["1970-01-02"])[0]]


def test_the_key_decides_about_hashes_and_not_about_integers() -> None:
    other = bytes(32)
    assert of_column(pa.array([5])) == ids_of(*identify(pa.array([5]), other))
    assert of_column(pa.array(["x"])) != ids_of(*identify(pa.array(["x"]), other))

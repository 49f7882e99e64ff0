"""Turn ids and keys of every kind into fixed-width identities, by one canonical form.

A canonical id is an integer or a text. Different sources can write the same person in several
ways, and one person must never become two, each with a contribution bound:

* integers of every width, booleans (as 0 and 1), integral decimals, whole floats and the decimal
  text of a 64-bit integer ("17", not "017", "+17", " 17" or "17.0") are one integer;
* other text is taken byte by byte: no case folding, no Unicode normalisation, no trimming (a caller
  who wants these applies them first); the empty text is a valid id;
* dates of the years 1 to 9999 are their ISO text, UUIDs their canonical text, integers beyond 64
  bits (and up to 4,096) their decimal text;
* datetimes, and Beam's timestamps, at midnight are that date, as BigQuery and pandas write days;
  others are their text in UTC: "2026-11-24 13:30:00". Arrow columns of them are refused: cast these;
* null, NaN, other floats, bytes, lists and everything else are no ids: such a row is dropped.

*Floats* come from integers: a missing one makes floats of a whole column in pandas. A float is the
integer that it must have been made of. From 2^53 on (2^24 for float32, 2^11 for float16) there are
several of these, so such floats are no ids: two people must not become one.

The class of a value is read as in `numerics.value_types`, without running any code that a row
brings along.

An identity is uint64 of shape (1, n) or (2, n): the integer and 0, or the keyed 128-bit hash of the
text, whose second word is odd.
"""

import contextlib
import datetime
import decimal
import uuid
from collections.abc import Sequence
from typing import Any, SupportsFloat, TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.utils.timestamp import Timestamp

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.numerics import hashing, value_types

_SHORT = 20
_EIGHTEEN = r"^(0|-?[1-9][0-9]{0,17})$"
_NINETEEN = r"^-?[1-9][0-9]{18}$"
INT64 = range(-(1 << 63), 1 << 63)
_LONGEST_INTEGER = 4096
Cells: TypeAlias = pa.Array | list[object]
"""A column: of Arrow, or Python values of any types."""
_FAST = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.large_string(),
    bool: pa.bool_(),
    datetime.date: pa.date32(),
}
_DAY_MILLISECONDS = 86_400_000
EPOCH = datetime.date(1970, 1, 1).toordinal()
_UUIDS = 1 << 128
_UUID_DIGITS = [at for at in range(36) if at not in (8, 13, 18, 23)]
EXACT = {2: 1 << 11, 4: 1 << 24, 8: 1 << 53}
"""By the bytes of a float: below this number, each integer has a whole float of its own."""
_UUID_NUMBER = vars(uuid.UUID)["int"].__get__  # read past the class: a UUID can hold anything in it
_HELD = vars(Timestamp)["__dict__"].__get__
_DAYS = range(1 - EPOCH, datetime.date.max.toordinal() - EPOCH + 1)


def supported(kind: pa.DataType) -> bool:
    """Return whether a column of this Arrow type, or a dictionary of it, can hold ids or keys."""
    types = pa.types
    checks = (types.is_integer, types.is_boolean, types.is_floating, types.is_date, types.is_null)
    whole_decimal = types.is_decimal(kind) and kind.scale == 0
    return whole_decimal or is_text(kind) or any(check(kind) for check in checks)


def stored(kind: pa.DataType) -> pa.DataType:
    """Return the type of the cells of a column, also of one that is a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is a string type."""
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    return bool(text)


def identify(column: Cells, key: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return the canonical identities of a column, and which rows have an identity.

    Args:
        column: an Arrow column of a type that is `supported`, or Python values.
        key: the run's key.
    """
    if isinstance(column, list):
        column = ids_of(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _identify_dictionary(column, key)
    column = whole(column) if pa.types.is_floating(kind) else column
    column = known_dates(column) if pa.types.is_date(kind) else column
    column = signed(column) if pa.types.is_uint64(kind) else column
    valid = validity(column)
    wide = pa.types.is_date(kind) or pa.types.is_decimal(kind) or pa.types.is_uint64(column.type)
    if wide or is_text(kind):
        return _identify_text(column, key), valid
    numbers = without_nulls(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return numbers.view(np.uint64)[None], valid


def _identify_dictionary(column: pa.DictionaryArray, key: bytes) -> tuple[np.ndarray, np.ndarray]:
    identity, valid = identify(column.dictionary, key)
    codes = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not len(column.dictionary):
        return np.zeros((1, len(column)), np.uint64), np.zeros(len(column), bool)
    return np.take(identity, codes, axis=1), valid[codes] & validity(column.indices)


def validity(column: pa.Array) -> np.ndarray:
    """Return where a column is not null, from its bitmap (never from NaN)."""
    if not column.null_count:
        return np.ones(len(column), bool)
    valid: np.ndarray = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def without_nulls(column: pa.Array, value: object) -> pa.Array:
    """Return a column with `value` instead of null; the column itself where there is no null."""
    return pc.fill_null(column, value) if column.null_count else column


def known_dates(column: pa.Array) -> pa.Array:
    """Return a date column as date32; dates that Python cannot hold become null."""
    narrow = pa.types.is_date32(column.type)
    numbers = column.cast(pa.int32() if narrow else pa.int64())
    days = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
    days = days if narrow else days // _DAY_MILLISECONDS
    known = (days >= _DAYS.start) & (days < _DAYS.stop) & validity(column)
    named = pa.array(np.where(known, days, 0).astype(np.int32), mask=~known)
    return named.cast(pa.date32())


def whole(column: pa.Array) -> pa.Array:
    """Return a column of floats as int64; null where a float is no id."""
    floats = without_nulls(column.cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False)
    known = (np.abs(floats) < EXACT[column.type.bit_width // 8]) & (floats == np.rint(floats))
    return pa.array(np.where(known, floats, 0).astype(np.int64), mask=~known)


def signed(column: pa.Array) -> pa.Array:
    """Return a uint64 column as int64 if all of it fits there, else unchanged."""
    largest = pc.max(column).as_py()
    return column if largest is not None and largest not in INT64 else column.cast(pa.int64())


def _identify_text(column: pa.Array, key: bytes) -> np.ndarray:
    column = column.cast(pa.large_string())
    column = without_nulls(column, "")
    _, held, data = column.buffers()
    offsets = np.frombuffer(held or bytes(8), np.int64)[column.offset :][: len(column) + 1]
    identity = hashing.digests(offsets, np.frombuffer(data or b"", np.uint8), key)
    if len(column) and int(np.diff(offsets).min()) <= _SHORT:
        _use_integers(column, identity)
    return identity


def _use_integers(column: pa.Array, identity: np.ndarray) -> None:
    """Overwrite the identities of decimal text by the identities of its integers."""
    short = pc.match_substring_regex(column, _EIGHTEEN).to_numpy(zero_copy_only=False)
    if short.any():
        numbers = column.filter(pa.array(short)).cast(pa.int64()).to_numpy()
        identity[:, short] = [numbers.view(np.uint64), np.zeros(len(numbers), np.uint64)]
    long = pc.match_substring_regex(column, _NINETEEN).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(long).tolist():
        number = int(column[row].as_py())
        if number in INT64:
            identity[:, row] = np.array([number], np.int64).view(np.uint64)[0], 0


def to_array(values: Sequence[object]) -> pa.Array | None:
    """Return Python values as an Arrow column if all are None or of one plain type, else None."""
    kinds = value_types.of_all(values) - {type(None)}
    if not kinds:
        return pa.nulls(len(values))
    if len(kinds) > 1 or (kind := kinds.pop()) not in _FAST:
        return None
    try:
        return pa.array(values, _FAST[kind])
    except (OverflowError, UnicodeError, pa.ArrowInvalid):
        return None


def ids_of(values: list[object]) -> pa.Array:
    """Return Python values as an Arrow column: by their one type, or each by its canonical text."""
    column = to_array(values)
    return pa.array(map(canonical, values), pa.large_string()) if column is None else column


def canonical(value: object) -> str | None:
    """Return the canonical id of one Python value, an integer as decimal text; None for no id."""
    known = plain(value)
    return None if known is None else str(int(known) if isinstance(known, int) else known)


def plain(value: Any) -> int | str | datetime.date | None:
    """Return an id or key as a plain int, bool, str or date; None for what is none."""
    if type(value) is decimal.Decimal:
        value = whole_number(value)
    elif is_float(value):
        value = whole_float(value)
    elif type(value) is uuid.UUID:
        return uuid_text(value)
    kind = value_types.of(value)
    if kind in value_types.INTEGERS:
        number = int(value)
        return number if number.bit_length() <= _LONGEST_INTEGER else None
    if kind in value_types.TRUTHS:
        return bool(value)
    if kind in value_types.TEXTS:
        return str(value) if value_types.is_utf8(value) else None
    if kind is datetime.datetime or type(value) is Timestamp:
        return _of_time(moment(value))
    return value if kind is datetime.date else None


def moment(value: Any) -> Any:
    """Return Beam's timestamp as a datetime, None for one that holds other things; else the value."""
    if type(value) is not Timestamp:
        return value
    held = _HELD(value)  # read past the class: a timestamp can hold anything in it
    parts = [*dict.keys(held), *dict.values(held)]
    if any(type(part) is not str and type(part) is not int for part in parts):
        return None
    with contextlib.suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return value.to_utc_datetime(allow_lossy_conversion=True).replace(tzinfo=datetime.UTC)
    return None


def _of_time(value: datetime.datetime | None) -> str | datetime.date | None:
    """Return a time as a date, or as text in UTC; None for zones of other classes."""
    if value is None or value_types.of(value.tzinfo) not in value_types.ZONES:
        return None
    with contextlib.suppress(OverflowError, ValueError):
        in_utc = value if value.tzinfo is None else value.astimezone(datetime.UTC)
        plain = in_utc.replace(tzinfo=None)
        is_day = plain.time() == datetime.time()
        return plain.date() if is_day else plain.isoformat(" ")
    return None


def is_float(value: object) -> TypeGuard[SupportsFloat]:
    """Return whether a Python value is a float of any width."""
    return value_types.of(value) in value_types.FLOATS


def whole_float(value: Any) -> int | None:
    """Return a float as the integer that it must have been made of; None for others."""
    limit = EXACT.get(np.dtype(type(value)).itemsize, 1 << 53)  # also of longer ones
    return int(value) if abs(value) < limit and value == int(value) else None


def uuid_text(value: uuid.UUID) -> str | None:
    """Return the canonical text of a UUID; None where it holds no such number."""
    with contextlib.suppress(AttributeError):
        number = _UUID_NUMBER(value)
        return str(uuid.UUID(int=number)) if type(number) is int and 0 <= number < _UUIDS else None
    return None


def without_uuids(column: pa.Array) -> pa.Array:
    """Return a column of UUIDs as their canonical text; any other column as it is."""
    if column.type != pa.uuid():
        return column
    stored = column.storage
    content = np.frombuffer(stored.buffers()[1] or b"", np.uint8).reshape(-1, 16)
    content = content[stored.offset : stored.offset + len(stored)]
    nibbles = np.stack([content >> 4, content & 15], axis=2).reshape(-1, 32)
    text = np.full((len(stored), 36), ord("-"), np.uint8)
    text[:, _UUID_DIGITS] = np.frombuffer(b"0123456789abcdef", np.uint8)[nibbles]
    return pa.array(text.view("S36")[:, 0], mask=~validity(stored)).cast(pa.string())


def whole_number(value: decimal.Decimal) -> int | None:
    """Return a decimal without a fraction as an integer, in bounded time; None for others."""
    if not value.is_finite():
        return None
    whole = not value or value.adjusted() < _LONGEST_INTEGER and value == value.to_integral()
    return int(value) if whole else None


def paired(person: np.ndarray, period: np.ndarray, key: bytes) -> np.ndarray:
    """Return one identity per pair of a person and a period, as uint64 of shape (2, n).

    The four words of a pair are hashed by a key of their own: the words are made with the run's
    key, and the hash tells two texts apart that do not depend on its key.
    """
    words = np.ascontiguousarray(join([person, period]).T)
    offsets = np.arange(len(words) + 1, dtype=np.int64) * words.itemsize * words.shape[1]
    return hashing.digests(offsets, words.reshape(-1).view(np.uint8), key + b"period")


def join(identities: list[np.ndarray]) -> np.ndarray:
    """Return the identities of several columns on top of each other: shape (2 * columns, n)."""
    return np.concatenate([table.two_words(identity) for identity in identities])

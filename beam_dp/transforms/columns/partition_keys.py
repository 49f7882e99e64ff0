"""Turn private partition keys into identities, with names for the keys that are hashed."""

import datetime
import decimal
import struct

import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.numerics import hashing, value_types
from beam_dp.transforms.columns import ids

Key = tuple[object, ...]
_KINDS: tuple[type, ...] = (bool, int, str, datetime.date)
_TRUTH, _DATE = 2, 4  # even numbers, and not 0, the second word of integers: of a hash it is odd


def name_keys(
    columns: list[pa.Array], key: bytes
) -> tuple[np.ndarray, np.ndarray, dict[tuple[int, int], bytes]]:
    """Return identities of private keys, which rows have a key, and the names of hashed keys.

    Types are kept apart: 1, "1" and True are three partitions. Integers of every width, whole
    decimals (in 64 bits) and whole floats are of one type. A single column of integers, booleans or
    dates needs no names.
    """
    columns = [_readable(column) for column in columns]
    valid = np.logical_and.reduce([_present(column) for column in columns])
    if len(columns) == 1 and (second := _second_word(columns[0].type)) is not None:
        column = columns[0].cast(pa.int32()) if second == _DATE else columns[0]
        numbers, _ = ids.identify(column, key)
        words = np.full((1, len(valid)), second, np.uint64)
        return (np.concatenate([numbers, words]) if second else numbers), valid, {}
    codes, uniques = _combine([column.dictionary_encode() for column in columns])
    texts = [encode(unique) for unique in uniques]
    digests = hashing.digests(*hashing.pack(texts), key)
    names = dict(zip(zip(*digests.tolist(), strict=True), texts, strict=True))
    return (
        np.take(digests, codes, axis=1) if len(texts) else np.zeros((2, len(valid)), np.uint64),
        valid,
        names,
    )


def _readable(column: pa.Array) -> pa.Array:
    """Return text as bytes and numbers as int64; values that Python cannot hold become null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        readable = _readable(column.dictionary)
        indices = column.indices.cast(pa.int64())
        column = pa.DictionaryArray.from_arrays(indices, readable)
        return column if pa.types.is_large_binary(readable.type) else column.dictionary_decode()
    if ids.is_text(kind):
        return column.cast(pa.large_string()).cast(pa.large_binary())
    if pa.types.is_date(kind):
        return ids.known_dates(column)
    if pa.types.is_floating(kind):
        return ids.whole(column)
    if pa.types.is_uint64(kind):
        column = ids.signed(column)
    if pa.types.is_uint64(column.type) or pa.types.is_decimal(kind):
        return pa.array([clean(part) for part in column.to_pylist()], pa.int64())
    return column


def _present(column: pa.Array) -> np.ndarray:
    dictionary = pa.types.is_dictionary(column.type)  # which may hold null itself
    return ids.validity(column.dictionary_decode() if dictionary else column)


def _second_word(kind: pa.DataType) -> int | None:
    """Return the second word of keys that are their own identity; None for keys that are hashed."""
    if pa.types.is_date(kind):
        return _DATE
    if pa.types.is_boolean(kind):
        return _TRUTH
    return 0 if pa.types.is_integer(kind) else None


def _combine(columns: list[pa.DictionaryArray]) -> tuple[np.ndarray, list[Key]]:
    """Return a code per row, and the different keys (a null part is None)."""
    total, codes = 1, np.zeros(len(columns[0]), np.int64)
    for column in columns:
        size = len(column.dictionary) + 1
        part = column.indices.fill_null(size - 1).to_numpy(zero_copy_only=False).astype(np.int64)
        if total * size > 1 << 62:
            unique, codes = np.unique(codes, return_inverse=True)
            total = len(unique)
        codes, total = codes * size + part, total * size
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    rows = pa.array(first)
    return codes, list(zip(*(column.take(rows).to_pylist() for column in columns), strict=True))


def encode(key: Key) -> bytes:
    """Return a typed, length-prefixed encoding: ("ab", "c") and ("a", "bc") differ.

    A text may be passed as its bytes; a part of no known type stands for None.
    """
    parts = []
    for part in key:
        kind = _KINDS.index(type(part)) if type(part) in _KINDS else len(_KINDS)
        text = str(part).encode() if kind < len(_KINDS) else b""
        if type(part) is bytes:
            kind, text = _KINDS.index(str), part
        parts.append(struct.pack("<BI", kind, len(text)) + text)
    return b"".join(parts)


def decode(text: bytes) -> Key:
    """Return the key that `encode` encoded; bytes that are no UTF-8 become U+FFFD."""
    parts: list[object] = []
    while text:
        kind, length = struct.unpack_from("<BI", text)
        raw, text = text[5 : 5 + length].decode(errors="replace"), text[5 + length :]
        parts.append(_parse(kind, raw))
    return tuple(parts)


def _parse(kind: int, raw: str) -> object:
    if kind >= len(_KINDS):
        return None
    if _KINDS[kind] is bool:
        return raw == "True"
    return datetime.date.fromisoformat(raw) if _KINDS[kind] is datetime.date else _KINDS[kind](raw)


def name_of(identity: tuple[int, int], names: dict[tuple[int, int], bytes]) -> Key:
    """Return the key of a private identity."""
    if identity in names:
        return decode(names[identity])
    number = identity[0] - (1 << 64) if identity[0] >> 63 else identity[0]
    if identity[1] == _TRUTH:
        return (bool(number),)
    if identity[1] == _DATE:
        return (datetime.date.fromordinal(number + ids.EPOCH),)
    return (number,)


def clean(part: object) -> object:
    """Return one Python key part as a plain int, str, bool or date; None if it is no key.

    Integers beyond 64 bits and text that UTF-8 cannot encode are no keys.
    """
    if type(part) is decimal.Decimal:
        part = ids.whole_number(part)
    elif ids.is_float(part):
        part = ids.whole_float(part)
    if ids.is_integer(part):
        number = int(part)
        return number if number in ids.INT64 else None
    if value_types.of(part) in value_types.TEXTS:
        return str(part) if value_types.is_utf8(str(part)) else None
    if value_types.of(part) in value_types.TRUTHS:
        return bool(part)
    return part if type(part) is datetime.date else None

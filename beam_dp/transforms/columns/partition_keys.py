"""Turn private partition keys into identities, with names for the keys that are hashed."""

import datetime
import marshal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.numerics import hashing
from beam_dp.transforms.columns import ids

Key = tuple[object, ...]
_DATE = 4  # an even number, and not 0, the second word of integers: of a hash it is odd
_FORMAT = 2  # of marshal: one without references, so that equal keys have equal bytes


def name_keys(
    columns: list[pa.Array], key: bytes
) -> tuple[np.ndarray, np.ndarray, dict[tuple[int, int], bytes]]:
    """Return identities of private keys, which rows have a key, and the names of hashed keys.

    Types are kept apart: 1, "1" and True are three partitions. Integers of every width, whole
    decimals and whole floats are of one type, those beyond 64 bits are text. Text that is no UTF-8
    is no key. A single column of integers or dates needs no names.
    """
    columns = [_readable(column) for column in columns]
    valid = np.logical_and.reduce([_present(column) for column in columns])
    if len(columns) == 1 and pa.types.is_integer(columns[0].type):
        return ids.identify(columns[0], key)[0], valid, {}
    if len(columns) == 1 and pa.types.is_date(columns[0].type):
        days = ids.identify(columns[0].cast(pa.int32()), key)[0]
        return np.concatenate([days, np.full_like(days, _DATE)]), valid, {}
    codes, uniques = _combine([column.dictionary_encode() for column in columns])
    valid &= np.array([all(map(_is_named, key)) for key in uniques], bool)[codes]
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
        parts = map(clean, column.to_pylist())
        return pa.array([part if type(part) is int else None for part in parts], pa.int64())
    return column


def _is_named(part: object) -> bool:
    """Return whether a part is text in UTF-8, or no text."""
    try:
        _decoded(part)
    except UnicodeDecodeError:
        return False
    return True


def _present(column: pa.Array) -> np.ndarray:
    dictionary = pa.types.is_dictionary(column.type)  # which may hold null itself
    return ids.validity(column.dictionary_decode() if dictionary else column)


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
    """Return an encoding by types: ("ab", "c") and ("a", "bc") differ.

    A text may be passed as its bytes; a part of no known type stands for None.
    """
    return marshal.dumps(tuple(map(_encoded, key)), _FORMAT)


def _encoded(part: object) -> Any:
    if type(part) is str:
        return part.encode()
    if type(part) is datetime.date:
        return (part.toordinal(),)
    return part if type(part) in (bool, int, bytes) else None


def decode(text: bytes) -> Key:
    """Return the key that `encode` encoded."""
    return tuple(map(_decoded, marshal.loads(text)))


def _decoded(part: Any) -> object:
    if type(part) is bytes:
        return part.decode()
    return datetime.date.fromordinal(*part) if type(part) is tuple else part


def name_of(identity: tuple[int, int], names: dict[tuple[int, int], bytes]) -> Key:
    """Return the key of a private identity."""
    if identity in names:
        return decode(names[identity])
    number = identity[0] - (1 << 64) if identity[0] >> 63 else identity[0]
    if identity[1] == _DATE:
        return (datetime.date.fromordinal(number + ids.EPOCH),)
    return (number,)


def clean(part: object) -> object:
    """Return one Python key part as a plain int, str, bool or date; None if it is no key.

    Integers beyond 64 bits are their text, as in `ids`; text that UTF-8 cannot encode is no key.
    """
    plain = ids.plain(part)
    return str(plain) if type(plain) is int and plain not in ids.INT64 else plain


def without_wide_categories(column: pa.DictionaryArray) -> pa.Array:
    """Return a dictionary column without the dictionary, where its numbers may be wide."""
    return column.dictionary_decode() if _may_be_wide(column.type.value_type) else column


def _may_be_wide(kind: pa.DataType) -> bool:
    return bool(pa.types.is_uint64(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


def is_wide(column: pa.Array) -> pa.Array:
    """Return which whole numbers of a column are beyond 64 bits; None where none can be."""
    if not _may_be_wide(column.type):
        return None
    numbers = column.cast(pa.decimal256(76))
    least, most = (pa.scalar(end, pa.decimal256(76)) for end in (ids.INT64[0], ids.INT64[-1]))
    wide = pc.or_(pc.less(numbers, least), pc.greater(numbers, most))
    return pc.fill_null(wide, False) if pc.any(wide).as_py() else None

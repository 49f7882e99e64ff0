"""Turn the values of rows that travel as rows into plain values of one encoding, and back.

A value without a plain form becomes None, whatever the other values are, and leaves no trace: no
code of its class runs, and no value makes a conversion fail.
"""

import datetime
import decimal
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.numerics import value_types
from beam_dp.transforms.columns import fixed_point, ids

Plain = int | float | str | bytes | bool | tuple[str, str] | None
_PLAIN = (int, float, str, bytes, bool)
_SCALARS = {*value_types.NUMPY_INTEGERS, *value_types.NUMPY_FLOATS, np.bool_, np.str_, np.bytes_}
_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST = (datetime.date.min.toordinal() + 1 - ids.EPOCH) * _DAY
_END = (datetime.date.max.toordinal() - ids.EPOCH) * _DAY
_KINDS: dict[str, Callable[[str], object]] = {
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "UUID": uuid.UUID,
    "Decimal": decimal.Decimal,
}


def plain(value: Any) -> Plain:
    """Return a value in a form that `marshal` writes canonically; None for types without one."""
    value = ids.moment(value)
    kind = value_types.of(value)
    if kind in _SCALARS:
        value = value.item()
        kind = value_types.of(value)
    if kind in _PLAIN:
        known: Plain = value
        return known if type(known) is not str or value_types.is_utf8(known) else None
    zoned = kind is datetime.datetime and value_types.of(value.tzinfo) in value_types.ZONES
    if zoned or kind is datetime.date:
        return kind.__name__, value.isoformat()
    text = str(value) if kind is decimal.Decimal else None
    text = ids.uuid_text(value) if kind is uuid.UUID else text
    return None if text is None else (kind.__name__, text)


def restored(value: object) -> object:
    """Return the value that `plain` encoded."""
    if not isinstance(value, tuple):
        return value
    kind, text = value
    return _KINDS[kind](text)


def to_list(column: pa.Array) -> list[object]:
    """Return an Arrow column as Python values; None where Python or `plain` has no form for it."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        values = [*to_list(column.dictionary), None]
        return [values[-1 if code is None else code] for code in column.indices.to_pylist()]
    if ids.is_text(kind):
        texts = column.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
        return list(map(decoded, texts))
    if pa.types.is_date(kind):
        column = ids.known_dates(column)
    elif pa.types.is_timestamp(kind):
        column = _known_instants(column)
    elif not (ids.supported(kind) or fixed_point.supported(kind) or _is_bytes(kind)):
        return [None] * len(column)
    listed: list[object] = column.to_pylist()
    return listed


def decoded(text: bytes | None) -> str | None:
    """Return the text that UTF-8 bytes stand for; None for None and for bytes that are no UTF-8."""
    try:
        return text if text is None else text.decode()
    except UnicodeDecodeError:
        return None


def _known_instants(column: pa.Array) -> pa.Array:
    """Return timestamps in microseconds; null within a day of the ends of Python's range or beyond.

    Timestamps of a zone come out in UTC, the same instants: Python may not know the zone's name.
    """
    factor = _PER_SECOND[column.type.unit]
    numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    seconds = numbers // factor
    known = (seconds >= _FIRST) & (seconds < _END) & ids.validity(column)
    numbers = np.where(known, numbers, 0)
    exact = numbers // (factor // 10**6) if factor > 10**6 else numbers * (10**6 // factor)
    return pa.array(exact, mask=~known).cast(pa.timestamp("us", column.type.tz and "UTC"))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))

"""Turn values that say which row is the last into whole numbers.

Numbers count in millionths (`fixed_point`), dates and times in microseconds since 1970-01-01 (UTC,
also where they name no zone): so a number of seconds since then is the same as the time itself.
Values beyond 2^62 are clamped there. Null, NaN, text and everything else come before all others.
"""

import datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.numerics import integers as exact_integers
from beam_dp.transforms.columns import fixed_point, ids

_UNIT = Fraction(1, 1_000_000)
_EDGE = 1 << 62
_DAY = 86_400 * 1_000_000
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_PER = {"s": Fraction(1_000_000), "ms": Fraction(1000), "us": Fraction(1), "ns": Fraction(1, 1000)}


def supported(kind: pa.DataType) -> bool:
    """Return whether a column of this Arrow type can say which row is the last."""
    return fixed_point.supported(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def ranks(column: pa.Array) -> np.ndarray:
    """Return an Arrow column as int64; `integers.LOWEST` for values that come before all others.

    Args:
        column: of a type that is `supported`.
    """
    kind = column.type
    if pa.types.is_date32(kind):
        return _times(column.cast(pa.int32()).cast(pa.int64()), Fraction(_DAY))
    if pa.types.is_date64(kind):
        return _times(column.cast(pa.int64()), _PER["ms"])
    if pa.types.is_timestamp(kind):
        return _times(column.cast(pa.int64()), _PER[kind.unit])
    return _narrow(fixed_point.to_units(column, _UNIT))


def ranks_of_values(values: list[object]) -> np.ndarray:
    """Return Python values as int64; `integers.LOWEST` for values that come before all others."""
    plain = [_seconds(value) for value in values]
    return _narrow(fixed_point.values_to_units(plain, _UNIT))


def _seconds(value: object) -> object:
    """Return dates and times as seconds since 1970, everything else as it is."""
    if type(value) is datetime.date:
        return (value.toordinal() - ids.EPOCH) * (_DAY // 1_000_000)
    if type(value) is datetime.datetime:
        return _of_time(value)
    return value


def _of_time(value: datetime.datetime) -> Fraction | None:
    zone = value.tzinfo
    if zone is None or type(zone) is datetime.timezone:
        shift = zone.utcoffset(None) if zone is not None else datetime.timedelta()
        return Fraction((value.replace(tzinfo=None) - _EPOCH - shift) // _MICROSECOND, 1_000_000)
    return None


def _times(column: pa.Array, per: Fraction) -> np.ndarray:
    """Return integers times a factor, rounded down."""
    present = ids.validity(column)
    integers = column.fill_null(0).to_numpy(zero_copy_only=False)
    limit = _EDGE * per.denominator // per.numerator
    scaled = np.clip(integers, -limit, limit) * per.numerator // per.denominator
    return np.where(present, scaled, exact_integers.LOWEST)


def _narrow(units: np.ndarray) -> np.ndarray:
    if units.dtype != object:
        return units
    missing = exact_integers.is_missing(units, exact_integers.LOWEST)
    cut = np.array([max(-_EDGE, min(_EDGE, value)) for value in units], np.int64)
    return np.where(missing, exact_integers.LOWEST, cut)

"""Turn values of every kind into whole numbers of units, value by value.

The units of a value depend on that value and the unit alone, never on other rows, the batch or the
type of the column: 3, 3.0 and Decimal("3") are the same number of units.

* integers and decimals are exact where they are multiples of the unit, else the nearest multiple
  (ties to even);
* floats are the multiple of the unit nearest to their product with 1/unit in double precision;
  float32 is widened exactly first;
* the infinities, and all values beyond 2^120 units, are clamped there;
* null, NaN, booleans, text, complex, and everything else are no numbers: the row counts as a row,
  but its value is absent.
"""

import contextlib
import decimal
import math
from fractions import Fraction
from typing import Any, SupportsFloat

import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.numerics import integers, value_types
from beam_dp.transforms.columns import ids

_LARGEST = integers.WIDEST - 1
_SAFE = float(1 << 62)
# Read past the class: a fraction can hold anything in these.
_PARTS = [vars(Fraction)[name].__get__ for name in ("_numerator", "_denominator")]


def supported(kind: pa.DataType) -> bool:
    """Return whether a column of this Arrow type, or a dictionary of it, can hold values."""
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(check(kind) for check in checks)


def to_units(column: ids.Cells, unit: Fraction) -> np.ndarray:
    """Return a column in units; absent values are `integers.LOWEST`.

    Args:
        column: an Arrow column, or Python values.
        unit: what one unit is worth.
    """
    if isinstance(column, list):
        typed = ids.to_array(column)
        if typed is None:
            return _pack([value_to_units(value, unit) for value in column])
        column = typed
    kind = column.type
    if pa.types.is_dictionary(kind):
        return to_units(column.dictionary_decode(), unit)
    if pa.types.is_null(kind) or not supported(kind):
        return np.full(len(column), integers.LOWEST)
    present = ids.validity(column)
    if pa.types.is_floating(kind):
        floats = ids.without_nulls(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        return _mask(_from_floats(floats, unit), present & ~np.isnan(floats))
    if pa.types.is_decimal(kind):
        unscaled = _unscaled(column, kind.scale)
        return _mask(_from_integers(unscaled, unit * Fraction(10) ** kind.scale), present)
    return _mask(_from_integers(_integers(column), unit), present)


def value_to_units(value: Any, unit: Fraction) -> int | None:
    """Return one Python value in units, or None if it is no number."""
    if ids.is_integer(value):
        number = int(value)
        if abs(number) > _LARGEST * max(1, math.ceil(unit)):
            return _LARGEST if number > 0 else -_LARGEST
        return _clamp(round(number / unit))
    if value_types.of(value) in value_types.FLOATS:
        double = _to_double(value)
        return None if math.isnan(double) else int(_from_floats(np.array([double]), unit)[0])
    if type(value) is decimal.Decimal:
        return _from_decimal(value, unit)
    return _from_fraction(value, unit) if type(value) is Fraction else None


def _to_double(value: SupportsFloat) -> float:
    """Return a float of any width as a double; floats beyond the range of doubles are infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return float(value)


def _from_fraction(value: Fraction, unit: Fraction) -> int | None:
    """Return a fraction in units; None where its parts are no integers."""
    with contextlib.suppress(AttributeError):
        top, bottom = (part(value) for part in _PARTS)
        if type(top) is int and type(bottom) is int and bottom > 0:
            return _clamp(round(Fraction(top, bottom) / unit))
    return None


def _from_decimal(value: decimal.Decimal, unit: Fraction) -> int | None:
    """Return a decimal in units, in bounded time: 1E+999999999 is never written out."""
    if value.is_nan():
        return None
    if value.is_infinite() or (value and value.adjusted() > 400):
        return -_LARGEST if value.is_signed() else _LARGEST
    if not value or value.adjusted() < -400:
        return 0
    return _clamp(round(Fraction(value) / unit))


def _clamp(units: int) -> int:
    return max(-_LARGEST, min(_LARGEST, units))


def _from_floats(floats: np.ndarray, unit: Fraction) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        units = floats * float(1 / unit)
        np.rint(units, out=units)
    if units.size and -_SAFE < units.min() and units.max() < _SAFE:  # false where any is NaN
        return units.astype(np.int64)
    units = np.where(np.isnan(floats), 0.0, units)
    if np.abs(units).max(initial=0.0) < _SAFE:
        return units.astype(np.int64)
    clamped = np.clip(units, -float(_LARGEST), float(_LARGEST))
    return _pack([_clamp(int(value)) for value in clamped.tolist()])


def _from_integers(integers: np.ndarray, unit: Fraction) -> np.ndarray:
    """Return round(integers / unit), exactly."""
    top, bottom = unit.denominator, unit.numerator
    largest = float(np.abs(integers.astype(np.float64)).max(initial=0.0))
    if integers.dtype != object and bottom == 1 and max(largest, 1.0) * top < _SAFE:
        return integers * top
    return _pack([_clamp(round(Fraction(value * top, bottom))) for value in integers.tolist()])


def _integers(column: pa.Array) -> np.ndarray:
    """Return the integers in an integer column, 0 for null."""
    column = ids.signed(column) if pa.types.is_uint64(column.type) else column
    column = ids.without_nulls(column, 0)
    if pa.types.is_uint64(column.type):
        wide: np.ndarray = column.to_numpy(zero_copy_only=False).astype(object)
        return wide
    narrow: np.ndarray = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return narrow


def _unscaled(column: pa.Array, scale: int) -> np.ndarray:
    """Return the integers behind a decimal column: value times 10^scale."""
    if column.type.bit_width != 128:
        # Not by Decimal.scaleb, which rounds to the 28 digits of the thread's decimal context.
        power = Fraction(10) ** scale
        fractions = (Fraction(value or 0) for value in column.to_pylist())
        return integers.narrow(_objects([int(value * power) for value in fractions]))
    limbs = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)
    limbs = limbs[column.offset : column.offset + len(column)]
    low, high = limbs[:, 0].copy(), limbs[:, 1].copy()
    absent = ~ids.validity(column)
    low[absent] = high[absent] = 0
    if (high == low >> 63).all():
        return low
    return integers.narrow(integers.from_limbs(np.stack([high, low])))


def _objects(values: list[int]) -> np.ndarray:
    column = np.empty(len(values), object)
    column[:] = values
    return column


def _pack(units: list[int | None]) -> np.ndarray:
    column = _objects([-integers.WIDEST if value is None else value for value in units])
    absent = integers.is_missing(column, integers.LOWEST)
    column[absent] = 0
    return _mask(integers.narrow(column), ~absent)


def _mask(units: np.ndarray, present: np.ndarray) -> np.ndarray:
    if present.all():
        return units
    return np.where(present, units, -integers.WIDEST if units.dtype == object else integers.LOWEST)

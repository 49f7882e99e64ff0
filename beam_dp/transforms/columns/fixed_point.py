"""Turn values of every kind into whole numbers of units, value by value.

The units of a value depend on that value and the unit alone, never on other rows, the batch or the
type of the column: 3, 3.0 and Decimal("3") are the same number of units.

* integers and decimals are exact where they are multiples of the unit, else the nearest multiple
  (ties to even);
* floats are the multiple of the unit nearest to their product with 1/unit in double precision;
  float32 is widened exactly first;
* PostgreSQL's NUMERIC, which ADBC reads as text of a type of its own, is the decimal in that text, of
  at most 1,000 characters;
* the infinities, and all values beyond 2^120 units, are clamped there;
* null, NaN, booleans, text, complex, and everything else are no numbers: the row counts as a row,
  but its value is absent.
"""

import contextlib
import decimal
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.numerics import integers, value_types
from beam_dp.transforms.columns import ids

_LARGEST = integers.WIDEST - 1
_SAFE = float(1 << 62)
_NUMERIC = pa.opaque(pa.string(), "numeric", "PostgreSQL")
_LONGEST = 1_000
_SHORT = decimal.Context(
    prec=1000, rounding=decimal.ROUND_05UP, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[]
)
"""Cuts digits off, so that what was cut is still seen: no number becomes one that is half-way
between two decimals."""


def supported(kind: pa.DataType) -> bool:
    """Return whether a column of this Arrow type, or a dictionary of it, can hold values."""
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return kind == _NUMERIC or any(check(kind) for check in checks)


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
    if kind == _NUMERIC:
        return _pack(
            [_from_text(text, unit) for text in column.storage.cast(pa.binary()).to_pylist()]
        )
    present = ids.validity(column)
    if pa.types.is_floating(kind):
        floats = ids.without_nulls(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        return _mask(_from_floats(floats, unit), present & ~np.isnan(floats))
    if pa.types.is_decimal(kind):
        return _mask(_from_decimals(column, unit), present)
    column = ids.signed(column) if pa.types.is_uint64(kind) else column
    if pa.types.is_uint64(column.type):
        return _pack([value_to_units(value, unit) for value in column.to_pylist()])
    numbers = ids.without_nulls(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return _mask(_from_integers(numbers, unit), present)


def value_to_units(value: Any, unit: Fraction) -> int | None:
    """Return one Python value in units, or None if it is no number."""
    if value_types.of(value) in value_types.INTEGERS:
        number = int(value)
        if abs(number) > _LARGEST * max(1, math.ceil(unit)):
            return _LARGEST if number > 0 else -_LARGEST
        return _clamp(round(number / unit))
    if ids.is_float(value):
        with np.errstate(over="ignore", under="ignore"):  # beyond the range it is infinite
            double = float(value)
        return None if math.isnan(double) else int(_from_floats(np.array([double]), unit)[0])
    return _from_decimal(value, unit) if type(value) is decimal.Decimal else None


def _from_decimal(value: decimal.Decimal, unit: Fraction) -> int | None:
    """Return a decimal in units, in linear time: 1E+999999999 is never written out."""
    if value.is_nan():
        return None
    if value.is_infinite() or (value and value.adjusted() > 400):
        return -_LARGEST if value.is_signed() else _LARGEST
    if not value or value.adjusted() < -400:
        return 0
    return _clamp(round(Fraction(_SHORT.plus(value)) / unit))


def _from_text(text: bytes | None, unit: Fraction) -> int | None:
    """Return the decimal in a text in units; None for other texts."""
    with contextlib.suppress(decimal.DecimalException, UnicodeDecodeError):
        if text is not None and len(text) <= _LONGEST:
            return _from_decimal(decimal.Decimal(text.decode("ascii")), unit)
    return None


def _clamp(units: int) -> int:
    return max(-_LARGEST, min(_LARGEST, units))


def _from_floats(floats: np.ndarray, unit: Fraction) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        units = floats * float(1 / unit)
        np.rint(units, out=units)
    units = np.where(np.isnan(floats), 0.0, units)
    if np.abs(units).max(initial=0.0) < _SAFE:
        return units.astype(np.int64)
    clamped = np.clip(units, -float(_LARGEST), float(_LARGEST))
    return _pack([_clamp(int(value)) for value in clamped.tolist()])


def _from_integers(integers: np.ndarray, unit: Fraction) -> np.ndarray:
    """Return round(integers / unit), exactly."""
    top, bottom = unit.denominator, unit.numerator
    largest = float(np.abs(integers.astype(np.float64)).max(initial=0.0))
    if bottom == 1 and max(largest, 1.0) * top < _SAFE:
        return integers * top
    return _pack([_clamp(round(Fraction(value * top, bottom))) for value in integers.tolist()])


def _from_decimals(column: pa.Array, unit: Fraction) -> np.ndarray:
    if column.type.bit_width == 128:  # the integers behind them, where they have 64 bits
        limbs = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)
        limbs = limbs[column.offset : column.offset + len(column)]
        low, high = np.where(ids.validity(column), limbs.T, 0)
        if (high == low >> 63).all():
            return _from_integers(low, unit * Fraction(10) ** column.type.scale)
    return _pack([value_to_units(value, unit) for value in column.to_pylist()])


def _pack(units: list[int | None]) -> np.ndarray:
    column = np.array([-integers.WIDEST if value is None else value for value in units], object)
    absent = integers.is_missing(column, integers.LOWEST)
    column[absent] = 0
    return _mask(integers.narrow(column), ~absent)


def _mask(units: np.ndarray, present: np.ndarray) -> np.ndarray:
    if present.all():
        return units
    return np.where(present, units, -integers.WIDEST if units.dtype == object else integers.LOWEST)

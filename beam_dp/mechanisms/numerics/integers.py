"""Exact integer columns: int64 where all results surely fit, else Python integers.

Sums of money are not associative in floating point, and int64 wraps around; both would let the
order of the rows, or one row, move a total by more than its own size (Casacuberta et al. 2022,
2207.10635). Here a column of integers is an int64 array whose entries stay within 2^62 (narrow), or
an object array of Python integers (wide) as soon as a result could leave that range. The form of a
column never changes a value.

A column may also hold the two sentinels `LOWEST` and `HIGHEST` for "no value": the identity of the
maximum and of the minimum. They lie outside of every range and survive the change of form.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

Number = int | float | Fraction
EXACT = 2**53
"""Integers up to here are floats without rounding."""
WIDE = 2**62
"""Sums of two numbers below it fit int64."""
WIDEST = 1 << 120
"""Values are clamped below this magnitude (their sums are stored in LIMBS words of 64 bits)."""
LIMBS = 3
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1

_WIDE = {LOWEST: -WIDEST, HIGHEST: WIDEST}


def is_nan(value: Number) -> bool:
    """Say whether `value` is NaN, whatever its type and size."""
    return isinstance(value, float) and math.isnan(value)


def widen(column: np.ndarray) -> np.ndarray:
    """Return `column` as Python integers."""
    if column.dtype == object:
        return column
    wide = column.astype(object)
    for sentinel, value in _WIDE.items():
        wide[column == sentinel] = value
    return wide


def narrow(column: np.ndarray) -> np.ndarray:
    """Return `column` as int64 if every value is surely safe there, else unchanged."""
    if column.dtype != object:
        return column
    try:
        narrow_column = column.astype(np.int64)
    except OverflowError:
        return column
    safe = -WIDE < narrow_column.min(initial=0) and narrow_column.max(initial=0) < WIDE
    return narrow_column if safe else column


def alone(value: int) -> np.ndarray:
    """Return a column of one integer of any size."""
    return narrow(np.array([value], object))


def is_missing(column: np.ndarray, sentinel: int) -> np.ndarray:
    """Return where `column` holds the sentinel (`LOWEST` or `HIGHEST`)."""
    missing = column == (_WIDE[sentinel] if column.dtype == object else sentinel)
    return np.asarray(missing, bool)


def concatenate(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return the columns one after the other; wide if any of them is wide."""
    if any(column.dtype == object for column in columns):
        return np.concatenate([widen(column) for column in columns])
    return np.concatenate(columns)


def magnitude(column: np.ndarray) -> float:
    """Return an upper bound of the sum of magnitudes, good to 1 part in 10^9."""
    return float(np.abs(column.astype(np.float64)).sum()) * (1 + 1e-9)


def largest(column: np.ndarray) -> float:
    """Return an upper bound of the magnitudes, good to 1 part in 10^9."""
    return float(np.abs(column.astype(np.float64)).max(initial=0.0)) * (1 + 1e-9)


def _summable(column: np.ndarray) -> np.ndarray:
    """Return the column, wide if sums of its entries might not be below 2^62."""
    if column.dtype in (object, np.uint64):
        return widen(column)
    column = column.astype(np.int64, copy=False)  # numpy adds narrower types in their own range
    low, high = (int(column.min()), int(column.max())) if column.size else (0, 0)
    # The first is the quick answer, mostly.
    fits = max(-low, high) * column.size < WIDE or magnitude(column) < WIDE
    return column if fits else widen(column)


def segment_sums(column: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the exact sum of each segment; `starts` are increasing and the first is 0."""
    column = _summable(column)
    return narrow(np.add.reduceat(column, starts)) if len(starts) else column[:0]


def sums_at(indexes: np.ndarray, column: np.ndarray, size: int) -> np.ndarray:
    """Return the exact sums by index, 0 to before `size`; `indexes` has the index of each entry."""
    column = _summable(column)
    sums = np.zeros(size, column.dtype)
    np.add.at(sums, indexes, column)
    return narrow(sums)


def running_sums(column: np.ndarray) -> np.ndarray:
    """Return the exact running sums along the last axis."""
    return np.cumsum(_summable(column), axis=-1)


def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the exact elementwise product."""
    if object in (left.dtype, right.dtype) or largest(left) * largest(right) >= WIDE:
        return narrow(widen(left) * widen(right))
    return np.asarray(left * right)


def add(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the exact elementwise sum."""
    if object in (left.dtype, right.dtype) or largest(left) + largest(right) >= WIDE:
        return narrow(widen(left) + widen(right))
    return np.asarray(left + right)


def divide(column: np.ndarray, divisor: int) -> np.ndarray:
    """Return the column divided by a positive integer of any size, rounded down."""
    if divisor >= WIDE:  # numpy fails to divide int64 by larger integers
        column = widen(column)
    return narrow(column // divisor)


def to_limbs(column: np.ndarray) -> np.ndarray:
    """Return a wide column as int64 of shape (LIMBS, n): 64-bit limbs, the highest one first.

    192 bits hold the sum of 2^70 values below `WIDEST`: no total of rows can exceed them.
    """
    raw = b"".join(int(value).to_bytes(8 * LIMBS, "big", signed=True) for value in column)
    return np.frombuffer(raw, ">i8").reshape(-1, LIMBS).T.astype(np.int64)


def scale(units: np.ndarray, unit: Fraction) -> np.ndarray:
    """Return units in the user's scale: integers where the unit is one, else the nearest floats."""
    if unit.denominator == 1:
        return product(units, alone(unit.numerator))
    if units.dtype == object:
        return np.array([float(int(value) * unit) for value in units], np.float64)
    in_floats = unit.numerator == 1 and unit.denominator <= EXACT
    if in_floats and np.abs(units).max(initial=0) <= EXACT:  # a correctly rounded quotient
        return units / float(unit.denominator)
    return np.array([float(value * unit) for value in units.tolist()], np.float64)

"""Grids: the values of candidates in rising order, computed or listed."""

import abc
import bisect
import dataclasses
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics.numbers import EXACT, WIDE, Number

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]


class ValueGrid(abc.ABC):
    """Values in rising order, each with a public weight."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of values, which may exceed 2^63."""

    @property
    @abc.abstractmethod
    def gap(self) -> Fraction:
        """The least distance of two neighbours, about; 0 for one value."""

    @abc.abstractmethod
    def mirrored(self) -> "ValueGrid":
        """Return the values with the opposite sign, in rising order."""

    @abc.abstractmethod
    def __getitem__(self, i: int) -> Number: ...

    def __iter__(self) -> Iterator[Number]:
        return (self[i] for i in range(self.size))

    @abc.abstractmethod
    def index(self, value: Number) -> int:
        """Return the first i whose value is >= `value`, which lies within the grid; exact."""

    def indexes(self, values: Floats | Indexes) -> Indexes | None:
        """Return `index` of each value, `size` above the top; None if that takes one by one."""
        return None

    def weight_before(self, indexes: Indexes) -> Indexes:
        """Return the weight of all values before each index, from 0 to `size`."""
        return indexes

    def index_at(self, weight: int) -> int:
        """Return the last index with at most this weight before it."""
        return weight


class ListedGrid(ValueGrid):
    """Values that are held in memory, and beside each the largest float that it is not below."""

    @property
    @abc.abstractmethod
    def floors(self) -> Floats:
        """Per value c the largest float <= c: for a float v, c >= v iff that float is >= v."""

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.floors)

    @property
    def gap(self) -> Fraction:
        """The least distance of two neighbours, in floats."""
        return Fraction(float(np.diff(self.floors).min())) if self.size > 1 else Fraction(0)

    def __getitem__(self, i: int) -> Number:
        return float(self.floors[i])

    def index(self, value: Number) -> int:
        """Return the first i whose value is >= `value`."""
        return bisect.bisect_left(self.floors, value, key=float)

    def indexes(self, values: Floats | Indexes) -> Indexes | None:
        """Return `index` of each value, `size` above the top; None for ints that are no floats."""
        whole = values.dtype.kind != "f"
        if whole and values.size and (values.max() > EXACT or values.min() < -EXACT):
            return None
        return np.asarray(np.searchsorted(self.floors, values.astype(np.float64)), np.int64)


@dataclass(frozen=True)
class GivenGrid(ListedGrid):
    """Given values, of any type and size."""

    values: tuple[Number, ...]

    def __reduce__(self) -> tuple[object, ...]:
        return GivenGrid, (self.values,)  # without the cached array

    def mirrored(self) -> "GivenGrid":
        """Return the values with the opposite sign, in rising order."""
        return GivenGrid(tuple(0 - value for value in reversed(self.values)))

    def __getitem__(self, i: int) -> Number:
        return self.values[i]

    def index(self, value: Number) -> int:
        """Return the first i whose value is >= `value`."""
        return bisect.bisect_left(self.values, value)

    @cached_property
    def floors(self) -> Floats:
        """Per value c the largest float <= c."""
        return np.array([_float_below(value) for value in self.values], dtype=np.float64)


def _float_below(point: Number) -> float:
    """Return the largest float that is at most `point`."""
    if point > sys.float_info.max:
        return sys.float_info.max
    if point < -sys.float_info.max:
        return -math.inf
    nearest = float(point)
    return nearest if nearest <= point else math.nextafter(nearest, -math.inf)


@dataclass(frozen=True)
class LinearGrid(ValueGrid):
    """The values (start + i stride) / divisor for i = 0..count-1, never materialised."""

    start: int
    stride: int
    divisor: int
    count: int
    whole: bool

    @property
    def size(self) -> int:
        """The number of values."""
        return self.count

    @property
    def gap(self) -> Fraction:
        """The distance of two neighbours."""
        return Fraction(self.stride, self.divisor)

    def mirrored(self) -> "LinearGrid":
        """Return the values with the opposite sign, in rising order."""
        return dataclasses.replace(self, start=-(self.start + (self.size - 1) * self.stride))

    def __getitem__(self, i: int) -> int | float:
        # int / int is correctly rounded in Python, hence monotone in i.
        numerator = self.start + i * self.stride
        return numerator if self.whole else numerator / self.divisor

    def index(self, value: Number) -> int:
        """Return the first i whose emitted value is >= `value`, which lies within the grid."""
        over, under = value.as_integer_ratio()
        exact = -((self.start * under - over * self.divisor) // (self.stride * under))
        return _first_near(self, exact, value)

    def indexes(self, values: Floats | Indexes) -> Indexes | None:
        """Return `index` of each value, or None where int64 and float64 are too small for it."""
        reach = max(abs(self.start), abs(self.start + self.size * self.stride))
        if self.whole:
            return self._whole_indexes(values) if reach < WIDE else None
        exact = max(reach, self.divisor) < EXACT
        return self._float_indexes(values) if exact else None

    def _whole_indexes(self, values: Floats | Indexes) -> Indexes:
        # For an integer c: c >= v iff c >= ceil(v). By fmin, NaN counts as above the top.
        if values.dtype.kind == "f":
            values = np.fmax(np.fmin(np.ceil(values), float(WIDE)), -float(WIDE)).astype(np.int64)
        inside = np.clip(values, self.start, int(self[self.size - 1]) + 1)
        return np.asarray(-((self.start - inside) // self.stride), dtype=np.int64)

    def _float_indexes(self, values: Floats | Indexes) -> Indexes:
        # Numerators and divisor are below 2^53, so numpy's division rounds as __getitem__ does.
        # An int above 2^53 may round, but stays above the top (which is below 2^53).
        beyond = math.nextafter(self[self.size - 1], math.inf)
        inside = np.fmax(np.fmin(values.astype(np.float64), beyond), float(self[0]))
        guess = np.ceil((inside * self.divisor - self.start) / self.stride) - 4
        # The guess is at most 4 off.
        first: Indexes = np.clip(guess, 0, self.size).astype(np.int64)
        low = (first < self.size) & ((self.start + first * self.stride) / self.divisor < inside)
        while low.any():
            first += low
            low = (first < self.size) & ((self.start + first * self.stride) / self.divisor < inside)
        return first


@dataclass(frozen=True)
class RoundedGrid(ValueGrid):
    """All multiples of 1/divisor up to `top` / divisor that have at most `bits` significant bits.

    The first 2^bits indexes are the integers below 2^bits; every 2^(bits - 1) further ones are the
    mantissas from 2^(bits - 1) on, times the next power of two. None of them is materialised.
    """

    divisor: int
    top: int
    bits: int
    negative: bool = False  # all with the opposite sign

    @property
    def size(self) -> int:
        """The number of values."""
        return self._place(self.top) + 1

    @property
    def gap(self) -> Fraction:
        """The least distance of two neighbours."""
        return Fraction(1, self.divisor)

    def mirrored(self) -> "RoundedGrid":
        """Return the values with the opposite sign, in rising order."""
        return dataclasses.replace(self, negative=not self.negative)

    def __getitem__(self, i: int) -> int | float:
        if self.negative:
            return 0 - self.mirrored()[self.size - 1 - i]  # never -0.0
        half = 1 << (self.bits - 1)
        if i < 2 * half:
            numerator = i
        else:
            power, mantissa = divmod(i - 2 * half, half)
            numerator = (half + mantissa) << (power + 1)
        return numerator if self.divisor == 1 else numerator / self.divisor

    def _place(self, numerator: int) -> int:
        """Return the index of the first value of at least numerator / divisor, as a rational."""
        power = max(0, numerator.bit_length() - self.bits)
        mantissa = -(-numerator >> power)
        return mantissa if not power else mantissa + (power << (self.bits - 1))

    def index(self, value: Number) -> int:
        """Return the first i whose emitted value is >= `value`, which lies within the grid."""
        over, under = value.as_integer_ratio()
        place = self._place(-(-abs(over) * self.divisor // under))
        return _first_near(self, self.size - 1 - place if self.negative else place, value)


def _first_near(grid: ValueGrid, i: int, value: Number) -> int:
    """Return the first index from which on emitted values are >= `value`, near to i.

    Emitted floats are rounded: a neighbour of the exact crossing may be the first.
    """
    while i > 0 and grid[i - 1] >= value:
        i -= 1
    while grid[i] < value:
        i += 1
    return i

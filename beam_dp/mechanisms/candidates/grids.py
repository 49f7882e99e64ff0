"""Grids of candidates that are computed from a few numbers, so that little is sent to workers."""

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics.numbers import EXACT, WIDE, Number

Indexes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LinearGrid:
    """The values (start + i stride) / divisor for i = 0..size-1, never materialised."""

    start: int
    stride: int
    divisor: int
    size: int
    whole: bool

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
        i = -((self.start * under - over * self.divisor) // (self.stride * under))
        # Emitted floats are rounded: a neighbour of the exact crossing may be the first.
        while i > 0 and self[i - 1] >= value:
            i -= 1
        while self[i] < value:
            i += 1
        return i

    def indexes(self, values: npt.NDArray[np.float64] | Indexes) -> Indexes | None:
        """Return `index` of each value, or None where int64 and float64 are too small for it."""
        reach = max(abs(self.start), abs(self.start + self.size * self.stride))
        if self.whole:
            return self._whole_indexes(values) if reach < WIDE else None
        exact = max(reach, self.divisor) < EXACT
        return self._float_indexes(values) if exact else None

    def _whole_indexes(self, values: npt.NDArray[np.float64] | Indexes) -> Indexes:
        # For an integer c: c >= v iff c >= ceil(v). By fmin, NaN counts as above the top.
        if values.dtype.kind == "f":
            values = np.fmax(np.fmin(np.ceil(values), float(WIDE)), -float(WIDE)).astype(np.int64)
        inside = np.clip(values, self.start, int(self[self.size - 1]) + 1)
        return np.asarray(-((self.start - inside) // self.stride), dtype=np.int64)

    def _float_indexes(self, values: npt.NDArray[np.float64] | Indexes) -> Indexes:
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
class RoundedGrid:
    """All multiples of 1/divisor up to `top` / divisor that have at most `bits` significant bits.

    The first 2^bits indexes are the integers below 2^bits; every 2^(bits - 1) further ones are the
    mantissas from 2^(bits - 1) on, times the next power of two.
    """

    divisor: int
    top: int
    bits: int

    @property
    def size(self) -> int:
        """The number of values."""
        return self._place(self.top) + 1

    @property
    def gap(self) -> Fraction:
        """The least distance of two neighbours."""
        return Fraction(1, self.divisor)

    def mirrored(self) -> "MirroredGrid":
        """Return the values with the opposite sign, in rising order."""
        return MirroredGrid(self)

    def __getitem__(self, i: int) -> int | float:
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
        i = self._place(-(-over * self.divisor // under))
        # Emitted floats are rounded: a neighbour of the exact crossing may be the first.
        while i > 0 and self[i - 1] >= value:
            i -= 1
        while self[i] < value:
            i += 1
        return i


@dataclass(frozen=True)
class MirroredGrid:
    """The values of a grid with the opposite sign, in rising order, never materialised."""

    grid: RoundedGrid

    @property
    def size(self) -> int:
        """The number of values."""
        return self.grid.size

    @property
    def gap(self) -> Fraction:
        """The least distance of two neighbours."""
        return self.grid.gap

    def mirrored(self) -> RoundedGrid:
        """Return the grid itself."""
        return self.grid

    def __getitem__(self, i: int) -> int | float:
        return 0 - self.grid[self.size - 1 - i]  # never -0.0

    def index(self, value: Number) -> int:
        """Return the first i whose emitted value is >= `value`, which lies within the grid."""
        first = self.grid.index(-value)
        # The first value of at least -value; the mirror needs the last one of at most -value.
        beyond = self.grid[first] > -value
        return self.size - 1 - (first - 1 if beyond else first)

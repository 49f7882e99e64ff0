"""Means of windows of sorted values, for the recursion in `staircase` and the bounds in `saddle`.

A database-ordered function (Cummings, Durfee 2020, Definition 5.1) is preprocessed on the
contiguous windows of the sorted values only. `Windows` gives f of any window from prefix sums: the
mean, or the trimmed mean, which leaves out floor(trim m) of m values at each end.

Every function of this package that takes a *column* accepts three types of numbers:

* int64 or Python integers (object): f is rounded down to whole steps of a grid; everything else is
  exact;
* float64: f is divided as usual, for looking at g, not for a release.

Rounding down loses no proof: for integer sensitivities, g of floor(f) is floor(g of f). For g(D) is
the median of f(D), max_i g(D-i) - Delta_i and min_i g(D-i) + Delta_i, and rounding down commutes
with medians, maxima, minima and the addition of integers; induct on |D|.
"""

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.numerics import integers

_SAFE = 1 << 61


def divide(numerators: np.ndarray, divisors: np.ndarray | int) -> np.ndarray:
    """Return the quotients: rounded down for integers, as usual for floats."""
    if numerators.dtype == np.float64:
        return np.asarray(numerators / divisors)
    if isinstance(divisors, int) and divisors >= _SAFE:
        numerators = numerators.astype(object)
    return np.asarray(numerators // divisors)


def fitting(column: np.ndarray, factor: int, *others: int) -> np.ndarray:
    """Return `factor` times the column, as int64 only if the values and `others` fit.

    They fit if four times the largest magnitude and `others` are below 2^61; else the result holds
    Python integers. A column of floats is returned as it is.
    """
    if column.dtype == np.float64:
        return column
    beyond = sum(map(abs, others))
    if column.dtype != object and 4 * max(integers.largest(column), 1) * factor + beyond < _SAFE:
        return np.asarray(column * factor)
    return np.asarray(integers.widen(column) * factor)


def scaled(column: np.ndarray, factor: int, *others: int) -> tuple[np.ndarray, int]:
    """Return values and a factor for `Windows`, which together are `factor` times the column.

    Where the sums times the factor leave int64, but neither the sums nor the values times the
    factor do, the factor is left to `Windows`: Python integers are ten times as slow.
    """
    if column.dtype in (np.float64, object):
        return fitting(column, factor, *others), 1
    total, beyond = integers.magnitude(column), sum(map(abs, others))
    if max(total, 1) * factor + beyond < _SAFE:
        return np.asarray(column * factor), 1
    largest = max(4 * integers.largest(column), float(column.shape[-1]), 1.0)
    if total < _SAFE and largest * factor + beyond < _SAFE:
        return column, factor
    return np.asarray(integers.widen(column) * factor), 1


def prefixes(column: np.ndarray) -> np.ndarray:
    """Return the sums of the first 0, 1, ..., n entries along the last axis."""
    sums = np.zeros((*column.shape[:-1], column.shape[-1] + 1), column.dtype)
    np.cumsum(column, axis=-1, out=sums[..., 1:])
    return sums


@dataclasses.dataclass(frozen=True, eq=False)
class Windows:
    """The means, or trimmed means, of all windows of values that ascend along the last axis.

    Attributes:
        values: a column.
        divisor: the denominator of the resolution.
        trim: the share of a window that is left out at each end; below 1/2.
        factor: by what the values must still be multiplied, see `scaled`.
        sums: the prefix sums of the values.
    """

    values: np.ndarray
    divisor: int = 1
    trim: Fraction = Fraction(0)
    factor: int = 1
    sums: np.ndarray = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", prefixes(self.values))

    @property
    def size(self) -> int:
        """The number of values."""
        return int(self.values.shape[-1])

    def between(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return f of the windows [start, stop), of which none is empty."""
        sizes = stops - starts
        cuts = self.cuts(sizes)
        sums = self.sums[..., stops - cuts] - self.sums[..., starts + cuts]
        return self._over(sums, sizes - 2 * cuts)

    def row(self, size: int) -> np.ndarray:
        """Return f of all windows of one size, from left to right."""
        cut = int(self.cuts(size))
        count = self.size - size + 1
        upper = self.sums[..., size - cut : size - cut + count]
        lower = self.sums[..., cut : cut + count]
        return self._over(upper - lower, size - 2 * cut)

    def starting(self, start: int) -> np.ndarray:
        """Return f of [start, stop) for stop = n, n - 1, ..., start + 1."""
        if self.trim:
            stops = np.arange(self.size, start, -1)
            return self.between(np.full(len(stops), start), stops)
        sizes = np.arange(self.size - start, 0, -1)
        return self._over(self.sums[:start:-1] - self.sums[start], sizes)

    def stopping(self, stop: int) -> np.ndarray:
        """Return f of [start, stop) for start = 0, 1, ..., stop - 1."""
        if self.trim:
            starts = np.arange(stop)
            return self.between(starts, np.full(stop, stop))
        sizes = np.arange(stop, 0, -1)
        return self._over(self.sums[stop] - self.sums[:stop], sizes)

    def _over(self, sums: np.ndarray, counts: np.ndarray | int) -> np.ndarray:
        """Return factor sums / (counts divisor); two divisions in turn round down like one."""
        means = divide(sums, counts)
        if self.factor != 1:
            # With sums = q counts + r, floor(factor sums / counts) is factor q plus
            # floor(factor r / counts).
            remainders = sums - means * counts
            means = means * self.factor + divide(remainders * self.factor, counts)
        return means if self.divisor == 1 else divide(means, self.divisor)

    def cuts(self, sizes: Any) -> Any:
        """Return how many values are left out at each end of windows of these sizes."""
        top, bottom = self.trim.numerator, self.trim.denominator
        if isinstance(sizes, np.integer):
            sizes = int(sizes)
        if isinstance(sizes, int) or max(top * self.size, bottom) < 1 << 63:
            return sizes * top // bottom
        return (np.asarray(sizes, object) * top // bottom).astype(np.int64)

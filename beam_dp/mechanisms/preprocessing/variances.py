"""Compute the preprocessed variance: the least Var(W) + (n - |W|) Delta over windows, by pruning.

Let h(D) be the least of f(D without R) + |R| Delta over all R, for f the population or the sample
variance (0 for fewer than two people). Then g = h:

* h(D) <= h(D - i) + Delta: remove i too.
* h(D - i) <= h(D) + Delta. Let V = D without R be best for D. If i is in R, it is one less to pay.
  Else, with m = |V|, the sum of squares about the mean does not grow when i goes, so
  f(V - i) <= f(V) m / (m - 1), or f(V) (m - 1) / (m - 2) for the sample variance. A set of m - 1
  people can be taken to one person, so h(V - i) <= (m - 2) Delta: this is enough unless
  f(V) < (m - 3) Delta, and then f(V - i) <= f(V) + Delta, by the ratios above.
* h <= f, and h(D) is f(D) or one of the h(D - i) + Delta. So g = h by induction: the lower bound of
  Definition 3.1 never binds. (Cummings, Durfee 2020, section 5.)

Of all sets of one size some contiguous window has the least variance, so windows are enough, and of
each size m the one with the least sum of squares about its mean, S(m). Windows inside of a window
have no larger sum, so S does not fall with m, and all sizes from a to b have at least
S(a) / b + (n - b) Delta. Ranges of sizes that are not below the least value known are dropped, the
others are cut in two. Near the least value, which is flat, about the root of n sizes are left.

S is found in floating point, of exact sums, with a bound on its error; windows that may be least by
that bound are then computed in integers. Rounding down to the grid comes last, as in `windows`.
"""

from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers

_ROUNDING = 2.0**-48  # 32 units in the last place: more than the few operations of one value


class Spread:
    """Sums and sums of squares of all windows of ascending integers.

    Args:
        values: the integers, at least one.
    """

    def __init__(self, values: np.ndarray) -> None:
        wide = values.dtype == object or integers.largest(values) >= 1 << 61
        centred = (integers.widen(values) if wide else values) - values[len(values) // 2]
        self._sums = np.append(0, integers.running_sums(centred))
        self._squares = np.append(0, integers.running_sums(integers.product(centred, centred)))

    def about_mean(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return S of all windows of a size, in floats, and bounds of their errors."""
        sums, squares = (
            (column[size:] - column[:-size]).astype(np.float64)
            for column in (self._sums, self._squares)
        )
        return squares - sums * sums / size, _ROUNDING * squares

    def least_about_mean(self, size: int) -> float:
        """Return a number that is at most S(m), and near to it."""
        about, errors = self.about_mean(size)
        return max(0.0, float((about - errors).min()))

    def least(self, size: int) -> Fraction:
        """Return the least variance of a window of a size, exactly."""
        about, errors = self.about_mean(size)
        near = np.flatnonzero(about - errors <= (about + errors).min())
        ends = near + size
        sums, squares = (
            (column[ends] - column[near]).tolist() for column in (self._sums, self._squares)
        )
        pairs = set(zip(sums, squares, strict=True))
        most = min(size * squared - total * total for total, squared in pairs)
        return Fraction(most, size * size)


def least(spread: Spread, size: int, sensitivity: int, resolution: int) -> int:
    """Return g of one database, in steps.

    Args:
        spread: of its values.
        size: how many there are.
        sensitivity: Delta, in steps.
        resolution: steps per squared unit.
    """
    best = spread.least(size) * resolution // 1
    ranges = [(1, size)]  # sizes from the first to before the second
    while ranges:
        first, stop = ranges.pop()
        if first >= stop or _bound(spread, first, stop - 1, size, sensitivity, resolution) >= best:
            continue
        middle = (first + stop) // 2
        found = spread.least(middle) * resolution // 1 + (size - middle) * sensitivity
        best = min(best, found)
        ranges += [(first, middle), (middle + 1, stop)]
    return best


def _bound(
    spread: Spread, first: int, last: int, size: int, sensitivity: int, resolution: int
) -> float:
    """Return a number that no size from first to last is below."""
    about = spread.least_about_mean(first) * (1 - _ROUNDING)
    return (about / last * resolution + (size - last) * float(sensitivity)) * (1 - _ROUNDING)

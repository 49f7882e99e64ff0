"""g of the usual statistics in double precision: for looking at, not for a release.

Each function takes the values of one database, Delta, and f(empty), and returns the g of Cummings
and Durfee (2020, Definition 3.1), which one person moves by at most Delta, to about 13 digits of
the largest value. Those last digits are why nothing may be released from here: rounding depends on
all values, and breaks |g(D) - g(D-i)| <= Delta by the last bit. `release` has the same functions on
integers, where the bound is exact, and adds the noise.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.checks import Real
from beam_dp.mechanisms.preprocessing import order_statistics
from beam_dp.mechanisms.preprocessing.order_statistics import doubled_medians
from beam_dp.mechanisms.preprocessing.staircase import settled
from beam_dp.mechanisms.preprocessing.variances import Spread, least
from beam_dp.mechanisms.preprocessing.windows import Windows

Values = Sequence[Real] | np.ndarray
_DIGITS = 50  # bits to which the largest value counts in a variance
_LARGE = 1e290  # sums of values below cannot overflow


def mean(values: Values, sensitivity: Real, empty: Real = 0) -> float:
    """Return g of the mean, in O(n log n).

    g is the mean itself if the range of the values and |mean - empty| are at most n Delta.

    Edge cases: no values give `empty`; one value is cut to [empty - Delta, empty + Delta].

    Args:
        values: one number per person, finite, in any order.
        sensitivity: Delta, at least 0.
        empty: f of nobody.

    Raises:
        TypeError: for a parameter that is no number.
        ValueError: for a negative sensitivity, values that are not finite, or not one column.
    """
    return trimmed_mean(values, sensitivity, empty, 0)


def trimmed_mean(
    values: Values, sensitivity: Real, empty: Real = 0, trim: Real = Fraction(1, 10)
) -> float:
    """Return g of the mean without the floor(trim n) smallest and as many largest values.

    A sort, and O(n) for each of a few dozen guesses: about a second for 100,000 values, and much
    less where a saddle proves g (see `saddle`).

    Args:
        values: as for `mean`.
        sensitivity: as for `mean`.
        empty: as for `mean`.
        trim: the share that is left out at each end; from 0 to below 1/2.
    """
    column, step, nobody, scale = _prepare("trimmed_mean", values, sensitivity, empty)
    if not len(column):
        return nobody
    windows = Windows(column, 1, checked_trim("trimmed_mean", trim))
    return scale * float(settled(windows, step, nobody))


def median(values: Values, sensitivity: Real, empty: Real = 0) -> float:
    """Return g of the median (the mean of two middle values), in O(n) and a sort.

    g lies between `empty` and the median. The arguments are those of `mean`.
    """
    column, step, nobody, scale = _prepare("median", values, sensitivity, empty)
    if not len(column):
        return nobody
    doubled = doubled_medians(column, *_whole(column), 2 * step, 2 * nobody)
    return scale * float(doubled[0]) / 2


def maximum(values: Values, sensitivity: Real, empty: Real = 0) -> float:
    """Return g of the maximum, in O(n) and a sort; the arguments are those of `mean`."""
    column, step, nobody, scale = _prepare("maximum", values, sensitivity, empty)
    if not len(column):
        return nobody
    return scale * float(order_statistics.maxima(column, *_whole(column), step, nobody)[0])


def minimum(values: Values, sensitivity: Real, empty: Real = 0) -> float:
    """Return g of the minimum, in O(n) and a sort; the arguments are those of `mean`."""
    column, step, nobody, scale = _prepare("minimum", values, sensitivity, empty)
    if not len(column):
        return nobody
    return scale * float(order_statistics.minima(column, *_whole(column), step, nobody)[0])


def variance(values: Values, sensitivity: Real, sample: bool = False) -> float:
    """Return g of the variance, 0 for nobody: never above the variance.

    Mostly O(n log n); see `variances`. Values count to 50 bits of the value farthest from the
    median.

    Args:
        values: as for `mean`.
        sensitivity: Delta, at least 0.
        sample: divide by n - 1 (the variance of one value is 0), not by n.
    """
    column = _column("variance", values)
    delta = _at_least_0("variance", sensitivity)
    if not len(column):
        return 0.0
    centred = column / 2 - column[len(column) // 2] / 2  # halved, as the range may overflow
    bits = _DIGITS - math.frexp(float(np.abs(centred).max()))[1]
    units = np.rint(np.ldexp(centred, bits)).astype(np.int64)
    worth = Fraction(4) ** (1 - bits)
    return _to_float(least(Spread(units, sample), delta / worth) * worth)


def checked_trim(owner: str, trim: Real) -> Fraction:
    """Return a share to trim as the decimal that the user wrote, or raise."""
    share = checks.decimal(owner, "trim", trim)
    checks.require(
        0 <= share < Fraction(1, 2), owner, "trim", f"be from 0 to below 1/2, not {trim!r}"
    )
    return share


def _prepare(
    owner: str, values: Values, sensitivity: Real, empty: Real
) -> tuple[np.ndarray, float, float, float]:
    """Return the sorted values, Delta, f(empty), all divided by a power of 2, and that power.

    A Delta beyond the range of all values and f(empty) cuts nothing, and is taken as that range.
    """
    column = _column(owner, values)
    step = _to_float(_at_least_0(owner, sensitivity))
    nobody = float(checks.number(owner, "empty", empty))
    largest = max(abs(nobody), float(np.abs(column[[0, -1]]).max()) if len(column) else 0.0)
    scale = 1.0 if largest * max(len(column), 1) < _LARGE or not len(column) else 2.0**100
    column, step, nobody = column / scale, step / scale, nobody / scale
    if len(column):
        step = min(step, max(column[-1], nobody) - min(column[0], nobody))
    return column, float(step), nobody, scale


def _column(owner: str, values: Values) -> np.ndarray:
    column = np.asarray(values, np.float64)
    checks.require(column.ndim == 1, owner, "values", "be one number per person")
    # No value is shown: they are data.
    checks.require(bool(np.isfinite(column).all()), owner, "values", "be finite")
    return np.sort(column)


def _at_least_0(owner: str, sensitivity: Real) -> Fraction:
    delta = checks.number(owner, "sensitivity", sensitivity)
    checks.require(delta >= 0, owner, "sensitivity", f"be at least 0, not {sensitivity!r}")
    return delta


def _whole(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.array([0]), np.array([len(column)])


def _to_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf

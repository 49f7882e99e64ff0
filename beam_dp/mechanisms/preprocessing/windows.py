"""g of means, trimmed means, medians, maxima and minima: by a saddle, or by staircases.

These are database-ordered functions (Cummings, Durfee 2020, Definition 5.1), preprocessed on the
contiguous windows of the sorted values only. `Windows` gives f of any window. A trimmed mean leaves
out floor(trim m) of m values at each end. Mind that g may lie far below f: for the maximum of fifty
-100 and one -1, with f(empty) = 0 and Delta = 1, it is -49.

Values are integers, and f is rounded down to whole steps of a grid; everything else is exact.
Rounding down loses no proof: for integer sensitivities, g of floor(f) is floor(g of f). For g(D) is
the median of f(D), max_i g(D-i) - Delta_i and min_i g(D-i) + Delta_i, and rounding down commutes
with medians, maxima, minima and the addition of integers; induct on |D|.

*The recursion on windows*: g(i, j) = f(x_i..x_j) cut to [g(i + 1, j) - Delta, g(i, j - 1) + Delta]
(Cummings, Durfee 2020, section 5). Among all databases that lack one person of a window, the one
without the largest has the least g and the one without the smallest the greatest, because all
people have the same Delta. It has n^2 / 2 windows; what follows looks at fewer.

*A saddle* (`bounds`): for phi(s, t) = f(x_{s+1}, ..., x_{n-t}) + (t - s) Delta, and
phi(s, n - s) = f(empty) + (n - 2s) Delta where nothing is left,

    max_s min_t phi(s, t) <= g(x) <= min_t max_s phi(s, t).

Upper bound: g <= g(without the largest) + Delta, so go from x to the window without its t largest
values, in t steps. From there on, g = max(min(f, UB), LB) <= max(f, LB) moves the left end only,
and each of the s steps gives Delta back: g <= max_s phi(s, t). The lower bound is the mirror image
(LB <= UB always). Where the two bounds meet, g is known. For the mean they met in 1,999 of 2,000
databases of several shapes; for trimmed means of skewed values they often do not. (h_- and h_+ of
Cummings and Durfee 2020, section 5, are the row and the column of s = t = 0.)

*Staircases* look at n of n^2 windows for each guess of g. Let G(s, t) = g(s, t) + (t - s) Delta.
The recursion is then, without any Delta,

    G(s, t) = max(G(s + 1, t), min(phi(s, t), G(s, t + 1))),
    G(s, n - s) = f(empty) + (n - 2s) Delta.

*G does not fall with t where s + t is fixed*, that is G(s + 1, t) <= G(s, t + 1): both windows are
one person away from [s + 1, n - t - 1), so their g differ by at most 2 Delta. (On the last line,
s + t = n, it is obvious.) So for any level y, on the line s + t = k the t with G >= y are
those from some t_k on. By the recursion, all t >= t_{k+1} are among them; of the others only
t = t_{k+1} - 1 may be, and it is if and only if phi >= y there. So one window per line is enough:
from the t where f(empty) + (2t - n) Delta passes y, let the window grow, to the right where
phi >= y and to the left where not. Then g(x) >= y if and only if the right end is passed first.

A level that is a bit higher or lower changes no step until it meets a phi of the walk; so each walk
moves a bound on g to one of these phi, and the bounds meet after about as many walks as the
distance between them has bits.
"""

import bisect
import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.numerics import integers

_SAFE = 1 << 60


@dataclasses.dataclass(frozen=True, eq=False)
class Windows:
    """A statistic of all windows of ascending values, in whole steps.

    Attributes:
        statistic: "mean", "trimmed_mean", "median", "maximum" or "minimum".
        factor: the number of steps per unit of the values.
        values: arrays, for many windows at once, or lists, for one after the other.
        sums: of the first 0, 1, ..., n values.
        cuts: how many values are left out at each end of windows of 0, 1, ..., n values.
    """

    statistic: str
    factor: int
    values: Any
    sums: Any
    cuts: Any

    @classmethod
    def of(
        cls, statistic: str, values: np.ndarray, factor: int, trim: Fraction, *others: int
    ) -> "Windows":
        """Return the windows of some values, in int64 where all that is computed fits.

        Args:
            statistic: what it is.
            values: ascending, at least one.
            factor: the number of steps per unit of the values.
            trim: the share that a trimmed mean leaves out at each end.
            others: numbers that are added to the statistic later.
        """
        most, count = max(abs(int(values[0])), abs(int(values[-1]))), len(values)
        if 2 * (most + 1) * (factor + count) + count * factor + sum(map(abs, others)) >= _SAFE:
            values = integers.widen(values)
        share = trim if statistic == "trimmed_mean" else Fraction(0)
        over, under = share.as_integer_ratio()
        cuts = np.array([size * over // under for size in range(count + 1)])
        return cls(statistic, factor, values, np.append(0, np.cumsum(values)), cuts)

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.values)

    def listed(self) -> "Windows":
        """Return the same on lists."""
        columns = {name: getattr(self, name).tolist() for name in ("values", "sums", "cuts")}
        return dataclasses.replace(self, **columns)

    def between(self, starts: Any, stops: Any) -> Any:
        """Return f of the windows [start, stop), of which none is empty, in steps, rounded down.

        Sums times the factor may be beyond int64: with sums = q counts + r the mean is
        factor q + floor(factor r / counts). (What is added 0 times makes arrays of one shape.)
        """
        if self.statistic == "maximum":
            return self.values[stops - 1] * self.factor + 0 * self.sums[starts]
        if self.statistic == "minimum":
            return self.values[starts] * self.factor + 0 * self.sums[stops]
        if self.statistic == "median":
            pair = self.values[(starts + stops - 1) // 2] + self.values[(starts + stops) // 2]
            return pair * self.factor // 2
        cuts = self.cuts[stops - starts]
        counts = stops - starts - 2 * cuts
        sums = self.sums[stops - cuts] - self.sums[starts + cuts]
        whole = sums // counts
        return whole * self.factor + (sums - whole * counts) * self.factor // counts


def settled(windows: Windows, sensitivity: int, empty: int) -> int:
    """Return g of one database: by a saddle where there is one, else by staircases between its
    bounds.

    Args:
        windows: of the database.
        sensitivity: Delta, in steps.
        empty: f of nobody, in steps.
    """
    low, high = bounds(windows, sensitivity, empty)
    staircases = Staircases(windows, sensitivity, empty) if low < high else None
    while staircases is not None and low < high:
        reached, bound = staircases.at_least(high - (high - low) // 2)
        low, high = (bound, high) if reached else (low, bound)
    return low


def bounds(windows: Windows, sensitivity: int, empty: int) -> tuple[int, int]:
    """Return bounds on g, which are equal where a saddle is met.

    A saddle is an s that is the best answer to its own best t. The first one tried is s = 0, where
    g is mostly f itself; then it is searched by halving, in 2 log2(n) passes over the values.
    """
    size = windows.size
    ramp = np.arange(size + 1).astype(windows.values.dtype) * sensitivity
    low, high = empty - size * sensitivity, empty + size * sensitivity
    first, s, last = 0, 0, size
    while first <= last and low < high:
        phis = windows.between(s, np.arange(size, s, -1))
        phis = np.append(phis, empty) + ramp[: size - s + 1] - s * sensitivity
        t = int(phis.argmin())
        low = max(low, int(phis[t]))
        phis = windows.between(np.arange(size - t), size - t)
        phis = np.append(phis, empty) - ramp[: size - t + 1] + t * sensitivity
        answer = int(phis.argmax())
        high = min(high, int(phis[answer]))
        first, last = (s + 1, last) if answer > s else (first, s - 1)
        s = (first + last) // 2
    return low, high


class Staircases:
    """Staircase walks that tell whether g of one database reaches a level.

    Args:
        windows: of one database.
        sensitivity: Delta.
        empty: f of nobody.
    """

    def __init__(self, windows: Windows, sensitivity: int, empty: int) -> None:
        self._windows, self._size, self._step = windows.listed(), windows.size, sensitivity
        self._last = [empty + (2 * t - self._size) * sensitivity for t in range(self._size + 1)]

    def at_least(self, level: int) -> tuple[bool, int]:
        """Return whether g >= level, and the bound on g that the walk has shown on that side."""
        size = self._size
        t = bisect.bisect_left(self._last, level)
        above = self._last[min(t, size)]
        below = self._last[max(t - 1, 0)]
        start, stop = size - t, size + 1 - t  # one person
        while start >= 0 and stop <= size:
            value = self._windows.between(start, stop) + (size - stop - start) * self._step
            if value >= level:
                above = min(above, value)
                stop += 1
            else:
                below = max(below, value)
                start -= 1
        return (True, above) if stop > size else (False, below)

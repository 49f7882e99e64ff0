"""g of a database-ordered function, exactly: by walks over a few windows, or by all windows.

*Walks* (`settled`) look at n of n^2 windows for each guess of g. Of the windows [s, n - t) let
G(s, t) = g(s, t) + (t - s) Delta and phi(s, t) = f(s, t) + (t - s) Delta. The recursion (below) is
then, without any Delta,

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

*The recursion over all windows* (`recursed`) is exact for every database-ordered function:
g(i, j) = f(x_i..x_j) cut to [g(i + 1, j) - Delta, g(i, j - 1) + Delta] (Cummings, Durfee 2020,
section 5). Among all databases that lack one person of a window, the one without the largest has
the least g and the one without the smallest the greatest, because all people have the same Delta.
It takes n^2 / 2 steps, in one vector per size of the windows.
"""

import bisect
import operator

import numpy as np

from beam_dp.mechanisms.preprocessing import saddle
from beam_dp.mechanisms.preprocessing.windows import Windows

Number = int | float


def settled(windows: Windows, sensitivity: Number, empty: Number) -> Number:
    """Return g: by a saddle where there is one, else by walks between the bounds of `saddle`.

    Args:
        windows: of one database, of at least one value.
        sensitivity: Delta, in the steps of the windows.
        empty: f of nobody, in the same steps.
    """
    low, high = saddle.bounds(windows, sensitivity, empty)
    if low >= high:
        return low
    walks = Walks(windows, sensitivity, empty)
    while low < high:
        reached, bound = walks.reach(_between(low, high))
        low, high = (bound, high) if reached else (low, bound)
    return low


def _between(low: Number, high: Number) -> Number:
    """Return a number above low and at most high, about in the middle."""
    if isinstance(low, int) and isinstance(high, int):
        return high - (high - low) // 2
    middle = low + (high - low) / 2
    return middle if middle > low else high


class Walks:
    """Walks that tell whether g of one database reaches a level.

    Args:
        windows: of one database.
        sensitivity: Delta.
        empty: f of nobody.
    """

    def __init__(self, windows: Windows, sensitivity: Number, empty: Number) -> None:
        size = windows.size
        self._step = sensitivity
        self._cuts = windows.cuts(np.arange(size + 1)).tolist()
        self._counts = [(m - 2 * cut) * windows.divisor for m, cut in enumerate(self._cuts)]
        self._sums = [windows.factor * total for total in windows.sums.tolist()]
        self._last = [empty + (2 * t - size) * sensitivity for t in range(size + 1)]
        exact = windows.values.dtype != np.float64
        self._divide = operator.floordiv if exact else operator.truediv

    def reach(self, level: Number) -> tuple[bool, Number]:
        """Return whether g >= level, and the bound on g that the walk has shown on that side."""
        size, step, divide = len(self._last) - 1, self._step, self._divide
        sums, cuts, counts = self._sums, self._cuts, self._counts
        t = bisect.bisect_left(self._last, level)
        above = self._last[min(t, size)]
        below = self._last[max(t - 1, 0)]
        start, stop = size - t, size + 1 - t  # one person
        while start >= 0 and stop <= size:
            width = stop - start
            cut = cuts[width]
            value = divide(sums[stop - cut] - sums[start + cut], counts[width])
            value += (size - stop - start) * step
            if value >= level:
                above = min(above, value)
                stop += 1
            else:
                below = max(below, value)
                start -= 1
        return (True, above) if stop > size else (False, below)


def recursed(windows: Windows, sensitivity: Number, empty: Number) -> np.ndarray:
    """Return g of each database (a row of values), exact on integers.

    Args:
        windows: of one database, or of several of one size.
        sensitivity: Delta, in the steps of the windows.
        empty: f of nobody, in the same steps.
    """
    values = windows.values
    results = np.full((*values.shape[:-1], windows.size + 1), empty, values.dtype)
    for size in range(1, windows.size + 1):
        cut = np.minimum(windows.row(size), results[..., :-1] + sensitivity)
        results = np.maximum(cut, results[..., 1:] - sensitivity, out=cut)
    return np.asarray(results[..., 0])

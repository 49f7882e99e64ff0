"""g of a database-ordered function, exactly, by windows that grow: n of n^2 for each guess.

Of the windows [s, n - t) let G(s, t) = g(s, t) + (t - s) Delta and phi(s, t) = f(s, t) +
(t - s) Delta. The recursion (`recursion`) is then, without any Delta,

    G(s, t) = max(G(s + 1, t), min(phi(s, t), G(s, t + 1))),
    G(s, n - s) = f(empty) + (n - 2s) Delta.

*G does not fall with t where s + t is fixed*, that is G(s + 1, t) <= G(s, t + 1): both windows are
one person away from [s + 1, n - t - 1), so their g differ by at most 2 Delta. (On the last line,
s + t = n, it is obvious.) So for any level y the places of the line s + t = k with G >= y are
those from some t_k on. By the recursion, all t >= t_{k+1} are among them, of the others only
t = t_{k+1} - 1 may be, and it is if and only if phi >= y there. One window per line, that is:
from the place where f(empty) + (2t - n) Delta passes y, let the window grow, to the right where
phi >= y and to the left where not. Then g(x) >= y if and only if the right end is passed first.

Whether the level is a bit higher or lower changes no step until it meets a phi that was seen; so
each walk moves a bound on g to one of these, and the bounds meet after about as many walks as the
distance between them has bits.

The recursion over all windows: exact for every database-ordered function.

g(i, j) = f(x_i..x_j) cut to [g(i + 1, j) - Delta, g(i, j - 1) + Delta] (Cummings, Durfee 2020,
section 5): among all databases that lack one person of a window, the one without the largest has
the least g and the one without the smallest the greatest, because all persons have the same Delta.
It takes n^2 / 2 steps, in one vector per size of the windows.
"""

import bisect
import operator

import numpy as np

from beam_dp.mechanisms.preprocessing import saddle
from beam_dp.mechanisms.preprocessing.windows import Windows

Number = int | float


def settled(windows: Windows, sensitivity: Number, empty: Number) -> Number:
    """Return g: by a saddle where there is one, else by walks between its bounds.

    Args:
        windows: of one database, of at least one value.
        sensitivity: Delta, in the steps of the windows.
        empty: f of nobody, in the same.
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
    """Whether g of one database reaches a level.

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
        """Return whether g >= level, and the bound on g from that side that the walk has shown."""
        size, step, divide = len(self._last) - 1, self._step, self._divide
        sums, cuts, counts = self._sums, self._cuts, self._counts
        place = bisect.bisect_left(self._last, level)
        above = self._last[min(place, size)]
        below = self._last[max(place - 1, 0)]
        start, stop = size - place, size + 1 - place  # one person
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
    """Return g of each database (row of values), exact on integers.

    Args:
        windows: of one database, or of several of one size.
        sensitivity: Delta, in the steps of the windows.
        empty: f of nobody, in the same.
    """
    values = windows.values
    found = np.full((*values.shape[:-1], windows.size + 1), empty, values.dtype)
    for size in range(1, windows.size + 1):
        cut = np.minimum(windows.row(size), found[..., :-1] + sensitivity)
        found = np.maximum(cut, found[..., 1:] - sensitivity, out=cut)
    return np.asarray(found[..., 0])

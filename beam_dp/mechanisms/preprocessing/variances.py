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

Of all sets of one size some contiguous window has the least variance, so windows are enough. There
are n^2 / 2 windows; they are searched as rectangles of starts and stops. The sum of squares S of a
window is at least that of any window inside, so all windows [i, j) with a <= i <= a', b <= j <= b'
have at least S(a', b) / (b' - a) + (n - (b' - a)) Delta. Rectangles above the least value known
are dropped, the others are cut in four. Near the least value, which is flat, some n are left.

The search is in floating point, of exact sums, with a bound on its error; windows that may be least
by that bound are then computed in integers. Rounding down to the grid comes last, as in `means`.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.preprocessing.means import prefixes

_ROUNDING = 2.0**-48  # 32 units in the last place: more than the few operations of one value
_SIDE = 32  # the first rectangles per side
_TRIED = 1 << 10  # how many blocks of each chunk have their widest window tried
_CHUNK = 1 << 16
_Blocks = tuple[np.ndarray, np.ndarray, int]
"""First starts, first stops, and the width of both ranges."""


@dataclasses.dataclass(frozen=True, eq=False)
class Spread:
    """Exact sums and sums of squares of all windows of integers that ascend along the last axis.

    Attributes:
        values: a column of integers.
        sample: whether sums of squares are divided by m - 1 instead of m.
    """

    values: np.ndarray
    sample: bool = False
    sums: np.ndarray = dataclasses.field(init=False)
    squares: np.ndarray = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        centre = self.values[..., self.size // 2, None]
        wide = self.values.dtype == object or integers.largest(self.values) >= 1 << 61
        centred = (integers.widen(self.values) if wide else self.values) - centre
        for name, column in (("sums", centred), ("squares", integers.product(centred, centred))):
            if column.dtype != object and integers.magnitude(column) >= 1 << 62:
                column = integers.widen(column)
            object.__setattr__(self, name, prefixes(column))

    @property
    def size(self) -> int:
        """The number of values."""
        return int(self.values.shape[-1])

    def divisors(self, sizes: np.ndarray) -> np.ndarray:
        """Return the divisors of the sums of squares: m, or m - 1 (and 1 for one value)."""
        return np.asarray(np.maximum(sizes - self.sample, 1))

    def about_mean(self, starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of squares about the means, in floats, and bounds of their errors."""
        total = (self.sums[stops] - self.sums[starts]).astype(np.float64)
        squares = (self.squares[stops] - self.squares[starts]).astype(np.float64)
        return squares - total * total / np.maximum(stops - starts, 1), _ROUNDING * squares

    def rounded_rows(self, gone: int, resolution: int) -> np.ndarray:
        """Return the variances of all windows that lack `gone` values, per row, in whole steps."""
        size = self.size - gone
        sums = self.sums[:, size:] - self.sums[:, : gone + 1]
        squares = self.squares[:, size:] - self.squares[:, : gone + 1]
        scaled = integers.product(squares, np.array(size))
        about = integers.add(scaled, -integers.product(sums, sums))
        divisor = size * max(size - self.sample, 1)
        return np.asarray(integers.product(about, np.array(resolution)) // divisor)

    def exactly(self, start: int, stop: int) -> Fraction:
        """Return the variance of one window that is not empty."""
        total = int(self.sums[stop]) - int(self.sums[start])
        squares = int(self.squares[stop]) - int(self.squares[start])
        size = stop - start
        return Fraction(size * squares - total * total, size * max(size - self.sample, 1))


def least(spread: Spread, price: Fraction) -> Fraction:
    """Return the exact least of Var(W) + (n - |W|) price over all windows W.

    Args:
        spread: of at least one value.
        price: Delta, in squared units.
    """
    if price == 0:
        return Fraction(0)
    # A price beyond the square of the range, thus beyond every variance, cuts nothing.
    price = min(price, Fraction(int(spread.values[-1]) - int(spread.values[0])) ** 2)
    windows = _Search(spread, float(price)).run()
    return min(
        spread.exactly(start, stop) + (spread.size - stop + start) * price
        for start, stop in windows
    )


class _Search:
    """The search for the windows that may be best, by cutting rectangles of starts and stops."""

    def __init__(self, spread: Spread, price: float) -> None:
        self._spread = spread
        self._price = price
        self._best = np.inf

    def run(self) -> list[tuple[int, int]]:
        size = self._spread.size
        width = 1
        while width * _SIDE < size:
            width *= 2
        firsts = np.arange(0, size, width)
        grid = np.meshgrid(firsts, firsts + 1, indexing="ij")
        stack: list[_Blocks] = [(grid[0].ravel(), grid[1].ravel(), width)]
        blocks = []
        while stack:
            starts, stops, width = stack.pop()
            starts, stops, lower = self._keep(starts, stops, width)
            if width == 1:
                blocks.append((starts, stops, lower))
            else:
                stack.extend(_quarters(starts, stops, width // 2))
        kept = [(a[low <= self._best], b[low <= self._best]) for a, b, low in blocks]
        return [pair for a, b in kept for pair in zip(a.tolist(), b.tolist(), strict=True)]

    def _keep(
        self, starts: np.ndarray, stops: np.ndarray, width: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the blocks that may hold the best window (the best last), and their bounds."""
        size = self._spread.size
        inside = (starts < size) & (stops <= size)
        starts, stops = starts[inside], stops[inside]
        last_stops = np.minimum(stops + width - 1, size)
        inner = np.minimum(starts + width - 1, size - 1)
        lower = self._values(inner, np.maximum(stops, inner), starts, last_stops, -1)
        kept = np.flatnonzero(lower <= self._best)
        kept = kept[np.argsort(-lower[kept], kind="stable")]
        best = kept[-_TRIED:]
        upper = self._values(starts[best], last_stops[best], starts[best], last_stops[best], 1)
        self._best = min(self._best, upper.min(initial=np.inf))
        kept = kept[lower[kept] <= self._best]
        return starts[kept], stops[kept], lower[kept]

    def _values(
        self,
        starts: np.ndarray,
        stops: np.ndarray,
        widest_starts: np.ndarray,
        widest_stops: np.ndarray,
        side: int,
    ) -> np.ndarray:
        """Return bounds, above or below by `side`, of the variances plus removals; inf for none."""
        spread = self._spread
        sizes = widest_stops - widest_starts
        variances, error = spread.about_mean(starts, np.maximum(starts, stops))
        variances = np.maximum(variances + side * error, 0.0) / spread.divisors(sizes)
        variances += (spread.size - sizes) * self._price
        return np.where(sizes > 0, variances * (1 + side * _ROUNDING), np.inf)


def _quarters(starts: np.ndarray, stops: np.ndarray, width: int) -> list[_Blocks]:
    """Return four blocks for each block, in chunks; the best are at the end."""
    first = np.repeat(starts, 4) + np.tile([0, 0, width, width], len(starts))
    last = np.repeat(stops, 4) + np.tile([0, width, 0, width], len(stops))
    return [
        (first[start : start + _CHUNK], last[start : start + _CHUNK], width)
        for start in range(0, len(first), _CHUNK)
    ]


def least_rows(spread: Spread, sensitivity: int, resolution: int) -> np.ndarray:
    """Return g of several small databases of one size (rows of values), by all their windows.

    Args:
        spread: of rows of at least one value.
        sensitivity: Delta, in steps.
        resolution: steps per squared unit.
    """
    best = np.full(len(spread.values), spread.size * sensitivity, object)
    for gone in range(spread.size):
        if (gone * sensitivity >= best).all():
            break
        variances = spread.rounded_rows(gone, resolution).min(axis=1)
        # In Python integers: Delta has no largest value.
        best = np.minimum(best, variances.astype(object) + gone * sensitivity)
    return best

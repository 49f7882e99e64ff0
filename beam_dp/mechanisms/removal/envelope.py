"""Removal profiles of relaxed statistics, from their Lipschitz twins on a public grid.

Let F(s) be a relaxation of a monotone statistic f to people who are present by a share s in
[0, 1]^n: F(1 - R) = f without R for every set R, more people or larger shares never lower F, and a
person of share 0 changes nothing. Its Lipschitz twin for a price D > 0 of a person is

    twin_D(x) = min over r in [0, 1]^n of F(1 - r) + D * sum(r).

For x and x' = x + one person: twin_D(x) <= twin_D(x') <= twin_D(x) + D. (From r' on x', leave the
person out: F is no larger. From r on x, remove the new person for D.) This is the function of
Cummings and Durfee, "Individual Sensitivity Preprocessing for Data Privacy" (SODA 2020), of a
monotone statistic. The profile of this module is, over a finite public grid of prices,

    B[0] = f,    B[k] = max(0, max over D of (twin_D - k D)),  k = 1..K.

*Interlacing*: B'[k + 1] <= B[k] <= B'[k], each bound price by price: twin_D(x') - (k + 1) D is at
most twin_D(x) - k D, and twin_D(x) <= twin_D(x'). For k = 0, twin_D <= F(1) = f. So the loss of
y >= 0, min{k: B[k] <= y} = ceil(max over D of (twin_D - y)^+ / D), cut at K + 1, moves by 0 or 1,
and only upwards, when a person is added: all that the searches need (Fang, Dong, Yi, "Shifted
Inverse", CCS 2022; Steinke, "Beyond Local Sensitivity via Down Sensitivity", 2023). The proof holds
whatever the grid is; it also holds if F depends on k, as long as F' at k + 1 with the new person
removed is at most F at k, which `coverage` uses.

*What it is*: over all prices, B[k] is the least F(1 - r) with sum(r) <= k (the least F, as a
function of sum(r), is convex if F is, and the twin is its conjugate), so never above the exact
profile. *What the grid costs*: f - B[k] >= k D at the best price D, for twin <= f. The next price
D2 of the grid gives at least twin_D - k D2, for twin never falls, so f - B[k] grows by at most the
factor D2 / D, and by k / 64 where D is below the least price. Prices m 2^e with 64 <= m < 128 make
that factor 65/64, and hold every integer up to 128.

*The search*: for one k, the function D -> f - twin_D + k D is convex, and a minimiser r gives the
slope k - sum(r) of a line that touches it from below (F(1 - r) + D' sum(r) bounds the twin at every
D'). The lines at both ends of an interval bound all that lies between them: an interval is given
up only when they show that nothing in it is better, so the result is the maximum over the whole
grid exactly, plateaus included.
"""

from fractions import Fraction
from typing import NamedTuple, Protocol

_OCTAVE = 64
_LOWEST = 6  # the least price is 2^-6
LAST = _OCTAVE * (62 + _LOWEST)  # the largest is 2^62


class Point(NamedTuple):
    """At one price: f - twin, and the number of people (or halves) that a minimiser removes."""

    loss: Fraction
    removed: Fraction


class Relaxation(Protocol):
    """A relaxed statistic of one database: what `profile` asks of it."""

    @property
    def total(self) -> int:
        """The statistic f itself."""

    @property
    def steepest(self) -> int:
        """A price from which on nobody is worth removing: the most that one person can lower f."""

    def level(self, price: Fraction, removals: int) -> int:
        """Return a name of the relaxation for this k; equal names have equal points."""

    def point(self, price: Fraction, level: int) -> Point:
        """Return the loss at a price, and the number removed."""


def price(index: int) -> Fraction:
    """Return the index-th price of the grid, 0 <= index <= LAST."""
    octave, step = divmod(index, _OCTAVE)
    return Fraction((_OCTAVE + step) << octave, _OCTAVE << _LOWEST)


def first_price(least: Fraction | int) -> int:
    """Return the index of the first price of at least `least`, LAST beyond the grid."""
    low, high = 0, LAST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if price(middle) >= least else (middle + 1, high)
    return low


def profile(relaxation: Relaxation, removals: int) -> list[Fraction]:
    """Return B[0..removals]: B[0] is f itself, the others are maxima over the whole grid.

    The profiles of neighbours interlace, so that the loss has sensitivity 1, in one direction.
    """
    search = _Search(relaxation)
    values = [Fraction(relaxation.total)]
    for k in range(1, removals + 1):
        # The profile does not increase, so after a 0 there are only zeros.
        values.append(max(Fraction(0), values[0] - search.least(k)) if values[-1] else values[-1])
    return values


class _Search:
    """The least of loss + k D over the grid, with the points that were computed before."""

    def __init__(self, relaxation: Relaxation) -> None:
        self.relaxation = relaxation
        self.top = first_price(relaxation.steepest)
        self.start = self.top
        self.known: dict[tuple[int, int], Point] = {}

    def least(self, k: int) -> Fraction:
        """Return the minimum over the grid of f - twin + k D; the next call starts there."""
        low, high = self._bracket(k)
        while high - low > 1:
            middle = self._middle(low, high, k)
            if middle is None:
                break
            removed = self._point(middle, k).removed
            low, high = (middle if removed >= k else low), (middle if removed <= k else high)
        self.start = min((low, high), key=lambda index: self._height(index, k))
        return self._height(self.start, k)

    def _point(self, index: int, k: int) -> Point:
        at = price(index)
        key = index, self.relaxation.level(at, k)
        if key not in self.known:
            self.known[key] = self.relaxation.point(at, key[1])
        return self.known[key]

    def _height(self, index: int, k: int) -> Fraction:
        return self._point(index, k).loss + k * price(index)

    def _bracket(self, k: int) -> tuple[int, int]:
        """Return low <= high between which the minimum lies: k removed or more, k or fewer."""
        low = high = self.start
        step = 1
        while high < self.top and self._point(high, k).removed > k:
            low, high, step = high, min(self.top, high + step), 2 * step
        while low > 0 and self._point(low, k).removed < k:
            low, high, step = max(0, low - step), low, 2 * step
        return low, high

    def _middle(self, low: int, high: int, k: int) -> int | None:
        """Return a price at which the lines of both ends leave room below them, or None.

        Only called with more than k removed at `low`, unless low is 0, and fewer at `high`.
        """
        fall = self._point(low, k).removed - k
        rise = k - self._point(high, k).removed
        if fall <= 0 or rise <= 0:
            return None
        lower, upper = self._height(low, k), self._height(high, k)
        width = price(high) - price(low)
        along = (lower - upper + rise * width) / (fall + rise)
        if lower - fall * along >= min(lower, upper):
            return None
        return min(max(first_price(price(low) + along), low + 1), high - 1)

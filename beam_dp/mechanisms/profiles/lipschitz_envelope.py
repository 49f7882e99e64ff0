"""Removal profiles of relaxed statistics, from Lipschitz extensions on a public grid of prices.

Let F(s) be a relaxation of a monotone statistic f to people who are present by a share s in
[0, 1]^n: F(1 - R) = f without R for every set R, more people or larger shares never lower F, and a
person of share 0 changes nothing. Its Lipschitz extension for a price D > 0 of a person is

    E_D(x) = min over r in [0, 1]^n of F(1 - r) + D * sum(r).

For x and x' = x + one person: E_D(x) <= E_D(x') <= E_D(x) + D. (Leave the new person out of any
r' on x': F is no larger. To any r on x, add her removal for D.) This is the function of
Cummings and Durfee, "Individual Sensitivity Preprocessing for Data Privacy" (SODA 2020), of a
monotone statistic. The profile of this module is, over a finite public grid of prices,

    B[0] = f,    B[k] = max(0, max over D of (E_D - k D)),  k = 1..K.

*Interlacing*: B'[k + 1] <= B[k] <= B'[k], each bound price by price: E_D(x') - (k + 1) D is at
most E_D(x) - k D, and E_D(x) <= E_D(x'). For k = 0, E_D <= F(1) = f. So the loss of
y >= 0, min{k: B[k] <= y} = ceil(max over D of (E_D - y)^+ / D), cut at K + 1, moves by 0 or 1,
and only upwards, when a person is added: all that the searches need (Fang, Dong, Yi, "Shifted
Inverse", CCS 2022; Steinke, "Beyond Local Sensitivity via Down Sensitivity", 2023). The proof holds
whatever the grid is; it also holds if F depends on k, as long as F' at k + 1 with the new person
removed is at most F at k, which `coverage` uses.

*What it is*: over all prices, B[k] is the least F(1 - r) with sum(r) <= k (the least F, as a
function of sum(r), is convex if F is, and the extension is its conjugate), so never above the exact
profile. *What the grid costs*: f - B[k] >= k D at the best price D, for E <= f. The next price
D2 of the grid gives at least E_D - k D2, for E never falls, so f - B[k] grows by at most the
factor D2 / D, and by k / 64 where D is below the least price. Prices m 2^e with 64 <= m < 128 make
that factor 65/64, and hold every integer up to 128.

*The search*: a minimiser r at one price gives a line below f - E at every price: F(1 - r) + D'
sum(r) bounds the extension at D'. So does the removal of everybody. Where F depends on k it must
not rise with k, so that the lines of one k hold for all later k. After a descent from the largest
price, the next price to be tried is the best of the grid by all lines so far (Kelley's cutting
planes, 1960). If it was computed before, its line is exact there, and no other price can be better:
the result is the maximum over the whole grid exactly, plateaus included.
"""

import bisect
from fractions import Fraction
from typing import NamedTuple, Protocol

_OCTAVE = 64
_LOWEST = 6  # the least price is 2^-6
LAST = _OCTAVE * (62 + _LOWEST)  # the largest is 2^62


class Point(NamedTuple):
    """At one price: the loss f - E, and how many people (or halves) a minimiser removes."""

    loss: Fraction
    removed: Fraction


class Relaxation(Protocol):
    """What `profile` asks of a relaxed statistic of one database."""

    @property
    def total(self) -> int:
        """The statistic f itself."""

    @property
    def steepest(self) -> int:
        """A price from which on no removal pays: the most that one person can lower f."""

    def level(self, price: Fraction, removals: int) -> int:
        """Return a name of the relaxation for this k; equal names have equal points."""

    def everyone(self, level: int) -> Point:
        """Return f - F(0), the loss of removing everybody, and how many people that removes."""

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


class _Lower:
    """The largest of several falling lines loss = start - slope * D, for D >= 0.

    Lines are kept by falling slope, each with the price from which the next one is above it.
    """

    def __init__(self) -> None:
        self.lines = [(Fraction(0), Fraction(0))]

    def add(self, start: Fraction, slope: Fraction) -> None:
        """Take one more line; those that are nowhere above the others are dropped."""
        index = bisect.bisect_left(self.lines, -slope, key=lambda line: -line[1])
        if index < len(self.lines) and self.lines[index][1] == slope:
            if self.lines[index][0] >= start:
                return
            del self.lines[index]
        self.lines.insert(index, (start, slope))
        if not self._needed(index):
            del self.lines[index]
            return
        while index + 1 < len(self.lines) and not self._needed(index + 1):
            del self.lines[index + 1]
        while index and not self._needed(index - 1):
            del self.lines[index - 1]
            index -= 1

    def _needed(self, index: int) -> bool:
        """Return whether a line is above both of its neighbours somewhere at D >= 0."""
        start, slope = self.lines[index]
        if index + 1 == len(self.lines):
            return True
        after, low = self.lines[index + 1]
        if after >= start:
            return False
        if index == 0:
            return True
        before, high = self.lines[index - 1]
        # The line is above the one before it from D = (before - start) / (high - slope) on.
        return (before - start) * (slope - low) < (start - after) * (high - slope)

    def kink(self, k: int) -> Fraction:
        """Return the price at which this maximum + k D is least."""
        index = bisect.bisect_left(self.lines, Fraction(-k), key=lambda line: -line[1])
        if index == 0:
            return Fraction(0)
        (high, steep), (low, flat) = self.lines[index - 1], self.lines[index]
        return (high - low) / (steep - flat)

    def at(self, price: Fraction, k: int) -> Fraction:
        """Return the lower bound of f - E + k D at a price that this maximum gives."""
        return max(start - slope * price for start, slope in self.lines) + k * price


class _Search:
    """The least of loss + k D over the grid, with the points that were computed before."""

    def __init__(self, relaxation: Relaxation) -> None:
        self.relaxation = relaxation
        self.top = first_price(relaxation.steepest)
        self.known: dict[tuple[int, int], Point] = {}
        self.lower = _Lower()
        self.level = -1

    def least(self, k: int) -> Fraction:
        """Return the minimum over the grid of f - E + k D, for rising k."""
        self._everyone(k)
        if not self.known:
            self._descend(k)
        while True:
            above = min(first_price(self.lower.kink(k)), self.top)
            index = min((max(0, above - 1), above), key=lambda i: self.lower.at(price(i), k))
            if (index, self.relaxation.level(price(index), k)) in self.known:
                return self._taken(index, k).loss + k * price(index)
            self._taken(index, k)

    def _descend(self, k: int) -> None:
        """Take prices from the largest downwards, in growing steps, until a minimiser removes k.

        At high prices few removals pay, and the flows are short. Without the lines of these prices
        the first one that is tried is far below, where half of all people are worth removing.
        """
        index, step = self.top, 1
        while index and self._taken(index, k).removed < k:
            index, step = max(0, index - step), 2 * step
        self._taken(index, k)

    def _taken(self, index: int, k: int) -> Point:
        """Return the point at a price; the first time, add its line."""
        at = price(index)
        key = index, self.relaxation.level(at, k)
        if key not in self.known:
            point = self.known[key] = self.relaxation.point(at, key[1])
            self.lower.add(point.loss + point.removed * at, point.removed)
        return self.known[key]

    def _everyone(self, k: int) -> None:
        """Add the line of everybody's removal, if this k can remove more than the last k."""
        level = self.relaxation.level(price(0), k)
        if level != self.level:
            self.lower.add(*self.relaxation.everyone(level))
            self.level = level

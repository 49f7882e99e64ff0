"""The removal profile of the most frequent item, by a linear program that removes parts of people.

With c_iv rows of person i and item v, and C_v = sum_i c_iv,

    LP[k] = min { m : m >= sum_i c_iv (1 - r_i) for all v, sum_i r_i <= k, 0 <= r_i <= 1 }.

*It interlaces*: LP'[k + 1] <= LP[k] <= LP'[k], where LP' is that of one person p more. For the
left inequality add r_p = 1 to any r that is feasible without p: nothing of p is left, and the sum
is one more. For the right one leave r_p out of any r that is feasible with p: every constraint
loses the term c_pv (1 - r_p) >= 0, and the sum does not grow. So the loss moves by 0 or 1 however
many rows p has. LP[0] = max_v C_v, LP is convex in k (mix two feasible r), and it is at most the
exact profile, whose removals are the r of 0 and 1.

*It is published in whole rows*, as B[k] = g(LP[k]) with

    g(v) = ceil(v - c),   c = sqrt(2) - 1.

g is monotone, so B interlaces too; g(n) = n for integers, so that B[0] is exact and B[k] is at most
the exact profile, an integer above LP[k]. And B[k] > LP[k] - c: rounding loses less than half a
row. Privacy needs B to be a function of the data: if rounding errors could decide, one person might
move them. They cannot, as LP[k] is rational (a vertex of a polyhedron with integer coefficients)
and the points n + c where g jumps are not: bounds of LP[k] that are exact and close enough always
have the same g. (With a rational c some LP[k] would be such a point, and no bounds would do.)

*Few programs are solved.* One solution at k bounds the convex LP from below everywhere (its
weights do) and, mixed with another, from above between the two. B[k] is known where g of both
bounds is the same; the next k is the one where they are farthest apart.

*They are small.* One item alone gives a lower bound, B[k] >= b_v[k] = C_v - (the k largest c_iv).
To remove the k people who own most of the most frequent item gives an upper one: where one item is
far ahead nothing has to be solved. Else an item with C_v <= LP[K] never binds, and any lower bound
of LP[K] may stand in for it; the program of the most frequent items alone is such a bound. So the
number of items is doubled until all others are below the bound. These are dropped, with the people
who own nothing else (`optimization.equal_people`).
"""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.optimization.equal_people import RankedLines
from beam_dp.mechanisms.optimization.highs_proposals import METHODS, Proposer
from beam_dp.mechanisms.optimization.linear_program import LinearProgram

_FIRST = 64  # items to begin with
_TINY = 1000  # numbers in a tableau below which rational numbers are faster than HiGHS


def profile(
    people: np.ndarray, items: np.ndarray, counts: np.ndarray, alone: np.ndarray
) -> list[int]:
    """Return B[0..K], a function of the lines and of nothing else.

    Args:
        people: per line a code; there is at least one line.
        items: per line a code; no two lines have the same person and item.
        counts: per line how many rows, at least 1.
        alone: for k = 0..K, the largest b_v[k].
    """
    lines = RankedLines.of(people, items, counts)
    size, low, high = _FIRST, alone.astype(object), _without_the_first(lines, len(alone))
    least = low.copy()  # lower bounds of B
    while (least != high).any():
        last = int(np.flatnonzero(least != high)[-1])
        above = int(np.count_nonzero(lines.totals > low[last]))
        if above <= size:
            curve = _Curve(lines.program(above, last), low, high, least, last)
            least[: last + 1] = curve.levels()
            break
        proposer = Proposer.of(lines.program(size, last), last)
        for guess in proposer.sifted(last, METHODS[0]):
            bounds, upto = guess.lowers(last), slice(last + 1)  # (the program knows no more)
            low[upto] = np.maximum(low[upto], bounds >> guess.bits)
            least[upto] = np.maximum(least[upto], _levels(bounds, 1 << guess.bits))
        size *= 2
    return [int(value) for value in least]


def level(numerator: int, denominator: int) -> int:
    """Return g of a fraction.

    It is ceil((P - Q sqrt(2)) / Q) for P / Q = v + 1. With s the root of 2 Q^2, rounded down, that
    is s < Q sqrt(2) < s + 1, an integer n Q is at least P - Q sqrt(2) if and only if it is at least
    P - s.

    Args:
        numerator: of v.
        denominator: of v, at least 1.
    """
    return int(_levels(numerator, denominator))


def _levels(numerators: Any, denominator: int) -> Any:
    shift = math.isqrt(2 * denominator * denominator) - denominator
    return -((shift - numerators) // denominator)


def _without_the_first(lines: RankedLines, size: int) -> np.ndarray:
    """Return what is left at most without the k people who own most of the first item, k < size."""
    owned = np.sort(lines.counts[lines.ranks == 0])[::-1][: size - 1]
    first, *others = lines.totals[:2].tolist()
    removed = np.zeros(size, object)
    removed[1 : len(owned) + 1] = owned.tolist()  # (as Python integers)
    left = np.maximum(first - np.add.accumulate(removed), max(others, default=0))
    left[0] = first
    left[lines.owners :] = 0
    return np.asarray(left)


class _Settled(NamedTuple):
    """B[k] with bounds that prove it, times 2^bits.

    Attributes:
        level: B[k].
        low: lower bounds of LP[0..K].
        high: an upper bound of LP[k].
    """

    level: int
    low: np.ndarray
    high: int


class _Curve:
    """Bounds of LP[0..K], times 2^bits, that come closer until g of both is the same."""

    def __init__(
        self,
        program: LinearProgram,
        low: np.ndarray,
        high: np.ndarray,
        found: np.ndarray,
        last: int,
    ) -> None:
        """Begin with bounds in rows, up to `last`: low of LP, found of B, high of both."""
        low, high, found = (column[: last + 1] for column in (low, high, found))
        self.program, self.low, self.high = program, low << program.bits, high << program.bits
        self.known = {int(k): int(high[k]) for k in np.flatnonzero(found == high)}
        self.proposer = Proposer.of(program, last)

    def levels(self) -> list[int]:
        """Return B[0..K], K not being known before."""
        self._solve(len(self.low) - 1)
        while True:
            low, high = (_levels(side, 1 << self.program.bits) for side in (self.low, self.high))
            for k, value in self.known.items():
                low[k] = high[k] = value
            unknown = np.flatnonzero(low != high)
            if not len(unknown):
                return [int(value) for value in low]
            self._solve(int(unknown[np.argmax((self.high - self.low)[unknown])]))

    def _solve(self, k: int) -> None:
        """Compute B[k], and use its proof for all other k."""
        proved = settled(self.proposer, k, len(self.low) - 1)
        self.low = np.maximum(self.low, proved.low)
        self.high[k] = min(self.high[k], proved.high)
        before = max(removed for removed in self.known if removed < k)
        after = min((removed for removed in self.known if removed > k), default=k)
        self.known[k] = proved.level
        self._mix(before, k)
        self._mix(k, after)

    def _mix(self, left: int, right: int) -> None:
        """Bound LP between two k by its chord, rounded up."""
        width = right - left
        if width > 1:
            part = np.arange(1, width).astype(object)
            chord = self.high[left] * (width - part) + self.high[right] * part
            between = slice(left + 1, right)
            self.high[between] = np.minimum(self.high[between], -(-chord // width))


def settled(proposer: Proposer, k: int, removals: int) -> _Settled:
    """Return B[k] and its proof.

    Where HiGHS fails or comes no closer by any of its methods, the simplex method in rational
    numbers decides: slow, but it ends. For tiny programs it is the faster one.

    Args:
        proposer: whose guesses are judged.
        k: how many are removed, at least 1.
        removals: K.
    """
    program, bits = proposer.program, proposer.program.bits
    methods = METHODS if program.numbers > _TINY else ()
    for guess in itertools.chain.from_iterable(proposer.guesses(k, method) for method in methods):
        rounded = level(guess.lower, 1 << guess.bits)
        if rounded == level(guess.upper, 1 << guess.bits):
            finer = guess.bits - bits
            return _Settled(rounded, guess.lowers(removals) >> finer, -(-guess.upper >> finer))
    value, weights = program.solved(k)
    whole = np.array([math.floor(weight * (1 << bits)) for weight in weights], object)
    proof = program.guess(k, np.zeros_like(program.sizes), integers.narrow(whole), bits)
    high = math.ceil(value * (1 << bits))
    return _Settled(level(*value.as_integer_ratio()), proof.lowers(removals), high)

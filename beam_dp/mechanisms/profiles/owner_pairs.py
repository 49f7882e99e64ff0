"""Removal profiles of sums, counts and maxima of rows that disappear with either of two owners.

A row of weight w >= 0 and owners a, b (one owner if a = b) stays by the relaxed weight

    F(1 - r) = sum over rows of w * max(0, 1 - r_a - r_b)      (w * (1 - r_a) if a = b).

It is exact on sets, larger for more rows, and r_p = 1 removes every row of p: the profile of its
Lipschitz extension has sensitivity 1 (see `lipschitz_envelope`). The extension at price D is, by
duality, the largest sum of y_row <= w with at most D at every person: a fractional matching. Let y
flow both ways, from a on the left to b on the right and from b to a, in the bipartite double cover
with capacity D at every person of both sides: a flow of value 2 sum(y), and half the sum of both
directions of any flow is such a y. So the extension is half of a maximum flow, exact in halves, and
a person is removed by half for each of her sides that a minimum cut separates from its end.

What the relaxation costs: r can be rounded to a set of at most sum(r) people that removes at least
1 - (1 - 1/2)^2 = 3/4 of the weight that r does (pipage rounding: Ageev and Sviridenko, 2004), so
f - B[k] is at most 4/3 of the exact one, but for the grid of prices.

*Maxima*: the loss of y is the least sum(r) with r_a + r_b >= 1 (r_a >= 1 if a = b) on the rows
above y, a fractional vertex cover: no more than the exact loss, at least half of it. A person more
adds at most 1 (cover her rows by r_p = 1), and never less than 0. It is the number of single owners
and, without their rows, half of a maximum matching in the bipartite double cover.

*What is left for the flow.* With s(a) the weight that only a limits, and d(a) all of hers, at D:
1. d(a) <= D: a limits nothing. Her rows are limited by their other owner b only: they join s(b).
2. s(a) >= D: the rows that nobody else limits fill her capacity (flow in a shared row may go there
   instead). She leaves, and her other rows leave with her, uncounted.
After the first rule only rows stay whose owners both have d > D: a prefix of the rows in the order
of the lesser d.
"""

import bisect
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.optimization import maximum_flow, scipy_loader
from beam_dp.mechanisms.optimization.maximum_flow import Integers
from beam_dp.mechanisms.profiles import lipschitz_envelope

_ROUNDS = 64  # of the two rules; what they leave goes to the flow
_MOST = 1 << 61


def profile(
    first: npt.ArrayLike, second: npt.ArrayLike, weights: npt.ArrayLike | None, removals: int
) -> list[Fraction]:
    """Return B[0..removals] of the total weight of rows with two owners, for `Profile`.

    The profiles of neighbours interlace: the loss has sensitivity 1, in one direction. B[0] is the
    total, B[k] is at most the exact profile.

    Args:
        first: one owner per row, any integer codes.
        second: the other owner, of the same codes; equal to `first` for rows of one owner.
        weights: integers from 0, each of which counts as at most 2^61; None: 1 each, which counts
            the rows. Sums beyond 64 bits are exact too, and slow.
        removals: K, at least 1.

    Raises:
        ValueError: if a weight is negative.
    """
    checks.positive_integer("edges.profile", "removals", removals)
    return lipschitz_envelope.profile(Edges(first, second, weights), removals)


def max_profile(
    first: npt.ArrayLike, second: npt.ArrayLike, values: npt.ArrayLike, removals: int, floor: Number
) -> list[Number]:
    """Return B[0..removals] of the largest value of the rows, `floor` where no row is left.

    B[k] is the least y such that the rows above y have a fractional vertex cover of at most k
    people: the profiles of neighbours interlace. B[0] is the maximum, B[k] at most the exact one.

    Args:
        first: one owner per row, any integer codes.
        second: the other owner, of the same codes; equal to `first` for rows of one owner.
        values: numbers without NaN, not below `floor`.
        removals: K, at least 1.
        floor: the maximum of no rows.
    """
    checks.positive_integer("edges.max_profile", "removals", removals)
    rows = _Ordered(first, second, values, removals)
    maxima: list[Number] = []
    level = 0
    for k in range(removals + 1):
        level = bisect.bisect_right(range(rows.levels), Fraction(k), lo=level, key=rows.cover)
        maxima.append(rows.values[level].item() if level < rows.levels else floor)
    return maxima


class Edges:
    """A `lipschitz_envelope.Relaxation`: the rows of one database, ready for a flow at any price.

    Attributes:
        total: the weight of all rows.
        steepest: the most weight of one person.
    """

    def __init__(
        self, first: npt.ArrayLike, second: npt.ArrayLike, weights: npt.ArrayLike | None
    ) -> None:
        low, high, weight, people = _columns(first, second, weights)
        self.total = int(weight.sum())
        same = low == high
        degrees = _sums(low, weight, people) + _sums(high[~same], weight[~same], people)
        order = np.argsort(-degrees, kind="stable")
        ranks = np.empty_like(order)
        ranks[order] = np.arange(people)
        self.degrees = degrees[order]
        self.steepest = int(self.degrees.max(initial=0))
        low, high, weight = ranks[low[~same]], ranks[high[~same]], weight[~same]
        low, high = np.minimum(low, high), np.maximum(low, high)
        # Of two owners the later one has the lesser degree: it says in which prefixes the row is.
        order = np.lexsort((low, high))
        low, high, weight = low[order], high[order], weight[order]
        fresh = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        opens = np.flatnonzero(np.append(np.ones(min(1, len(low)), np.bool_), fresh))
        self.low, self.high = low[opens], high[opens]
        self.weights = np.add.reduceat(weight, opens) if len(opens) else weight

    def level(self, price: Fraction, removals: int) -> int:
        """Return 0: the relaxation is the same for every k."""
        return 0

    def everyone(self, level: int) -> lipschitz_envelope.Point:
        """Return the weight of all rows, and the number of people."""
        return lipschitz_envelope.Point(Fraction(self.total), Fraction(len(self.degrees)))

    def point(self, price: Fraction, level: int) -> lipschitz_envelope.Point:
        """Return the weight that is lost at this price, and how many people are removed."""
        below = price.numerator // price.denominator
        people = int(np.searchsorted(-self.degrees, -below))
        count = int(np.searchsorted(self.high, people))
        low, high, weights = self.low[:count], self.high[:count], self.weights[:count]
        inside = _sums(low, weights, people) + _sums(high, weights, people)
        kernel = _Kernel(price, self.degrees[:people] - inside, low, high, weights)
        return kernel.solve()


def _columns(
    first: npt.ArrayLike, second: npt.ArrayLike, weights: npt.ArrayLike | None
) -> tuple[Integers, Integers, Integers, int]:
    """Return the owners as codes from 0, the weights as int64, and the number of people."""
    left, right = np.asarray(first), np.asarray(second)
    weight = np.ones(len(left), np.int64) if weights is None else np.asarray(weights)
    checks.require(
        left.shape == right.shape == weight.shape and left.ndim == 1,
        "edges",
        "first, second and weights",
        "be columns of the same length",
    )
    # Where int64 and uint64 meet, numpy makes floats, in which different codes are equal.
    integers = np.result_type(left, right).kind in "iu" or not len(left)
    checks.require(integers, "edges", "first and second", "be integers, both signed or neither")
    checks.require(
        len(weight) == 0 or (weight.dtype.kind in "iu" and int(weight.min()) >= 0),
        "edges",
        "weights",
        "be integers from 0",
    )
    weight = np.minimum(weight, _MOST).astype(np.int64)
    # A float sum does not wrap; it is right to many digits, and int64 has two bits to spare. Sums
    # that do not fit are made of Python's integers, so that no data are too large.
    if weight.sum(dtype=np.float64) >= _MOST:
        weight = weight.astype(object)
    names, codes = np.unique(np.concatenate([left, right]), return_inverse=True)
    low, high = np.split(codes.astype(np.int64), 2)
    return low, high, weight, len(names)


def _sums(codes: Integers, weights: Integers, count: int) -> Integers:
    """Return the exact sum of the weights per code."""
    sums = np.zeros(count, weights.dtype)
    np.add.at(sums, codes, weights)
    return sums


@dataclass
class _Kernel:
    """The problem at one price, which the two rules of the module make smaller."""

    price: Fraction
    alone: Integers
    low: Integers
    high: Integers
    weights: Integers
    lost: int = 0

    def solve(self) -> lipschitz_envelope.Point:
        """Return the loss at the price, and the number of people removed."""
        above = -(-self.price.numerator // self.price.denominator)
        for _ in range(_ROUNDS):
            before = len(self.weights)
            self._saturate(above)
            self._free()
            if len(self.weights) == before:
                break
        full = self.alone[self.alone >= above]
        over = int(full.sum()) - self.price * len(full)
        missing, removed = self._flow()
        return lipschitz_envelope.Point(over + self.lost + missing, len(full) + removed)

    def _keep(self, kept: maximum_flow.Flags) -> None:
        self.low, self.high, self.weights = self.low[kept], self.high[kept], self.weights[kept]

    def _saturate(self, above: int) -> None:
        """Rule 2: drop the shared rows of people who are full without them."""
        full = self.alone >= above
        dropped = full[self.low] | full[self.high]
        self.lost += int(self.weights[dropped].sum())
        self._keep(~dropped)

    def _free(self) -> None:
        """Rule 1: leave the rows of people who limit nothing to the other owners of these rows."""
        people = len(self.alone)
        degrees = self.alone + _sums(self.low, self.weights, people)
        degrees += _sums(self.high, self.weights, people)
        free = degrees <= self.price.numerator // self.price.denominator
        low, high = free[self.low], free[self.high]
        for owner, rows in ((self.high, low & ~high), (self.low, high & ~low)):
            np.add.at(self.alone, owner[rows], self.weights[rows])
        self._keep(~(low | high))

    def _flow(self) -> tuple[Fraction, Fraction]:
        """Return the weight that a fractional matching leaves out, and how many the cut removes."""
        if not len(self.weights):
            return Fraction(0), Fraction(0)
        scale, both = self.price.denominator, np.concatenate([self.low, self.high])
        names, codes = np.unique(both, return_inverse=True)
        low, high = np.split(codes, 2)
        # The rules may have been cut short: whoever is full was counted before, and has no room.
        room = np.maximum(self.price.numerator - self.alone[names] * scale, 0).astype(np.int64)
        # Nothing beyond the room is needed; it is below 2^62, the scaled weight need not be.
        most = -(-self.price.numerator // scale)
        pipe = np.asarray(np.minimum(self.weights, most) * scale, np.int64)
        people, nodes = len(names), np.arange(len(names))
        flow = maximum_flow.maximum(
            np.concatenate([np.full(people, 2 * people), low, high, people + nodes]),
            np.concatenate([nodes, people + high, people + low, np.full(people, 2 * people + 1)]),
            np.concatenate([room, pipe, pipe, room]),
            2 * people + 2,
            2 * people,
            2 * people + 1,
        )
        left, right = flow.reached[:people], flow.reached[people : 2 * people]
        halves = int(np.count_nonzero(~left & (room > 0)) + np.count_nonzero(right & (room > 0)))
        missing = int(self.weights.sum()) - Fraction(flow.value, 2 * scale)
        return missing, Fraction(halves, 2)


class _Ordered:
    """The rows that matter for K removals, by falling value.

    A row is left out if an owner has a row of her own above it, or rows shared with 2 K + 1 others:
    every cover by at most K people has r = 1 there (at r = 0 her 2 K + 1 neighbours had 1 each, at
    1/2 they had 1/2, and covers are half-integral: Nemhauser and Trotter, 1975). So each person has
    at most 2 K + 1 rows, and after 2 K (2 K + 1) rows no cover by K people is left: at most 2 K
    people have r >= 1/2, and each row needs one of them. Nor is one left after K + 1 rows no two of
    which have a common owner, each of which needs a whole person of its own: mostly much earlier.

    Attributes:
        values: the different values, falling.
        levels: how many there are.
    """

    def __init__(
        self, first: npt.ArrayLike, second: npt.ArrayLike, values: npt.ArrayLike, removals: int
    ) -> None:
        value = np.asarray(values)
        left, right, _, people = _columns(first, second, np.zeros(len(value), np.int64))
        low, high = np.minimum(left, right), np.maximum(left, right)
        order = np.argsort(value, kind="stable")[::-1]
        order = order[np.sort(np.unique((low * people + high)[order], return_index=True)[1])]
        order = order[self._needed(low[order], high[order], people, 2 * removals + 1)]
        self.low, self.high = low[order], high[order]
        ends = np.flatnonzero(np.append(value[order][1:] != value[order][:-1], len(order) > 0))
        self.values, self.ends, self.levels = value[order][ends], ends + 1, len(ends)
        self.people = people
        self._known: dict[int, Fraction] = {}

    def _needed(self, low: Integers, high: Integers, people: int, most: int) -> list[int]:
        """Return the rows that matter, of different pairs by falling value."""
        rows, kept, apart = [0] * people, list[int](), 0
        used = [False] * people
        for row, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            if rows[a] < most and rows[b] < most:
                kept.append(row)
                rows[a] = most if a == b else rows[a] + 1
                rows[b] = most if a == b else rows[b] + 1
            if not (used[a] or used[b]):
                used[a] = used[b] = True
                apart += 1
            if 2 * apart > most or len(kept) > (most - 1) * most + most:
                break
        return kept

    def cover(self, level: int) -> Fraction:
        """Return the size of the fractional vertex cover of the rows of the levels 0..level."""
        if level not in self._known:
            self._known[level] = self._cover(level)
        return self._known[level]

    def _cover(self, level: int) -> Fraction:
        low, high = self.low[: self.ends[level]], self.high[: self.ends[level]]
        alone = np.zeros(self.people, np.bool_)
        alone[low[low == high]] = True
        open_ = ~(alone[low] | alone[high])
        names, codes = np.unique([low[open_], high[open_]], return_inverse=True)
        codes = codes.reshape(2, -1)
        tails, heads = codes.ravel(), codes[::-1].ravel()
        ones = np.ones(len(tails), np.int8)
        graph = scipy_loader.matrix((ones, (tails, heads)), (len(names), len(names)))
        matching = scipy_loader.solvers().maximum_bipartite_matching
        matched = int((matching(graph) >= 0).sum()) if len(names) else 0
        return int(alone.sum()) + Fraction(matched, 2)

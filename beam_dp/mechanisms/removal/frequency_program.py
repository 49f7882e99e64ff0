"""How often the most frequent item occurs, while people are removed in parts: a linear program.

With c_iv rows of person i and item v, and C_v = sum_i c_iv,

    LP[k] = min { m : m >= sum_i c_iv (1 - r_i) for all v, sum_i r_i <= k, 0 <= r_i <= 1 }.

*It interlaces*: LP'[k + 1] <= LP[k] <= LP'[k], where LP' is that of one person p more. For the
left one add r_p = 1 to any r that is feasible without p: nothing of p is left, and the sum is one
more. For the right one leave r_p out of any r that is feasible with p: every constraint loses the
term c_pv (1 - r_p) >= 0, and the sum does not grow. So the loss moves by 0 or 1 however many rows
p has. LP[0] = max_v C_v, LP is convex in k (mix two feasible r), and it is at most the exact
profile, whose removals are the r of 0 and 1.

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

*They are small.* An item with C_v <= LP[K] never binds, and any lower bound of LP[K] may stand in
for it; the program of some items alone, the most frequent ones, is such a bound. So the number of
items is doubled until all others are below the bound, and those are dropped, with the people who
own nothing else. People who own the same are one variable with their number as its bound: the mean
of their r does what the r did.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from beam_dp.mechanisms import exact
from beam_dp.mechanisms.removal.proposals import METHODS, Proposer
from beam_dp.mechanisms.removal.spreading import Guess, Program

_FIRST = 64  # items to begin with
_ALIKE = 8  # people with more items than this are hardly ever alike, and are not compared


def profile(
    people: np.ndarray, items: np.ndarray, counts: np.ndarray, removals: int
) -> list[int]:
    """Return B[0..removals], a function of the lines and of nothing else.

    Edge cases: 0 without lines.

    Args:
        people: per line a code.
        items: per line a code; no two lines have the same person and item.
        counts: per line how many rows, at least 1.
        removals: K.
    """
    if not len(items):
        return [0] * (removals + 1)
    lines = _Lines.of(people, items, counts)
    if not removals:
        return [int(lines.totals[0])]
    return _Curve(_reduced(lines, removals), removals).levels()


def level(numerator: int, denominator: int) -> int:
    """Return g of a fraction that is at least 0: the least integer n with n + c >= it.

    ceil((P - Q sqrt(2)) / Q) for P / Q = v + 1. The root s of 2 Q^2, rounded down, has s < Q sqrt(2)
    < s + 1, so an integer n Q is at least P - Q sqrt(2) if and only if it is at least P - s.
    """
    shift = math.isqrt(2 * denominator * denominator) - denominator
    return -((shift - numerator) // denominator)


@dataclass(frozen=True)
class _Lines:
    """Lines by person, items numbered by falling total.

    Attributes:
        people: rising.
        ranks: of the items, rising within a person.
        counts: rows.
        codes: of rank and count, equal where both are.
        totals: per rank, falling.
    """

    people: np.ndarray
    ranks: np.ndarray
    counts: np.ndarray
    codes: np.ndarray
    totals: np.ndarray

    @classmethod
    def of(cls, people: np.ndarray, items: np.ndarray, counts: np.ndarray) -> "_Lines":
        """Return the lines in that order."""
        order = np.argsort(items, kind="stable")
        starts = np.flatnonzero(_changes(items[order]))
        totals = exact.segment_sums(counts[order], starts)
        by_total = np.argsort(-totals, kind="stable")
        ranks = np.empty(len(items), np.int64)
        places = np.empty(len(totals), np.int64)
        places[by_total] = np.arange(len(totals))
        ranks[order] = places[np.cumsum(_changes(items[order])) - 1]
        order = np.lexsort((ranks, people))
        different, codes = np.unique(counts[order], return_inverse=True)
        ranks = ranks[order]
        codes = ranks * len(different) + codes
        return cls(people[order], ranks, counts[order], codes, totals[by_total])

    def program(self, size: int, removals: int) -> Program:
        """Return the program of the `size` most frequent items, people who are alike merged."""
        kept = np.flatnonzero(self.ranks < size)
        starts = np.flatnonzero(_changes(self.people[kept]))
        owned = np.diff(np.append(starts, len(kept)))
        found, numbers = [], []
        for first, number in _alike(self.codes[kept], starts, owned):
            found.append(first)
            numbers.append(number)
        first, sizes = np.concatenate(found), np.concatenate(numbers)
        lengths = owned[np.searchsorted(starts, first)]
        groups = np.repeat(np.arange(len(first)), lengths)
        shift = np.repeat(first - (np.cumsum(lengths) - lengths), lengths)
        entries = kept[np.arange(len(groups)) + shift]
        return Program(
            self.totals[:size],
            self.ranks[entries],
            groups,
            self.counts[entries],
            np.minimum(sizes, removals),
        )


def _alike(
    codes: np.ndarray, starts: np.ndarray, owned: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield where the lines of one of each group of equal people start, and how many they are."""
    many = starts[owned > _ALIKE]
    yield many, np.ones(len(many), np.int64)
    for size in range(1, _ALIKE + 1):
        heads = starts[owned == size]
        rows = codes[heads[:, None] + np.arange(size)]
        order = np.lexsort(rows.T)
        opens = np.flatnonzero(_changes(rows[order]))
        yield heads[order[opens]], np.diff(np.append(opens, len(heads)))


def _changes(rows: np.ndarray) -> np.ndarray:
    """Return where a row (or a number) is the first one or differs from the one before."""
    found = np.ones(len(rows), bool)
    other = rows[1:] != rows[:-1]
    found[1:] = other if other.ndim == 1 else other.any(axis=1)
    return found


def _reduced(lines: _Lines, removals: int) -> Program:
    """Return the program of all items that are above a lower bound of LP[removals]."""
    size = min(_FIRST, len(lines.totals))
    while True:
        program = lines.program(size, removals)
        found = Proposer.of(program, removals).sifted(removals, METHODS[0])
        bound = max((guess.lower >> guess.bits for guess in found), default=0)
        above = int(np.count_nonzero(lines.totals > bound))
        if above == size:
            return program
        if above < size:
            return lines.program(above, removals)
        size = min(2 * size, above)


class _Curve:
    """Bounds of LP[0..K], times 2^bits, that come closer until g of both is the same."""

    def __init__(self, program: Program, removals: int) -> None:
        self.bits, self.proposer = program.bits, Proposer.of(program, removals)
        self.low = np.zeros(removals + 1, object)
        self.high = np.full(removals + 1, program.highest << self.bits, object)
        self.solved = {0: program.highest}

    def levels(self) -> list[int]:
        """Return B[0..K]."""
        self._solve(len(self.low) - 1)
        while True:
            low, high = self._levels(self.low), self._levels(self.high)
            for k, found in self.solved.items():
                low[k] = high[k] = found
            unknown = np.flatnonzero(low != high)
            if not len(unknown):
                return [int(value) for value in low]
            self._solve(int(unknown[np.argmax((self.high - self.low)[unknown])]))

    def _levels(self, bounds: np.ndarray) -> np.ndarray:
        """Return g of bounds, see `level`."""
        shift = math.isqrt(2 << 2 * self.bits) - (1 << self.bits)
        return -((shift - bounds) >> self.bits)

    def _solve(self, k: int) -> None:
        """Find B[k], and what its proof says of all other k."""
        found, guess = settled(self.proposer, k)
        if guess is not None:
            finer = guess.bits - self.bits
            self.low = np.maximum(self.low, guess.lowers(len(self.low) - 1) >> finer)
            self.high[k] = min(self.high[k], -(-guess.upper >> finer))
        before = max(place for place in self.solved if place < k)
        after = min((place for place in self.solved if place > k), default=k)
        self.solved[k] = found
        self._mix(before, k)
        self._mix(k, after)

    def _mix(self, left: int, right: int) -> None:
        """Bound LP between two k by its chord, rounded up."""
        width = right - left
        part = np.arange(1, width).astype(object)
        chord = self.high[left] * (width - part) + self.high[right] * part
        between = slice(left + 1, right)
        if width > 1:
            self.high[between] = np.minimum(self.high[between], -(-chord // width))


def settled(proposer: Proposer, k: int) -> tuple[int, Guess | None]:
    """Return B[k], and a guess whose bounds prove it; None where rational numbers had to.

    Where HiGHS fails or comes no closer, in all of its ways, the simplex method in rational numbers
    decides: slow, but it ends.

    Args:
        proposer: whose guesses are judged.
        k: how many are removed, at least 1.
    """
    for guess in itertools.chain.from_iterable(proposer.guesses(k, method) for method in METHODS):
        low, high = (level(bound, 1 << guess.bits) for bound in (guess.lower, guess.upper))
        if low == high:
            return low, guess
    value = proposer.program.exactly(k)
    return level(value.numerator, value.denominator), None

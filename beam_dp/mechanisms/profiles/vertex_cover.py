"""Removal profiles of the number of distinct values of rows with two owners.

A row disappears when either owner does, so the owners of a value v form a graph (a loop where both
are one person), and v disappears with a vertex cover of it. Let c_v be the least sum(r) with
r_a + r_b >= 1 on every edge (r_a >= 1 on a loop), the fractional vertex cover. Then

    B[0] = the number of values,    B[k] = the number of values with c_v > k.

* B[k] is at most the exact profile: k people who remove v are a cover, so c_v <= k.
* It interlaces, B'[k + 1] <= B[k] <= B'[k]: a person more never lowers a c_v, for the graph grows,
  and raises it by at most 1, for r = 1 covers all her edges; a value that she brings has c_v <= 1.
  So the loss of every y, min{k: B[k] <= y}, has sensitivity 1, in one direction.
* It is exact in integers: 2 c_v is the size of a maximum matching in the bipartite double cover
  (Nemhauser and Trotter, 1975), 2 for each person with a loop, whose other edges need nothing.

*What it costs*: each value is removed on its own, by any k people. That is close where most values
have many pairs of owners apart from each other. Where they have few, k people are taken to remove
all of those, though no k people can at once: B[1] is 0 if every value has one row. The linear
program over all values together, c_v >= 1 - r_a - r_b for every row of v, would see that. It is a
fractional matching in a hypergraph (value, owner, owner), and no flow solves it, for it has thirds
already where the pairs {a, b}, {b, d} own one value and {a, d}, {b, c} another: at a price of 1 its
extension is 5/3. Solved in floats it has no sensitivity of exactly 1.

*What is left for the matching*, for K removals:
1. A person with more than 2 K neighbours of one value has r = 1 in every cover by at most K people
   in halves (with r = 0 they have 1 each, with 1/2 at least 1/2 each): she counts 1, and leaves
   with her edges. If c_v > K, the sum of what was counted is that of a cover, so above K too.
2. Edges no two of which meet need 1 each: a value with more than K of them has c_v > K. To find
   some, take the edges that are the first of both of their owners, again and again.

*Sizes*, K = 200: 60,000 rows 0.1 s, 600,000 rows 2 s, 6 million 10 to 15 s and 1.5 GiB.
"""

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics import checks, hashing
from beam_dp.mechanisms.optimization import scipy_loader
from beam_dp.mechanisms.optimization.maximum_flow import Flags, Integers

_ROUNDS = 64  # of taking edges; the edges that they leave go to the matching
_NO_KEY = np.uint64(0)


def profile(
    first: npt.ArrayLike, second: npt.ArrayLike, items: npt.ArrayLike, removals: int
) -> list[int]:
    """Return B[0..removals] of the number of distinct items of rows with two owners.

    The profiles of neighbours interlace: the loss has sensitivity 1, in one direction. B[0] is the
    count, B[k] at most the exact profile.

    Args:
        first: one owner per row, any integer codes.
        second: the other owner, of the same codes; equal to `first` for rows of one owner.
        items: what they own, any integer codes.
        removals: K, at least 1.
    """
    checks.positive_integer("covers.profile", "removals", removals)
    # A value counts at every k with 2 c_v > 2 k. As c_v >= 1, all values count at k = 0.
    lasts = np.minimum((cover_halves(first, second, items, removals) - 1) // 2, removals)
    counts: list[int] = np.bincount(lasts, minlength=removals + 1)[::-1].cumsum()[::-1].tolist()
    return counts


def cover_halves(
    first: npt.ArrayLike, second: npt.ArrayLike, items: npt.ArrayLike, removals: int
) -> Integers:
    """Return 2 c_v per item, by code; a number above 2 K says only that 2 c_v is above 2 K.

    Args:
        first: as in `profile`.
        second: as in `profile`.
        items: as in `profile`.
        removals: K.
    """
    left, right, item = np.asarray(first), np.asarray(second), np.asarray(items)
    graphs = _Graphs(*_edges(left, right, item), removals)
    graphs.take_loops()
    graphs.take_crowded()
    graphs.take_apart()
    graphs.match()
    return graphs.halves


def _edges(
    first: npt.NDArray[np.generic], second: npt.NDArray[np.generic], items: npt.NDArray[np.generic]
) -> tuple[Integers, Integers, Integers]:
    """Return every edge once: its value, and its ends, each the number of a (value, person)."""
    checks.require(
        first.shape == second.shape == items.shape and items.ndim == 1,
        "covers",
        "first, second and items",
        "be columns of the same length",
    )
    # Where int64 and uint64 meet, numpy makes floats, in which different codes are equal.
    kinds = np.result_type(first, second).kind + items.dtype.kind
    checks.require(
        set(kinds) <= set("iu") or not len(items),
        "covers",
        "first, second and items",
        "be integers, both owners signed or neither",
    )
    names, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    item = np.unique(items, return_inverse=True)[1]
    ends = np.tile(item, 2) * max(1, len(names)) + codes
    low, high = np.split(np.unique(ends, return_inverse=True)[1], 2)
    both = np.minimum(low, high) * (2 * len(low) + 1) + np.maximum(low, high)
    kept = np.unique(both, return_index=True)[1]
    return item[kept], low[kept], high[kept]


class _Graphs:
    """The graphs of all values side by side, and what is known of their covers.

    Attributes:
        halves: per value 2 c_v of what has left its graph; above 2 K, so is 2 c_v of the value.
    """

    def __init__(self, items: Integers, low: Integers, high: Integers, removals: int) -> None:
        self.items, self.low, self.high, self.most = items, low, high, 2 * removals
        self.ends = int(max(low.max(initial=-1), high.max(initial=-1))) + 1
        self.halves = np.zeros(int(items.max(initial=-1)) + 1, np.int64)
        self.value = np.zeros(self.ends, np.int64)
        self.value[low], self.value[high] = items, items

    def take_loops(self) -> None:
        """Count the people with a loop, and drop their edges."""
        self._take(np.bincount(self.low[self.low == self.high], minlength=self.ends) > 0)

    def take_crowded(self) -> None:
        """Count the people with more than 2 K neighbours, and drop their edges: rule 1."""
        degrees = np.bincount(np.concatenate([self.low, self.high]), minlength=self.ends)
        self._take(degrees > self.most)

    def _take(self, covered: Flags) -> None:
        self.halves += 2 * np.bincount(self.value[covered], minlength=len(self.halves))
        self._keep(~(covered[self.low] | covered[self.high]))

    def _keep(self, edges: Flags) -> None:
        """Keep these edges, except those of values that are decided."""
        edges &= self.halves[self.items] <= self.most
        self.items, self.low, self.high = self.items[edges], self.low[edges], self.high[edges]

    def take_apart(self) -> None:
        """Drop the values with more than K edges apart from each other: rule 2."""
        # In a mixed order: in order along a path, its edges would be taken one per round.
        order = np.argsort(hashing.mix(np.arange(len(self.items), dtype=np.uint64), _NO_KEY))
        low, high = self.low[order], self.high[order]
        apart = np.zeros(len(self.halves), np.int64)
        for _ in range(_ROUNDS):
            index = np.arange(len(low))
            least = np.full(self.ends, len(low))
            for end in (low, high):
                np.minimum.at(least, end, index)
            picked = (least[low] == index) & (least[high] == index)
            apart += np.bincount(self.value[low[picked]], minlength=len(apart))
            used = np.zeros(self.ends, np.bool_)
            used[low[picked]], used[high[picked]] = True, True
            left = ~(used[low] | used[high])
            low, high = low[left], high[left]
            if not len(low):
                break
        self.halves += np.where(self.halves + 2 * apart > self.most, 2 * apart, 0)
        self._keep(np.ones(len(self.items), np.bool_))

    def match(self) -> None:
        """Count the maximum matchings in the double covers of what is left."""
        if not len(self.items):
            return
        names, codes = np.unique(np.concatenate([self.low, self.high]), return_inverse=True)
        low, high = np.split(codes, 2)
        tails, heads = np.concatenate([low, high]), np.concatenate([high, low])
        ones = np.ones(len(tails), np.int8)
        graph = scipy_loader.matrix((ones, (tails, heads)), (len(names), len(names)))
        matched = scipy_loader.solvers().maximum_bipartite_matching(graph) >= 0
        self.halves += np.bincount(self.value[names[matched]], minlength=len(self.halves))

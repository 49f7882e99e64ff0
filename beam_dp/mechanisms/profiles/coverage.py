"""Removal profiles of the number of distinct items that people own, from maximum flows.

f = the number of items with an owner. To find the k people without whom the fewest items are left
is NP-hard (densest subgraph, where everybody owns two items), but the relaxation

    F(1 - r) = sum over items of max over its owners of (1 - r_i)

is exact on sets, and its least value over sum(r) <= k is the lower convex envelope of the exact
profile: cutting r at a uniform threshold gives a random set of sum(r) people on average, which
leaves F(1 - r) items on average. Its Lipschitz extension (see `lipschitz_envelope`) is a minimum
cut, so a maximum flow: source -> person D, person -> her items, item -> sink 1.

*Items with more than k owners* stay whatever k people leave, so at level k they count 1, always.
That is nearer to the exact profile, and the profiles still interlace: give the new person of
x' = x + p the share 0 at level k + 1; an item that counts 1 there has more than k + 1 owners, so
more than k in x, where it counts 1 at level k. And an item that counts 1 in x counts 1 in x' at the
same level. So K + 1 owners per item are enough, and `summaries.thinning` keeps so many. (One number
K for all levels would not do: 100 items with the same K owners leave nothing after K removals; a
new owner of them all makes it 100, while the level K - 1 without her is 100 / K.)

*What is left for the flow.* With s(a) items that only a owns, and d(a) items in all, at price D:
1. d(a) <= D: a can cover all of her items. Any flow into them may come from her instead, so they
   are covered, and leave the problem: d falls for their other owners.
2. s(a) >= D: the items that nobody else owns use up her capacity (flow to a shared item may go to
   one of these instead). She leaves; an item with one owner left is now owned by that one only.
The items that survive the first rule once form a prefix, in the order of the least d among their
owners. Items with the same owners are one item with a weight.

*Sizes*, K = 200, processor seconds of one core: 60,000 pairs 0.2 s, 600,000 pairs 0.3 s, 2 million
15 s, 6 million 35 s and 1.1 GiB (100,000 people and 200,000 items with 30 owners each, a hard case:
at the price 2 all people together can just cover all items). Where 1,000 items have thousands of
owners each, 6 million pairs take 1.2 s. `capped` takes 3 s and 1 s for these two.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.optimization import bipartite_flow, maximum_flow
from beam_dp.mechanisms.optimization.maximum_flow import Integers
from beam_dp.mechanisms.profiles import lipschitz_envelope

_ROUNDS = 64  # of the two rules; what they leave goes to the flow


def profile(people: npt.ArrayLike, items: npt.ArrayLike, removals: int) -> list[Fraction]:
    """Return B[0..removals] of the number of distinct items, for `Profile`.

    The profiles of neighbours interlace: the loss has sensitivity 1, in one direction. B[0] is the
    count, B[k] at most the exact profile, and at least its lower convex envelope up to the grid of
    prices: count - B[k] is at most 65/64 (count - envelope) + k / 64. An item with more than
    `removals` owners may come with any `removals` + 1 of them: the result is the same.

    Args:
        people: the owner of each pair, any integer codes. Pairs may repeat.
        items: the item of each pair, any integer codes.
        removals: K, at least 1.
    """
    checks.positive_integer("coverage.profile", "removals", removals)
    return lipschitz_envelope.profile(Coverage(people, items, removals), removals)


def capped(people: npt.ArrayLike, items: npt.ArrayLike, cap: int) -> int:
    """Return how many items are covered if every person covers at most `cap` of her own.

    One person more raises it by 0..cap; it is never above the number of distinct items. It needs
    every owner of an item, for any of them may be the one who has room.

    Args:
        people: the owner of each pair, any integer codes.
        items: the item of each pair, any integer codes.
        cap: the most that one person may count, at least 1.
    """
    checks.positive_integer("coverage.capped", "cap", cap)
    cover = Coverage(people, items, None)
    return cover.total - int(cover.point(Fraction(cap), cover.most).loss)


class _Items(NamedTuple):
    """Items with several owners, those with the same owners as one, by falling `least`.

    Attributes:
        weights: how many items have the same owners.
        owners: how many these owners are.
        least: the fewest items that one of these owners has.
        pairs: the owners of all entries, one entry after the other.
    """

    weights: Integers
    owners: Integers
    least: Integers
    pairs: Integers

    def prefix(self, price: Fraction) -> int:
        """Return how many items have only owners of more than `price` items."""
        return int(np.searchsorted(-self.least, -(price.numerator // price.denominator)))

    def kept(self, chosen: maximum_flow.Flags) -> "_Items":
        """Return the chosen items only."""
        pairs = self.pairs[np.repeat(chosen, self.owners)]
        return _Items(self.weights[chosen], self.owners[chosen], self.least[chosen], pairs)


class Coverage:
    """A `lipschitz_envelope.Relaxation`: the pairs of one database, ready for a flow at any price.

    Attributes:
        total: the number of distinct items.
        steepest: the most items of one person.
        most: the most owners of an item that can be removed at all.
    """

    def __init__(self, people: npt.ArrayLike, items: npt.ArrayLike, removals: int | None) -> None:
        item, person, owners = _pairs(np.asarray(people), np.asarray(items))
        self.total = len(owners)
        self.most = int(owners.max(initial=1)) if removals is None else removals
        people_count = int(person.max(initial=-1)) + 1
        degrees = np.bincount(person[owners[item] <= self.most], minlength=people_count)
        ranks = np.empty_like(degrees)
        ranks[np.argsort(-degrees, kind="stable")] = np.arange(len(degrees))
        self.degrees = -np.sort(-degrees)
        self.steepest = int(self.degrees.max(initial=0))
        self.alone = np.zeros(len(degrees), np.int64)
        single = owners[item] == 1
        np.add.at(self.alone, ranks[person[single]], 1)
        groups = list(_merged(item, ranks[person] if len(ranks) else person, owners, self.most))
        self._order(groups)

    def _order(self, groups: list[tuple[Integers, Integers]]) -> None:
        """Put the merged items in falling order of the least degree of their owners."""
        empty = np.zeros(0, np.int64)
        weights = np.concatenate([empty, *(weight for _, weight in groups)])
        owners = np.concatenate([empty, *(np.full(len(r), r.shape[1]) for r, _ in groups)])
        least = np.concatenate([empty, *(self.degrees[rows[:, -1]] for rows, _ in groups)])
        pairs = np.concatenate([empty, *(rows.ravel() for rows, _ in groups)])
        order = np.argsort(-least, kind="stable")
        sizes, first = owners[order], np.cumsum(owners) - owners
        shift = np.repeat(first[order] - (np.cumsum(sizes) - sizes), sizes)
        self.items = _Items(
            weights[order], sizes, least[order], pairs[np.arange(len(pairs)) + shift]
        )
        self.deepest = np.maximum.accumulate(np.append(1, sizes))
        self._level, self._known = self.most, self.items

    def _of_level(self, level: int) -> _Items:
        """Return the items of at most `level` owners; those of the last level are remembered."""
        if level != self._level:
            self._level, self._known = level, self.items.kept(self.items.owners <= level)
        return self._known

    def level(self, price: Fraction, removals: int) -> int:
        """Return the most owners that an item has which this k and this price can remove."""
        return min(removals, int(self.deepest[self.items.prefix(price)]))

    def everyone(self, level: int) -> lipschitz_envelope.Point:
        """Return the items lost without all owners of items of this level, and their number."""
        items = self._of_level(level)
        owns = self.alone > 0
        owns[items.pairs] = True
        lost = int(self.alone.sum() + items.weights.sum())
        return lipschitz_envelope.Point(Fraction(lost), Fraction(int(np.count_nonzero(owns))))

    def point(self, price: Fraction, level: int) -> lipschitz_envelope.Point:
        """Return how many items are not covered at this price, and how many people are removed."""
        items = self._of_level(level)
        count = items.prefix(price)
        owners = items.owners[:count]
        people = int(np.searchsorted(-self.degrees, -(price.numerator // price.denominator)))
        kernel = _Kernel(
            price,
            self.alone[:people].copy(),
            items.weights[:count],
            np.repeat(np.arange(count), owners),
            items.pairs[: int(owners.sum())],
        )
        return kernel.solve()


def _pairs(
    people: npt.NDArray[np.generic], items: npt.NDArray[np.generic]
) -> tuple[Integers, Integers, Integers]:
    """Return each pair once, as codes 0.. of item and person by item, and the owners per item."""
    checks.require(
        people.shape == items.shape and people.ndim == 1,
        "coverage",
        "people and items",
        "be columns of the same length",
    )
    # Numpy reads a list that mixes 2^63 and -1 as floats, in which different codes are equal.
    integers = people.dtype.kind in "iu" and items.dtype.kind in "iu"
    checks.require(integers or not len(people), "coverage", "people and items", "be integers")
    names, person = np.unique(people, return_inverse=True)
    item = np.unique(items, return_inverse=True)[1]
    both = np.sort(item * max(1, len(names)) + person)
    # (By hand: `np.unique` without an inverse hashes, and takes six times as long.)
    item, person = np.divmod(both[np.diff(both, prepend=-1) != 0], max(1, len(names)))
    return item, person, np.bincount(item).astype(np.int64)


def _merged(
    item: Integers, person: Integers, owners: Integers, most: int
) -> Iterator[tuple[Integers, Integers]]:
    """Yield per number of owners 2..most the different owner sets (rows) and each one's items."""
    counts = owners[item]
    order = np.argsort(counts, kind="stable")
    person, counts = person[order], counts[order]
    for size in np.unique(owners[(owners > 1) & (owners <= most)]):
        begin, end = np.searchsorted(counts, [size, size + 1])
        rows = np.sort(person[begin:end].reshape(-1, size), axis=1)
        rows = rows[np.lexsort(rows.T)]
        opens = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1)))
        yield rows[opens], np.diff(np.append(opens, len(rows)))


@dataclass
class _Kernel:
    """The problem at one price, which the two rules of the module make smaller."""

    price: Fraction
    alone: Integers
    weights: Integers
    items: Integers
    people: Integers
    lost: int = 0

    def solve(self) -> lipschitz_envelope.Point:
        """Return the loss at the price, and the number of people removed."""
        for _ in range(_ROUNDS):
            before = len(self.items)
            self._cover()
            self._saturate()
            if len(self.items) == before:
                break
        above = -(-self.price.numerator // self.price.denominator)
        full = self.alone[self.alone >= above]
        over = int(full.sum()) - self.price * len(full)
        missing, removed = self._flow()
        return lipschitz_envelope.Point(over + self.lost + missing, Fraction(len(full) + removed))

    def _keep(self, items: maximum_flow.Flags) -> None:
        """Keep these items only, with their pairs."""
        names, kept = np.cumsum(items) - 1, items[self.items]
        self.weights, self.people = self.weights[items], self.people[kept]
        self.items = names[self.items[kept]]

    def _cover(self) -> None:
        """Rule 1: drop the items of people who can cover all of their items."""
        degrees = self.alone + _sums(self.people, self.weights[self.items], len(self.alone))
        able = degrees <= self.price.numerator // self.price.denominator
        touched = able[self.people]
        if touched.any():
            covered = np.zeros(len(self.weights), np.bool_)
            covered[self.items[touched]] = True
            self._keep(~covered)

    def _saturate(self) -> None:
        """Rule 2: drop people whose capacity is used up; items with one owner left become hers."""
        above = -(-self.price.numerator // self.price.denominator)
        kept = (self.alone < above)[self.people]
        if kept.all():
            return
        self.items, self.people = self.items[kept], self.people[kept]
        owners = np.bincount(self.items, minlength=len(self.weights))
        self.lost += int(self.weights[owners == 0].sum())
        last = owners[self.items] == 1
        np.add.at(self.alone, self.people[last], self.weights[self.items[last]])
        self._keep(owners > 1)

    def _flow(self) -> tuple[Fraction, int]:
        """Return the weight that a flow leaves uncovered, and how many people the cut removes."""
        if not len(self.items):
            return Fraction(0), 0
        scale = self.price.denominator
        owns = np.zeros(len(self.alone), np.bool_)
        owns[self.people] = True
        person = (np.cumsum(owns) - 1)[self.people]
        # The rules may have been cut short: whoever is full was counted before, and has no room.
        room = np.maximum(self.price.numerator - self.alone[owns] * scale, 0)
        weights = self.weights * scale
        flow = bipartite_flow.maximum(room, weights, person, self.items)
        removed = int(np.count_nonzero(~flow.reached & (room > 0)))
        return Fraction(int(weights.sum()) - flow.value, scale), removed


def _sums(codes: Integers, weights: Integers, count: int) -> Integers:
    """Return the exact sum of the weights per code: items are fewer than the 2^53 of floats."""
    return np.bincount(codes, weights, count).astype(np.int64)

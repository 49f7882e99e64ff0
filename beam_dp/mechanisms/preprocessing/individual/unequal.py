"""g with a Delta for each person: by classes of equal Delta, or for monotone functions.

A person's Delta is also called a price: what their removal costs. The window recursion of
`staircase` needs one Delta for all: it takes for granted that the database without the larger of
two values has the smaller g, which the exchange of two people proves only if their Delta are equal.
For the mean of (0, 0, 4) with Delta = (1, 1/2, 2) and f(empty) = 0 it gives 4/3 where g = 3/2, and
its results have no bounded sensitivity. So there are:

* `classes`: with c different Delta, only the smallest or the largest value leaves a class. The
  state is one window per class: prod_c (n_c (n_c + 1) / 2 + 1) databases instead of 2^n.
* monotone functions: LB never binds, and g = min over R of f(x without R) + sum of Delta_i over R
  (`monotone`, `total`, `largest`; `from_profile` for one Delta).
* `general` for at most 20 people.

Everything else is refused.
"""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.checks import Real
from beam_dp.mechanisms.preprocessing.individual.general import (
    MOST_PEOPLE,
    Function,
    Sensitivities,
    finite,
    general,
    per_person,
)

STATES = 1 << 17
"""The most databases that `classes` goes through; f is called on each (some seconds)."""
EVALUATIONS = 1 << 17
"""The most sets whose removal `monotone` tries."""

_FINITE = "values must be finite real numbers"
_Windows = tuple[tuple[int, int], ...]
_Values = dict[_Windows, Fraction]
_Tiers = list[tuple[Fraction, list[Real]]]


def individual(
    f: Function, values: Sequence[Real], sensitivities: Sensitivities, empty: Real = 0
) -> Real:
    """Return g of a database-ordered f with Delta_i per person, where it can be computed.

    |g(D) - g(D - i)| <= Delta_i for each person i, exactly.

    Args:
        f: a finite number for a tuple of values in ascending order. It must not decrease when one
            value grows and the others stay (then it is database-ordered): means, quantiles, sums.
        values: one number per person.
        sensitivities: Delta for all, or Delta_i per person; at least 0.
        empty: f of nobody.

    Raises:
        ValueError: if neither `classes` nor `general` can compute it.
    """
    owner = "individual"
    prices = per_person(owner, sensitivities, len(values))
    if _states(prices) <= STATES:
        return classes(f, values, prices, empty)
    checks.require(
        len(values) <= MOST_PEOPLE,
        owner,
        "sensitivities",
        f"have few different values ({STATES} databases, the product of n (n + 1) / 2 "
        f"+ 1 over the classes of equal ones) or belong to at most {MOST_PEOPLE} "
        "people",
        "The recursion over windows is wrong for unequal sensitivities: its result "
        "has no bound. Round the sensitivities down to a few tiers, or use a "
        "monotone function.",
    )
    pairs = sorted(zip(values, prices, strict=True))
    return general(f, [value for value, _ in pairs], [price for _, price in pairs], empty)


def classes(
    f: Function, values: Sequence[Real], sensitivities: Sensitivities, empty: Real = 0
) -> Fraction:
    """Return g of a database-ordered f, by one window of values per class of equal Delta_i.

    g(D - i) >= g(D - j) where x_i <= x_j and Delta_i = Delta_j: the two databases differ by one
    value, and the exchange of i and j maps all their sub-databases onto each other. So in each
    class only the smallest and the largest matter. One class gives the window recursion.

    Args:
        f: as for `individual`.
        values: as for `individual`.
        sensitivities: as for `individual`.
        empty: as for `individual`.

    Raises:
        ValueError: for more than `STATES` databases.
    """
    owner = "classes"
    prices = per_person(owner, sensitivities, len(values))
    checks.require(
        _states(prices) <= STATES,
        owner,
        "sensitivities",
        f"have fewer different values: there are more than {STATES} databases, the "
        "product of n (n + 1) / 2 + 1 over the classes of equal ones",
    )
    members = defaultdict(list)
    for value, price in zip(values, prices, strict=True):
        members[price].append(value)
    tiers = [(price, sorted(equals)) for price, equals in members.items()]
    return _climb(owner, f, tiers, Fraction(checks.number(owner, "empty", empty)))


def ordered(f: Function, values: Sequence[Real], sensitivity: Real, empty: Real = 0) -> Fraction:
    """Return g of a database-ordered f with one Delta, exactly, by n^2 / 2 calls of f.

    The arguments are those of `individual`; at most 511 values.
    """
    return classes(f, values, sensitivity, empty)


def _states(prices: Sequence[Fraction]) -> int:
    sizes: dict[Fraction, int] = defaultdict(int)
    for price in prices:
        sizes[price] += 1
    states = 1
    for size in sizes.values():
        states *= size * (size + 1) // 2 + 1
    return states


def _climb(owner: str, f: Function, tiers: _Tiers, empty: Fraction) -> Fraction:
    """Return g of all people, by going up from windows (one per class) of few people to many."""
    sizes = [len(values) for _, values in tiers]
    below: _Values = {((0, 0),) * len(tiers): empty}
    for count in range(1, sum(sizes) + 1):
        level = {}
        for windows in _of_size(sizes, count):
            kept = [values[i:j] for (i, j), (_, values) in zip(windows, tiers, strict=True)]
            value = finite(owner, f(tuple(sorted(itertools.chain(*kept)))))
            level[windows] = _cut(Fraction(value), windows, tiers, below)
        below = level
    return next(iter(below.values()))


def _cut(value: Fraction, windows: _Windows, tiers: _Tiers, below: _Values) -> Fraction:
    highs: list[Fraction] = []
    lows: list[Fraction] = []
    for index, (start, stop) in enumerate(windows):
        if start < stop:
            price = tiers[index][0]
            highs.append(_without(windows, index, (start, stop - 1), below) + price)
            lows.append(_without(windows, index, (start + 1, stop), below) - price)
    return max(min(value, *highs), *lows)


def _without(windows: _Windows, index: int, shorter: tuple[int, int], below: _Values) -> Fraction:
    """Return g with a shorter window for the class `index`; empty windows are (0, 0)."""
    window = shorter if shorter[0] < shorter[1] else (0, 0)
    return below[(*windows[:index], window, *windows[index + 1 :])]


def _of_size(sizes: Sequence[int], count: int) -> Iterator[_Windows]:
    """Return all tuples of windows, one per class, that hold `count` values together."""
    if not sizes:
        if count == 0:
            yield ()
        return
    elsewhere = sum(sizes[1:])
    for size in range(max(0, count - elsewhere), min(sizes[0], count) + 1):
        for tail in _of_size(sizes[1:], count - size):
            for start in range(sizes[0] - size + 1 if size else 1):
                yield ((start, start + size) if size else (0, 0), *tail)


def monotone(
    f: Function, people: Sequence[Any], sensitivities: Sensitivities, empty: Real | None = None
) -> Fraction:
    """Return g of a monotone f: the least f(people without R) + sum of Delta_i over R.

    One more person never lowers f, so LB <= f in Definition 3.1 (induct: g(D - i) <= f(D - i) <=
    f(D)), and only the bound from above is left. The sets R are tried in the order of their price,
    the sum of Delta_i, until the price plus f(empty) is no less than the best value so far.

    Args:
        f: a finite number for a tuple of people; it must not fall when a person is added.
        people: one record per person, any number.
        sensitivities: Delta for all, or Delta_i per person; at least 0.
        empty: f of nobody; None: f is asked.

    Raises:
        ValueError: if more than `EVALUATIONS` sets would have to be tried. Whether that is so
            depends on the data; mind it where they are private.
    """
    owner = "monotone"
    prices = per_person(owner, sensitivities, len(people))
    lowest = Fraction(finite(owner, f(()) if empty is None else empty))
    best = lowest + sum(prices)
    tried = _by_price(prices)
    for price, gone in itertools.islice(tried, EVALUATIONS):
        if price + lowest >= best:
            return best
        kept = tuple(person for index, person in enumerate(people) if index not in gone)
        best = min(best, price + (Fraction(finite(owner, f(kept))) if kept else lowest))
    checks.require(
        next(tried, None) is None,
        owner,
        "f",
        f"need no more than {EVALUATIONS} sets",
        "Use larger sensitivities, or total, largest or from_profile for sums, "
        "maxima and removal profiles.",
    )
    return best


def _by_price(prices: Sequence[Fraction]) -> Iterator[tuple[Fraction, frozenset[int]]]:
    """Return all sets of indexes, each once, by the sum of their prices."""
    order = sorted(range(len(prices)), key=prices.__getitem__)
    yield Fraction(0), frozenset()
    heap: list[tuple[Fraction, tuple[int, ...]]] = [(prices[order[0]], (0,))] if order else []
    while heap:
        price, ranks = heapq.heappop(heap)
        yield price, frozenset(order[rank] for rank in ranks)
        last = ranks[-1]
        if last + 1 < len(order):
            following = prices[order[last + 1]]
            heapq.heappush(heap, (price + following, (*ranks, last + 1)))
            instead = price - prices[order[last]] + following
            heapq.heappush(heap, (instead, (*ranks[:-1], last + 1)))


def total(values: Sequence[Real], sensitivities: Sensitivities) -> Fraction:
    """Return g of the sum of numbers that are at least 0: the sum of min(x_i, Delta_i).

    |g(D) - g(D - i)| <= Delta_i, exactly, for any number of people; f(empty) = 0.
    """
    prices = per_person("total", sensitivities, len(values))
    numbers = [Fraction(finite("total", value)) for value in values]
    checks.require(all(number >= 0 for number in numbers), "total", "values", "be at least 0")
    return sum(map(min, numbers, prices), Fraction(0))


def largest(values: Sequence[Real], sensitivities: Sensitivities, empty: Real = 0) -> Fraction:
    """Return g of max(empty, the largest value): the least y + sum of Delta_i over all x_i > y.

    |g(D) - g(D - i)| <= Delta_i, exactly, for any number of people: that maximum is monotone, and
    to lower it to y, all people above y must go. y is `empty` or one of the values.
    """
    owner = "largest"
    prices = per_person(owner, sensitivities, len(values))
    lowest = checks.number(owner, "empty", empty)
    numbers = [max(lowest, Fraction(finite(owner, value, _FINITE))) for value in values]
    best, price = None, Fraction(0)
    for number, delta in sorted(zip(numbers, prices, strict=True), reverse=True):
        best = number + price if best is None else min(best, number + price)
        price += delta
    return lowest + price if best is None else min(best, lowest + price)


def from_profile(profile: Sequence[Real], lowest: Real, sensitivity: Real) -> Fraction:
    """Return g of a monotone f with one Delta, from its removal profile B[0..K].

    min(min_{k <= K} B[k] + k Delta, lowest + (K + 1) Delta) is the least y + Delta min(l(y), K + 1)
    over all y, for the removal loss l. It moves by at most Delta per person for every K. The last
    term is needed: without it, a profile that was cut off at K has no bounded sensitivity.

    Args:
        profile: f after the best removal of at most 0, 1, ..., K people.
        lowest: a public number that f never lies below, such as f(empty).
        sensitivity: Delta, at least 0.
    """
    owner = "from_profile"
    (price,) = per_person(owner, [sensitivity], 1)
    bottom = checks.number(owner, "lowest", lowest)
    levels = [Fraction(finite(owner, value, _FINITE)) for value in profile]
    kept = [level + k * price for k, level in enumerate(levels)]
    return min(*kept, bottom + len(kept) * price) if kept else bottom

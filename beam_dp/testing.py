"""Checks for users' own tests: try to refute that a statistic, or its profile, is what it claims.

A check returns None, or a `Counterexample` to look at. It shows the records that it was given: run
checks on made-up people. What None proves is in each docstring.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms import checks
from beam_dp.mechanisms.grids import Number
from beam_dp.mechanisms.monotone import SetValues
from beam_dp.mechanisms.noise import Noise
from beam_dp.mechanisms.people import (
    People,
    ProfileFunction,
    Statistic,
    check_callable,
    is_infinite,
    plain_number,
    records,
)
from beam_dp.mechanisms.profile import Profile

_CHAIN = 16  # neighbours that follow each other in one random chain
_PATIENCE = 64  # steps of a descent without a gain
_UNLIMITED = 1 << 62

Pair = tuple[int, int]
"""Bit masks of two neighbouring sets: the second has one person more."""


@dataclass(frozen=True)
class Counterexample:
    """People for whom a claim is false.

    Attributes:
        rule: the claim.
        smaller: one record per person.
        larger: the same people and one more; for a rule about one set only, that set again.
        values: the two sides of the rule that do not agree with it, left one first.
        at: the k of B[k], or the y of loss(y), where the rule has one.
    """

    rule: str
    smaller: People
    larger: People
    values: tuple[Number, Number]
    at: Number | None = None


def check_monotone(
    f: Statistic, people: Iterable[Any], attempts: int = 1 << 16
) -> Counterexample | None:
    """Try to find some of these people for whom f falls when one more of them joins.

    With n people and 2^n <= attempts all sets are looked at: None then *proves* that f is monotone
    on the subsets of these people, and says nothing of others. With more people it draws random
    chains of sets, each with one person more, and walks from random neighbours towards a fall by
    exchanging single people: None then proves nothing, and another call may find what this one did
    not. It draws from the operating system; no run can be repeated.

    Args:
        f: a number for a tuple of people's records.
        people: the records; take small, varied ones that are likely to break the claim.
        attempts: at least 1; how many pairs of neighbours are drawn where not all are looked at.

    Raises:
        TypeError, ValueError: for other parameters, or if f returns what is not a number; an error
            that f raises comes through.
    """
    owner = "check_monotone"
    check_callable(owner, "f", f)
    checks.positive_integer(owner, "attempts", attempts)
    values = SetValues(owner, f, records(owner, people), _UNLIMITED)
    for smaller, larger in _monotone_pairs(values, attempts):
        if values(smaller) > values(larger):
            return Counterexample(
                "f(smaller) <= f(larger)",
                values.subset(smaller),
                values.subset(larger),
                (values(smaller), values(larger)),
            )
    return None


def check_interlacing(
    profile_function: ProfileFunction, people: Iterable[Any], attempts: int = 1000
) -> Counterexample | None:
    """Try to find neighbours between which a loss moves by more than 1, or the wrong way.

    This is what all searches stand on, whatever the loss means: for x' = x + one person and every
    real y, `loss(x, y) <= loss(x', y) <= loss(x, y) + 1`, where loss(x, y) is the least k with
    B[k] <= y, and the length of B where there is none. Both are steps that move at the values of
    the two profiles only, so they are compared there and below all; with exact comparisons.
    For profiles of equal length it is the interlacing B'[k + 1] <= B[k] <= B'[k].

    With 2^n <= attempts all neighbours among these people are looked at, and None proves the claim
    for them; otherwise `attempts` random ones are, and it proves nothing.

    Args:
        profile_function: people -> B[0], B[1], ... (a `Profile`, or what a user's function gives).
        people: the records.
        attempts: at least 1; how many pairs of neighbours are drawn where not all are looked at.

    Raises:
        TypeError, ValueError: for other parameters, or values that are not numbers; an error that
            the function raises comes through.
    """
    owner = "check_interlacing"
    claims = _Claims(owner, profile_function, records(owner, people))
    checks.positive_integer(owner, "attempts", attempts)
    for pair in _pairs(len(claims.people), attempts, len(claims.people)):
        found = claims.refute_order(pair[0]) or claims.refute_order(pair[1])
        found = found or claims.refute_interlacing(pair)
        if found is not None:
            return found
    return None


def check_profile(
    profile_function: ProfileFunction,
    f: Statistic,
    people: Iterable[Any],
    attempts: int = 1024,
    size: int = 8,
    exact: bool = False,
) -> Counterexample | None:
    """Try to refute that a profile function is the profile of f, or a proved relaxation of it.

    On sets of at most `size` people the exact profile is computed from f on all their subsets. Two
    things must hold: the claimed B[k] is at most the exact one (so what is released is not above
    f but with the search's own failure probability), and the claimed profiles of neighbours
    interlace as in `check_interlacing` (so it is private).

    With n <= size people and 2^n <= attempts all sets are looked at and None proves both for these
    people; otherwise `attempts` random neighbours are, and it proves nothing.

    Args:
        profile_function: people -> B[0], B[1], ..., as for `Monotone`.
        f: the statistic; `check_monotone` it first.
        people: the records.
        attempts: at least 1; how many pairs of neighbours are drawn where not all are looked at.
        size: the most people of a set, at least 1; f is needed on 2^size sets for each.
        exact: whether the claimed B[k] must equal the exact one.

    Raises:
        TypeError, ValueError: for other parameters, or values that are not numbers; an error that
            a function raises comes through.
    """
    owner = "check_profile"
    check_callable(owner, "f", f)
    claims = _Claims(owner, profile_function, records(owner, people))
    values = SetValues(owner, f, claims.people, _UNLIMITED)
    checks.positive_integer(owner, "attempts", attempts)
    most = min(checks.positive_integer(owner, "size", size), len(claims.people))
    for pair in _pairs(len(claims.people), attempts, most):
        for members in pair:
            found = claims.refute_order(members) or claims.refute_level(members, values, exact)
            if found is not None:
                return found
        found = claims.refute_interlacing(pair)
        if found is not None:
            return found
    return None


class _Claims:
    """The profiles that a function claims for subsets of some people, each computed once."""

    def __init__(self, owner: str, function: ProfileFunction, people: People) -> None:
        check_callable(owner, "profile_function", function)
        self.people = people
        self._owner, self._function = owner, function
        self._known: dict[int, tuple[Number, ...]] = {}

    def subset(self, members: int) -> People:
        """Return the records of a bit mask."""
        return tuple(person for i, person in enumerate(self.people) if members >> i & 1)

    def levels(self, members: int) -> tuple[Number, ...]:
        """Return B[0], B[1], ... as claimed."""
        if members not in self._known:
            claimed = self._function(self.subset(members))
            given = claimed.values if isinstance(claimed, Profile) else claimed
            name = f"{self._owner}: profile_function"
            levels = tuple(plain_number(name, value) for value in given)
            checks.require(len(levels) > 0, f"{name} must return at least B[0], not nothing.")
            self._known[members] = levels
        return self._known[members]

    def refute_order(self, members: int) -> Counterexample | None:
        """Return a k with B[k + 1] > B[k]."""
        for k, (before, after) in enumerate(itertools.pairwise(self.levels(members))):
            if after > before:
                return self._broken("B[k + 1] <= B[k]", (members, members), (after, before), k)
        return None

    def refute_level(self, members: int, values: SetValues, exact: bool) -> Counterexample | None:
        """Return a k where the claimed B[k] is above the exact one, or differs from it."""
        true = _exact_levels(values, members)
        for k, claimed in enumerate(self.levels(members)):
            wanted = true[min(k, len(true) - 1)]
            if claimed > wanted or (exact and claimed != wanted):
                rule = f"claimed B[k] {'==' if exact else '<='} exact B[k]"
                return self._broken(rule, (members, members), (claimed, wanted), k)
        return None

    def refute_interlacing(self, pair: Pair) -> Counterexample | None:
        """Return a y at which the losses of two neighbours differ by something else than 0 or 1."""
        one, other = self.levels(pair[0]), self.levels(pair[1])
        for y in sorted({-math.inf, *one, *other}):
            losses = _loss(one, y), _loss(other, y)
            if not losses[0] <= losses[1] <= losses[0] + 1:
                rule = "loss(smaller, y) <= loss(larger, y) <= loss(smaller, y) + 1"
                return self._broken(rule, pair, losses, y)
        return None

    def _broken(
        self, rule: str, pair: Pair, values: tuple[Number, Number], at: Number
    ) -> Counterexample:
        return Counterexample(rule, self.subset(pair[0]), self.subset(pair[1]), values, at)


def _loss(levels: tuple[Number, ...], y: Number) -> int:
    """Return min{k : B[k] <= y}, or the length: the number of k with B[k] > y."""
    return sum(level > y for level in levels)


def _exact_levels(values: SetValues, members: int) -> list[Number]:
    """Return B[0..n] by its definition: the minimum of f over the subsets with n - k people."""
    levels: list[Number] = [math.inf] * (members.bit_count() + 1)
    subset = members
    while True:
        removed = (members ^ subset).bit_count()
        levels[removed] = min(levels[removed], values(subset))
        if not subset:
            return list(itertools.accumulate(levels, min))
        subset = (subset - 1) & members  # the next smaller mask within the members


# ------------------------------------------------------------------ which neighbours are looked at


def _pairs(n: int, attempts: int, most: int) -> Iterator[Pair]:
    """Yield all neighbours of at most `most` people if their sets are few, else random ones."""
    if most == n and 1 << n <= attempts:
        bits = [1 << i for i in range(n)]
        yield (0, 0)  # an empty set alone, where nobody is there
        yield from ((s, s | bit) for s in range(1 << n) for bit in bits if not s & bit)
    else:
        yield from itertools.islice(_chains(n, most), attempts)


def _chains(n: int, most: int) -> Iterator[Pair]:
    """Yield neighbours along random chains of growing sets, of every size alike, without end."""
    while True:
        order = [1 << int(i) for i in Noise().words(n).argsort()]
        start = _below(most)
        smaller = sum(order[:start])
        for bit in order[start : min(start + _CHAIN, most)]:
            yield smaller, smaller | bit
            smaller |= bit


def _monotone_pairs(values: SetValues, attempts: int) -> Iterator[Pair]:
    n = len(values.people)
    if 1 << n <= attempts:
        yield from _pairs(n, attempts, n)
    else:
        yield from _pairs(n, attempts - attempts // 2, n)
        yield from itertools.islice(_descents(values), attempts // 2)


def _descents(values: SetValues) -> Iterator[Pair]:
    """Yield the neighbours of random walks on which f(S + p) - f(S) never grows, without end.

    A step lets another person into S or out of it.
    """
    n = len(values.people)
    while True:
        (pair,) = itertools.islice(_chains(n, n), 1)
        rise, patience = _rise(values, pair), _PATIENCE
        while patience:
            yield pair
            bit = 1 << _below(n)
            near = pair[0] ^ bit, pair[1] ^ bit
            rise_there = rise if bit == pair[0] ^ pair[1] else _rise(values, near)
            patience = _PATIENCE if rise_there < rise else patience - 1
            if bit != pair[0] ^ pair[1] and rise_there <= rise:
                pair, rise = near, rise_there


def _rise(values: SetValues, pair: Pair) -> Number:
    """Return f(larger) - f(smaller) without rounding or overflow."""
    low, high = values(pair[0]), values(pair[1])
    if low == high:
        return 0
    if is_infinite(low) or is_infinite(high):
        return math.inf if high > low else -math.inf
    return Fraction(high) - Fraction(low)


def _below(n: int) -> int:
    """Return a random index below n (its bias of n / 2^64 matters to no check)."""
    return int(Noise().words(1)[0]) % n

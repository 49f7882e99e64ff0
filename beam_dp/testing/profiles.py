"""Try to refute that a statistic is monotone, and that a profile is private or is its own."""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.integers import Number
from beam_dp.mechanisms.numerics.user_functions import (
    People,
    ProfileFunction,
    Statistic,
    check_callable,
    plain_number,
    records,
)
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.sensitivity.monotone import SetValues, searched

UNLIMITED = 1 << 62
Pair = tuple[int, int]
"""Bit masks of two neighbouring sets: the second has one person more."""

_CHAIN = 16  # neighbours that follow each other in one random chain


@dataclass(frozen=True)
class Counterexample:
    """People for whom a claim is false.

    Attributes:
        rule: the claim.
        smaller: one record per person.
        larger: the same people and one more; for a rule about one set of people, the same set.
        values: the left and the right side of the rule, which break it.
        at: the k of B[k], or the y of loss(y), where the rule has one.
    """

    rule: str
    smaller: People
    larger: People
    values: tuple[Number, Number]
    at: Number | None = None


def pairs(n: int, attempts: int, most: int) -> Iterator[Pair]:
    """Yield all neighbours of at most `most` people if there are few sets, else random ones."""
    if 1 << n <= attempts:
        bits, sets = [1 << i for i in range(n)], (s for s in range(1 << n) if s.bit_count() < most)
        yield (0, 0)  # the empty set alone: for n = 0 there is no other pair
        yield from ((s, s | bit) for s in sets for bit in bits if not s & bit)
    else:
        yield from itertools.islice(chains(n, most), attempts)


def chains(n: int, most: int) -> Iterator[Pair]:
    """Yield, without end, neighbours along random chains of growing sets, of all sizes alike."""
    while True:
        order = [1 << int(i) for i in Noise().words(n).argsort()]
        start = below(most)
        smaller = sum(order[:start])
        for bit in order[start : min(start + _CHAIN, most)]:
            yield smaller, smaller | bit
            smaller |= bit


def below(n: int) -> int:
    """Return a random index below n (its bias of n / 2^64 matters to no check)."""
    return int(Noise().words(1)[0]) % n


def check_monotone(
    f: Statistic, people: Iterable[Any], attempts: int = 1 << 16
) -> Counterexample | None:
    """Try to find some of these people for whom f falls when one more of them joins.

    With n people and 2^n <= attempts the check looks at all sets: None then *proves* that f is
    monotone on the subsets of these people, and says nothing of other people. With more people it
    draws random chains of sets, each with one person more: None then proves nothing, and another
    call may find a counterexample. It draws from the operating system; no run can be repeated.

    Args:
        f: a number for a tuple of people's records.
        people: the records; take small, varied ones that are likely to break the claim.
        attempts: at least 1; how many pairs of neighbours are drawn if not all are looked at.

    Raises:
        TypeError, ValueError: for other parameters, or if f returns what is not a number; an error
            that f raises comes through.
    """
    subject = "check_monotone"
    check_callable(subject, "f", f)
    checks.positive_integer(subject, "attempts", attempts)
    values = SetValues(subject, f, records(subject, people), UNLIMITED)
    n = len(values.people)
    for pair in pairs(n, attempts, n):
        smaller, larger = map(values, pair)
        if smaller > larger:
            people = values.subset(pair[0]), values.subset(pair[1])
            return Counterexample("f(smaller) <= f(larger)", *people, (smaller, larger))
    return None


def check_interlacing(
    profile_function: ProfileFunction, people: Iterable[Any], attempts: int = 1000
) -> Counterexample | None:
    """Try to find neighbours between which a loss moves by more than 1, or the wrong way.

    All searches rely on this, whatever the loss means: for x' = x + one person and every real y,
    `loss(x, y) <= loss(x', y) <= loss(x, y) + 1`, where loss(x, y) is the least k with B[k] <= y,
    and the length of B where there is none. As functions of y both losses are steps that move at
    the values of the two profiles only, so they are compared there and below all values, with exact
    comparisons. The property is the interlacing B'[k + 1] <= B[k] <= B'[k] together with lengths
    that differ by at most one: B' has as many levels as B or one more, levels of -inf apart.

    With 2^n <= attempts all neighbours among these people are checked, and None proves the claim
    for these people; otherwise `attempts` random neighbours are checked, and None proves nothing.

    Args:
        profile_function: people -> B[0], B[1], ... (a `Profile`, or an iterable of levels).
        people: the records.
        attempts: at least 1; how many pairs of neighbours are drawn where not all are checked.

    Raises:
        TypeError, ValueError: for other parameters, or values that are not numbers; an error that
            the function raises is not caught.
    """
    subject = "check_interlacing"
    claims = _Claims(subject, profile_function, records(subject, people))
    checks.positive_integer(subject, "attempts", attempts)
    n = len(claims.people)
    return claims.refuted(pairs(n, attempts, n))


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
    things must hold: the claimed B[k] is at most the exact B[k] (so a release is above f only with
    the failure probability of the search), and the claimed profiles of neighbours interlace as in
    `check_interlacing` (so a release is private).

    With n people and 2^n <= attempts all sets of at most `size` people are checked and None proves
    both for them; otherwise `attempts` random neighbours are checked, and None proves nothing.

    Args:
        profile_function: people -> B[0], B[1], ..., as for `Monotone`.
        f: the statistic; try `check_monotone` on it first.
        people: the records.
        attempts: at least 1; how many pairs of neighbours are drawn where not all are checked.
        size: the most people of a set, at least 1; for each set f is computed on 2^size subsets.
        exact: whether the claimed B[k] must equal the exact B[k].

    Raises:
        TypeError, ValueError: for other parameters, or values that are not numbers; an error that
            a function raises is not caught.
    """
    subject = "check_profile"
    check_callable(subject, "f", f)
    claims = _Claims(subject, profile_function, records(subject, people))
    values = SetValues(subject, f, claims.people, UNLIMITED)
    checks.positive_integer(subject, "attempts", attempts)
    most = min(checks.positive_integer(subject, "size", size), len(claims.people))
    return claims.refuted(pairs(len(claims.people), attempts, most), values, exact)


class _Claims:
    """The profiles that a function claims for subsets of some people, each computed once."""

    def __init__(self, subject: str, function: ProfileFunction, people: People) -> None:
        check_callable(subject, "profile_function", function)
        self.people = people
        self._subject, self._function = subject, function
        self._known: dict[int, tuple[Number, ...]] = {}

    def refuted(
        self, neighbours: Iterable[Pair], values: SetValues | None = None, exact: bool = False
    ) -> Counterexample | None:
        """Return what refutes the claims of some sets; with `values` the exact profiles too."""
        found = (each for pair in neighbours for each in self._broken(pair, values, exact))
        return next(found, None)

    def subset(self, members: int) -> People:
        """Return the records of the people in a bit mask."""
        return tuple(person for i, person in enumerate(self.people) if members >> i & 1)

    def levels(self, members: int) -> tuple[Number, ...]:
        """Return B[0], B[1], ... as claimed."""
        if members not in self._known:
            claimed = self._function(self.subset(members))
            listed = claimed.values if isinstance(claimed, Profile) else claimed
            name = f"{self._subject}: profile_function"
            levels = tuple(plain_number(name, value) for value in listed)
            rule = "return at least B[0], not nothing"
            checks.require(len(levels) > 0, self._subject, "profile_function", rule)
            self._known[members] = levels
        return self._known[members]

    def _broken(
        self, pair: Pair, values: SetValues | None, exact: bool
    ) -> Iterator[Counterexample]:
        """Yield what refutes the claims of two neighbours."""
        for members in pair:
            people, levels = self.subset(members), self.levels(members)
            for k, (before, after) in enumerate(itertools.pairwise(levels)):
                if after > before:
                    yield Counterexample("B[k + 1] <= B[k]", people, people, (after, before), k)
            truths = [] if values is None else list(searched(values, members))
            for k, claimed in enumerate(levels if truths else ()):
                truth = truths[min(k, len(truths) - 1)]
                if claimed > truth or (exact and claimed != truth):
                    rule = f"claimed B[k] {'==' if exact else '<='} exact B[k]"
                    yield Counterexample(rule, people, people, (claimed, truth), k)
        smaller, larger = map(self.levels, pair)
        for y in sorted({-math.inf, *smaller, *larger}):  # below all: the numbers of levels
            losses = _loss(smaller, y), _loss(larger, y)
            if not losses[0] <= losses[1] <= losses[0] + 1:
                rule = "loss(smaller, y) <= loss(larger, y) <= loss(smaller, y) + 1"
                yield Counterexample(rule, self.subset(pair[0]), self.subset(pair[1]), losses, y)


def _loss(levels: tuple[Number, ...], y: Number) -> int:
    """Return min{k : B[k] <= y}, or the length if there is none: the number of k with B[k] > y."""
    return sum(level > y for level in levels)

"""Any monotone statistic of a user: its exact removal profile by search; and monotone hulls."""

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import (
    People,
    ProfileFunction,
    Statistic,
    check_callable,
    check_lowest,
    is_infinite,
    plain_number,
    records,
    removal_count,
)
from beam_dp.mechanisms.profiles.profile import Profile, claimed_levels, first_levels

EVALUATIONS = 2**20
"""How often a search may call the statistic, by default: every set of 20 people."""


@dataclass(frozen=True, repr=False)
class MonotoneHull:
    """The function S -> max of g over all subsets of S; `monotone_hull` makes it."""

    g: Statistic
    lowest: Number = -math.inf
    limit: int = EVALUATIONS

    def __post_init__(self) -> None:
        check_callable("monotone_hull", "g", self.g)
        checks.positive_integer("monotone_hull", "limit", self.limit)
        check_lowest("monotone_hull", self.lowest)

    def __call__(self, people: Iterable[Any]) -> Number:
        """Return the maximum of g over all subsets of `people`: 2^n evaluations of g."""
        values = SetValues("monotone_hull", self, records("monotone_hull", people), self.limit)
        return values(values.everyone)

    def total(self, people: People) -> Number:
        """Return g(people), or `lowest` where g raises or returns no finite real number."""
        # The one boundary to a user's function on private data: nothing of an error is kept.
        with contextlib.suppress(BaseException):
            value = plain_number("monotone_hull: g", self.g(people))
            if not is_infinite(value):
                return value
        return self.lowest


def monotone_hull(
    g: Statistic, lowest: Number = -math.inf, limit: int = EVALUATIONS
) -> MonotoneHull:
    """Return the least monotone function above g: the maximum of g over all subsets of a set.

    Whatever g is (not monotone, raising, returning NaN), the hull h is monotone, because a larger
    set has all the subsets of a smaller one; so the loss of h has sensitivity 1 with no claim by
    the user, provided that g is a function: for the same people in the same order the same number.
    h(S) = g(S) wherever no subset of S has a larger g. The hull of a mean or a quantile is the
    maximum, which is seldom wanted.

    The hull can be pickled if g can. `Monotone(hull, people)` and `testing.check_monotone` share
    the 2^n evaluations of g among all subsets (20 people and a quick g: 7 seconds). The hull raises
    for more people, so it is not for workers, where the number of people is private.

    Args:
        g: a number for a tuple of people's records.
        lowest: the value where g raises, or returns no finite real number. It is one public
            constant and the error is dropped, so a failure shows nothing.
        limit: the most evaluations of g; sets of more than log2(limit) people are refused.

    Raises:
        TypeError, ValueError: for other parameters; by the hull, for too many people.
    """
    return MonotoneHull(g, lowest, limit)


class SetValues:
    """The values of a statistic on the subsets of some people, each computed once.

    Subsets are bit masks: bit i is person i. A hull reuses the values of smaller sets from here.

    Args:
        owner: the name that errors begin with.
        f: the statistic.
        people: one record per person.
        limit: the most evaluations; more raise a ValueError.
    """

    def __init__(self, owner: str, f: Statistic, people: People, limit: int) -> None:
        self.people = people
        self.everyone = (1 << len(people)) - 1
        self._owner, self._f, self._limit = owner, f, limit
        self._known: dict[int, Number] = {}
        if isinstance(f, MonotoneHull):
            checks.require(
                1 << len(people) <= f.limit,
                "monotone_hull",
                "people",
                f"be at most {f.limit.bit_length() - 1}, not more: their subsets are more "
                f"than limit={f.limit}",
            )

    def subset(self, kept: int) -> People:
        """Return the records of the people in a bit mask, in their order."""
        return tuple(person for i, person in enumerate(self.people) if kept >> i & 1)

    def __call__(self, kept: int) -> Number:
        """Return the statistic of the people in a bit mask."""
        value = self._known.get(kept)
        if value is None:
            checks.require(
                len(self._known) < self._limit,
                self._owner,
                "limit",
                f"be at least the number of sets that f is needed on, not {self._limit}",
                "Ask for fewer removals, or give a profile function.",
            )
            value = self._known[kept] = self._evaluate(kept)
        return value

    def _evaluate(self, kept: int) -> Number:
        if not isinstance(self._f, MonotoneHull):
            return plain_number(f"{self._owner}: f", self._f(self.subset(kept)))
        value = self._f.total(self.subset(kept))
        # max over subsets = max of the set itself and of the hulls without one person.
        without = (self(kept ^ 1 << i) for i in range(len(self.people)) if kept >> i & 1)
        return max(value, max(without, default=value))


@dataclass(frozen=True, init=False, repr=False)
class Monotone:
    """A user's monotone statistic of some people: f never falls when a person joins.

    For such an f the loss min{|R| : f(x without R) <= y} has sensitivity 1 and one direction (see
    `Profile`). That f is monotone is the user's claim, which is trusted: where f falls when a
    person joins, one person may move the loss by more than 1 and nothing that is released is
    private.
    `testing.check_monotone` tries to refute the claim. `Monotone(monotone_hull(f), people)` needs
    no claim.

    The profile is exact: B[k] = min over |R| <= k of f(x without R). Without a profile function it
    is computed by branch and bound over removals, with each set evaluated once: at most
    2 sum_{k <= K} C(n, k) evaluations, and never more than 2^n. So 20 people are always within the
    default limit, 1,000 are if K = 2, and thousands if a few people decide f, as for a maximum.
    The cost of the search, and whether it ends in the limit's error, depend on the people: it is
    for tests, audits and small releases by hand. In workers use `GuardedProfile`.

    It can be pickled if the functions and the records can. Float sums need not be monotone to the
    last digit (numpy adds in pairs): add integers or Fractions.

    Args:
        f: a number for a tuple of some people's records, in the order of `people`, also for the
            empty tuple.
        people: one record per person.
        profile: for large sets, the user's `people -> B[0..K]`, an iterable that does not
            increase; it replaces the search and must be exact or a proved relaxation
            (`testing.check_profile` tries to refute that). A generator is read as far as needed.
        limit: the most evaluations of f.

    Raises:
        TypeError: for other types, or if f returns no number.
        ValueError: when the limit is reached, f returns NaN, or the user's profile increases.
    """

    f: Statistic
    people: People
    profile_function: ProfileFunction | None
    limit: int

    def __init__(
        self,
        f: Statistic,
        people: Iterable[Any],
        profile: ProfileFunction | None = None,
        limit: int = EVALUATIONS,
    ) -> None:
        check_callable("Monotone", "f", f)
        if profile is not None:
            check_callable("Monotone", "profile", profile)
        object.__setattr__(self, "f", f)
        object.__setattr__(self, "people", records("Monotone", people))
        object.__setattr__(self, "profile_function", profile)
        object.__setattr__(self, "limit", checks.positive_integer("Monotone", "limit", limit))

    def __repr__(self) -> str:
        return f"Monotone(of {len(self.people)} people)"

    def profile(self, removals: int) -> Profile:
        """Return B[0..removals], B[0..n] if there are fewer people, or all levels of the function.

        Raises:
            ValueError: if `removals` is below 0; see the class.
        """
        removal_count("Monotone.profile", "removals", removals)
        return first_levels(self._levels(), removals)

    def loss(self, candidates: Candidates) -> list[int]:
        """Return per candidate y the least k with B[k] <= y; if there is none, the length of B.

        The search ends with the first k that is enough for the lowest candidate.
        """
        levels = []
        for level in self._levels():
            levels.append(level)
            if level <= candidates[0]:
                break
        return Profile(levels).loss(candidates)

    def _levels(self) -> Iterator[Number]:
        """Yield B[0], B[1], ... as they are needed."""
        if self.profile_function is not None:
            return claimed_levels("Monotone", self.profile_function, self.people)
        return _searched(SetValues("Monotone", self.f, self.people, self.limit))


def _searched(values: SetValues) -> Iterator[Number]:
    """Yield B[0], B[1], ..., B[n]."""
    level = values(values.everyone)
    yield level
    bits = [1 << i for i in range(len(values.people))]
    if bits:
        level = min(level, *(values(values.everyone ^ bit) for bit in bits))
        yield level
    if len(bits) > 1:
        # First people whose removal leaves least, then who count most alone; any order is exact.
        bits.sort(key=lambda bit: (values(values.everyone ^ bit), -values(bit)))
    for removals in range(2, len(bits) + 1):
        level = _least(values, bits, removals, level)
        yield level


def _least(values: SetValues, order: list[int], removals: int, best: Number) -> Number:
    """Return the minimum over |R| = removals of f(x without R), given that it is at most `best`.

    For a monotone f the minima over |R| = k and |R| <= k agree. People are decided in order,
    removed before kept. f(people kept so far) is a lower bound for the whole branch, so the branch
    is cut where that is not below the best value so far. Every branching node has two leaves or
    more below it, and removing a person leaves the bound as it is: bounds cost no more evaluations
    than leaves.
    """
    nodes = [(0, removals, values.everyone, 0)]
    while nodes:
        decided, left, remaining, kept = nodes.pop()
        if left == 0 or left == len(order) - decided:
            best = min(best, values(remaining if left == 0 else kept))
        elif values(kept) < best:
            bit = order[decided]
            nodes.append((decided + 1, left, remaining, kept | bit))
            nodes.append((decided + 1, left - 1, remaining ^ bit, kept))
    return best

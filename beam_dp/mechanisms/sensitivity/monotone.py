"""Any monotone statistic of a user: its exact removal profile by search.

And down sensitivity: how much of a statistic the removal of k people can take away.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.integers import Number
from beam_dp.mechanisms.numerics.user_functions import (
    People,
    Statistic,
    check_callable,
    plain_number,
    records,
    removal_count,
)
from beam_dp.mechanisms.profiles.profile import Profile, first_levels
from beam_dp.mechanisms.sensitivity.gradient import minus

EVALUATIONS = 2**20
"""How often a search may call the statistic, by default: every set of 20 people."""


class SetValues:
    """The values of a statistic on the subsets of some people, each computed once.

    Subsets are bit masks: bit i is person i.

    Args:
        subject: the name that errors begin with.
        f: the statistic.
        people: one record per person.
        limit: the most evaluations; more raise a ValueError.
    """

    def __init__(self, subject: str, f: Statistic, people: People, limit: int) -> None:
        self.people = people
        self.everyone = (1 << len(people)) - 1
        self._subject, self._f, self._limit = subject, f, limit
        self._known: dict[int, Number] = {}

    def subset(self, kept: int) -> People:
        """Return the records of the people in a bit mask, in their order."""
        return tuple(person for i, person in enumerate(self.people) if kept >> i & 1)

    def __call__(self, kept: int) -> Number:
        """Return the statistic of the people in a bit mask."""
        value = self._known.get(kept)
        if value is None:
            checks.require(
                len(self._known) < self._limit,
                self._subject,
                "limit",
                f"be at least the number of sets that f is needed on, not {self._limit}",
                "Ask for fewer removals, or give a profile function.",
            )
            value = plain_number(f"{self._subject}: f", self._f(self.subset(kept)))
            self._known[kept] = value
        return value


@dataclass(frozen=True, init=False, repr=False)
class Monotone:
    """A user's monotone statistic of some people: f never falls when a person joins.

    For such an f the loss min{|R| : f(x without R) <= y} has sensitivity 1 and one direction (see
    `Profile`). That f is monotone is the user's claim, which is trusted: where f falls when a
    person joins, one person may move the loss by more than 1 and nothing that is released is
    private. `testing.check_monotone` tries to refute the claim.

    The profile is exact: B[k] = min over |R| <= k of f(x without R). All sets are tried, each once:
    sum_{k <= K} C(n, k) evaluations. So 20 people are always within the default limit, and 1,000
    are if K = 2. Whether it ends in the limit's error depends on how many people there are: it is
    for tests, audits and small releases by hand. In workers use `GuardedProfile`.

    It can be pickled if the function and the records can. Float sums need not be monotone to the
    last digit (numpy adds in pairs): add integers or Fractions.

    Args:
        f: a number for a tuple of some people's records, in the order of `people`, also for the
            empty tuple.
        people: one record per person.
        limit: the most evaluations of f.

    Raises:
        TypeError: for other types, or if f returns no number.
        ValueError: when the limit is reached, or f returns NaN.
    """

    f: Statistic
    people: People
    limit: int

    def __init__(self, f: Statistic, people: Iterable[Any], limit: int = EVALUATIONS) -> None:
        check_callable("Monotone", "f", f)
        object.__setattr__(self, "f", f)
        object.__setattr__(self, "people", records("Monotone", people))
        object.__setattr__(self, "limit", checks.positive_integer("Monotone", "limit", limit))

    def __repr__(self) -> str:
        return f"Monotone(of {len(self.people)} people)"

    def profile(self, removals: int) -> Profile:
        """Return B[0..removals], or B[0..n] if there are fewer people.

        Raises:
            ValueError: if `removals` is below 0; see the class.
        """
        removal_count("Monotone.profile", "removals", removals)
        values = SetValues("Monotone", self.f, self.people, self.limit)
        return first_levels(searched(values, values.everyone), removals)


def searched(values: SetValues, members: int) -> Iterator[Number]:
    """Yield B[0], B[1], ..., B[n] of the people in a bit mask.

    It is the least over all sets without so many people, and without fewer.
    """
    bits = [1 << i for i in range(len(values.people)) if members >> i & 1]
    level = values(members)
    yield level
    for removals in range(1, len(bits) + 1):
        gone = itertools.combinations(bits, removals)
        level = min(level, *(values(members ^ sum(each)) for each in gone))
        yield level


_SUBJECT = "down_sensitivity"


def down_sensitivity(
    f: Statistic, people: Iterable[Any], k: int = 1, limit: int = EVALUATIONS
) -> Number:
    """Return DS^k(x) = max over |R| <= k of f(x) - f(x without R): what k removals can take from f.

    Exact for every statistic that has a removal profile: DS^k is B[0] - B[k] (Steinke, "Beyond
    Local Sensitivity via Down Sensitivity", 2023). A search with shift T releases a value between
    f - DS^T and f. DS^k is a property of the data and not private by itself.

    Where people are k or fewer, all may be removed. Two floats are subtracted as floats; an int and
    a float as Fractions; two equal infinities are 0 apart.

    Args:
        f: a monotone function of a tuple of people's records, whose removals are searched
            (`Monotone` says at what cost, and what must be true of f).
        people: one record per person.
        k: how many people may be removed, from 0.
        limit: the most evaluations of a function.

    Raises:
        TypeError: for other types.
        ValueError: if k is negative, or the limit is reached.
    """
    removal_count(_SUBJECT, "k", k)
    levels = Monotone(f, people, limit).profile(k).values
    return minus(levels[0], levels[-1])

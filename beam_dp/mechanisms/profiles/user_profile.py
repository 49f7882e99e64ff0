"""GuardedProfile: a user's profile function, guarded so that the result is always a profile."""

import contextlib
import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import (
    People,
    ProfileFunction,
    check_callable,
    check_lowest,
    plain_number,
    removal_count,
)
from beam_dp.mechanisms.profiles.profile import Profile


def first_levels(levels: Iterator[Number], removals: int) -> Profile:
    """Return B[0..removals]; later levels are not computed."""
    return Profile(level for _, level in zip(range(removals + 1), levels))


def claimed_levels(owner: str, function: ProfileFunction, people: People) -> Iterator[Number]:
    """Yield the levels that a user's profile function returns."""
    return (plain_number(f"{owner}: profile", value) for value in function(people))


@dataclass(frozen=True, repr=False)
class GuardedProfile:
    """A user's profile function as it is sent to workers: it never raises, whatever the people.

    Where the function raises, or its result is no profile (a NaN, an increase, nothing at all), the
    result is `Profile([lowest])`, a public constant; nothing of the error is kept. A function that
    keeps its claim never gets there, and its loss has sensitivity 1. The claim is: with one person
    more B' has as many levels as B or one more (apart from levels of -inf, which no candidate
    reaches), and `B'[k + 1] <= B[k] <= B'[k]` for every k where both levels are there. For y below
    all levels the loss is their number, so that a length that moves by 2 is a loss that moves by 2.

    From one set of people only a part of the claim can be checked, against the profile of nobody:
    with n people, every loss is at least that of nobody, and at most n more. A result that breaks
    this (such as one longer by more than n) is no profile. The rest is the user's to prove: run
    `testing.check_interlacing` on the function first. For a function that fails on some sets
    sensitivity 1 is not proved.

    Call it with people in an order that does not depend on who else is there (sorted by id).

    Args:
        function: people -> B[0], B[1], ...; read up to B[removals]. Picklable if this shall be.
        removals: K, at least the `cap` of the search.
        lowest: a public number: the lowest candidate, or a number below it.
    """

    function: ProfileFunction
    removals: int
    lowest: Number = -math.inf

    def __post_init__(self) -> None:
        check_callable("GuardedProfile", "function", self.function)
        removal_count("GuardedProfile", "removals", self.removals)
        check_lowest("GuardedProfile", self.lowest)

    def __reduce__(self) -> tuple[object, ...]:
        return GuardedProfile, (self.function, self.removals, self.lowest)  # checked on arrival

    def __call__(self, people: Iterable[Any]) -> Profile:
        """Return B[0..removals] of the people, or `Profile([lowest])`."""
        listed = tuple(people)
        profile = self._asked(listed)
        return profile if _can_follow(profile, self._nobody, len(listed)) else self._failed

    @functools.cached_property
    def _nobody(self) -> Profile:
        """The function's profile of nobody, which is public."""
        return self._asked(())

    @property
    def _failed(self) -> Profile:
        return Profile((self.lowest,))

    def _asked(self, people: People) -> Profile:
        # A boundary to a user's function on private data: nothing of an error is kept.
        with contextlib.suppress(BaseException):
            levels = claimed_levels("GuardedProfile", self.function, people)
            return first_levels(levels, self.removals)
        return self._failed


def _can_follow(profile: Profile, nobody: Profile, people: int) -> bool:
    """Return whether every loss is at least that of nobody, and at most `people` more.

    Levels of -inf count as no levels.
    """
    low, high, empty = profile.values[people:], profile.values, nobody.values
    grown = itertools.zip_longest(empty, high, fillvalue=-math.inf)
    bounded = itertools.zip_longest(low, empty, fillvalue=-math.inf)
    return all(before <= after for before, after in itertools.chain(grown, bounded))

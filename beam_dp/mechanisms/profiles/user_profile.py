"""The removal profile that a user's own function gives, guarded: whatever it does, it is one."""

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
    """Return B[0..removals]; the levels after these are not even computed."""
    return Profile(level for _, level in zip(range(removals + 1), levels))


def claimed_levels(owner: str, function: ProfileFunction, people: People) -> Iterator[Number]:
    """Yield the levels that a user's profile function gives."""
    return (plain_number(f"{owner}: profile", value) for value in function(people))


@dataclass(frozen=True, repr=False)
class GuardedProfile:
    """A user's profile function as it travels to workers: it never raises, whatever the people.

    Where the function raises, or what it gives is no profile (a NaN, an increase, nothing at all),
    the result is `Profile([lowest])`: a public constant; nothing of the error is kept. A function
    that keeps its claim never gets there, and its loss has sensitivity 1. The claim is: with one
    person more B' has as many levels as B or one more (levels of -inf apart, which no candidate
    reaches), and `B'[k + 1] <= B[k] <= B'[k]` wherever there are both. For y below all levels the
    loss is their number, so that a length that moves by 2 is a loss that moves by 2.

    Of that claim one set of people shows only what it is to nobody: with n people, every loss is
    that of nobody at least, and at most n more. A profile that is not (such as one longer by more
    than n) is none. The rest is the user's to prove: run `testing.check_interlacing` on the
    function first. For one that fails on some sets only sensitivity 1 is not proved.

    Call it with people in an order that does not depend on who else is there (sorted by id).

    Args:
        function: people -> B[0], B[1], ...; read up to B[removals]. Picklable if this shall be.
        removals: K, at least the `cap` of the search.
        lowest: a public number, below the lowest candidate or the lowest itself.
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
        found = self._asked(listed)
        return found if _can_follow(found, self._nobody, len(listed)) else self._failed

    @functools.cached_property
    def _nobody(self) -> Profile:
        """What the function says of nobody; that is public."""
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


def _can_follow(found: Profile, nobody: Profile, people: int) -> bool:
    """Return whether every loss is at least that of nobody, and at most as many people more.

    Levels of -inf are as good as none.
    """
    low, high, empty = found.values[people:], found.values, nobody.values
    grown = itertools.zip_longest(empty, high, fillvalue=-math.inf)
    bounded = itertools.zip_longest(low, empty, fillvalue=-math.inf)
    return all(before <= after for before, after in itertools.chain(grown, bounded))

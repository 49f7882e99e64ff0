"""The removal profile that a user's own function gives, guarded: whatever it does, it is one."""

import contextlib
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
    that keeps its claim (see `Monotone`) never gets there, and its loss has sensitivity 1. For one
    that fails on some sets only, sensitivity 1 is not proved, as for any wrong claim: run
    `testing.check_interlacing` on it first.

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
        # A boundary to a user's function on private data: nothing of an error is kept.
        with contextlib.suppress(BaseException):
            levels = claimed_levels("GuardedProfile", self.function, tuple(people))
            return first_levels(levels, self.removals)
        return Profile((self.lowest,))

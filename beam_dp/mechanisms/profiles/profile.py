"""The removal profile of one partition, its loss of every candidate, and users' own profiles."""

import bisect
import contextlib
import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.integers import WIDE, Number, is_nan
from beam_dp.mechanisms.numerics.user_functions import (
    People,
    ProfileFunction,
    check_callable,
    is_infinite,
    plain_number,
    removal_count,
)


class Plateau(NamedTuple):
    """A run of candidates start <= i < stop that share one loss; never empty."""

    loss: int
    start: int
    stop: int


@dataclass(frozen=True, init=False, repr=False)
class Profile:
    """B[0] >= B[1] >= ... >= B[K]: the statistic after the best removal of at most k people.

    It is private data, not a private release: neither its repr nor an error shows a value.

    For databases x and x' = x + one person and a monotone f, the profiles interlace:
    `B'[k + 1] <= B[k] <= B'[k]` (an optimal removal R from x becomes R + that person from x', and
    one from x' may leave that person out). Hence, for every candidate y at once,
    `loss(x, y) <= loss(x', y) <= loss(x, y) + 1`, which is all that the searches rely on
    (Fang, Dong, Yi, "Shifted Inverse", CCS 2022). A loss that is cut at K + 1 keeps both of them.

    Args:
        values: B[0..K], numbers that do not increase; -inf and inf are allowed.

    Raises:
        ValueError: if there is no value, or one is NaN or larger than the one before it.
    """

    values: tuple[Number, ...]

    def __init__(self, values: Iterable[Number]) -> None:
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        plain = tuple(v.item() if isinstance(v, np.generic) else v for v in listed)
        rule = "Profile", "values", "be numbers that do not increase, at least one and no NaN"
        checks.require(len(plain) > 0 and not is_nan(plain[0]), *rule)
        pairs = itertools.pairwise(plain)
        ordered = all(after is before or after <= before for before, after in pairs)
        checks.require(ordered, *rule)  # a NaN fails too
        object.__setattr__(self, "values", plain)

    def __repr__(self) -> str:
        return f"Profile(of {len(self.values)} values)"

    def steps(self, candidates: Candidates) -> list[int]:
        """Return steps[k], the first i with candidate i >= B[k]: loss(y_i) <= k iff i >= steps[k].

        It takes O(K log N) time for N candidates; steps[k] does not increase in k.
        """
        if candidates.size < WIDE and all(type(value) is float for value in self.values):
            indexes: list[int] = candidates.indexes(np.array(self.values)).tolist()
            return indexes
        # With few people nearly all values of a long profile are equal.
        known = {value: candidates.index(value) for value in dict.fromkeys(self.values)}
        return [known[value] for value in self.values]

    def loss(self, candidates: Candidates) -> list[int]:
        """Return per candidate y the least k with B[k] <= y, and len(values) where there is none.

        The list is non-increasing and as long as the candidates: meant for few of them.
        """
        losses: list[int] = []
        for plateau in self.plateaus(candidates):
            losses += [plateau.loss] * (plateau.stop - plateau.start)
        return losses

    def plateaus(self, candidates: Candidates) -> Iterator[Plateau]:
        """Yield the runs of equal loss from the lowest candidate up: at most K + 2, O(K log N)."""
        steps = self.steps(candidates)
        start = 0
        for loss in range(len(steps), -1, -1):
            stop = steps[loss - 1] if loss > 0 else candidates.size
            if stop > start:
                yield Plateau(loss, start, stop)
                start = stop


def loss_at(steps: list[int], i: int) -> int:
    """Return the loss of candidate i from `Profile.steps`: the number of k with steps[k] > i."""
    return bisect.bisect_left(steps, -i, key=lambda step: -step)


def first_levels(levels: Iterator[Number], removals: int) -> Profile:
    """Return B[0..removals]; later levels are not computed."""
    return Profile(level for _, level in zip(range(removals + 1), levels))


@dataclass(frozen=True, repr=False)
class GuardedProfile:
    """A user's profile function as it is sent to workers: it never raises, whatever the people.

    Where the function raises, or its result is no profile (a NaN, an increase, nothing at all), the
    result is `Profile([lowest])`, a public constant; nothing of the error is kept. A function that
    keeps its claim never gets there, and its loss has sensitivity 1. The claim is: with one person
    more B' has as many levels as B or one more (apart from levels of -inf, which no candidate
    reaches), and `B'[k + 1] <= B[k] <= B'[k]` for every k where both levels are there. For y below
    all levels the loss is their number: so one person must not move that number by 2.

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
        if not is_infinite(self.lowest):
            checks.number("GuardedProfile", "lowest", self.lowest)

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
            levels = (plain_number("GuardedProfile", level) for level in self.function(people))
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

"""Exact monotone statistics of a few people in memory, computed from their definitions.

A person's record is the tuple of their values, one for each row; an absent value is None.
"""

import collections
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import (
    People,
    ProfileFunction,
    Statistic,
)


class Exact(NamedTuple):
    """A statistic as a function of a tuple of records.

    Attributes:
        statistic: the function.
        profile: its removal profile; None if that needs a search over subsets of people.
        of_values: whether people without any value are left out before it is computed.
    """

    statistic: Statistic
    profile: ProfileFunction | None = None
    of_values: bool = False


def present(people: People) -> Iterator[Any]:
    """Yield all values that are not None."""
    return (value for record in people for value in record if value is not None)


def occurrences(people: People) -> collections.Counter[Any]:
    """Return how many rows have each value."""
    return collections.Counter(present(people))


def additive(part: Callable[[Any], Number]) -> Exact:
    """Return a sum of one part, at least 0, per person: B[k] is the sum without the k largest.

    Args:
        part: takes one person's record, returns a number of at least 0.
    """

    def profile(people: People) -> Iterator[Number]:
        parts = sorted(map(part, people), reverse=True)
        left = sum(parts)
        yield left
        for largest in parts:
            left -= largest
            yield left

    return Exact(lambda people: sum(map(part, people)), profile)


def total(record: People) -> Number:
    """Return the sum of a person's values, but 0 for a negative sum."""
    return max(Fraction(0), sum(present((record,)), Fraction(0)))


def extreme(sign: int) -> Exact:
    """Return the largest sign * value: the maximum for 1, minus the minimum for -1.

    It is -inf without values. B[k] is the (k + 1)-th highest of the people's own largest ones.
    """

    def statistic(people: People) -> Number:
        return max((sign * value for value in present(people)), default=-math.inf)

    def profile(people: People) -> Iterator[Number]:
        yield from sorted((statistic((record,)) for record in people), reverse=True)
        yield -math.inf

    return Exact(statistic, profile)

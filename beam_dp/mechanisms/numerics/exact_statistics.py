"""Monotone statistics of a few people, from their records: in memory, exact, by definition.

A person's record is the tuple of their values, one for each row; None is an absent value.
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
        profile: its removal profile, where that needs no search over subsets of people.
        of_values: whether people without any value are left out beforehand.
    """

    statistic: Statistic
    profile: ProfileFunction | None = None
    of_values: bool = False


def present(people: People) -> Iterator[Any]:
    """Yield all values that are not absent."""
    return (value for record in people for value in record if value is not None)


def occurrences(people: People) -> collections.Counter[Any]:
    """Return how many rows have each value."""
    return collections.Counter(present(people))


def additive(part: Callable[[Any], Number]) -> Exact:
    """Return the sum of a part of at least 0 per person: B[k] is without the k largest parts.

    Args:
        part: the part of one record.
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
    """Return the sum of a person's values; 0 where the sum is below 0."""
    return max(Fraction(0), sum(present((record,)), Fraction(0)))


def extreme(sign: int) -> Exact:
    """Return the largest value, or for sign -1 the mirror of the smallest; -inf for nobody.

    B[k] is the largest value of the (k + 1)-th person.
    """

    def statistic(people: People) -> Number:
        return max((sign * value for value in present(people)), default=-math.inf)

    def profile(people: People) -> Iterator[Number]:
        yield from sorted((statistic((record,)) for record in people), reverse=True)
        yield -math.inf

    return Exact(statistic, profile)

"""Down sensitivity: how much of a statistic the removal of k people can take away."""

from collections.abc import Iterable
from typing import Any

from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import Statistic, removal_count
from beam_dp.mechanisms.sensitivity.gradient import minus
from beam_dp.mechanisms.sensitivity.monotone import EVALUATIONS, Monotone

_OWNER = "down_sensitivity"


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
    removal_count(_OWNER, "k", k)
    levels = Monotone(f, people, limit).profile(k).values
    return minus(levels[0], levels[-1])

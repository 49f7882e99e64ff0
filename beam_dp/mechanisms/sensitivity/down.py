"""Down sensitivity: how much of a statistic the removal of k people can take away."""

from collections.abc import Iterable
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import Statistic, check_callable, removal_count
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.sensitivity.gradient import minus
from beam_dp.mechanisms.sensitivity.monotone import EVALUATIONS, Monotone

_OWNER = "down_sensitivity"


def down_sensitivity(
    f: Profile | Statistic,
    people: Iterable[Any] | None = None,
    k: int = 1,
    limit: int = EVALUATIONS,
) -> Number:
    """Return DS^k(x) = max over |R| <= k of f(x) - f(x without R): what k removals can take from f.

    Exact for every statistic that has a removal profile: DS^k is B[0] - B[k] (Steinke, "Beyond
    Local Sensitivity via Down Sensitivity", 2023). A search with shift T releases a value between
    f - DS^T and f. DS^k is a property of the data and not private by itself.

    Where people are k or fewer, all may be removed. Two floats are subtracted as floats; an int and
    a float as Fractions; two equal infinities are 0 apart.

    Args:
        f: a `Profile`, or a monotone function of a tuple of people's records, whose removals are
            searched (`Monotone` says at what cost, and what must be true of f).
        people: one record per person, for a function; None for a `Profile`.
        k: how many people may be removed, from 0.
        limit: the most evaluations of a function.

    Raises:
        TypeError: for other types.
        ValueError: if k is negative or beyond a profile that is given, or the limit is reached.
    """
    removal_count(_OWNER, "k", k)
    if isinstance(f, Profile):
        if people is not None:
            rule = "be left out for a Profile, which knows them"
            raise checks.ParameterTypeError(_OWNER, "people", rule)
        rule = f"be at most the last removal of the profile, not {k}"
        checks.require(k < len(f.values), _OWNER, "k", rule, "Give a longer one.")
        return minus(f.values[0], f.values[k])
    check_callable(_OWNER, "f", f)
    if people is None:
        raise checks.ParameterTypeError(_OWNER, "people", "be a list of records, not None")
    levels = Monotone(f, people, limit).profile(k).values
    return minus(levels[0], levels[-1])

"""Down sensitivity: how much of a statistic the removal of k people can take away."""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import (
    Statistic,
    check_callable,
    is_infinite,
    removal_count,
)
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.sensitivity.exact_metrics import monotone
from beam_dp.mechanisms.sensitivity.monotone import EVALUATIONS, Monotone


def down_sensitivity(
    f: Profile | Monotone | Metric | Statistic,
    people: Iterable[Any] | None = None,
    k: int = 1,
    limit: int = EVALUATIONS,
    person: str | None = None,
) -> Number:
    """Return DS^k(x) = max over |R| <= k of f(x) - f(x without R): what k removals can take from f.

    Exact for every statistic that has a removal profile: DS^k is B[0] - B[k] (Steinke, "Beyond
    Local Sensitivity via Down Sensitivity", 2023). A search with shift T releases a value between
    f - DS^T and f. DS^k is a property of the data and not private by itself.

    Where people are k or fewer, all may be removed. Two floats are subtracted as floats; an int and
    a float as Fractions; two equal infinities are 0 apart.

    Args:
        f: a `Profile`, a `Monotone`, or a monotone function of a tuple of people's records, whose
            removals are searched (`Monotone` says at what cost, and what must be true of f). Or a
            metric like `Count()`, of rows with one owner: for any number of people with counts,
            sums (people below 0 count as 0), extremes (of `Min`, its mirror -min) and the k-th
            largest; `CustomProfile` by its own profile; every other metric is searched like a
            function. The values are not rounded to the metric's unit; values that are no numbers,
            or None where items are compared, are absent. Items are equal where Python says so.
        people: one record per person, for a function; the rows, as dicts, for a metric; None for a
            `Profile` or a `Monotone`, where they are known.
        k: how many people may be removed, from 0.
        limit: the most evaluations of a function.
        person: for a metric, the column that identifies a person.

    Raises:
        TypeError: for other types, and for metrics that are not monotone: quantiles, means, ratios.
        ValueError: if k is negative or beyond a profile that is given, or the limit is reached.
    """
    removal_count("down_sensitivity", "k", k)
    if not isinstance(f, Profile):
        f = _with_people(f, people, limit, person)
        k = min(k, len(f.people))
    elif people is not None:
        raise _needless(f)
    values = (f if isinstance(f, Profile) else f.profile(k)).values
    checks.require(
        k < len(values),
        "down_sensitivity",
        "k",
        f"be at most the last removal of the profile, not {k}",
        "Give a longer one.",
    )
    return _difference(values[0], values[k])


def _with_people(
    f: Monotone | Metric | Statistic, people: Iterable[Any] | None, limit: int, person: str | None
) -> Monotone:
    if isinstance(f, Metric):
        return _of_rows(f, people, limit, person)
    checks.require(
        person is None,
        "down_sensitivity",
        "person",
        "be left out for all but a metric, like dp.Count()",
    )
    if isinstance(f, Monotone):
        if people is not None:
            raise _needless(f)
        return f
    check_callable("down_sensitivity", "f", f)
    if people is None:
        raise checks.ParameterTypeError(
            "down_sensitivity", "people", "be a list of records, not None"
        )
    return Monotone(f, people, limit=limit)


def _of_rows(
    metric: Metric, rows: Iterable[Any] | None, limit: int, person: str | None
) -> Monotone:
    if rows is None or person is None:
        raise checks.ParameterTypeError(
            "down_sensitivity",
            "people",
            "be the rows, and person the column that identifies a person, for a metric",
            'Write down_sensitivity(dp.Count(), rows, person="id").',
        )
    return monotone("down_sensitivity", metric, rows, person, limit)


def _needless(f: object) -> TypeError:
    return TypeError(
        f"down_sensitivity: people must be None for a {type(f).__name__}, which knows them. "
        "Write down_sensitivity(f, k=...)."
    )


def _difference(high: Number, low: Number) -> Number:
    if high == low:
        return 0
    if is_infinite(high) or is_infinite(low):
        return math.inf
    return high - low if type(high) is type(low) else Fraction(high) - Fraction(low)

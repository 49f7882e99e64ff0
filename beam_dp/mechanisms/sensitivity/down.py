"""Down sensitivity: how much of a statistic the removal of k people can take away."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from beam_dp.mechanisms.bounding.columns import Role, with_role
from beam_dp.mechanisms.metrics import names_of
from beam_dp.mechanisms.metrics.base import Metric, shown
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import (
    People,
    Statistic,
    check_callable,
    removal_count,
)
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.sensitivity.gradient import minus
from beam_dp.mechanisms.sensitivity.monotone import EVALUATIONS, Monotone

_OWNER = "down_sensitivity"


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
    removal_count(_OWNER, "k", k)
    if person is not None or isinstance(f, Metric):
        f, people = _of_metric(f, people, person, limit), None
    elif isinstance(f, (Profile, Monotone)):
        if people is not None:
            raise TypeError(
                f"{_OWNER}: people must be None for a {type(f).__name__}, which knows them. "
                "Write down_sensitivity(f, k=...)."
            )
    else:
        check_callable(_OWNER, "f", f)
        if people is None:
            raise checks.ParameterTypeError(_OWNER, "people", "be a list of records, not None")
        f = Monotone(f, people, limit=limit)
    if isinstance(f, Monotone):
        k = min(k, len(f.people))
        f = f.profile(k)
    rule = f"be at most the last removal of the profile, not {k}"
    checks.require(k < len(f.values), _OWNER, "k", rule, "Give a longer one.")
    return minus(f.values[0], f.values[k])


def _of_metric(
    metric: object, rows: Iterable[Any] | None, person: str | None, limit: int
) -> Monotone:
    rule = "be left out for all but a metric, like dp.Count()"
    checks.require(isinstance(metric, Metric), _OWNER, "person", rule)
    assert isinstance(metric, Metric)
    if rows is None or person is None:
        raise checks.ParameterTypeError(
            _OWNER,
            "people",
            "be the rows, and person the column that identifies a person, for a metric",
            'Write down_sensitivity(dp.Count(), rows, person="id").',
        )
    return monotone(metric, rows, person, limit)


def monotone(
    metric: Metric, rows: Iterable[Mapping[str, Any]], person: str, limit: int
) -> Monotone:
    """Return a monotone metric of these rows, as an exact function of the people who are kept.

    A person's record is the tuple of their values, one per row; rows without a person are dropped.
    The removal loss of a release may be relaxed, this statistic is not.
    """
    column = checks.column(_OWNER, "person", person)
    if not metric.monotone:
        raise checks.ParameterTypeError(
            _OWNER,
            "f",
            f"be a monotone metric, not {shown(metric)}: removing people may make it "
            "larger as well as smaller, and no profile says by how much",
            f"Give {names_of(lambda kind: kind.monotone)}, or a function.",
        )
    exact, compared = metric.exactly(), bool(with_role(metric.columns(), Role.ITEM))
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            rule = f"be rows, as dicts, not {type(row).__name__}"
            raise checks.ParameterTypeError(_OWNER, "people", rule)
        if row.get(column) is not None:
            values = [_read(row.get(asked.name), compared) for asked in metric.columns()]
            groups.setdefault(row[column], []).append(values[0] if values else None)
    people: Iterable[People] = map(tuple, groups.values())
    if exact.of_values:
        people = [record for record in people if any(value is not None for value in record)]
    return Monotone(exact.statistic, people, exact.profile, limit)


def _read(value: object, compared: bool) -> object:
    """Return an item, or a number as the decimal that it prints as; None for what is absent."""
    if compared:
        return None if isinstance(value, float) and math.isnan(value) else value
    try:
        return checks.decimal("rows", "value", value)
    except (TypeError, ValueError):
        return None

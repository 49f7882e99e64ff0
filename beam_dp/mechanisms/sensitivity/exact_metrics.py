"""Metrics as monotone functions of people whose rows are given: small data, in memory, exact."""

import collections
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.metrics import base, custom_profile, extremes, items, rows, totals
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import People, ProfileFunction, Statistic
from beam_dp.mechanisms.profiles import kth_largest
from beam_dp.mechanisms.sensitivity.monotone import Monotone


def monotone(
    owner: str, metric: Metric, rows: Iterable[Mapping[str, Any]], person: str, limit: int
) -> Monotone:
    """Return what a metric is of these rows, as a function of the people who are kept.

    A person's record is the tuple of their values, one for each row. The statistic is the exact
    one, of which the removal loss of a release may be a relaxation.

    Args:
        owner: who asks.
        metric: a monotone one.
        rows: dicts with the columns of the metric and of the person.
        person: the column that identifies a person; rows without one are dropped.
        limit: the most evaluations where removals are searched.

    Raises:
        TypeError: for metrics that are not monotone, and rows that are no dicts.
    """
    column = checks.column(owner, "person", person)
    statistic, profile = _functions(owner, metric)
    read = _item if metric.items else _number
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise TypeError(f"{owner}: people must be rows, as dicts, not {type(row).__name__}.")
        if row.get(column) is not None:
            values = [read(row.get(name)) for name in metric.columns]
            groups.setdefault(row[column], []).append(values[0] if values else None)
    people: Iterable[People] = map(tuple, groups.values())
    if isinstance(metric, custom_profile.CustomProfile):  # which is never asked of who has no value
        people = [record for record in people if any(value is not None for value in record)]
    return Monotone(statistic, people, profile, limit)


def _functions(owner: str, metric: Metric) -> tuple[Statistic, ProfileFunction | None]:
    """Return the statistic of a tuple of records, and its profile where that needs no search."""
    match metric:
        case totals.PeopleCount():
            return len, _additive(lambda record: 1)
        case totals.Count():
            return lambda people: sum(map(len, people)), _additive(len)
        case totals.Sum():
            return lambda people: sum(map(_total, people)), _additive(_total)
        case extremes.Max():
            return _largest(1), _extremes(1)
        case extremes.Min():
            return _largest(-1), _extremes(-1)
        case rows.KthLargest():
            return _kth(metric.k), _kth_profile(metric.k)
        case items.DistinctCount():
            return lambda people: len(_counts(people)), None
        case items.MaxFrequency():
            return lambda people: max(_counts(people).values(), default=0), None
        case items.SumOfSquares():
            return lambda people: sum(n * n for n in _counts(people).values()), None
        case custom_profile.CustomProfile():
            profile = _custom(metric)
            return lambda people: next(iter(profile(people))), profile
    raise TypeError(
        f"{owner}: f must be a monotone metric, not {base.shown(metric)}: removing people may "
        "make it larger as well as smaller, and no profile says by how much. Give Count, Sum, Max, "
        "Min, PeopleCount, KthLargest, DistinctCount, MaxFrequency, SumOfSquares or CustomProfile, "
        "or a function."
    )


def _number(value: object) -> Fraction | None:
    """Return a number as the decimal that it prints as; None for all else, which is absent."""
    try:
        return checks.decimal("rows", "value", value)
    except (TypeError, ValueError):
        return None


def _item(value: object) -> object:
    """Return a value that is compared; None for NaN, which is absent."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _present(people: People) -> Iterator[Any]:
    return (value for record in people for value in record if value is not None)


def _total(record: People) -> Number:
    return max(Fraction(0), sum(_present((record,)), Fraction(0)))


def _counts(people: People) -> collections.Counter[Any]:
    return collections.Counter(_present(people))


def _largest(sign: int) -> Statistic:
    return lambda people: max((sign * value for value in _present(people)), default=-math.inf)


def _kth(k: int) -> Statistic:
    def statistic(people: People) -> Number:
        ordered = sorted(_present(people), reverse=True)
        return ordered[k - 1] if len(ordered) >= k else -math.inf

    return statistic


def _kth_profile(k: int) -> ProfileFunction:
    """Return the exact profile of `ranks`, on the values themselves as candidates."""

    def profile(people: People) -> Iterator[Number]:
        values = sorted(set(_present(people)))
        places = {value: place for place, value in enumerate(values)}
        owners = [i for i, record in enumerate(people) for _ in _present((record,))]
        buckets = np.array([places[value] for value in _present(people)], np.int64)
        ones = np.ones(len(buckets), np.int64)
        found = kth_largest.profile(np.array(owners, np.int64), buckets, ones, k, len(people))
        return (values[place] if place >= 0 else -math.inf for place in found)

    return profile


def _custom(metric: custom_profile.CustomProfile) -> ProfileFunction:
    """Return the user's own function, on what a release gives it: each person's values in order."""

    def profile(people: People) -> Iterable[Any]:
        rows = (sorted(map(_plain, _present((record,)))) for record in people)
        return metric.profile(tuple(map(tuple, rows)))

    return profile


def _plain(value: Fraction) -> Number:
    return int(value) if value.denominator == 1 else float(value)


def _additive(part: Callable[[Any], Number]) -> ProfileFunction:
    """Return B[k] = the sum without the k largest parts, for parts of at least 0."""

    def profile(people: People) -> Iterator[Number]:
        parts = sorted(map(part, people), reverse=True)
        left = sum(parts)
        yield left
        for largest in parts:
            left -= largest
            yield left

    return profile


def _extremes(sign: int) -> ProfileFunction:
    """Return B[k] = the largest value of the (k + 1)-th person, -inf where there is none."""
    largest = _largest(sign)

    def profile(people: People) -> Iterator[Number]:
        yield from sorted((largest((record,)) for record in people), reverse=True)
        yield -math.inf

    return profile

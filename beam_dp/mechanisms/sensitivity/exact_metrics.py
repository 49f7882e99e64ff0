"""Turn metrics into exact monotone functions of the people of some rows: for small data."""

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.bounding.columns import Role, with_role
from beam_dp.mechanisms.metrics import names_of
from beam_dp.mechanisms.metrics.base import Metric, shown
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.exact_statistics import Exact
from beam_dp.mechanisms.numerics.user_functions import People
from beam_dp.mechanisms.sensitivity.monotone import Monotone


def monotone(
    owner: str, metric: Metric, rows: Iterable[Mapping[str, Any]], person: str, limit: int
) -> Monotone:
    """Return a metric of these rows, as a function of the people who are kept.

    A person's record is the tuple of their values, one per row. The statistic is exact; the removal
    loss of a release may be relaxed.

    Args:
        owner: the name that errors begin with.
        metric: a monotone metric.
        rows: dicts with the columns of the metric and of the person.
        person: the column that identifies a person; rows without a person are dropped.
        limit: the most evaluations of the statistic where removals are searched.

    Raises:
        TypeError: for metrics that are not monotone, and rows that are not dicts.
    """
    column = checks.column(owner, "person", person)
    exact, read = _exactly(owner, metric), _reader(metric)
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise checks.ParameterTypeError(
                owner, "people", f"be rows, as dicts, not {type(row).__name__}"
            )
        if row.get(column) is not None:
            values = [read(row.get(asked.name)) for asked in metric.columns()]
            groups.setdefault(row[column], []).append(values[0] if values else None)
    people: Iterable[People] = map(tuple, groups.values())
    if exact.of_values:
        people = [record for record in people if any(value is not None for value in record)]
    return Monotone(exact.statistic, people, exact.profile, limit)


def _exactly(owner: str, metric: Metric) -> Exact:
    if metric.monotone:
        return metric.exactly()
    names = names_of(lambda kind: kind.monotone)
    raise checks.ParameterTypeError(
        owner,
        "f",
        f"be a monotone metric, not {shown(metric)}: removing people may make it "
        "larger as well as smaller, and no profile says by how much",
        f"Give {names}, or a function.",
    )


def _reader(metric: Metric) -> Callable[[object], object]:
    compared = bool(with_role(metric.columns(), Role.ITEM))
    return _item if compared else _number


def _number(value: object) -> Fraction | None:
    """Return a number as the decimal that it prints as; None for other values: they are absent."""
    try:
        return checks.decimal("rows", "value", value)
    except (TypeError, ValueError):
        return None


def _item(value: object) -> object:
    """Return an item, which is only compared; None for NaN, which is absent."""
    return None if isinstance(value, float) and math.isnan(value) else value

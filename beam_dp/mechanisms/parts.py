"""From metrics to parts: the numbers per partition that must be released, each of them once."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

from beam_dp.mechanisms import checks, metrics
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.metrics import Metric, SearchKind


@dataclasses.dataclass(frozen=True)
class Options:
    """How a part is released; what does not apply keeps its default, so that parts can be shared.

    Attributes:
        clip: "shared" or "partition".
        clip_share: the part of its budget that chooses the clip; None: the default.
        candidates: the public clips or outputs; None: the default ones.
        search: how a one-sided release or an extreme searches; None: clip and noise.
        beta: how often that search may fail.
    """

    clip: str = "shared"
    clip_share: Fraction | None = None
    candidates: Candidates | None = None
    search: SearchKind | None = None
    beta: float = 0.05


@dataclasses.dataclass(frozen=True)
class Part:
    """One number per partition that must be released; two metrics may share it.

    Attributes:
        kind: "people", "rows", "valid" (rows with a value), "sum", "max" or "min".
        column: the value column, "" for people and rows.
        people: for "valid": count people instead of rows.
        options: how it is released.
    """

    kind: str
    column: str = ""
    people: bool = False
    options: Options = Options()


def parts_of(metric: Metric) -> tuple[Part, ...]:
    """Return the parts that a metric is computed from."""
    match metric:
        case metrics.PeopleCount():
            return (Part("people"),)
        case metrics.Count():
            return (Part("rows", options=_additive(metric)),)
        case metrics.Sum():
            return (Part("sum", metric.column, options=_additive(metric)),)
        case metrics.Max() | metrics.Min():
            kind = "max" if isinstance(metric, metrics.Max) else "min"
            searched = Options("", None, metric.candidates, metric.search, metric.beta)
            return (Part(kind, metric.column, options=searched),)
        case metrics.Mean():
            options = Options(metric.clip, _share(metric))
            return (
                Part("sum", metric.column, options=options),
                Part("valid", metric.column, metric.per == "person", options),
            )
    raise TypeError(f"PrivateAggregate: a metric must be one of beam_dp's, not {metric!r}.")


def _additive(metric: metrics.Count | metrics.Sum) -> Options:
    if metric.one_sided:
        return Options("", None, metric.candidates, metric.search, metric.beta)
    return Options(metric.clip, _share(metric), metric.candidates)


def _share(metric: metrics.Count | metrics.Sum | metrics.Mean) -> Fraction | None:
    share = metric.clip_share
    return None if share is None else checks.number(type(metric).__name__, "clip_share", share)


def weights_of(asked: Sequence[Metric]) -> dict[Part, Fraction]:
    """Return the weight of every part: each metric gives its parts equal parts of its own."""
    weights: dict[Part, Fraction] = {}
    for metric in asked:
        weight = checks.number(type(metric).__name__, "weight", metric.weight)
        parts = parts_of(metric)
        for part in parts:
            weights[part] = weights.get(part, Fraction(0)) + weight / len(parts)
    return weights


def units_of(asked: Sequence[Metric]) -> dict[str, Fraction]:
    """Return the unit of every value column that the metrics read."""
    units: dict[str, Fraction] = {}
    for metric in asked:
        for column in metric.columns:
            unit = checks.decimal(type(metric).__name__, "unit", vars(metric)["unit"])
            checks.require(
                units.setdefault(column, unit) == unit,
                f"{type(metric).__name__}: unit must be the same for all metrics of "
                f"{column!r}, not both {float(units[column])} and {float(unit)}.",
            )
    return units


def quotients(asked: Sequence[Metric]) -> frozenset[Part]:
    """Return the parts that a quotient uses: their error bounds must hold together."""
    return frozenset(part for metric in asked for part in _several(parts_of(metric)))


def _several(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return parts if len(parts) > 1 else ()

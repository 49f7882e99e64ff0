"""From metrics to parts: the numbers per partition that must be released, each of them once."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import (
    base,
    black_box,
    custom_profile,
    extremes,
    items,
    ratio,
    rows,
    spread,
    totals,
)
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.person_epsilon import PersonalisedStatistic
from beam_dp.mechanisms.metrics.rows import share_of
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.releases.preprocessed import Asked
from beam_dp.mechanisms.search import ScaleThenChoose
from beam_dp.mechanisms.search.choose import SearchKind


@dataclasses.dataclass(frozen=True)
class Options:
    """How a part is released; what does not apply keeps its default, so that parts can be shared.

    Attributes:
        clip: "shared" or "partition".
        clip_share: the part of its budget that chooses the clip; None: the default.
        candidates: the public clips or outputs; None: the default ones.
        search: how the removal loss is searched, or "two-phase"; None: another way.
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
        kind: "people", "rows", "valid" (rows with a value), "sum", "max", "min"; "kth", "rank",
            "quantile", "distinct", "frequency", "squares", "pairs", "custom" (see `metrics.rows`);
            "ratio" (see `metrics.ratio`), "preprocessed" (see `metrics.spread`) or "black_box" (see
            there).
        column: the value column, "" for people and rows.
        people: for "valid" and "ratio": count people instead of rows.
        options: how it is released.
        detail: what else the kind needs: k, p, a function with its lowest value, or the value and
            the method of a ratio.
    """

    kind: str
    column: str = ""
    people: bool = False
    options: Options = Options()
    detail: tuple[Any, ...] = ()

    @property
    def wants_delta(self) -> bool:
        """Whether it is released by a mechanism that spends delta.

        "auto" does not: the searches that do would win only beyond 2^256 candidates.
        """
        if self.options.search is ScaleThenChoose:
            return True
        return self.kind == "ratio" and self.detail[1] in ("auto", "local_sensitivity")


def parts_of(metric: Metric) -> tuple[Part, ...]:
    """Return the parts that a metric is computed from."""
    metric = spread.chosen(metric)
    match metric:
        case totals.PeopleCount():
            return (Part("people"),)
        case totals.Count():
            return (Part("rows", options=_additive(metric)),)
        case totals.Sum():
            return (Part("sum", metric.column, options=_additive(metric)),)
        case extremes.Max() | extremes.Min():
            kind = "max" if isinstance(metric, extremes.Max) else "min"
            return (Part(kind, metric.column, options=_searched(metric)),)
        case totals.Mean():
            options = Options(metric.clip, _share(metric))
            return (
                Part("sum", metric.column, options=options),
                Part("valid", metric.column, metric.per == "person", options),
            )
    return _parts_of_rows(metric)


def _parts_of_rows(metric: Metric) -> tuple[Part, ...]:
    """Return the parts of the metrics of `metrics.rows`, `metrics.spread` and `metrics.ratio`."""
    match metric:
        case rows.Quantile() | rows.Median():
            kind = "rank" if metric.per == "person" else "quantile"
            return (Part(kind, metric.column, False, _plain(metric), (share_of(metric),)),)
        case rows.KthLargest():
            return (Part("kth", metric.column, False, _searched(metric), (metric.k,)),)
        case items.DistinctCount():
            options = Options(metric.clip, _share(metric), metric.candidates)
            options = _searched(metric) if metric.one_sided else options
            return (Part("distinct", metric.column, options=options),)
        case items.MaxFrequency():
            return (Part("frequency", metric.column, options=_searched(metric)),)
        case items.SumOfSquares():
            kind = "squares" if metric.relaxation == "items" else "pairs"
            return (Part(kind, metric.column, options=_searched(metric)),)
        case custom_profile.CustomProfile():
            detail = metric.profile, metric.lowest
            return (Part("custom", metric.column, False, _searched(metric), detail),)
        case spread.Preprocessing():
            return (_preprocessed(metric),)
        case black_box.BlackBox():
            asked = metric.function, metric.blocks, metric.person_value, metric.last_by
            return (Part("black_box", metric.column, False, _plain(metric), asked),)
        case ratio.Ratio():
            compared = metric.equals, metric.method, metric.neighbours
            return (Part("ratio", metric.column, metric.per == "person", detail=compared),)
    raise TypeError(
        f"PrivateAggregate: a metric must be one of beam_dp's, not {base.shown(metric)}."
    )


def _preprocessed(metric: spread.Preprocessing) -> Part:
    given = metric.sensitivity
    delta = None if given == "auto" else checks.decimal("Delta", "sensitivity", given)
    empty = checks.decimal("Delta", "empty", metric.empty)
    root = isinstance(metric, spread.StandardDeviation)
    value = metric.person_value, metric.last_by
    asked = Asked(metric.statistic, metric.share, *value, delta, empty, root)
    _, epsilons = metric.tiers or ("", ())
    options = _plain(metric) if isinstance(metric, PersonalisedStatistic) else Options()
    return Part("preprocessed", metric.columns[0], False, options, (asked, epsilons))


def _additive(metric: totals.Count | totals.Sum) -> Options:
    if metric.one_sided:
        return _searched(metric)
    return Options(metric.clip, _share(metric), metric.candidates)


def _searched(metric: Any) -> Options:
    return Options("", None, metric.candidates, metric.search, metric.beta)


def _plain(
    metric: rows.Quantile | rows.Median | black_box.BlackBox | PersonalisedStatistic,
) -> Options:
    return Options("", None, metric.candidates, None, metric.beta)


def _share(
    metric: totals.Count | totals.Sum | totals.Mean | items.DistinctCount,
) -> Fraction | None:
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
            if column in metric.items or metric.flags:
                continue
            unit = checks.decimal(type(metric).__name__, "unit", vars(metric)["unit"])
            checks.require(
                units.setdefault(column, unit) == unit,
                f"{type(metric).__name__}: unit must be the same for all metrics of "
                f"{column!r}, not both {float(units[column])} and {float(unit)}.",
            )
    return units


def items_of(asked: Sequence[Metric], second: str | None) -> tuple[str, ...]:
    """Return the columns whose values are compared with each other, that of a second owner first.

    The second owner stands apart even if the same column is compared too: owners are ids.
    """
    names = dict.fromkeys(item for metric in asked for item in metric.items)
    return (*(() if second is None else (second,)), *names)


def flags_of(asked: Sequence[Metric]) -> tuple[tuple[str, Any], ...]:
    """Return the columns whose values are compared with a given one, and that one."""
    given = {(name, type(value), value): None for m in asked for name, value in m.flags}
    return tuple((name, value) for name, _, value in given)


def orders_of(asked: Sequence[Metric]) -> tuple[str, ...]:
    """Return the columns that say which of a person's rows is the last."""
    return tuple(dict.fromkeys(name for metric in asked for name in metric.orders))


def quotients(asked: Sequence[Metric]) -> frozenset[Part]:
    """Return the parts that a quotient uses: their error bounds must hold together."""
    return frozenset(part for metric in asked for part in _several(parts_of(metric)))


def _several(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return parts if len(parts) > 1 else ()

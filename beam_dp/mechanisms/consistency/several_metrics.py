"""What several tables of one run agree on, metric by metric: counts, sums, and means of these.

Every metric agrees for itself. A sum that is made of distances D from a centre and of a count N
(`metrics.mean`) is D + c N, with a centre c of each table. The distances from one centre for all
tables, D + (c - c_0) N, agree, and the counts do. So the sums agree, which are these distances plus
c_0 times the agreed counts; and the mean, sum / count, errs by what distances and counts err, not
by what rounding a count does to c_0 N.

*What adds up.* A row counts in one partition of a table. So counts and sums of rows add up, unless
a bound or a clip that was given takes other rows in each table. People may be in several
partitions; quantiles, extremes and shares do not add up.
"""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.consistency import agreement
from beam_dp.mechanisms.consistency.agreement import Link
from beam_dp.mechanisms.consistency.tables import (
    GAUSS,
    LAPLACE,
    NoiseSize,
    ReleasedTable,
    noise_of_sum,
)
from beam_dp.mechanisms.metrics.base import Metric, MetricPart
from beam_dp.mechanisms.metrics.clipped_sum import ClippedSum
from beam_dp.mechanisms.metrics.mean import MeanOfReleased, SumOfReleased, over_rows
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.metrics.sums import Count, Sum
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.planning.program import Program

_FINE = 100
"""Sums become multiples of a power of ten of units, which is at most this part of their noise."""


class DrawnTable(NamedTuple):
    """The released numbers of a table.

    Attributes:
        program: its program, for what was chosen first.
        drawn: what every step drew, of the rows in a public order.
        sums: `Program.sums` of these.
        size: how many rows there are; the last ones were not drawn, but have parts that were.
    """

    program: Program
    drawn: Sequence[Released]
    sums: np.ndarray
    size: int

    def numbers(self, metrics: Sequence[Metric]) -> list[Released]:
        """Return the numbers of metrics, which are made of what was drawn."""
        return self.program.numbers(self.drawn, self.sums, metrics)

    def noise(self, metric: Metric) -> NoiseSize:
        """Return the noise of a metric that adds up."""
        return noise_of(self.program, self.drawn, metric)

    def origin(self, metric: Metric) -> float:
        """Return what the first part of a metric is a sum of distances from."""
        [part, *_] = metric.parts()
        return next(step.release.origin for step in self.program.steps if step.part == part)


def adds_up(metric: Metric, program: Program) -> bool:
    """Return whether a metric of a table is the sum of that of its parts."""
    free = program.bound is None and program.depth is None and not program.others
    free = free and program.limit in (None, program.partitions)
    return free and isinstance(metric, (Count, Sum)) and metric.is_plain


def noise_of(program: Program, drawn: Sequence[Released], metric: Metric) -> NoiseSize:
    """Return the noise of a metric that adds up.

    Args:
        program: its program.
        drawn: what every step drew.
        metric: the metric.
    """
    steps = {s.part: (s.release, d.cut) for s, d in zip(program.steps, drawn, strict=True)}
    strays, deviation, deviations, factor = 0.0, 0.0, GAUSS, 1.0
    for part in metric.parts():
        release, cut = steps[part]
        assert isinstance(release, ClippedSum)
        each, is_normal = release.deviation(cut)
        deviations = deviations if is_normal else LAPLACE
        strays = math.hypot(strays, factor * (LAPLACE * each if cut is None else cut.noise))
        deviation = math.hypot(deviation, factor * each)
        factor = release.origin - getattr(metric, "about", 0.0)  # of a count beside distances
    return NoiseSize(strays, deviation, deviations)


def agree(
    tables: Sequence[DrawnTable], links: Sequence[Link], which: Sequence[int], nonnegative: bool
) -> list[list[Released]]:
    """Return the numbers of every table: of its rows, then of (other) of each of its open links.

    Intervals are those of the table alone, which are made to hold the numbers. Where some table has
    no number of a metric, and not everything is listed, the metric is left as it was drawn. Numbers
    of rows that were not drawn are missing (NaN) then.

    Args:
        tables: from coarse to fine.
        links: between them, the coarser ones first; two lead to the finest where tables are crossed.
        which: the metrics that add up in all tables.
        nonnegative: whether all that is released is at least 0.
    """
    metrics = tables[0].program.metrics
    opened = [[k for k in links if k.fine == at and k.is_open] for at in range(len(tables))]
    out = []
    for table, sides in zip(tables, opened, strict=True):
        rows = table.size + sum(tables[side.coarse].size for side in sides)
        out.append([_padded(each, rows) for each in table.numbers(metrics)])
    counts: dict[MetricPart, int] = {}
    sums: dict[object, int] = {}
    for at in sorted(which, key=lambda at: not isinstance(metrics[at], Count)):
        metric, shown = metrics[at], _shown(tables, links, metrics[at])
        is_missing = any(np.isnan(table.numbers.values).any() for table in shown)
        if is_missing and any(map(len, opened)):
            continue
        is_count, is_least_0 = isinstance(metric, Count), metric.whole or nonnegative
        beside = counts.get(metric.parts()[-1]) if not (is_count or nonnegative) else None
        unit, centre, centred = _unit(tables, metric), 0, shown
        if isinstance(metric, SumOfReleased) and beside is not None:
            centre = round(tables[-1].origin(metric) / unit)
            about = dataclasses.replace(metric, about=float(centre * unit))
            centred = _shown(tables, links, about)
            sums[metric.parts()] = at
        counts |= {metric.parts()[0]: at} if is_count else {}
        levels = [table.level(float(unit)) for table in centred]
        whole = agreement.agree(levels, links, is_least_0)
        for columns, units, known, sides in zip(out, whole, shown, opened, strict=True):
            others = [_other(side, whole, shown, float(unit)) for side in sides]
            exact = integers.concatenate([units, *(each for each, _ in others)])
            own = _joined([known.numbers, *(each for _, each in others)])
            own = own.moved_inside(0.0, np.inf) if is_least_0 else own
            if beside is not None:
                of_centre = integers.product(columns[beside].values, np.array([centre]))
                exact = integers.add(exact, of_centre)
            columns[at] = _between(integers.scale(exact, unit), own)
    for at, mean in enumerate(metrics):
        if isinstance(mean, MeanOfReleased) and mean.parts() in sums:
            for columns in out:
                parts = columns[sums[mean.parts()]], columns[counts[mean.parts()[1]]]
                columns[at] = _quotient(columns[at], parts)
    return out


def _shown(
    tables: Sequence[DrawnTable], links: Sequence[Link], metric: Metric
) -> list[ReleasedTable]:
    """Return the numbers of a metric: of rows that were not drawn the sums of their parts."""
    made: dict[int, ReleasedTable] = {}
    for at, table in reversed(list(enumerate(tables))):
        [numbers] = table.numbers([metric])
        if missing := table.size - len(numbers.values):
            link = next(each for each in links if each.coarse == at)
            parts = agreement.sums(link.parents, made[link.fine].numbers.values, table.size)
            numbers = _joined([numbers, Released.ranked(parts[-missing:], 0.0)])
        made[at] = ReleasedTable(numbers, table.noise(metric))
    return [made[at] for at in sorted(made)]


def _unit(tables: Sequence[DrawnTable], metric: Metric) -> Fraction:
    """Return the grid that a metric agrees on: of sums far finer than the noise of distances."""
    if metric.whole:
        return metric.exact_unit
    pairs = [(table, metric) for table in tables]
    if isinstance(metric, SumOfReleased):
        pairs = [(t, dataclasses.replace(metric, about=t.origin(metric))) for t in tables]
    least = min(table.noise(each).deviation for table, each in pairs)
    power = math.floor(math.log10(least / _FINE / metric.exact_unit))
    return metric.exact_unit * Fraction(10) ** max(0, power)


def _other(
    link: Link, whole: Sequence[np.ndarray], shown: Sequence[ReleasedTable], unit: float
) -> tuple[np.ndarray, Released]:
    """Return what is not listed: parents less their listed parts, as agreed and as released."""
    totals, (parent, part) = whole[link.coarse], (shown[link.coarse], shown[link.fine])
    columns = np.ones(len(link.parents)), part.numbers.values, *part.losses
    count, values, less, more = (
        agreement.sums(link.parents, each, len(totals)) for each in columns
    )
    variance = parent.noise.deviation**2 + count * part.noise.deviation**2
    noise = noise_of_sum(max(parent.noise.deviations, part.noise.deviations), variance, unit)
    below, above = parent.losses[0] + noise + more, parent.losses[1] + noise + less
    left = Released.between(parent.numbers.values - values, below, above)
    return totals - integers.sums_at(link.parents, whole[link.fine], len(totals)), left


def _between(values: np.ndarray, own: Released) -> Released:
    """Return numbers with the intervals of others, which are made to hold them."""
    below, above = np.maximum(values - own.low, 0.0), np.maximum(own.high - values, 0.0)
    return Released.between(values, below, above)


def _padded(released: Released, size: int) -> Released:
    """Return numbers with missing ones behind them."""
    shape = size - len(released.values), *released.values.shape[1:]
    return (
        _joined([released, Released.ranked(np.full(shape, np.nan), np.inf)])
        if shape[0]
        else released
    )


def _joined(parts: Sequence[Released]) -> Released:
    """Return numbers one after the other."""
    columns = zip(*(part.columns for part in parts), strict=True)
    values, below, above, rank = map(np.concatenate, columns)
    return Released(values, below, above, rank)


def _quotient(mean: Released, parts: tuple[Released, Released]) -> Released:
    """Return the means of agreed sums and counts, with their own intervals if they have some."""
    total, count = parts
    values = np.full(len(count.values), np.nan)
    np.divide(total.values, count.values, where=count.values > 0, out=values)
    return _between(values, mean).where(~np.isnan(mean.values), over_rows(np.divide, parts))

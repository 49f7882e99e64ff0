"""What several tables of one run agree on, metric by metric: counts, sums, and means of these.

Every metric agrees for itself, counts first. A sum that is made of distances D from a centre c and
of a count N (`metrics.mean`) is D + c N, with a centre of each table. With the counts that agree in
place of N it errs by what D errs, and adds up as they do. So the mean, sum / count, errs by what
distances and counts err, not by what agreeing and rounding a count does to c N.

*What adds up.* A row counts in one partition of a table. So counts and sums of rows add up, unless
a bound or a clip that was given takes other rows in each table. People may be in several
partitions; quantiles, extremes and shares do not add up.
"""

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
from beam_dp.mechanisms.metrics.mean import MeanOfReleased, over_rows
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

    def noise(self, parts: Sequence[MetricPart]) -> NoiseSize:
        """Return the noise of what adds up."""
        return noise_of(self.program, self.drawn, parts)


def adds_up(metric: Metric, program: Program) -> bool:
    """Return whether a metric of a table is the sum of that of its parts."""
    asked = program.request
    free = asked.max_partitions is None and asked.max_rows_per_partition is None
    free = free and not asked.others and program.limit in (None, program.partitions)
    return free and isinstance(metric, (Count, Sum)) and metric.is_plain


def noise_of(program: Program, drawn: Sequence[Released], parts: Sequence[MetricPart]) -> NoiseSize:
    """Return the noise of what adds up.

    Args:
        program: its program.
        drawn: what every step drew.
        parts: a number, or distances and a count, which counts as often as the centre says.
    """
    steps = {s.part: (s.additive, d.loss) for s, d in zip(program.steps, drawn, strict=True)}
    tail_bound, deviation, deviations, factor = 0.0, 0.0, GAUSS, 1.0
    for part in parts:
        release, loss = steps[part]
        assert release is not None
        each, is_normal = release.deviation(loss)
        deviations = deviations if is_normal else LAPLACE
        tail_bound = math.hypot(
            tail_bound, factor * (LAPLACE * each if loss is None else loss.noise)
        )
        deviation = math.hypot(deviation, factor * each)
        factor = release.origin
    return NoiseSize(tail_bound, deviation, deviations)


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
    metrics = tables[0].program.request.metrics
    opened = [[k for k in links if k.fine == at and k.is_open] for at in range(len(tables))]
    known = [table.program.parts(table.drawn, table.sums) for table in tables]
    drawn = [[m.combine([each[part] for part in m.parts()]) for m in metrics] for each in known]
    out = []
    for table, numbers, sides in zip(tables, drawn, opened, strict=True):
        rows = table.size + sum(tables[side.coarse].size for side in sides)
        out.append([_padded(each, rows) for each in numbers])
    made: dict[object, int] = {}
    for at in sorted(which, key=lambda at: not isinstance(metrics[at], Count)):
        metric, parts = metrics[at], metrics[at].parts()
        is_least_0 = metric.whole or nonnegative
        own = [numbers[at] for numbers in drawn]
        if any(map(len, opened)) and any(np.isnan(each.values).any() for each in own):
            continue
        shown = _shown(tables, links, own, parts)
        centred = shown
        if parts[1:] in made:
            counts = [columns[made[parts[1:]]].values for columns in out]
            about = [each[parts[0]] for each in known]
            centred = _shown(tables, links, list(map(_moved, about, counts)), parts[:1])
        made[parts] = at
        unit = metric.exact_unit if metric.whole else _unit(metric.exact_unit, centred)
        whole = agreement.agree([t.level(float(unit)) for t in centred], links, is_least_0)
        for columns, units, each, sides in zip(out, whole, shown, opened, strict=True):
            others = [_other(side, whole, shown, float(unit)) for side in sides]
            exact = integers.concatenate([units, *(left for left, _ in others)])
            ends = Released.concatenated([each.numbers, *(left for _, left in others)])
            ends = ends.moved_inside(0.0, np.inf) if is_least_0 else ends
            columns[at] = Released.to_ends(integers.scale(exact, unit), ends.low, ends.high)
    for at, mean in enumerate(metrics):
        if isinstance(mean, MeanOfReleased) and {mean.parts(), mean.parts()[1:]} <= {*made}:
            for columns in out:
                pair = columns[made[mean.parts()]], columns[made[mean.parts()[1:]]]
                columns[at] = _quotient(columns[at], pair)
    return out


def _moved(distances: Released, counts: np.ndarray) -> Released:
    """Return sums that have the intervals of the distances that they are made of."""
    centres = distances.origin * counts[: len(distances.values)].astype(float)
    return Released.between(distances.values + centres, distances.below, distances.above)


def _shown(
    tables: Sequence[DrawnTable],
    links: Sequence[Link],
    numbers: Sequence[Released],
    parts: Sequence[MetricPart],
) -> list[ReleasedTable]:
    """Return the numbers of each table: of rows that were not drawn the sums of their parts."""
    made: dict[int, ReleasedTable] = {}
    for at, (table, own) in reversed(list(enumerate(zip(tables, numbers, strict=True)))):
        if missing := table.size - len(own.values):
            link = next(each for each in links if each.coarse == at)
            sums = agreement.sums(link.parents, made[link.fine].numbers.values, table.size)
            own = Released.concatenated([own, Released.between(sums[-missing:], np.inf, np.inf)])
        made[at] = ReleasedTable(own, table.noise(parts))
    return [made[at] for at in sorted(made)]


def _unit(unit: Fraction, tables: Sequence[ReleasedTable]) -> Fraction:
    """Return the grid that sums agree on: far finer than their noise.

    A table of which nothing is known has the noise of the least clip, and does not count.
    """
    known = [table.noise.deviation for table in tables if table.is_known]
    least = min(known or [table.noise.deviation for table in tables])
    return unit * Fraction(10) ** max(0, math.floor(math.log10(least / _FINE / unit)))


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


def _padded(released: Released, size: int) -> Released:
    """Return numbers with missing ones behind them."""
    if size == len(released.values):
        return released
    missing = np.full((size - len(released.values), *released.values.shape[1:]), np.nan)
    return Released.concatenated([released, Released.between(missing, np.inf, np.inf, np.inf)])


def _quotient(mean: Released, parts: tuple[Released, Released]) -> Released:
    """Return the means of agreed sums and counts, with their own intervals if they have some."""
    totals, counts = (part.values.astype(float) for part in parts)  # wide numbers are Python's
    values = np.full(len(counts), np.nan)
    np.divide(totals, counts, where=counts > 0, out=values)
    own = Released.to_ends(values, mean.low, mean.high)
    return own.where(~np.isnan(mean.values), over_rows(np.divide, parts))

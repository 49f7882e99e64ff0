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

from beam_dp.mechanisms.consistency import crossed, tree
from beam_dp.mechanisms.consistency.tables import GAUSS, LAPLACE, UNKNOWN, Agreed, ReleasedTable
from beam_dp.mechanisms.metrics.base import Metric, MetricPart
from beam_dp.mechanisms.metrics.mean import MeanOfReleased, SumOfReleased, over_rows
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.metrics.sums import Count, Sum
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.planning.program import Program

_FINE = 100
"""Sums become multiples of a power of ten of units, which is at most this part of their noise."""


class Link(NamedTuple):
    """How the rows of a table are parts of those of a coarser one.

    Attributes:
        coarse: the index of the coarser table.
        fine: that of the finer one.
        parents: the coarser row of each finer row.
        is_open: whether parts may not be listed; then each coarser row has a part (other).
    """

    coarse: int
    fine: int
    parents: np.ndarray
    is_open: bool


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


class NoiseSize(NamedTuple):
    """The noise of a number: how far it strays (95%), and as in `ReleasedTable`."""

    strays: float
    deviation: float
    deviations: float


def adds_up(metric: Metric, program: Program) -> bool:
    """Return whether a metric of a table is the sum of that of its parts."""
    asked = program.request
    free = asked.max_partitions is None and asked.max_rows_per_partition is None
    free = free and not asked.others and program.limit in (None, program.partitions)
    return free and isinstance(metric, (Count, Sum)) and metric.is_plain


def noise_of(program: Program, drawn: Sequence[Released], metric: Metric) -> NoiseSize:
    """Return the noise of a metric that adds up.

    Args:
        program: its program.
        drawn: what every step drew.
        metric: the metric.
    """
    steps = {s.part: (s.additive, d) for s, d in zip(program.steps, drawn, strict=True)}
    strays, deviation, deviations, factor = 0.0, 0.0, GAUSS, 1.0
    for part in metric.parts():
        release, of_part = steps[part]
        assert release is not None
        each, is_normal = release.deviation(of_part.cut)
        deviations = deviations if is_normal else LAPLACE
        far = LAPLACE * each if of_part.cut is None else of_part.cut.noise
        is_known = np.isfinite([of_part.below, of_part.above]).any() or not len(of_part.below)
        strays = math.hypot(strays, factor * far)
        deviation = math.hypot(deviation, factor * each) if is_known else UNKNOWN
        factor = release.origin - getattr(metric, "about", 0.0)  # of a count beside distances
    return NoiseSize(strays, deviation, deviations)


def agree(
    tables: Sequence[DrawnTable], links: Sequence[Link], which: Sequence[int], nonnegative: bool
) -> list[list[Released]]:
    """Return the numbers of every table: of its rows, then of (other) of each of its open links.

    Where some table has no number of a metric, and not everything is listed, the metric is left as
    it was drawn. Numbers of rows that were not drawn are missing (NaN) then.

    Args:
        tables: from coarse to fine.
        links: between them, the coarser ones first; two lead to the finest where tables are crossed.
        which: the metrics that add up in all tables.
        nonnegative: whether all that is released is at least 0.
    """
    metrics = tables[0].program.metrics
    out = []
    for at, table in enumerate(tables):
        others = [tables[link.coarse].size for link in links if link.fine == at and link.is_open]
        out.append([_padded(each, table.size + sum(others)) for each in table.numbers(metrics)])
    counts: dict[MetricPart, int] = {}
    sums: dict[object, int] = {}
    for at in sorted(which, key=lambda at: not isinstance(metrics[at], Count)):
        asked = metrics[at]
        count = counts.get(asked.released[1]) if isinstance(asked, SumOfReleased) else None
        count = None if nonnegative else count
        unit, metric, centre = _in_units(tables, asked, count is not None)
        about = float(centre * unit)
        found = _agreed(tables, links, metric, unit, nonnegative)
        if found and isinstance(asked, Count):
            counts[asked.parts()[0]] = at
        if found and count is not None:
            sums[asked.parts()] = at
        for columns, each in zip(out, found, strict=False):
            low, high = each.low * float(unit), each.high * float(unit)
            whole, own = each.whole, columns[at]
            if count is not None:
                number = columns[count]
                whole = integers.add(whole, integers.product(number.values, np.array([centre])))
                with np.errstate(invalid="ignore"):
                    ends = np.sort([number.low * about, number.high * about], axis=0)
                    is_new = np.isnan(own.values)
                    low = np.where(is_new, np.nan_to_num(low + ends[0], nan=-np.inf), own.low)
                    high = np.where(is_new, np.nan_to_num(high + ends[1], nan=np.inf), own.high)
            columns[at] = _between(integers.scale(whole, unit), low, high)
    for at, mean in enumerate(metrics):
        if isinstance(mean, MeanOfReleased) and mean.parts() in sums:
            for columns in out:
                parts = columns[sums[mean.parts()]], columns[counts[mean.parts()[1]]]
                columns[at] = _quotient(columns[at], parts)
    return out


def _between(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> Released:
    """Return numbers with their intervals, which are made to hold them."""
    return Released.between(values, np.maximum(values - low, 0.0), np.maximum(high - values, 0.0))


def _padded(released: Released, size: int) -> Released:
    """Return numbers with missing ones behind them."""
    more = size - len(released.values)
    if not more:
        return released
    missing = np.full((more, *released.values.shape[1:]), np.nan)
    return Released.joined([released, Released.ranked(missing, math.inf)])


def _quotient(mean: Released, parts: tuple[Released, Released]) -> Released:
    """Return the means of agreed sums and counts, with their own intervals if they have some."""
    total, count = parts
    values = np.full(len(count.values), np.nan)
    np.divide(total.values, count.values, where=count.values > 0, out=values)
    own = _between(values, mean.low, mean.high)
    return own.where(~np.isnan(mean.values), over_rows(np.divide, parts))


def _in_units(
    tables: Sequence[DrawnTable], metric: Metric, centred: bool
) -> tuple[Fraction, Metric, int]:
    """Return the grid that a metric agrees on, the metric, and the centre of its distances.

    The centre is that of the finest table, rounded to the grid.
    """
    unit, centre = metric.exact_unit, 0.0
    if isinstance(metric, SumOfReleased) and centred:
        of_distances = metric.parts()[0]
        steps = tables[-1].program.steps
        centre = next(step.release.origin for step in steps if step.part == of_distances)
        metric = dataclasses.replace(metric, about=centre)
    if not metric.whole:
        noises = [noise_of(t.program, t.drawn, metric).deviation for t in tables if t.size]
        least = min((each for each in noises if each < UNKNOWN), default=float(unit))
        unit *= 10 ** max(0, math.floor(math.log10(least / _FINE / unit)))
    if isinstance(metric, SumOfReleased) and centred:
        metric = dataclasses.replace(metric, about=float(round(centre / unit) * unit))
    return unit, metric, round(centre / unit)


def _agreed(
    tables: Sequence[DrawnTable],
    links: Sequence[Link],
    metric: Metric,
    unit: Fraction,
    nonnegative: bool,
) -> list[Agreed]:
    """Return what a metric agrees on, of each table with its (other); [] if a number is missing."""
    made: dict[int, ReleasedTable] = {}
    for at, table in reversed(list(enumerate(tables))):
        [drawn] = table.numbers([metric])
        noise = noise_of(table.program, table.drawn, metric)
        values, below, above = (np.asarray(c, float) / float(unit) for c in drawn.columns[:3])
        if np.isnan(values).any():  # nobody was shown: the other tables say it
            if any(link.is_open for link in links):
                return []
            values, noise = np.zeros(table.size), noise._replace(deviation=UNKNOWN)
        if missing := table.size - len(values):
            link = next(each for each in links if each.coarse == at)
            parts = made[link.fine]
            more = tree.sums(link.parents, parts.values, table.size)[-missing:]
            values = np.concatenate([values, more])
            more = tree.sums(link.parents, parts.below, table.size)[-missing:]
            below = np.concatenate([below, more])
            above = np.concatenate([above, np.full(missing, np.inf)])
        link = next(
            (k for k in links if k.fine == at), Link(0, 0, np.zeros(table.size, int), False)
        )
        made[at] = ReleasedTable(
            values,
            below,
            above,
            noise.strays / float(unit),
            min(noise.deviation / float(unit), UNKNOWN),
            link.parents,
            link.is_open,
            metric.whole or nonnegative,
            noise.deviations,
        )
    chain = [made[at] for at in sorted(made)]
    cells = [chain[-1]._replace(parents=k.parents) for k in links if k.fine == len(chain) - 1]
    if len(cells) == 1:
        agreed = tree.agree(chain)
        others = [each.other for each in agreed[1:]]
    else:
        total = chain[0] if len(chain) > 3 else None
        found = crossed.agree(total, chain[-3:-1], cells)
        agreed = [*([found.total] if found.total else []), *found.margins, found.cells]
        others = [each.other for each in found.margins if found.total]
        others += [*found.others] or [None, None]
    pairs = list(zip(links, others, strict=True))
    return [
        _joined([each, *(o for link, o in pairs if o is not None and link.fine == at)])
        for at, each in enumerate(agreed)
    ]


def _joined(parts: Sequence[Agreed]) -> Agreed:
    """Return rows one after the other."""
    whole, low, high = (np.concatenate([part[at] for part in parts]) for at in range(3))
    return Agreed(whole, low, high)

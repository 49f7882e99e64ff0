"""Draw releases of given rows by the library's own code, many times and without Beam.

The rows are collected, bounded and summarised once, as the workers of a job do; then the choices
and the noise are drawn again and again, by the steps of a job (`transforms.rehearsal`).
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.compile import compile_loss
from beam_dp.transforms import removal_loss
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.rehearsal import _Rehearsal, bundle
from beam_dp.transforms.stages.bound_and_summarise import Collect, Settle
from beam_dp.transforms.stages.draw_once import BucketPartitions
from benchmarks.suites import Rows

QUANTILE = 0.95
LEAST = 10


class Interval(NamedTuple):
    """The released numbers of one metric: arrays (partitions) of one draw, or (draws, partitions).

    Attributes:
        value: 0 where nothing was released.
        low: the lower end that is stated; -inf where nothing was released.
        high: the upper end; inf where nothing was released.
        people: the rank error that is stated, in people; inf where none is.
        empty: whether nothing was released.
        absent: whether the partition was not selected; it is `empty` too.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    people: np.ndarray
    empty: np.ndarray
    absent: np.ndarray

    def holds(self, truth: np.ndarray | float) -> np.ndarray:
        """Return whether the interval holds the truth."""
        slack = 1e-9 * abs(truth)
        return (self.low <= truth + slack) & (self.high >= truth - slack)


def quantiles(errors: np.ndarray) -> tuple[float, float]:
    """Return the middle of errors, and their 95% quantile; NaN where there are none."""
    if not len(errors):
        return math.nan, math.nan
    return float(np.median(errors)), float(np.quantile(errors, QUANTILE))


def middle(errors: np.ndarray) -> float:
    """Return the mean of the errors without the lowest and the highest fifth."""
    fifth = len(errors) // 5
    return float(np.sort(errors)[fifth : len(errors) - fifth].mean())


@dataclasses.dataclass(frozen=True, eq=False)
class Releases:
    """What can be released again and again.

    Attributes:
        rehearsal: the steps of the job.
        partitions: how many there are.
    """

    rehearsal: _Rehearsal
    partitions: int

    def draw(self) -> list[Interval]:
        """Return one release of every number of every metric, for every partition."""
        drawn = self.rehearsal.combined(self.rehearsal.draw())
        if self.rehearsal.program.selection is not None:
            self.rehearsal.settled.clear()  # each draw has other partitions
        metrics = self.rehearsal.program.request.metrics
        names = [output.name for metric in metrics for output in metric.outputs]
        columns = {name: np.full(self.partitions, np.nan) for name in names}
        absent = np.ones(self.partitions, bool)
        absent[[place for (place,) in drawn]] = False
        for key, numbers in drawn.items():
            for name, number in zip(names, numbers, strict=True):
                columns[name][key[0]] = number
        stated = ("_low", "_high", "_rank_error")
        return [interval(columns, name, absent) for name in names if not name.endswith(stated)]

    def draws(self, runs: int, seconds: float = math.inf) -> list[Interval]:
        """Return independent releases: for each number arrays (runs, partitions).

        Args:
            runs: how many.
            seconds: no more are drawn after so long, but for the first ten.
        """
        drawn, start = [], time.monotonic()
        while len(drawn) < runs and (len(drawn) < LEAST or time.monotonic() < start + seconds):
            drawn.append(self.draw())
        each = zip(*drawn, strict=True)
        return [Interval(*map(np.array, zip(*one, strict=True))) for one in each]


def interval(
    columns: Mapping[str, np.ndarray], name: str, absent: np.ndarray | None = None
) -> Interval:
    """Return the output columns of one metric; one without an interval says nothing of values.

    Args:
        columns: the output columns by name.
        name: the metric's.
        absent: which partitions were not selected; None: all were.
    """
    found = np.asarray(columns[name], float)
    empty = np.isnan(found)
    absent = np.zeros(found.shape, bool) if absent is None else absent
    low, high, people = (
        np.where(absent, nothing, np.asarray(columns.get(f"{name}_{end}", nothing), float))
        for end, nothing in (("low", -np.inf), ("high", np.inf), ("rank_error", np.inf))
    )
    return Interval(np.where(empty, 0.0, found), low, high, people, empty, absent)


def summarise(
    rows: Rows,
    metrics: Sequence[Metric],
    budget: dp.Budget,
    max_rows_per_partition: int | None = None,
    others: Sequence[str] = (),
) -> Releases:
    """Collect, bound and summarise rows; `rows.selected` says how they are grouped.

    Args:
        rows: what is read.
        metrics: what is released together.
        budget: the whole.
        max_rows_per_partition: the bound on the rows of a person in a partition; None: there is
            none.
        others: the columns of further owners of a row.
    """
    given = ContributionBounds(
        "auto" if rows.max_partitions is None else rows.max_partitions, max_rows_per_partition
    )
    release = dp.PrivateAggregate(
        ["person", *others] if others else "person",
        metrics,
        budget,
        partition=["partition"],
        bounds=None if others else given,
        partitions=None if rows.selected else dp.PublicPartitions([*range(rows.partitions)]),
    )
    program = release._program
    bounds = release._bounds.up_to(program.limit)
    made = _Rehearsal(release, [table_of(rows)], program, bounds, Noise())
    return Releases(made, rows.partitions)


def profile(rows: Rows, metric: Metric, removals: int, others: Sequence[str] = ()) -> dp.Profile:
    """Return the removal profile B[0..removals] of all rows."""
    loss = compile_loss(metric, removals, others)
    layout = Layout("person", (), loss.columns, None, bytes(32))
    bounds = ContributionBounds(None)
    bounder = Bounder(bounds, loss.fields, layout.key, keep_rows=loss.keep_rows)
    lines = [blob for _, blob in bundle(Collect(layout, bounder, 1), [table_of(rows)])]
    settle = Settle(bounder, removal_loss.measures_of(loss), (), 1)
    packed = [blob for _, blob in bundle(settle, [(0, lines)])]
    names, places = ["profile"], BucketPartitions(layout, 1)
    [found] = removal_loss._profiles((0, packed), loss, places, names)
    return dp.Profile(found.profile)


def table_of(rows: Rows) -> pa.Table:
    """Return rows as a table."""
    return pa.table({"person": rows.person, "partition": rows.partition, **rows.columns})

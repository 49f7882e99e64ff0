"""Draw releases of given rows by the library's own code, many times and without Beam.

The rows are bounded and summarised once, as the workers of a job do; then the clips and the noise
are drawn again and again, by the program that the job would run, with the noise that it would use.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.histogram_choice import reach
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.planning.program import Program, compile_loss
from beam_dp.mechanisms.summaries import histograms, owner_lines
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.transforms.removal_loss import measures_of
from benchmarks.suites import Rows

QUANTILE = 0.95
LEAST = 10
BUCKETS = 8
"""Privately selected partitions are drawn in so many parts, as in a job (`stages.draw_once`)."""
_KEY = bytes(32)


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


class Releases(abc.ABC):
    """What can be released again and again."""

    @abc.abstractmethod
    def draw(self) -> list[Interval]:
        """Return one release of every number of every metric, for every partition."""

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


@dataclasses.dataclass(frozen=True, eq=False)
class Summarised(Releases):
    """What the draws of a job see.

    Attributes:
        program: what the job would run.
        cells: the summaries of the partitions.
        people: the summary over all partitions that shared clips are chosen on, if any are.
    """

    program: Program
    cells: PartitionView
    people: PartitionView | None

    @classmethod
    def of(
        cls,
        program: Program,
        bounder: Bounder,
        settled: Table,
        partitions: int,
        counted: Table | None = None,
    ) -> Summarised:
        """Summarise what the bounds leave of the rows; `counted` pairs select partitions."""
        cells, settled = cells_of(bounder, settled, program.measures, partitions, counted)
        shared = program.shared_measures
        if not shared:
            return cls(program, cells, None)
        people = PartitionView.of_all(histograms.summarise_people(settled, shared))
        return cls(program, cells, people)

    def draw(self) -> list[Interval]:
        clips = ()
        if self.people is not None:
            clips = self.program.choose_clips(self.people, Noise())
        parts = [self._part(places, clips) for places in self._buckets]
        sums = np.sum([self.program.sums(drawn) for _, drawn in parts], axis=0)
        names = [each.name for metric in self.program.metrics for each in metric.outputs]
        columns = {name: np.full(self.cells.size, np.nan) for name in names}
        absent = np.ones(self.cells.size, bool)
        for kept, drawn in parts:
            absent[kept] = False
            for name, numbers in zip(names, self.program.combine(drawn, sums), strict=True):
                columns[name][kept] = numbers
        stated = ("_low", "_high", "_rank_error")
        return [interval(columns, name, absent) for name in names if not name.endswith(stated)]

    @property
    def _buckets(self) -> list[np.ndarray]:
        """The partitions of each bucket; all in one where they are public."""
        places = np.arange(self.cells.size)
        if self.program.selection is None:
            return [places]
        bucket = np.random.default_rng(0).integers(BUCKETS, size=len(places))
        return [places[bucket == number] for number in range(BUCKETS)]

    def _part(
        self, places: np.ndarray, clips: tuple[Any, ...]
    ) -> tuple[np.ndarray, tuple[Released, ...]]:
        """Draw the partitions of a bucket: those that are kept, and their numbers."""
        if self.program.selection is None:
            return places, self.program.release(self.cells, clips, Noise())
        view, chosen = self.cells.select(places), self.program.chosen
        kept = self.program.select(view, Noise())
        guess = reach.ABOUT if chosen is None else chosen.guess
        asked = view.select(kept).of_about(reach.partitions_about(len(kept), BUCKETS, guess))
        return places[kept], self.program.release(asked, clips, Noise())


@dataclasses.dataclass(frozen=True, eq=False)
class Searched(Releases):
    """The same where the bound on partitions per person, or a centre, is chosen in each draw.

    Attributes:
        program: the program, which chooses.
        reduced: the whole rows of all people, which are settled once for each bound.
        widest: the bounding with the largest bound.
        partitions: how many there are.
    """

    program: Program
    reduced: Table
    widest: Bounder
    partitions: int
    settled: dict[int, Table] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def votes(self) -> histograms.Summary:
        """The votes of everybody in the choices."""
        return self.program.votes.of(self.reduced, self.widest)

    def chosen(self) -> Program:
        """Make the first choices; return the program that they lead to."""
        return self.program.at(self.program.choose(self.votes, Noise()))

    def once(self) -> Summarised:
        """Make the first choices, and summarise what they leave of the rows."""
        program = self.chosen()
        bounds = self.widest.bounds.up_to(program.reach)
        bounder = dataclasses.replace(self.widest, bounds=bounds)
        if program.reach not in self.settled:
            self.settled[program.reach] = bounder.settle_reduced(self.reduced)
        settled = self.settled[program.reach]
        pairs = bounder.pairs(self.reduced, program.counted) if program.counts_apart else None
        return Summarised.of(program, bounder, settled, self.partitions, pairs)

    def draw(self) -> list[Interval]:
        return self.once().draw()


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
    depth: int | None = None,
    others: Sequence[str] = (),
) -> Summarised | Searched:
    """Bound and summarise rows by the library's code, as `rows.selected` says how they are grouped.

    Args:
        rows: what is read.
        metrics: what is released together.
        budget: the whole.
        depth: the bound on the rows of a person in a partition; None: there is none.
        others: the columns of further owners of a row.
    """
    given = ContributionBounds("auto" if rows.reach is None else rows.reach, depth)
    aggregate = dp.PrivateAggregate(
        ["person", *others] if others else "person",
        metrics,
        budget,
        partition=["partition"],
        bounds=None if others else given,
        partitions=None if rows.selected else dp.PublicPartitions([*range(rows.partitions)]),
    )
    program, bounds = aggregate._program, aggregate._bounds
    if bounds.is_automatic:
        bounds = bounds.up_to(program.edges[-1])
    bounder = Bounder(bounds, program.fields, _KEY, keep_rows=program.keep_rows)
    reduced = bounder.reduce(bounder.prepare(table_of(rows, program.columns)))
    if program.chooses:
        return Searched(program, reduced, bounder, rows.partitions)
    return Summarised.of(program, bounder, bounder.settle_reduced(reduced), rows.partitions)


def profile(rows: Rows, metric: Metric, removals: int, others: Sequence[str] = ()) -> dp.Profile:
    """Return the removal profile B[0..removals] of all rows."""
    loss = compile_loss(metric, removals, others)
    bounder = Bounder(ContributionBounds(None), loss.fields, _KEY, keep_rows=loss.keep_rows)
    table = bounder.settle(bounder.prepare(table_of(rows, loss.columns)))
    measures = measures_of(loss)
    cells, _ = cells_of(bounder, table, measures, 1)
    [found] = loss.profiler.profiles(cells.at(len(measures) - 1))
    return found


def cells_of(
    bounder: Bounder,
    settled: Table,
    measures: Sequence[Any],
    partitions: int,
    counted: Table | None = None,
) -> tuple[PartitionView, Table]:
    """Return what releases see of the partitions, and the table as it was summarised."""
    lines = None
    if bounder.keep_rows:
        lines = owner_lines.collect(settled, measures, _KEY)
        settled = bounder.aggregate(settled)
    found = histograms.summarise(settled, measures, counted)
    places = None if lines is None else lines.partition[0].astype(np.int64)
    here = found.partition[0].astype(np.int64)
    return PartitionView(found, here, partitions, lines, places), settled


def table_of(rows: Rows, read: Sequence[Column]) -> Table:
    """Return rows as a worker holds them: numbers in units, items and further owners as codes."""
    person, partition = (part.astype(np.uint64)[None] for part in (rows.person, rows.partition))
    values = [read_column(rows.columns[column.name], column) for column in read]
    return Table(person, partition, np.ones(len(rows.person), np.int64), values)


def read_column(values: np.ndarray, column: Column) -> np.ndarray:
    """Return a column in units, or as codes where values are only compared."""
    if column.role not in (Role.FLAG, Role.VALUE):
        return owner_lines.code(values.astype(np.uint64)[None], _KEY)
    missing = np.isnan(values)
    if column.role is Role.FLAG:
        found = values == column.detail
    else:
        found = np.round(np.where(missing, 0.0, values) / float(column.detail))
    return np.where(missing, integers.LOWEST, found.astype(np.int64))

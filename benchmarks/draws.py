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
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.planning.first_choices import Chosen
from beam_dp.mechanisms.planning.program import Program, compile_loss
from beam_dp.mechanisms.summaries import histograms, owner_lines
from beam_dp.mechanisms.summaries.histograms import WEIGHTS, Measure
from beam_dp.mechanisms.summaries.partition_view import PartitionView, places_of
from beam_dp.transforms.removal_loss import measures_of
from benchmarks.suites import Rows

QUANTILE = 0.95
LEAST = 10
HELD = 20
"""Of so many choices the summaries are kept."""
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

    def draw(self) -> list[Interval]:
        clips: tuple[np.ndarray, ...] = ()
        if self.people is not None:
            clips = self.program.choose_clips(self.people, Noise())
        drawn = self.program.release(self.cells, clips, Noise())
        names = [each.name for metric in self.program.metrics for each in metric.outputs]
        numbers = self.program.combine(drawn, self.program.sums(drawn))
        columns = dict(zip(names, numbers, strict=True))
        stated = ("_low", "_high", "_rank_error")
        return [interval(columns, name) for name in names if not name.endswith(stated)]


@dataclasses.dataclass(frozen=True, eq=False)
class Searched(Releases):
    """The same where partitions, a bound on them or a centre are chosen in each draw.

    Attributes:
        program: the program, which chooses.
        reduced: the whole rows of all people, which are settled once for each choice.
        bounder: the bounding.
        partitions: how many there are.
    """

    program: Program
    reduced: Table
    bounder: Bounder
    partitions: int
    made: dict[Any, Summarised] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def votes(self) -> histograms.Summary:
        """The votes of everybody in the choices."""
        return self.program.votes.of(self.reduced, self.bounder)

    @functools.cached_property
    def weights(self) -> PartitionView:
        """What the selection of partitions sees."""
        pairs = self.bounder.pairs(self.reduced, self.program.counted)
        found = histograms.summarise(pairs, [Measure(WEIGHTS)])
        return PartitionView.of_listed(found, listed(self.partitions))

    def selected(self) -> np.ndarray:
        """Return the partitions that are selected in a draw; public ones all are."""
        if self.program.selection is None:
            return np.arange(self.partitions)
        return self.program.select(self.weights, Noise())

    def draw(self) -> list[Interval]:
        """Make the first choices, summarise what they leave of the rows, and draw."""
        kept = self.selected()
        chosen = self.program.choose(self.votes, Noise()) if self.program.chooses else Chosen()
        selects = self.program.selection is not None
        program = self.program.at(
            dataclasses.replace(chosen, partitions=len(kept) if selects else None)
        )
        choice = program.reach, program.centres, kept.tobytes()
        if choice not in self.made:
            if len(self.made) >= HELD:
                self.made.clear()
            names = kept.astype(np.uint64)[None]
            lines = self.reduced
            if selects:
                lines = lines.take(places_of(lines.partition, names) >= 0)
            self.made[choice] = summarised(program, self.bounder, lines, names)
        return [_spread(each, kept, self.partitions) for each in self.made[choice].draw()]


def listed(partitions: int) -> np.ndarray:
    """Return the identities of partitions that are numbered."""
    return np.arange(partitions, dtype=np.uint64)[None]


def _spread(drawn: Interval, kept: np.ndarray, partitions: int) -> Interval:
    """Return the numbers of all partitions, those that were not selected without any."""
    nothing = Interval(0.0, -np.inf, np.inf, np.inf, True, True)
    columns = [np.full(partitions, each) for each in nothing]
    for column, found in zip(columns, drawn, strict=True):
        column[kept] = found
    return Interval(*columns)


def interval(columns: Mapping[str, np.ndarray], name: str) -> Interval:
    """Return the output columns of one metric; one without an interval says nothing of values."""
    found = np.asarray(columns[name], float)
    empty = np.isnan(found)
    low, high, people = (
        np.broadcast_to(np.asarray(columns.get(f"{name}_{end}", nothing), float), found.shape)
        for end, nothing in (("low", -np.inf), ("high", np.inf), ("rank_error", np.inf))
    )
    here = np.zeros(found.shape, bool)
    return Interval(np.where(empty, 0.0, found), low, high, people, empty, here)


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
        bounds = bounds.up_to(program.limit)
    bounder = Bounder(bounds, program.fields, _KEY, keep_rows=program.keep_rows)
    reduced = bounder.reduce(bounder.prepare(table_of(rows, program.columns)))
    if program.chooses or program.selection is not None:
        return Searched(program, reduced, bounder, rows.partitions)
    return summarised(program, bounder, reduced, listed(rows.partitions))


def summarised(program: Program, bounder: Bounder, lines: Table, names: np.ndarray) -> Summarised:
    """Settle reduced lines of the partitions of a run, and summarise them.

    Args:
        program: what the job would run, with what was chosen.
        bounder: the bounding.
        lines: whole people, reduced; only those of the partitions.
        names: the identities of the partitions.
    """
    settled, most = bounder.settle_reduced(lines), program.bounded_partitions
    bounded = None if most is None else bounder.lines_of_pairs(settled, most)
    cells, tables = cells_of(bounder, settled, program.measures, names, bounded)
    shared, people = program.shared_measures, None
    if shared:
        people = PartitionView.of_all(histograms.summarise_people(tables[0], shared, tables[1]))
    return Summarised(program, cells, people)


def profile(rows: Rows, metric: Metric, removals: int, others: Sequence[str] = ()) -> dp.Profile:
    """Return the removal profile B[0..removals] of all rows."""
    loss = compile_loss(metric, removals, others)
    bounder = Bounder(ContributionBounds(None), loss.fields, _KEY, keep_rows=loss.keep_rows)
    table = bounder.settle(bounder.prepare(table_of(rows, loss.columns)))
    measures = measures_of(loss)
    cells, _ = cells_of(bounder, table, measures, listed(1))
    [found] = loss.profiler.profiles(cells.at(len(measures) - 1))
    return found


def cells_of(
    bounder: Bounder,
    settled: Table,
    measures: Sequence[Any],
    names: np.ndarray,
    bounded: Table | None = None,
) -> tuple[PartitionView, tuple[Table, Table | None]]:
    """Return what releases see of the partitions, and the tables that were summarised.

    Args:
        bounder: the bounding.
        settled: the settled lines.
        measures: what is summarised.
        names: the identities of the partitions.
        bounded: the lines of a bounded number of partitions of each person; None: the same.
    """
    owned = None
    if bounder.keep_rows:
        few = settled if bounded is None else bounded
        owned = owner_lines.collect(few, measures, _KEY)
        settled = bounder.aggregate(settled)
        bounded = None if bounded is None else bounder.aggregate(bounded)
    found = histograms.summarise(settled, measures, bounded)
    return PartitionView.of_listed(found, names, owned), (settled, bounded)


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

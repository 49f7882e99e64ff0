"""What `benchmarks.coverage` asks of which data, and what the best fixed clip would err by.

A question is a kind of data with a number of people, the statistics that are released of it
together, and a budget. Questions of one family make one table.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from benchmarks import best_clips, suites
from benchmarks.best_clips import Scale
from benchmarks.suites import CHECKS, SUITE, File, Layout, Rows

BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""Of these bounds on partitions per person the expert takes the best where none is known."""
PURE = dp.Budget(1.0)
ZCDP = dp.Budget.zcdp(0.0171)
"""About as private as epsilon 1 with delta 10^-6."""
APPROXIMATE = dp.Budget(1.0, 1e-6)


@dataclasses.dataclass(frozen=True)
class Statistic(abc.ABC):
    """A metric, its true numbers, and the error of an expert.

    Attributes:
        name: what a table calls it.
        metric: what is released.
        apart: whether the expert may take another clip in each partition.
        numbers: how many numbers with a clip of their own it is made of.
    """

    name: str
    metric: Metric
    apart: bool = False
    numbers: int = 1

    @abc.abstractmethod
    def truth(self, rows: Rows) -> np.ndarray:
        """Return the true number of each partition."""

    @abc.abstractmethod
    def best(self, rows: Rows, budget: dp.Budget, part: float) -> float:
        """Return the expert's 95% error, or in several partitions their mean error."""

    @abc.abstractmethod
    def amounts(self, rows: Rows) -> np.ndarray:
        """Return what each person adds to the statistic, in each of their partitions."""


@dataclasses.dataclass(frozen=True)
class Total(Statistic):
    """A count or a sum.

    Attributes:
        column: what is summed; "" for the rows.
    """

    column: str = ""

    def truth(self, rows: Rows) -> np.ndarray:
        """Return the totals of all rows."""
        place, amounts = rows.per_pair(self.column or None)
        return np.bincount(place, amounts, rows.partitions)

    def best(self, rows: Rows, budget: dp.Budget, part: float) -> float:
        """Return the least error of all clips, of both kinds of noise where delta allows, and of
        several bounds on partitions where none is known.
        """
        truth = self.truth(rows)
        known = [rows] if rows.reach is not None else [rows.kept(most) for most in BOUNDS]
        return min(
            self._best(*kept.per_pair(self.column or None), truth, scale)
            for kept in known
            for scale in Scale.options(budget, kept.reach or 1, part)
        )

    def _best(
        self, place: np.ndarray, amounts: np.ndarray, truth: np.ndarray, scale: Scale
    ) -> float:
        if len(truth) == 1:
            return best_clips.quantile_error(amounts, scale)
        if not self.apart:
            return best_clips.errors_apart(place, amounts, truth, scale)
        own = [amounts[place == index] for index in range(len(truth))]
        each = [
            best_clips.errors_apart(np.zeros(len(mine), np.int64), mine, total, scale)
            for mine, total in zip(own, np.split(truth, len(truth)), strict=True)
        ]
        return float(np.mean(each))

    def amounts(self, rows: Rows) -> np.ndarray:
        """Return the totals per person and partition; of the first one, if each has its clip."""
        place, amounts = rows.per_pair(self.column or None)
        return amounts[place == 0] if self.apart else amounts


@dataclasses.dataclass(frozen=True)
class Average(Statistic):
    """A mean over rows, in one partition."""

    column: str = "v"

    def truth(self, rows: Rows) -> np.ndarray:
        """Return the mean of all values."""
        return np.array([np.nanmean(rows.columns[self.column])])

    def best(self, rows: Rows, budget: dp.Budget, part: float) -> float:
        """Return the least error of all pairs of clips, half of the part for each."""
        totals, counts = rows.per_pair(self.column)[1], rows.per_pair(None)[1]
        halves = Scale.options(budget, rows.reach, part / 2)
        return min(best_clips.mean_error(totals, counts, scale) for scale in halves)

    def amounts(self, rows: Rows) -> np.ndarray:
        """Return what each person adds to the mean."""
        return rows.per_pair(self.column)[1] / len(rows.person)


SUM = Total("sum", dp.Sum("v"), column="v")
COUNT = Total("count", dp.Count())
MEAN = Average("mean", dp.Mean("v"), numbers=2)
OWN_CLIPS = Total("sum", dp.Sum("v", clip="partition"), apart=True, column="v")


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """Some statistics of some data.

    Attributes:
        family: the table that it belongs to.
        data: the line of the table.
        people: the column of the table: how many people, or of which layout or file.
        make: returns the rows, for a seed.
        asked: what is released together.
        budget: the whole.
        seeds: how many draws of the data there are, at most.
    """

    family: str
    data: str
    people: str
    make: Callable[[int], Rows]
    asked: tuple[Statistic, ...]
    budget: dp.Budget = PURE
    seeds: int = 1 << 30


def people_rows(kind: str, size: int, seed: int) -> Rows:
    """Return as many rows per person as a kind of numbers says, rounded up; at most 10,000."""
    counts = np.minimum(np.ceil(suites.numbers(kind, size, seed)), 1e4).astype(np.int64)
    person = np.repeat(np.arange(size), counts)
    return Rows(person, np.zeros(len(person), np.int64), {})


def one_partition(sizes: Sequence[int]) -> Iterator[Question]:
    """Yield sums, counts and means of one partition, and those of kinds kept for checking."""
    for kind in SUITE:
        for size in sizes:
            rows = functools.partial(suites.alone, kind, size)
            yield Question("sum", kind, f"{size:,}", rows, (SUM,))
    for kind in ("all alike", "Poisson 5", "exponential", "lognormal 1", "lognormal 2", "Pareto 2"):
        for size in sizes:
            rows = functools.partial(people_rows, kind, size)
            yield Question("count", kind, f"{size:,}", rows, (COUNT,))
    for kind in SUITE:
        for size in sizes:
            rows = functools.partial(suites.several_rows, kind, size)
            yield Question("mean", kind, f"{size:,}", rows, (MEAN,))
    for kind in CHECKS:
        for size in sizes:
            rows = functools.partial(suites.alone, kind, size)
            yield Question("sum, kept for checking", kind, f"{size:,}", rows, (SUM,))


def many_people(size: int) -> Iterator[Question]:
    """Yield sums of so many people, of one draw of the data."""
    for kind in SUITE:
        rows = functools.partial(suites.alone, kind, size)
        yield Question("sum", kind, f"{size:,}", rows, (SUM,), seeds=1)


def together(sizes: Sequence[int]) -> Iterator[Question]:
    """Yield a count, a sum and a mean that are released together."""
    for kind in ("lognormal 1", "lognormal 2", "uniform", "exponential", "Pareto 2"):
        for size in sizes:
            rows = functools.partial(suites.several_rows, kind, size)
            yield Question("together", kind, f"{size:,}", rows, (COUNT, SUM, MEAN))


def other_budgets(sizes: Sequence[int]) -> Iterator[Question]:
    """Yield sums under zCDP, and under (epsilon, delta)."""
    for kind in SUITE:
        for size in sizes:
            rows = functools.partial(suites.alone, kind, size)
            yield Question("sum, zCDP", kind, f"{size:,}", rows, (SUM,), ZCDP)
            if size == 10_000:
                words = "sum, epsilon and delta", kind, f"{size:,}"
                yield Question(*words, rows, (SUM,), APPROXIMATE)


LAYOUTS = (
    (10_000, Layout(10)),
    (100_000, Layout(10, 3, True)),
    (10_000, Layout(10, 1, True, True)),
    (10_000, Layout(100)),
    (10_000, Layout(100, 1, True)),
    (100_000, Layout(100, 3, True, True)),
    (100_000, Layout(1000, 1, False)),
    (100_000, Layout(1000, 3, True, True)),
)
SMALL_LAYOUTS = LAYOUTS[0], LAYOUTS[3]


def many_partitions(layouts: Sequence[tuple[int, Layout]]) -> Iterator[Question]:
    """Yield sums by a clip that all partitions share."""
    for size, layout in layouts:
        for kind in SUITE:
            rows = functools.partial(suites.spread, kind, size, layout)
            family, head = f"{layout.partitions:,} partitions", f"{size:,}: {layout.name}"
            yield Question(family, kind, head, rows, (SUM,))
    for size, layout in layouts[::5]:
        for kind in SUITE:
            rows = functools.partial(suites.spread, kind, size, layout)
            head = f"{size:,}: {layout.name}"
            yield Question("many partitions, zCDP", kind, head, rows, (SUM,), ZCDP)
    for kind in SUITE:
        rows = functools.partial(suites.spread, kind, 10_000, LAYOUTS[0][1])
        head = f"{10_000:,}: {LAYOUTS[0][1].name}"
        yield Question("a clip for each partition", kind, head, rows, (OWN_CLIPS,))


SELECTED_LAYOUTS = (
    (10_000, Layout(10)),
    (10_000, Layout(100, 1, True)),
    (100_000, Layout(100, 3, True)),
)


def selected(layouts: Sequence[tuple[int, Layout]]) -> Iterator[Question]:
    """Yield sums of privately selected partitions, with a bound on how many a person has."""
    for size, layout in layouts:
        for kind in SUITE:
            rows = functools.partial(privately, suites.spread, kind, size, layout)
            head = f"{size:,}: {layout.name}"
            yield Question("selected partitions", kind, head, rows, (SUM,), APPROXIMATE)


def privately(make: Callable[..., Rows], *arguments: object) -> Rows:
    """Return rows whose partitions are selected privately."""
    return dataclasses.replace(make(*arguments), selected=True)


def of_file(file: File) -> Iterator[Question]:
    """Yield counts and sums of a file as a whole, and by each column of groups."""
    for group, rows in suites.read(file).items():
        found = dataclasses.replace(rows, reach=None if group else 1)
        head = f"by {group}, {rows.partitions} partitions" if group else "in all"
        asked = [
            COUNT,
            *(Total(name, dp.Sum(name, name="total"), column=name) for name in file.values),
        ]
        for one in asked:
            words, rows = (f"{file.name}: {one.name}", head), functools.partial(same, found)
            yield Question("files", *words, rows, (one,), seeds=1)
            if group:
                rows = functools.partial(privately, same, found)
                yield Question("files, selected", *words, rows, (one,), APPROXIMATE, seeds=1)


def same(rows: Rows, seed: int) -> Rows:
    """Return the same rows for every seed."""
    return rows

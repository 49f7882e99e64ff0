"""What `benchmarks.coverage` asks of which data, and what the best fixed clip would err by.

A question is a kind of data with a number of people, the statistics that are released of it
together, and a budget. Questions of one family make one table.
"""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from benchmarks import best_clips, suites
from benchmarks.best_clips import Scale
from benchmarks.suites import CHECKS, SUITE, Layout, Rows

BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""Of these bounds on partitions per person the expert takes the best where none is known."""
PURE = dp.Budget(1.0)
ZCDP = dp.Budget.zcdp(0.0171)
"""About as private as epsilon 1 with delta 10^-6."""
APPROXIMATE = dp.Budget(1.0, 1e-6)


@dataclasses.dataclass(frozen=True)
class Total:
    """A count or a sum, its true numbers, and the error of an expert.

    Attributes:
        name: what a table calls it.
        metric: what is released.
        column: what is summed; None for the rows.
        numbers: how many numbers with a clip of their own it is made of.
    """

    name: str
    metric: Metric
    column: str | None = None
    numbers: int = 1

    def truth(self, rows: Rows) -> np.ndarray:
        """Return the true number of each partition, of all rows."""
        place, amounts = rows.per_pair(self.column)
        return np.bincount(place, amounts, rows.partitions)

    def amounts(self, rows: Rows) -> np.ndarray:
        """Return what each person adds, in each partition."""
        return rows.per_pair(self.column)[1]

    def best(self, rows: Rows, budget: dp.Budget, part: float) -> float:
        """Return the expert's 95% error, or in several partitions their mean error.

        It is the least of all clips, of both kinds of noise where delta allows, and of several
        bounds on partitions where none is known.
        """
        truth = self.truth(rows)
        known = [rows] if rows.max_partitions is not None else [rows.kept(most) for most in BOUNDS]
        return min(
            self._best(*kept.per_pair(self.column), truth, scale)
            for kept in known
            for scale in Scale.options(budget, kept.max_partitions or 1, part)
        )

    def _best(
        self, place: np.ndarray, amounts: np.ndarray, truth: np.ndarray, scale: Scale
    ) -> float:
        if len(truth) == 1:
            return best_clips.quantile_error(amounts, scale)
        return best_clips.errors_apart(place, amounts, truth, scale)


class Average(Total):
    """A mean over rows, in one partition."""

    def truth(self, rows: Rows) -> np.ndarray:
        return np.array([np.nanmean(rows.columns[self.column])])

    def amounts(self, rows: Rows) -> np.ndarray:
        return rows.per_pair(self.column)[1] / len(rows.person)

    def best(self, rows: Rows, budget: dp.Budget, part: float) -> float:
        """Return the least error of all pairs of clips, half of the part for each."""
        totals, counts = rows.per_pair(self.column)[1], rows.per_pair(None)[1]
        halves = Scale.options(budget, rows.max_partitions, part / 2)
        return min(best_clips.mean_error(totals, counts, scale) for scale in halves)


SUM = Total("sum", dp.Sum("v"), "v")
COUNT = Total("count", dp.Count())
MEAN = Average("mean", dp.Mean("v"), "v", numbers=2)


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
    asked: tuple[Total, ...] = (SUM,)
    budget: dp.Budget = PURE
    seeds: int = 1 << 30


SIZES = (100, 300, 1000, 10_000, 100_000)
LARGEST = 1_000_000
SPREAD = ("lognormal 1", "lognormal 2", "uniform", "exponential", "Pareto 2")
COUNTED = ("all alike", "Poisson 5", "exponential", "lognormal 1", "lognormal 2", "Pareto 2")
alone, several = suites.alone, suites.several_rows
ONE_PARTITION = (
    ("sum", SUITE, SIZES, alone, (SUM,), PURE),
    ("count", COUNTED, SIZES, suites.people_rows, (COUNT,), PURE),
    ("mean", SUITE, SIZES, several, (MEAN,), PURE),
    ("sum, kept for checking", CHECKS, SIZES, alone, (SUM,), PURE),
    ("together", SPREAD, SIZES[1:], several, (COUNT, SUM, MEAN), PURE),
    ("sum, zCDP", SUITE, SIZES[1:], alone, (SUM,), ZCDP),
    ("sum, epsilon and delta", SUITE, (10_000,), alone, (SUM,), APPROXIMATE),
)
"""A line is a family: its kinds of data, numbers of people, rows, statistics and budget."""
TEN, HUNDRED = (10_000, Layout(10)), (100_000, Layout(100, 3, True, True))
LAYOUTS = (
    TEN,
    (100_000, Layout(10, 3, True)),
    (10_000, Layout(10, 1, True, True)),
    (10_000, Layout(100)),
    (10_000, Layout(100, 1, True)),
    HUNDRED,
    (100_000, Layout(1000, 1, False)),
    (100_000, Layout(1000, 3, True, True)),
)
SELECTED = (TEN, (10_000, Layout(100, 1, True)), (100_000, Layout(100, 3, True)))
MANY_PARTITIONS = (
    *((f"{size[1].partitions:,} partitions", [size], SUM, PURE) for size in LAYOUTS),
    ("many partitions, zCDP", [TEN, HUNDRED], SUM, ZCDP),
    ("selected partitions", SELECTED, SUM, APPROXIMATE),
)
QUICK = (100, 1000, 10_000)


def asked(quick: bool = False) -> Iterator[Question]:
    """Yield all questions; the quick ones have fewer sizes and layouts."""
    for family, kinds, sizes, make, statistics, budget in ONE_PARTITION:
        for kind in kinds:
            for size in sizes:
                if not quick or size in QUICK:
                    rows = _of(make, kind, size)
                    yield Question(family, kind, f"{size:,}", rows, statistics, budget)
    for kind in () if quick else SUITE:
        yield Question("sum", kind, f"{LARGEST:,}", _of(alone, kind, LARGEST), seeds=1)
    for family, layouts, statistic, budget in MANY_PARTITIONS:
        for size, layout in layouts:
            for kind in SUITE:
                if not quick or (size == 10_000 and not layout.zipf):
                    rows = _of(suites.spread, kind, size, layout, selected=budget is APPROXIMATE)
                    head = f"{size:,}: {layout.name}"
                    yield Question(family, kind, head, rows, (statistic,), budget)


def _of(make: Callable[..., Rows], *given: object, selected: bool = False) -> Callable[[int], Rows]:
    """Return what makes rows for a seed; of partitions that are selected privately or not."""
    return lambda seed: dataclasses.replace(make(*given, seed), selected=selected)

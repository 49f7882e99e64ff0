"""Statistics that are no sums: what is asked of which data, how far off a release is, and by whom.

`benchmarks.coverage --statistics` and `benchmarks.experts` ask these questions. Every statistic has
an error in its own unit, and an expert: what a careful user of OpenDP or PipelineDP releases at
epsilon 1, whose bounds come from a million draws of the population, not from the sample.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from benchmarks import expert_laws, suites
from benchmarks.draws import Interval
from benchmarks.suites import Rows

SIZES = (300, 1000, 10_000, 100_000)
VALUES = ("lognormal 1", "lognormal 2", "uniform", "exponential", "Pareto 2", "normal(10, 30)")
Options = dict[str, Callable[[np.random.Generator, int], np.ndarray]]
"""An expert's choices: each draws so many releases."""


@dataclasses.dataclass(frozen=True)
class Other(abc.ABC):
    """A statistic with the errors of its releases.

    Attributes:
        name: what a table calls it.
        metric: what we release.
        kinds: of which data.
        unit: what its errors are, in words.
        depth: the bound on the rows of a person, if there is one.
    """

    name: str
    metric: Metric
    kinds: tuple[str, ...]
    unit: str
    depth: int | None = None

    @property
    def head(self) -> str:
        """What heads its table."""
        return f"{self.name}: {self.unit}"

    @abc.abstractmethod
    def make(self, kind: str, size: int, seed: int) -> Rows:
        """Return the rows."""

    @abc.abstractmethod
    def errors(self, rows: Rows, released: np.ndarray) -> np.ndarray:
        """Return how far off releases are, in the unit."""

    @abc.abstractmethod
    def inside(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return whether what is stated beside releases is true."""

    @abc.abstractmethod
    def experts(self, kind: str, rows: Rows) -> Options:
        """Return what an expert may release, by the bounds that they choose."""

    def stated(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return half the stated intervals, in the unit."""
        return (drawn.high - drawn.low) / 2

    def absurd(self, rows: Rows, released: np.ndarray) -> np.ndarray:
        """Return whether releases are outside of the data by ten times their range."""
        values = next(iter(rows.columns.values()))
        slack = 10 * (values.max() - values.min())
        return (released > values.max() + slack) | (released < values.min() - slack)


@dataclasses.dataclass(frozen=True)
class Ranked(Other):
    """A statistic that is one of the values: one row per person.

    Attributes:
        p: the share of people below, of a quantile.
        k: which from the top, instead; 1 is the maximum.
    """

    p: float = 0.0
    k: int = 0

    def make(self, kind: str, size: int, seed: int) -> Rows:
        """Return one row per person."""
        return suites.alone(kind, size, seed)

    def errors(self, rows: Rows, released: np.ndarray) -> np.ndarray:
        """Return by how many people a value is off: 0 where it is the statistic."""
        ordered = np.sort(rows.columns["v"])
        below = np.searchsorted(ordered, released, "left")
        upto = np.searchsorted(ordered, released, "right")
        low, high = self._ranks(len(ordered))
        return np.maximum(np.maximum(low - upto, below - high), 0.0)

    def _ranks(self, size: int) -> tuple[float, float]:
        """Return the least people at or below the statistic, and the most below it."""
        if not self.k:
            return self.p * size, self.p * size
        return size - self.k + 1, size - self.k

    def inside(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return whether the rank error is at most the stated one."""
        return (self.errors(rows, drawn.value) <= drawn.people) | drawn.empty

    def stated(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return the stated rank errors."""
        return drawn.people

    def experts(self, kind: str, rows: Rows) -> Options:
        """Return the exponential mechanism among 1,000 values between two of the population."""
        size = len(rows.person)
        rank = self.p if not self.k else 1 - (self.k - 0.5) / size
        return expert_laws.quantiles(kind, rows.columns["v"], [rank])


@dataclasses.dataclass(frozen=True)
class KthLargest(Ranked):
    """The k-th largest value."""

    def experts(self, kind: str, rows: Rows) -> Options:
        """Return the same at the rank, and at ranks a little lower, which err less at the end."""
        size = len(rows.person)
        ranks = [1 - (self.k - 0.5 + lower) / size for lower in (0, 2, 5, 10)]
        return expert_laws.quantiles(kind, rows.columns["v"], ranks)


@dataclasses.dataclass(frozen=True)
class Largest(KthLargest):
    """The largest value, whose errors are ratios: nobody's rank says how far above it a value is.

    The error is the relative one, as |ln(released / truth)|, at most 10. The interval is one of
    values.
    """

    def truth(self, rows: Rows) -> float:
        """Return the largest value."""
        return float(rows.columns["v"].max())

    def inside(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return whether the interval holds the largest value."""
        truth = self.truth(rows)
        slack = 1e-9 * abs(truth)
        return (drawn.low <= truth + slack) & (drawn.high >= truth - slack)

    def stated(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return how far the lower end is from the largest value; the upper one is infinite."""
        return self.errors(rows, drawn.low)

    def errors(self, rows: Rows, released: np.ndarray) -> np.ndarray:
        """Return |ln(released / truth)|; 10 where a value is not above 0."""
        ratio = np.maximum(released / self.truth(rows), 1e-300)
        return np.minimum(abs(np.log(ratio)), 10.0)


@dataclasses.dataclass(frozen=True)
class Numbers(Other):
    """A statistic whose error is a distance, in the unit."""

    @abc.abstractmethod
    def truth(self, rows: Rows) -> float:
        """Return the true number."""

    def size(self, rows: Rows) -> float:
        """Return what one of the unit is."""
        return 1.0

    def errors(self, rows: Rows, released: np.ndarray) -> np.ndarray:
        """Return distances."""
        return abs(released - self.truth(rows)) / self.size(rows)

    def inside(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return whether the interval holds the true number."""
        truth = self.truth(rows)
        slack = 1e-9 * abs(truth)
        return (drawn.low <= truth + slack) & (drawn.high >= truth - slack)

    def stated(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return half the interval, in the unit; of an interval without an end its other side."""
        open_above = np.isinf(drawn.high)
        half = np.where(open_above, drawn.value - drawn.low, (drawn.high - drawn.low) / 2)
        return half / self.size(rows)

    def absurd(self, rows: Rows, released: np.ndarray) -> np.ndarray:
        """Return that none is."""
        return np.zeros(released.shape, bool)


ITEMS = ("100 items, Zipf", "100 items, evenly", "people / 3 items", "own items")


def items(kind: str, size: int, seed: int) -> Rows:
    """Return 1, 2, ... rows per person (3 on average), each with an item."""
    drawn = np.random.default_rng([size, seed, ITEMS.index(kind)])
    person = np.repeat(np.arange(size), 1 + drawn.poisson(2.0, size))
    several = {
        "100 items, Zipf": lambda: np.minimum(drawn.zipf(1.3, len(person)), 100),
        "100 items, evenly": lambda: drawn.integers(0, 100, len(person)),
        "people / 3 items": lambda: drawn.integers(0, max(1, size // 3), len(person)),
        "own items": lambda: np.arange(len(person)),
    }
    owned = several[kind]().astype(np.int64)
    return Rows(person, np.zeros(len(person), np.int64), {"item": owned})


@dataclasses.dataclass(frozen=True)
class Distinct(Numbers):
    """How many different items there are."""

    def make(self, kind: str, size: int, seed: int) -> Rows:
        """Return rows with items."""
        return items(kind, size, seed)

    def truth(self, rows: Rows) -> float:
        """Return the number of different items."""
        return float(len(np.unique(rows.columns["item"])))

    def experts(self, kind: str, rows: Rows) -> Options:
        """Return plain noise for so many items of each person, others left out."""
        return expert_laws.distinct(rows)


@dataclasses.dataclass(frozen=True)
class Frequency(Numbers):
    """How many rows the most frequent item has."""

    def make(self, kind: str, size: int, seed: int) -> Rows:
        """Return rows with items."""
        return items(kind, size, seed)

    def truth(self, rows: Rows) -> float:
        """Return the most rows of an item."""
        return float(np.bincount(rows.columns["item"]).max())

    def experts(self, kind: str, rows: Rows) -> Options:
        """Return the largest of noisy counts of a public list of items."""
        return expert_laws.frequency(rows)


@dataclasses.dataclass(frozen=True)
class MeanOfRows(Numbers):
    """The mean over rows; the unit is the sampling error of the mean."""

    def make(self, kind: str, size: int, seed: int) -> Rows:
        """Return several rows per person."""
        return suites.several_rows(kind, size, seed)

    def truth(self, rows: Rows) -> float:
        """Return the mean of all rows."""
        return float(rows.columns["v"].mean())

    def size(self, rows: Rows) -> float:
        """Return the standard deviation of the mean, if rows were independent."""
        values = rows.columns["v"]
        return float(values.std() / np.sqrt(len(values)))

    def experts(self, kind: str, rows: Rows) -> Options:
        """Return sums of values and numbers of rows within bounds of the population, and noise."""
        return expert_laws.means(kind, rows)


OTHERS: tuple[Other, ...] = (
    Largest("largest", dp.Max("v"), VALUES, "of |ln(released / truth)|", k=1),
    KthLargest("10th largest", dp.KthLargest("v", 10), VALUES, "people", k=10),
    KthLargest("100th largest", dp.KthLargest("v", 100), VALUES, "people", k=100),
    KthLargest("100th largest, one row each", dp.KthLargest("v", 100), VALUES, "people", 1, k=100),
    Ranked("median", dp.Median("v", per="person"), VALUES, "people", p=0.5),
    Ranked("0.9-quantile", dp.Quantile("v", 0.9, per="person"), VALUES, "people", p=0.9),
    Ranked("0.99-quantile", dp.Quantile("v", 0.99, per="person"), VALUES, "people", p=0.99),
    Distinct("distinct count", dp.DistinctCount("item"), ITEMS, "values"),
    Frequency("most frequent", dp.MaxFrequency("item"), ITEMS[:3], "rows"),
    MeanOfRows("mean of rows", dp.Mean("v"), VALUES, "sampling errors"),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """One statistic of one kind of data."""

    other: Other
    kind: str
    people: int

    def rows(self, seed: int) -> Rows:
        """Return the rows, for a seed."""
        return self.other.make(self.kind, self.people, seed)


def by_statistic(sizes: Sequence[int], only: str) -> Iterator[tuple[Other, list[Cell]]]:
    """Yield the statistics with such a part in their names, each with all its cells."""
    for other in OTHERS:
        if only in other.name:
            yield other, [Cell(other, kind, size) for kind in other.kinds for size in sizes]

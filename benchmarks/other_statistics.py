"""Statistics that are no sums: how far off they are, and whether what is stated beside is true.

    python -m benchmarks coverage --statistics

A cell has the middle and the 95% quantile of the errors, in the unit that heads the table; the
share of releases of which what they state is true (an interval of values, or a rank error), in
percent; and what is stated over the 95% error, the middle of all. An "e" is the percentage of
releases that are empty ("too few people"), which do not count as errors. Where one release takes
long, only as many are drawn as a few seconds allow, but at least 10.

`benchmarks.experts` asks the same of an expert: of what a careful user of OpenDP or PipelineDP
releases at epsilon 1, whose bounds come from a million draws of the population, not from the
sample.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from benchmarks import draws, expert_laws, suites, tables
from benchmarks.draws import Interval, quantiles
from benchmarks.expert_laws import Laws
from benchmarks.suites import Rows
from benchmarks.tables import line, say, short

BUDGET = dp.Budget(1.0)
INSIDE, LEAST = 0.93, 0.80
SIZES = (300, 1000, 10_000, 100_000)
VALUES = ("lognormal 1", "lognormal 2", "uniform", "exponential", "Pareto 2", "normal(10, 30)")
ITEMS = ("100 items, Zipf", "100 items, evenly", "people / 3 items", "own items")
Make = Callable[[str, int, int], Rows]
"""Takes a kind of data, how many people, and a seed."""


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
    return Rows.together(person, v=several[kind]().astype(np.int64))


@dataclasses.dataclass(frozen=True)
class Distance:
    """A statistic whose error is a distance, in the unit.

    Attributes:
        name: what a table calls it.
        metric: what we release.
        kinds: of which data.
        unit: what its errors are, in words.
        truth: returns the true number.
        experts: what an expert may release, by the bounds that they choose.
        make: returns the rows.
        size: returns what one of the unit is.
        max_rows_per_partition: the bound on the rows of a person, if there is one.
        place: which of several numbers of the metric it is.
    """

    name: str
    metric: Metric
    kinds: tuple[str, ...]
    unit: str
    truth: Callable[[np.ndarray], float]
    experts: Callable[[str, Rows], Laws]
    make: Make = items
    size: Callable[[np.ndarray], float] = lambda values: 1.0
    max_rows_per_partition: int | None = None
    place: int = 0

    @property
    def head(self) -> str:
        return f"{self.name}: {self.unit}"

    def errors(self, rows: Rows, released: np.ndarray) -> np.ndarray:
        """Return how far off releases are, in the unit."""
        values = rows.columns["v"]
        return abs(released - self.truth(values)) / self.size(values)

    def inside(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return whether what is stated beside releases is true."""
        return drawn.holds(self.truth(rows.columns["v"]))

    def stated(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return half the interval, in the unit; of one without an upper end its lower side."""
        half = np.where(np.isinf(drawn.high), drawn.value - drawn.low, (drawn.high - drawn.low) / 2)
        return half / self.size(rows.columns["v"])


@dataclasses.dataclass(frozen=True)
class Ranked(Distance):
    """A statistic that is one of the values, of one row per person; its errors are people.

    Attributes:
        p: the share of people below, of a quantile.
        k: which from the top, instead; 1 is the maximum.
    """

    unit: str = "people"
    truth: Callable[[np.ndarray], float] = np.max
    experts: Callable[[str, Rows], Laws] = expert_laws.no_laws
    make: Make = suites.alone
    p: float = 0.0
    k: int = 0

    def errors(self, rows: Rows, released: np.ndarray) -> np.ndarray:
        """Return by how many people a value is off: 0 where it is the statistic."""
        ordered = np.sort(rows.columns["v"])
        size, below = len(ordered), np.searchsorted(ordered, released, "left")
        upto = np.searchsorted(ordered, released, "right")
        low, high = (size - self.k + 1, size - self.k) if self.k else (self.p * size,) * 2
        return np.maximum(np.maximum(low - upto, below - high), 0.0)

    def inside(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return whether the rank error is at most the stated one."""
        return (self.errors(rows, drawn.value) <= drawn.people) | drawn.empty

    def stated(self, rows: Rows, drawn: Interval) -> np.ndarray:
        return drawn.people


@dataclasses.dataclass(frozen=True)
class Largest(Ranked):
    """The largest value: its error is |ln(released / truth)|, at most 10; it has an interval."""

    unit: str = "of |ln(released / truth)|"

    def inside(self, rows: Rows, drawn: Interval) -> np.ndarray:
        return drawn.holds(rows.columns["v"].max())

    def stated(self, rows: Rows, drawn: Interval) -> np.ndarray:
        """Return how far the lower end is from the largest value; the upper one is infinite."""
        return self.errors(rows, drawn.low)

    def errors(self, rows: Rows, released: np.ndarray) -> np.ndarray:
        """Return |ln(released / truth)|; 10 where a value is not above 0."""
        ratio = np.maximum(released / rows.columns["v"].max(), 1e-300)
        return np.minimum(abs(np.log(ratio)), 10.0)


def _of_rank(p: float, epsilon: float = 1.0) -> Callable[[str, Rows], Laws]:
    return lambda kind, rows: expert_laws.quantiles(kind, rows.columns["v"], [p], epsilon)


def _near_top(k: int) -> Callable[[str, Rows], Laws]:
    """Ask for the rank, and for ranks a little lower, which err less at the end."""

    def laws(kind: str, rows: Rows) -> Laws:
        values = rows.columns["v"]
        ranks = [1 - (k - 0.5 + lower) / len(values) for lower in (0, 2, 5, 10)]
        return expert_laws.quantiles(kind, values, ranks)

    return laws


def _quantile(name: str, p: float, metric: Metric | None = None) -> Ranked:
    metric = metric or dp.Quantile("v", p, per="person")
    return Ranked(name, metric, VALUES, experts=_of_rank(p), p=p)


def _kth(name: str, k: int, max_rows_per_partition: int | None = None) -> Ranked:
    return Ranked(
        name,
        dp.KthLargest("v", k),
        VALUES,
        experts=_near_top(k),
        max_rows_per_partition=max_rows_per_partition,
        k=k,
    )


OTHERS: tuple[Distance, ...] = (
    Largest("largest", dp.Max("v"), VALUES, experts=_near_top(1), k=1),
    _kth("10th largest", 10),
    _kth("100th largest", 100),
    _kth("100th largest, one row each", 100, max_rows_per_partition=1),
    _quantile("median", 0.5, dp.Median("v", per="person")),
    _quantile("0.9-quantile", 0.9),
    _quantile("0.99-quantile", 0.99),
    Distance(
        "distinct count",
        dp.DistinctCount("v"),
        ITEMS,
        "values",
        lambda values: float(len(np.unique(values))),
        expert_laws.distinct,
    ),
    Distance(
        "most frequent",
        dp.MaxFrequency("v"),
        ITEMS[:3],
        "rows",
        lambda values: float(np.bincount(values).max()),
        expert_laws.frequency,
    ),
    Distance(
        "mean of rows",
        dp.Mean("v"),
        VALUES,
        "sampling errors",
        np.mean,
        expert_laws.means,
        suites.several_rows,
        lambda values: float(values.std() / np.sqrt(len(values))),
    ),
)


_QUARTERS = (0.25, 0.5, 0.75)
TOGETHER: tuple[Distance, ...] = tuple(
    Ranked(
        f"{p} of three quantiles",
        dp.Quantiles("v", _QUARTERS, per="person"),
        (*VALUES, *suites.TIES),
        experts=_of_rank(p, 1 / len(_QUARTERS)),
        p=p,
        place=place,
    )
    for place, p in enumerate(_QUARTERS)
)
"""Quantiles of one column together, also where values tie."""


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """One statistic of one kind of data."""

    other: Distance
    kind: str
    people: int

    def rows(self, seed: int) -> Rows:
        return self.other.make(self.kind, self.people, seed)


@dataclasses.dataclass(frozen=True)
class Found:
    """What came out of one cell.

    Attributes:
        cell: what was asked.
        middle: the middle error.
        error: the 95% error.
        inside: the share of releases of which what they state is true.
        width: what is stated, over the 95% error.
        empty: the share of releases that are empty.
    """

    cell: Cell
    middle: float
    error: float
    inside: float
    width: float
    empty: float

    def __str__(self) -> str:
        share = f" e{self.empty:.1%}" if self.empty > 0.0005 else ""
        errors = f"{short(self.middle)}, {short(self.error)}"
        return f"{errors} / {100 * self.inside:.0f} / {short(self.width)}{share}"


def measure(cell: Cell, runs: int, seeds: int, seconds: float = 1.0) -> Found:
    """Draw releases of one cell and compare them with the truth.

    Args:
        cell: the statistic and the data.
        runs: how many releases in all.
        seeds: of how many draws of the data.
        seconds: no more are drawn of each after so long, but for the first ten.
    """
    parts, start, other = [], time.monotonic(), cell.other
    for seed in range(seeds):
        if parts and time.monotonic() > start + seeds * seconds:
            break
        rows = cell.rows(seed)
        summarised = draws.summarise(rows, [other.metric], BUDGET, other.max_rows_per_partition)
        drawn = summarised.draws(-(-runs // seeds), seconds)[other.place]
        errors, stated = other.errors(rows, drawn.value), other.stated(rows, drawn)
        parts.append([errors, other.inside(rows, drawn), stated, drawn.empty])
    columns = [np.concatenate(column).ravel() for column in zip(*parts, strict=True)]
    errors, inside, stated, empty = columns
    middle, error = quantiles(errors[~empty])
    width = float(np.median(stated[~empty])) / error if error > 0 else float("nan")
    return Found(cell, middle, error, float(inside.mean()), width, float(empty.mean()))


def misses(results: Sequence[Found]) -> list[str]:
    """Return which goals a column misses."""
    inside = [one.inside for one in results]
    found = {
        "true": sum(inside) / len(inside) >= INSIDE,
        "a true": min(inside) >= LEAST,
    }
    return [name for name, is_met in found.items() if not is_met]


def by_statistic(
    sizes: Sequence[int], only: str, others: Sequence[Distance] = OTHERS
) -> Iterator[tuple[Distance, list[list[Cell]]]]:
    """Yield the statistics with such a part in their names: for each kind a line of cells."""
    for other in others:
        if only in other.name:
            yield other, [[Cell(other, kind, size) for size in sizes] for kind in other.kinds]


def table(other: Distance, lines: Sequence[Sequence[Found]]) -> str:
    """Return the table of one statistic: a line per kind of data, a column per size."""
    text = tables.heads([other.head, *(f"{one.cell.people:,}" for one in lines[0])])
    for found in lines:
        text += line([found[0].cell.kind, *map(str, found)])
    goals = (tables.judged(misses(column)) for column in zip(*lines, strict=True))
    return text + line(["goals met", *goals])


def overview(
    head: str, found: Mapping[Distance, Sequence[Sequence[Found]]], summary: Callable[..., str]
) -> str:
    """Return one line per statistic: what comes out of its kinds of data, for each size."""
    first = next(iter(found.values()))[0]
    text = tables.heads([head, *(f"{one.cell.people:,}" for one in first)])
    for other, lines in found.items():
        text += line([other.head, *(summary(column) for column in zip(*lines, strict=True))])
    return text


def summary(results: Sequence[Found]) -> str:
    """Return the middle 95% error of a column, how often what is stated is true."""
    errors, inside = (
        np.array([getattr(one, name) for one in results]) for name in ("error", "inside")
    )
    true = f"{100 * inside.mean():.0f} ({100 * inside.min():.0f})"
    return f"{short(float(np.nanmedian(errors)))} / {true}"


def report(runs: int, seeds: int, quick: bool, only: str) -> int:
    """Print the tables; return 1 where a goal is missed."""
    sizes, seconds = (SIZES[:2], 0.2) if quick else (SIZES, 1.0)
    found: dict[Distance, list[list[Found]]] = {}
    is_missed = False
    for other, asked in by_statistic(sizes, only, OTHERS + TOGETHER):
        found[other] = [[measure(cell, runs, seeds, seconds) for cell in cells] for cells in asked]
        text = table(other, found[other])
        is_missed |= "NO: " in text
        say(f"{text}\n")
    say(overview("95% error, the middle kind / true, mean (worst)", found, summary))
    return int(is_missed)

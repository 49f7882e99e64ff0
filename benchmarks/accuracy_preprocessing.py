"""Measure how far private means, medians and maxima are from the truth, by preprocessing or not.

    python -m benchmarks accuracy_preprocessing                      200 releases of everything
    python -m benchmarks accuracy_preprocessing --runs 20 --sizes 1000     a look at it

Three kinds of data at epsilon 1, one number per person: TPC-H's `o_totalprice` per nation, where a
person is a customer and the number the mean of their orders (25 partitions; also of a tenth and a
hundredth of the customers), lognormal numbers (sigma 2), and Cauchy's, in one partition.

Ours need no range: "preprocessing" is `Preprocessed`, "our other way" is `Mean` in two phases,
`Median` by rank search, `Max` by its removal loss. The others (`rivals`) are shown with three
ranges: the true one, which is not private; the same ten times as wide; and a tenth of it. (Wider
and narrower ranges are those of the true one with 0, times or over 10.) The exponential mechanism
chooses among 10,001 candidates of its range.

A cell has the mean of the middle 60% of the absolute errors, and that of all of them. Bold is the
least first number of a column; italic, the least of those with no true range, if that is another.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from benchmarks import draws, rivals, tables, tpch
from benchmarks.draws import middle
from benchmarks.rivals import EPSILON, Draw, Range
from benchmarks.suites import Rows
from benchmarks.tables import line, say, three

RANGES = ("true range", "10 x wider", "10 x narrower")
TRUTHS: dict[str, Callable[[np.ndarray], float]] = {
    "mean": np.mean,
    "median": np.median,
    "maximum": np.max,
}
OURS: dict[str, dict[str, Metric]] = {
    "mean": {
        "preprocessing": dp.Preprocessed("value", "mean"),
        "our other way: two phases": dp.Mean("value"),
    },
    "median": {
        "preprocessing": dp.Preprocessed("value", "median"),
        "our other way: rank search": dp.Median("value", per="person"),
    },
    "maximum": {
        "preprocessing": dp.Preprocessed("value", "maximum"),
        "our other way: removal loss": dp.Max("value"),
    },
}
RIVALS: dict[str, dict[str, Draw]] = {
    "mean": {"clipping": rivals.clipped_mean},
    "median": {
        "clipping": rivals.clipped_median,
        "exponential mechanism": rivals.exponential_median,
        "smooth sensitivity": rivals.SmoothMedian().draw,
    },
    "maximum": {"clipping": rivals.clipped_maximum},
}


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """Numbers of people in partitions, and what they are called."""

    data: str
    partitions: tuple[np.ndarray, ...]

    @property
    def size(self) -> int:
        """The number of people of a partition, on average."""
        return round(np.mean([len(values) for values in self.partitions]))

    @property
    def name(self) -> str:
        """The head of its column."""
        return f"{self.data}, {self.size:,}"

    def spans(self) -> dict[str, Range]:
        """Return the ranges of all numbers: the true one, and two wrong ones."""
        joined = np.concatenate(self.partitions)
        low, high = float(joined.min()), float(joined.max())
        near = min(low, 0.0), max(high, 0.0)
        wrong = [(near[0] * factor, near[1] * factor) for factor in (10.0, 0.1)]
        return dict(zip(RANGES, [(low, high), *wrong], strict=True))


def questions(sizes: Sequence[int], shares: Sequence[float]) -> Iterator[Question]:
    """Yield what is asked; the data are the same in every run."""
    nations, prices = orders()
    for share in shares:
        kept = np.random.default_rng(1).random(len(nations)) < share
        groups = [prices[kept & (nations == nation)] for nation in np.unique(nations)]
        yield Question("TPC-H", tuple(groups))
    for size in sizes:
        yield Question("lognormal", (np.random.default_rng(2).lognormal(0.0, 2.0, size),))
    for size in sizes:
        yield Question("Cauchy", (np.random.default_rng(3).standard_cauchy(size),))


def orders() -> tuple[np.ndarray, np.ndarray]:
    """Return the nation and the mean price of the orders of each customer who has one."""
    table = tpch.table("orders", ["o_custkey", "o_totalprice"])
    people, places = np.unique(table["o_custkey"].to_numpy(), return_inverse=True)
    prices = table["o_totalprice"].cast(pa.float64()).to_numpy()
    means = np.bincount(places, prices) / np.bincount(places)
    customers = tpch.table("customer", ["c_custkey", "c_nationkey"])
    keys, nations = customers["c_custkey"].to_numpy(), customers["c_nationkey"].to_numpy()
    order = np.argsort(keys)
    return nations[order][np.searchsorted(keys[order], people)], means


def ours(question: Question, metric: Metric, runs: int) -> np.ndarray:
    """Return releases of the library's own code: one line per run, one column per partition."""
    sizes = [len(part) for part in question.partitions]
    places = np.repeat(np.arange(len(sizes)), sizes)
    values = {"value": np.concatenate(question.partitions)}
    rows = Rows(np.arange(len(places)), places, values, len(sizes))
    return draws.summarise(rows, [metric], dp.Budget(EPSILON)).draws(runs)[0].value


def errors(question: Question, statistic: str, runs: int) -> dict[str, np.ndarray]:
    """Return the absolute errors of every mechanism, of all partitions together."""
    truths = np.array([TRUTHS[statistic](values) for values in question.partitions])
    found = {
        name: np.abs(ours(question, metric, runs) - truths).ravel()
        for name, metric in OURS[statistic].items()
    }
    drawn, spans = np.random.default_rng(4), question.spans()
    for name, draw in RIVALS[statistic].items():
        for word, span in spans.items():
            pairs = zip(question.partitions, truths, strict=True)
            drawings = [draw(values, span, runs, drawn) - truth for values, truth in pairs]
            found[f"{name}, {word}"] = np.abs(np.concatenate(drawings))
    return found


Found = dict[Question, dict[str, np.ndarray]]


def table(statistic: str, found: Found) -> str:
    """Return one table: a line per mechanism, a column per question."""
    asked = list(found)
    names = list(found[asked[0]])
    marks = {question: marked(found[question]) for question in asked}
    heads = [f"{statistic}, by", *(question.name for question in asked)]
    text = tables.heads(heads)
    for name in names:
        cells = []
        for question in asked:
            mark = marks[question].get(name, "")
            one = found[question][name]
            cells.append(f"{mark}{three(middle(one))}{mark} / {three(float(one.mean()))}")
        text += line([name, *cells])
    return text


def marked(found: dict[str, np.ndarray]) -> dict[str, str]:
    """Return the marks of the best of all and of the best with no true range."""
    middles = {name: middle(one) for name, one in found.items()}
    honest = {name: value for name, value in middles.items() if RANGES[0] not in name}
    return {min(honest, key=honest.__getitem__): "*", min(middles, key=middles.__getitem__): "**"}


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables of errors."""
    sizes, shares = "100,1000,10000,100000", "0.01,0.1,1"
    given = tables.options(__doc__, words, runs=200, sizes=sizes, shares=shares)
    sizes, shares = (text.split(",") for text in (given.sizes, given.shares))
    asked = list(questions([*map(int, sizes)], [*map(float, shares)]))
    for statistic in TRUTHS:
        found = {one: errors(one, statistic, given.runs) for one in asked}
        say(f"{table(statistic, found)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure how far private means, medians and maxima are from the truth, by preprocessing or not.

    python -m benchmarks.accuracy_preprocessing                      200 releases of everything
    python -m benchmarks.accuracy_preprocessing --runs 20 --sizes 1000     a look at it
    python -m benchmarks.accuracy_preprocessing --opendp             OpenDP's own code (slow)
    python -m benchmarks.accuracy_preprocessing --plot errors.png    a picture (pip install .[plot])

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

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.metrics.base import UNIT, Metric
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.summaries import histograms, owner_lines
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from benchmarks import rivals, tpch
from benchmarks.accuracy import line, middle, released
from benchmarks.rivals import EPSILON, Draw, Range

SIZES = (100, 1000, 10_000, 100_000)
SHARES = (0.01, 0.1, 1.0)
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
_KEY = bytes(32)


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
    program = compile_program([metric], dp.Budget(EPSILON), 1, partitions=len(question.partitions))
    table = table_of(question.partitions)
    bounder = Bounder(ContributionBounds(None), program.fields, _KEY, program.keep_rows)
    settled = bounder.settle(bounder.prepare(table))
    lines = owner_lines.collect(settled, program.measures, _KEY)
    if bounder.keep_rows:
        settled = bounder.aggregate(settled)
    cells = PartitionView.of_all(histograms.summarise(settled, program.measures), lines)
    shared = program.shared_measures
    people = PartitionView.of_all(histograms.summarise_people(settled, shared)) if shared else None
    drawn = []
    for _ in range(runs):
        clips = program.choose_clips(people, Noise()) if people is not None else ()
        drawn.append(np.asarray(released(program, cells, clips), float))
    return np.array(drawn)


def table_of(partitions: Sequence[np.ndarray]) -> Table:
    """Return numbers as the pipeline would hold them: one row per person."""
    values = np.concatenate(partitions)
    identity = np.arange(len(values), dtype=np.uint64)[None]
    sizes = [len(part) for part in partitions]
    places = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)[None]
    units = np.rint(values / float(UNIT)).astype(np.int64)
    return Table(identity, places, np.ones(len(values), np.int64), [units])


def errors(question: Question, statistic: str, runs: int) -> dict[str, np.ndarray]:
    """Return the absolute errors of every mechanism, of all partitions together."""
    truths = np.array([TRUTHS[statistic](values) for values in question.partitions])
    found = {
        name: np.abs(ours(question, metric, runs) - truths).ravel()
        for name, metric in OURS[statistic].items()
    }
    drawn, spans = np.random.default_rng(4), question.spans()
    for name, draw in RIVALS[statistic].items():
        each = max(1, runs // len(truths)) if draw is rivals.opendp_median else runs
        for word, span in spans.items():
            pairs = zip(question.partitions, truths, strict=True)
            drawings = [draw(values, span, each, drawn) - truth for values, truth in pairs]
            found[f"{name}, {word}"] = np.abs(np.concatenate(drawings))
    return found


Found = dict[Question, dict[str, np.ndarray]]


def table(statistic: str, found: Found) -> str:
    """Return one table: a line per mechanism, a column per question."""
    asked = list(found)
    names = list(found[asked[0]])
    marks = {question: marked(found[question]) for question in asked}
    heads = [f"{statistic}, by", *(question.name for question in asked)]
    text = line(heads) + line(["---"] * len(heads))
    for name in names:
        cells = []
        for question in asked:
            mark = marks[question].get(name, "")
            one = found[question][name]
            cells.append(f"{mark}{short(middle(one))}{mark} / {short(float(one.mean()))}")
        text += line([name, *cells])
    return text


def marked(found: dict[str, np.ndarray]) -> dict[str, str]:
    """Return the marks of the best of all and of the best with no true range."""
    middles = {name: middle(one) for name, one in found.items()}
    honest = {name: value for name, value in middles.items() if RANGES[0] not in name}
    return {min(honest, key=honest.__getitem__): "*", min(middles, key=middles.__getitem__): "**"}


def short(number: float) -> str:
    """Return three digits of a number."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


COLOURS = ("black", "tab:red", "tab:blue", "tab:green", "tab:orange")
STYLES = dict(zip(RANGES, ("-", "--", ":"), strict=True))


def plot(results: dict[str, Found], path: str) -> None:
    """Draw the middle 60% of the errors against the people of a partition.

    Args:
        results: the errors, by statistic and question.
        path: where the picture goes; its ending says which kind it is.
    """
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(question.data for question in next(iter(results.values()))))
    figure = Figure(figsize=(5 * len(kinds) + 3, 4.5 * len(results)), layout="constrained")
    grid = figure.subplots(len(results), len(kinds), squeeze=False)
    for cells, (statistic, found) in zip(grid, results.items(), strict=True):
        for axes, kind in zip(cells, kinds, strict=True):
            asked = [question for question in found if question.data == kind]
            for name, (colour, style, width) in styles(found[asked[0]]).items():
                sizes = [question.size for question in asked]
                lows = [middle(found[question][name]) for question in asked]
                form = {"color": colour, "linestyle": style, "linewidth": width}
                axes.loglog(sizes, lows, label=name, marker="o", markersize=3, **form)
            axes.set(title=f"{statistic}, {kind}", xlabel="people per partition")
        cells[0].set(ylabel="absolute error, middle 60%")
        cells[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=8)
    figure.savefig(path)


def styles(names: Sequence[str] | dict[str, np.ndarray]) -> dict[str, tuple[str, str, float]]:
    """Return colour, line style and width: a colour per mechanism, a style per range."""
    mechanisms = list(dict.fromkeys(name.split(",")[0] for name in names))
    found = {}
    for name in names:
        mechanism, _, span = name.partition(", ")
        width = 1.2 if span else 2.5
        found[name] = COLOURS[mechanisms.index(mechanism)], STYLES.get(span, "-"), width
    return found


def main(words: Sequence[str] | None = None) -> None:
    """Print the tables of errors, and draw them where that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="releases of every mechanism")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="people, with commas")
    parser.add_argument("--shares", default=",".join(map(str, SHARES)), help="of the customers")
    parser.add_argument("--opendp", action="store_true", help="OpenDP's code, if it is installed")
    parser.add_argument("--plot", metavar="PATH", help="draw a picture, too")
    given = parser.parse_args(words)
    if given.opendp:
        RIVALS["median"]["exponential mechanism"] = rivals.opendp_median
    sizes, shares = (text.split(",") for text in (given.sizes, given.shares))
    asked = list(questions([*map(int, sizes)], [*map(float, shares)]))
    results: dict[str, Found] = {}
    for statistic in TRUTHS:
        results[statistic] = {one: errors(one, statistic, given.runs) for one in asked}
        sys.stdout.write(f"{table(statistic, results[statistic])}\n")
        sys.stdout.flush()
    if given.plot:
        plot(results, given.plot)


if __name__ == "__main__":
    main()

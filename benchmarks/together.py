"""Measure numbers that share a draw of noise, means far from 0, and standard deviations.

    python -m benchmarks together             the tables (five minutes); `--runs 20` for a short look

*Numbers*: the 95% error of each of several metrics of one partition at epsilon 1, beside that of the
best fixed clip with its part of epsilon, by people; geometric means over the metrics.

*Means*, and the share of clicks by `dp.Ratio`: the 95% error, beside that of an expert who knows the
data: of all caps on the rows of a person (the rest is sampled away), ends of the values and splits
of epsilon the best, with Laplace noise on the sum of distances from the middle and on the count. In
each cell: that quotient, how often the interval holds the truth, and half of its width over the
error.

*Standard deviations* of one row per person: the 95% error by default and by preprocessing, beside the
truth, and how often the interval of the default holds it.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Sequence

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from benchmarks import best_clips, draws
from benchmarks.accuracy import line
from benchmarks.best_clips import Scale
from benchmarks.measured import geometric
from benchmarks.suites import Rows, first_ranks

RUNS = 100
PEOPLE = (300, 1000, 10_000, 100_000)
FEWER = (300, 2000, 20_000)
ASKED = {
    1: ("count",),
    2: ("count", "a"),
    3: ("count", "people", "a"),
    5: ("count", "people", "a", "b", "c"),
}
_METRICS = {"count": dp.Count(), "people": dp.PeopleCount()}
_SHARES = (0.5, 0.7, 0.85)
_PEOPLE_ERROR = 3.0
"""The 95% error of a number of people at epsilon 1."""

Values = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def of(
    counts: np.ndarray, draw: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return who owns each row, and its value."""
    person = np.repeat(np.arange(len(counts)), counts)
    return person, draw(person)


def many_rows(random: np.random.Generator, people: int) -> np.ndarray:
    """Return from 1 to 2,400 rows each, as users rate films."""
    return np.clip(random.lognormal(4.3, 1.1, people), 1, 2400).astype(np.int64)


def ratings(random: np.random.Generator, people: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ratings from 0.5 to 5 in halves; each person has a taste."""
    taste = random.normal(3.5, 0.45, people)

    def rated(person: np.ndarray) -> np.ndarray:
        exact = taste[person] + random.normal(0, 0.95, len(person))
        return np.clip(np.round(exact * 2) / 2, 0.5, 5)

    return of(many_rows(random, people), rated)


MEANS: dict[str, Values] = {
    "ratings, 1 to 2,400 rows": ratings,
    "ages, one row": lambda r, n: of(
        np.ones(n, np.int64), lambda p: np.clip(np.round(r.normal(45, 16, len(p))), 0, 110)
    ),
    "years, some rows": lambda r, n: of(
        r.poisson(3, n) + 1, lambda p: np.round(r.normal(1990, 15, len(p)))
    ),
    "clicks, 50 rows": lambda r, n: of(
        np.full(n, 50), lambda p: (r.random(len(p)) < 0.02).astype(float)
    ),
    "exponential, some rows": lambda r, n: of(
        r.poisson(3, n) + 1, lambda p: np.round(r.exponential(30, len(p)), 2)
    ),
    "lognormal 1.5, one row": lambda r, n: of(
        np.ones(n, np.int64), lambda p: np.round(r.lognormal(3, 1.5, len(p)), 2)
    ),
}


def table(person: np.ndarray, columns: dict[str, np.ndarray]) -> Rows:
    """Return rows of one partition."""
    return Rows(person, np.zeros(len(person), np.int64), columns)


def error(found: draws.Interval, truth: float) -> float:
    """Return the 95% error; infinite where more than 5% say nothing."""
    errors = np.sort(np.abs(np.where(found.empty, np.inf, found.value)[:, 0] - truth))
    return float(errors[int(0.95 * len(errors))])


def beside_clips(names: Sequence[str], people: int, runs: int) -> float:
    """Return the error of numbers that are asked together, beside fixed clips with equal parts."""
    random = np.random.default_rng(3)
    person = np.repeat(np.arange(people), random.poisson(3, people) + 1)
    size = len(person)
    columns = {
        "a": np.round(random.exponential(30, size), 2),
        "b": np.round(random.lognormal(2, 1, size), 2),
        "c": random.integers(0, 100, size).astype(float),
    }
    rows = table(person, columns)
    asked = [_METRICS.get(name) or dp.Sum(name) for name in names]
    quotients = []
    drawn = draws.summarise(rows, asked, dp.Budget(1.0)).draws(runs)
    for name, found in zip(names, drawn, strict=True):
        truth, best = float(people), _PEOPLE_ERROR * len(names)
        if name != "people":
            amounts = rows.per_pair(name if name in columns else None)[1]
            truth = float(amounts.sum())
            best = best_clips.quantile_error(amounts, Scale.laplace(1 / len(names), 1))
        quotients.append(error(found, truth) / best)
    return geometric(quotients)


def expert(rows: Rows) -> float:
    """Return the least error of a mean of capped rows between two ends, by fixed draws of noise."""
    person, values = rows.person, rows.columns["v"]
    truth, random = values.mean(), np.random.default_rng(2)
    order = np.lexsort((random.random(len(person)), person))
    ranks = np.empty(len(person), np.int64)
    ranks[order] = first_ranks(person[order])
    counts = np.bincount(person)
    caps = np.unique(np.quantile(counts, [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 1]).astype(int))
    lows, highs = (
        np.unique(np.quantile(values, shares))
        for shares in ([0, 0.01, 0.05, 0.1], [0.8, 0.9, 0.95, 0.97, 0.99, 0.999, 1])
    )
    noise, best = random.laplace(size=(2, 4000)), np.inf
    for cap, low, high, share in itertools.product(caps, lows, highs, _SHARES):
        kept = np.clip(values[ranks < cap], low, high)
        middle, reach = (low + high) / 2, (high - low) / 2
        total = (kept - middle).sum() + cap * reach / share * noise[0]
        found = middle + total / np.maximum(len(kept) + cap / (1 - share) * noise[1], 1)
        errors = np.abs(np.clip(found, low, high) - truth)
        best = min(best, float(np.quantile(errors, 0.95)))
    return best


def mean_cell(values: Values, people: int, runs: int, metric: Metric) -> tuple[float, float, float]:
    """Return the three numbers of a cell."""
    person, column = values(np.random.default_rng(5), people)
    rows, truth = table(person, {"v": column}), float(column.mean())
    [found] = draws.summarise(rows, [metric], dp.Budget(1.0)).draws(runs)
    ours = error(found, truth)
    inside = float(((found.low <= truth) & (truth <= found.high)).mean())
    return ours / expert(rows), inside, float(np.median(found.high - found.low)) / 2 / ours


def mean_words(cell: tuple[float, float, float]) -> str:
    """Return the words of a cell."""
    quotient, inside, width = cell
    return f"{quotient:.1f} / {100 * inside:.0f} / {width:.1f}"


def deviation_line(name: str, values: Values, runs: int) -> str:
    """Return one line of the table of standard deviations."""
    cells = [name]
    for people in FEWER:
        person, column = values(np.random.default_rng(5), people)
        first = np.flatnonzero(np.diff(person, prepend=-1))
        rows = table(person[first], {"v": column[first]})
        truth, errors = float(column[first].std()), []
        for method in ("clip", "preprocessing"):
            metric = dp.StandardDeviation("v", method=method)
            [found] = draws.summarise(rows, [metric], dp.Budget(1.0)).draws(runs)
            errors.append(error(found, truth))
            if method == "clip":
                inside = 100 * float(((found.low <= truth) & (truth <= found.high)).mean())
        cells.append(f"{truth:.3g}: {errors[0]:.2g}, {errors[1]:.2g} / {inside:.0f}")
    return line(cells)


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args(words).runs
    print(line(["numbers", *(f"{people:,} people" for people in PEOPLE)]), end="")
    print(line(["---"] * (1 + len(PEOPLE))), end="")
    for names in ASKED.values():
        cells = [f"{beside_clips(names, people, runs):.2f}" for people in PEOPLE]
        print(line([", ".join(names), *cells]), end="", flush=True)
    print("\n" + line(["mean of", *(f"{people:,} people" for people in FEWER)]), end="")
    print(line(["---"] * (1 + len(FEWER))), end="")
    quotients, shares = [], []
    for name, values in MEANS.items():
        found = [mean_cell(values, people, runs, dp.Mean("v")) for people in FEWER]
        quotients += [quotient for quotient, _, _ in found]
        shares += [inside for _, inside, _ in found]
        print(line([name, *map(mean_words, found)]), end="", flush=True)
    name = "clicks, 50 rows"
    found = [mean_cell(MEANS[name], people, runs, dp.Ratio("v")) for people in FEWER]
    print(line([f"share of {name}", *map(mean_words, found)]), end="", flush=True)
    print(
        f"\nmeans: {geometric(quotients):.2f} in the geometric mean, {max(quotients):.1f} at most; "
        f"intervals hold {100 * np.mean(shares):.1f}%, {100 * min(shares):.0f}% at least"
    )
    print(
        "\n" + line(["standard deviation of", *(f"{people:,} people" for people in FEWER)]), end=""
    )
    print(line(["---"] * (1 + len(FEWER))), end="")
    for name in ("ages, one row", "exponential, some rows", "lognormal 1.5, one row"):
        print(deviation_line(name, MEANS[name], runs), end="", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure numbers that share a draw of noise, and means far from 0.

    python -m benchmarks together             the tables (five minutes); `--runs 20` for a short look

*Numbers*: the 95% error of each of several metrics of one partition at epsilon 1, beside that of the
best fixed clip with its part of epsilon, by people; geometric means over the metrics.

*Means*, and the share of clicks by `dp.Ratio`: the 95% error, beside that of an expert who knows the
data: of all caps on the rows of a person (the rest is sampled away), ends of the values and splits
of epsilon the best, with Laplace noise on the sum of distances from the middle and on the count. In
each cell: that quotient, how often the interval holds the truth, and half of its width over the
error.
"""

import itertools
import sys
from collections.abc import Callable, Sequence

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from benchmarks import best_clips, draws, tables
from benchmarks.best_clips import Scale
from benchmarks.suites import Rows, first_ranks
from benchmarks.tables import geometric, line, say

PEOPLE = (300, 1000, 10_000, 100_000)
FEWER = (300, 2000, 20_000)
METRICS = {"count": dp.Count(), "people": dp.PeopleCount()} | {name: dp.Sum(name) for name in "abc"}
ASKED = (
    ("count",),
    ("count", "a"),
    ("count", "people", "a"),
    ("count", "people", "a", "b", "c"),
)
_SHARES = (0.5, 0.7, 0.85)
_PEOPLE_ERROR = 3.0
"""The 95% error of a number of people at epsilon 1."""
Counts = Callable[[np.random.Generator, int], np.ndarray]
Values = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def many(random: np.random.Generator, people: int) -> np.ndarray:
    """Return from 1 to 2,400 rows each, as users rate films."""
    return np.clip(random.lognormal(4.3, 1.1, people), 1, 2400).astype(np.int64)


def one(random: np.random.Generator, people: int) -> np.ndarray:
    return np.ones(people, np.int64)


def some(random: np.random.Generator, people: int) -> np.ndarray:
    return random.poisson(3, people) + 1


def ratings(random: np.random.Generator, person: np.ndarray) -> np.ndarray:
    """Return ratings from 0.5 to 5 in halves; each person has a taste."""
    taste = random.normal(3.5, 0.45, person[-1] + 1)
    exact = taste[person] + random.normal(0, 0.95, len(person))
    return np.clip(np.round(exact * 2) / 2, 0.5, 5)


CLICKS = "clicks, 50 rows"
MEANS: dict[str, tuple[Counts, Values]] = {
    "ratings, 1 to 2,400 rows": (many, ratings),
    "ages, one row": (one, lambda r, p: np.clip(np.round(r.normal(45, 16, len(p))), 0, 110)),
    "years, some rows": (some, lambda r, p: np.round(r.normal(1990, 15, len(p)))),
    CLICKS: (lambda r, n: np.full(n, 50), lambda r, p: (r.random(len(p)) < 0.02).astype(float)),
    "exponential, some rows": (some, lambda r, p: np.round(r.exponential(30, len(p)), 2)),
    "lognormal 1.5, one row": (one, lambda r, p: np.round(r.lognormal(3, 1.5, len(p)), 2)),
}
"""How many rows people have, and the values of the rows."""


def rows_of(name: str, people: int) -> Rows:
    """Return the rows of a line of `MEANS`."""
    counts, values = MEANS[name]
    random = np.random.default_rng(5)
    person = np.repeat(np.arange(people), counts(random, people))
    return Rows.together(person, v=values(random, person))


def error(found: draws.Interval, truth: float) -> float:
    """Return the 95% error; infinite where more than 5% say nothing."""
    errors = np.sort(np.abs(np.where(found.empty, np.inf, found.value)[:, 0] - truth))
    return float(errors[int(0.95 * len(errors))])


def beside_clips(names: Sequence[str], people: int, runs: int) -> str:
    """Return the error of numbers that are asked together, beside fixed clips with equal parts."""
    random = np.random.default_rng(3)
    person = np.repeat(np.arange(people), some(random, people))
    size = len(person)
    rows = Rows.together(
        person,
        a=np.round(random.exponential(30, size), 2),
        b=np.round(random.lognormal(2, 1, size), 2),
        c=random.integers(0, 100, size).astype(float),
    )
    quotients = []
    metrics = [METRICS[name] for name in names]
    drawn = draws.summarise(rows, metrics, dp.Budget(1.0)).draws(runs)
    for name, found in zip(names, drawn, strict=True):
        truth, best = float(people), _PEOPLE_ERROR * len(names)
        if name != "people":
            amounts = rows.per_pair(None if name == "count" else name)[1]
            truth = float(amounts.sum())
            best = best_clips.quantile_error(amounts, Scale.laplace(1 / len(names), 1))
        quotients.append(error(found, truth) / best)
    return f"{geometric(quotients):.2f}"


def expert(rows: Rows) -> float:
    """Return the least error of a mean of capped rows between two ends, by fixed draws of noise."""
    person, values = rows.person, rows.columns["v"]
    truth, random = values.mean(), np.random.default_rng(2)
    order = np.lexsort((random.random(len(person)), person))
    ranks = np.empty(len(person), np.int64)
    ranks[order] = first_ranks(person[order])
    counts = np.bincount(person)
    caps = np.unique(np.quantile(counts, [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 1]).astype(int))
    lows = np.unique(np.quantile(values, [0, 0.01, 0.05, 0.1]))
    highs = np.unique(np.quantile(values, [0.8, 0.9, 0.95, 0.97, 0.99, 0.999, 1]))
    noise, best = random.laplace(size=(2, 4000)), np.inf
    for cap, low, high, share in itertools.product(caps, lows, highs, _SHARES):
        kept = np.clip(values[ranks < cap], low, high)
        middle, half_width = (low + high) / 2, (high - low) / 2
        total = (kept - middle).sum() + cap * half_width / share * noise[0]
        found = middle + total / np.maximum(len(kept) + cap / (1 - share) * noise[1], 1)
        errors = np.abs(np.clip(found, low, high) - truth)
        best = min(best, float(np.quantile(errors, 0.95)))
    return best


def mean_cell(name: str, people: int, runs: int, metric: Metric | None = None) -> list[float]:
    """Return the quotient, how often the interval holds the truth, and its half over the error."""
    rows = rows_of(name, people)
    truth = float(rows.columns["v"].mean())
    [found] = draws.summarise(rows, [metric or dp.Mean("v")], dp.Budget(1.0)).draws(runs)
    ours = error(found, truth)
    half = float(np.median(found.high - found.low)) / 2
    return [ours / expert(rows), float(found.holds(truth).mean()), half / ours]


def mean_words(cell: Sequence[float]) -> str:
    quotient, inside, width = cell
    return f"{quotient:.1f} / {100 * inside:.0f} / {width:.1f}"


def head(name: str, sizes: Sequence[int]) -> None:
    say("\n" + tables.heads([name, *(f"{people:,} people" for people in sizes)]))


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables."""
    runs = tables.options(__doc__, words, runs=100).runs
    head("numbers", PEOPLE)
    for names in ASKED:
        say(line([", ".join(names), *(beside_clips(names, people, runs) for people in PEOPLE)]))
    head("mean of", FEWER)
    every = []
    for name in MEANS:
        cells = [mean_cell(name, people, runs) for people in FEWER]
        every += cells
        say(line([name, *map(mean_words, cells)]))
    shares = [mean_cell(CLICKS, people, runs, dp.Ratio("v")) for people in FEWER]
    say(line([f"share of {CLICKS}", *map(mean_words, shares)]))
    quotients, inside, _ = zip(*every, strict=True)
    say(
        f"\nmeans: {geometric(quotients):.2f} in the geometric mean, {max(quotients):.1f} at most; "
        f"intervals hold {100 * np.mean(inside):.1f}%, {100 * min(inside):.0f}% at least\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

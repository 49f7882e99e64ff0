"""Measure means, medians, maxima and deviations by default, and by sensitivity preprocessing.

    python -m benchmarks preprocessing              200 releases of everything at epsilon 1
    python -m benchmarks preprocessing --runs 20    a look at it

One number per person, one partition, no bounds from the user. A cell has the 95% error of the
default, that of `Preprocessed`, and the truth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from benchmarks import draws, tables
from benchmarks.suites import Rows
from benchmarks.tables import line, say, short

PEOPLE = (1000, 100_000)
BUDGET = dp.Budget(1.0)
KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "ages, N(45, 16)": lambda random, n: np.clip(np.round(random.normal(45, 16, n)), 0, 110),
    "lognormal 2": lambda random, n: random.lognormal(0.0, 2.0, n),
}
STATISTICS: dict[str, tuple[Callable[[np.ndarray], float], Metric, Metric]] = {
    "mean": (np.mean, dp.Mean("v"), dp.Preprocessed("v", "mean")),
    "median": (
        np.median,
        dp.Median("v", per="person"),
        dp.Preprocessed("v", "median"),
    ),
    "maximum": (np.max, dp.Max("v"), dp.Preprocessed("v", "maximum", person_value="max")),
    "standard deviation": (
        np.std,
        dp.StandardDeviation("v"),
        dp.Preprocessed("v", "standard_deviation"),
    ),
}
"""A line of the table: the truth, the default, and preprocessing."""


def error(values: np.ndarray, truth: float, metric: Metric, runs: int) -> float:
    """Return the 95% error of a metric; infinite where more than 5% say nothing."""
    rows = Rows.together(np.arange(len(values)), v=values)
    [found] = draws.summarise(rows, [metric], BUDGET).draws(runs)
    errors = np.where(found.empty, np.inf, abs(found.value - truth))
    return float(np.quantile(errors, draws.QUANTILE, method="higher"))


def cell(statistic: str, kind: str, people: int, runs: int) -> str:
    """Return both errors and the truth."""
    true, *metrics = STATISTICS[statistic]
    values = KINDS[kind](np.random.default_rng(2), people)
    truth = float(true(values))
    errors = (short(error(values, truth, metric, runs)) for metric in metrics)
    return f"{' / '.join(errors)} of {short(truth)}"


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    runs = tables.options(__doc__, words, runs=200).runs
    asked = [(kind, people) for kind in KINDS for people in PEOPLE]
    heads = (f"{kind}, {people:,}" for kind, people in asked)
    say(tables.heads(["95% error: default / preprocessing", *heads]))
    for statistic in STATISTICS:
        cells = (cell(statistic, kind, people, runs) for kind, people in asked)
        say(line([statistic, *cells]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

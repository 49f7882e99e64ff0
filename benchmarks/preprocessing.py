"""Time sensitivity preprocessing, hold the times against their goals, and exit with 1 if one fails.

    python -m benchmarks preprocessing                  everything: some minutes
    python -m benchmarks preprocessing --only median    the lines of one statistic
    python -m benchmarks preprocessing --only jobs      whole jobs beside the main job
    python -m benchmarks preprocessing --scale 0.01     a look at it: a hundredth of the values

Every statistic is computed on three kinds of values, in integers on a grid, as it is released.
Every Delta is tried twice: with the larger one g is the mean or the median itself, with the smaller
one it is not. What is shown is the slowest of these six, each the median of the rounds, on one
thread. Sorting is included.

The jobs are whole processes: one statistic of each of 100,000 partitions of about 100 people, by
`PreprocessSensitivity`, beside the main job's private counts and sums of the same rows.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median

import numpy as np

from beam_dp.mechanisms import preprocessing
from benchmarks import tables
from benchmarks.measure import Contestant, data_file, interleave
from benchmarks.tables import line, say

HEAD = ["what", "n", "how", "seconds", "slowest on", "goal", "met"]
DATA: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda drawn, size: drawn.normal(50.0, 10.0, size),
    "lognormal": lambda drawn, size: drawn.lognormal(0.0, 2.0, size),
    "Cauchy": lambda drawn, size: drawn.standard_cauchy(size),
}
UNIT = 1e-6  # the default grid of values
CUT = 0.01
"""The smaller Delta, of the one that is as large as needed."""
PARTITIONS, PEOPLE = 100_000, 100
JOBS = ("mean", "median", "variance")
MOST = 3.0
"""The goal of a job, in times of the main job."""


@dataclass(frozen=True)
class Question:
    """A statistic of so many values, and the seconds that it may take; None: any."""

    statistic: str
    size: int
    goal: float | None = None


QUESTIONS = (
    Question("mean", 100_000, 0.1),
    Question("median", 100_000, 0.02),
    Question("maximum", 100_000, 0.01),
    Question("variance", 100_000, 5.0),
    Question("trimmed_mean", 100_000),
    Question("mean", 10_000_000, 10.0),
    Question("median", 10_000_000, 5.0),
)


def deltas(statistic: str, values: np.ndarray) -> dict[str, float]:
    """Return a Delta that is as large as needed and one that cuts.

    For a variance the goal is for Delta n of one squared standard deviation or more: that one cuts.
    """
    if statistic == "variance":
        cuts = float(np.var(values)) / len(values)
        return {"small": cuts, "large": cuts / CUT}
    enough = float(np.ptp(values)) / len(values)
    return {"small": CUT * enough, "large": enough}


def integers(statistic: str, values: np.ndarray, delta: float) -> Callable[[], object]:
    """Return the computation, where Delta has 2^20 steps of a grid, as in a release."""
    power = 2 if statistic == "variance" else 1
    exact = Fraction(delta) / Fraction(UNIT) ** power
    steps = 1
    while exact * steps < 1 << 20:
        steps *= 2
    asked = preprocessing.Preprocessed(statistic, int(exact * steps) + 1, resolution=steps)
    units, offsets = np.rint(values / UNIT).astype(np.int64), np.array([0, len(values)])
    return lambda: asked.values(units, offsets)


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return how long a computation takes, the median of some rounds."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def slowest(question: Question, rounds: int) -> tuple[float, str]:
    """Return the longest time over all kinds of values, and on what it was."""
    found = []
    for kind, draw in DATA.items():
        values = draw(np.random.default_rng(1), question.size)
        for name, delta in deltas(question.statistic, values).items():
            work = integers(question.statistic, values, delta)
            found.append((seconds(work, rounds), f"{kind}, {name} Delta"))
    return max(found)


def cells(taken: float, on: str, goal: float | None) -> list[str]:
    """Return the last cells of a line; the last is NO where the goal is missed."""
    judged = ["", ""] if goal is None else [f"{goal:g}", "yes" if taken <= goal else "NO"]
    return [f"{taken:.4f}", on, *judged]


def functions(only: str, scale: float, rounds: int) -> Iterator[str]:
    """Yield the lines of the statistics whose names contain `only`."""
    for question in QUESTIONS:
        if only in question.statistic:
            asked = Question(question.statistic, round(question.size * scale), question.goal)
            yield line(
                [
                    asked.statistic,
                    f"{asked.size:,}",
                    "a group",
                    *cells(*slowest(asked, rounds), asked.goal),
                ]
            )


def contestants(partitions: int, output: Path) -> list[Contestant]:
    """Return the main job and those of preprocessing, on the same rows: one for each person."""
    shape = ["--partitions", str(partitions), "--one_row_each", "--even"]
    rows = partitions * PEOPLE
    path = data_file(rows, *shape)
    words = ["--input", path, "--output", str(output), "--public", str(partitions)]
    job = [sys.executable, "-m", "benchmarks.ours", *words, "--max_partitions", "1"]
    found = [Contestant("the main job", job, rows)]
    return [*found, *(Contestant(name, [*job, "--preprocessed", name], rows) for name in JOBS)]


def jobs(scale: float, rounds: int) -> Iterator[str]:
    """Yield the lines of whole jobs; their goal is a multiple of the main job's time."""
    partitions = round(PARTITIONS * scale)
    with tempfile.TemporaryDirectory() as folder:
        found = contestants(partitions, Path(folder) / "released.csv")
        interleave(found, rounds)
    for one in found:
        ratio = one.ratio(found[0])
        judged = [f"{MOST:g} x the main job", "yes" if ratio <= MOST else "NO"]
        on = f"{partitions:,} partitions, {ratio:.2f} x the main job"
        yield line([one.name, f"{one.rows:,}", "a whole job", f"{one.wall:.2f}", on, *judged])


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; return 1 where a goal is missed."""
    given = tables.options(__doc__, words, only="", scale=1.0, rounds=3)
    say(tables.heads(HEAD))
    parts = [functions(given.only, given.scale, given.rounds)]
    parts += [jobs(given.scale, given.rounds)] if given.only in "jobs" else []
    is_missed = False
    for printed in itertools.chain(*parts):
        is_missed |= "| NO |" in printed
        say(printed)
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())

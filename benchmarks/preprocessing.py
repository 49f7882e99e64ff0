"""Time sensitivity preprocessing, hold the times against their goals, and exit with 1 if one fails.

    python -m benchmarks.preprocessing                  everything: some minutes
    python -m benchmarks.preprocessing --only median    the lines of one statistic
    python -m benchmarks.preprocessing --only jobs      whole jobs beside the main job
    python -m benchmarks.preprocessing --whole          the plain recursion on as many values, too
    python -m benchmarks.preprocessing --scale 0.01     a look at it: a hundredth of the values

Every statistic is computed on three kinds of values, in integers on a grid, as it is released.
Every Delta is tried twice: with the larger one g is the mean or the median itself, with the smaller
one it is not. What is shown is the slowest of these six, each the median of the rounds, on one
thread. Sorting is included.

The jobs are whole processes: one statistic of each of 100,000 partitions of about 100 people, by
`PreprocessSensitivity`, beside the main job's private counts and sums of the same rows.
"""

from __future__ import annotations

import argparse
import subprocess
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
from beam_dp.mechanisms.preprocessing.means import Windows, recursed
from benchmarks.measure import Contestant, interleave, row

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


def line(
    what: str, size: int, way: str, taken: float, on: str, goal: float | None
) -> tuple[str, bool]:
    """Return a line of the table, and whether its goal is met."""
    met = goal is None or taken <= goal
    judged = ["", ""] if goal is None else [f"{goal:g}", "yes" if met else "NO"]
    return row([what, f"{size:,}", way, f"{taken:.4f}", on, *judged]), met


def recursion(size: int, whole: bool) -> tuple[str, bool]:
    """Return the line of the plain recursion: on a tenth of the values, times 100, or whole."""
    share = 1 if whole else 10
    values = np.sort(DATA["lognormal"](np.random.default_rng(1), size // share))
    delta = round(deltas("mean", values)["small"] / UNIT)
    units = np.rint(values / UNIT).astype(np.int64)
    taken = seconds(lambda: recursed(Windows(units), delta, 0), 1) * share**2
    way = "recursion" if whole else "recursion, a tenth, x 100"
    return line("mean", size, way, taken, "lognormal, small Delta", None)


def functions(only: str, scale: float, rounds: int, whole: bool) -> Iterator[tuple[str, bool]]:
    """Yield the lines of the statistics whose names contain `only`."""
    for question in QUESTIONS:
        if only in question.statistic:
            asked = Question(question.statistic, round(question.size * scale), question.goal)
            taken, on = slowest(asked, rounds)
            yield line(asked.statistic, asked.size, "a group", taken, on, asked.goal)
    if only in "mean":
        yield recursion(round(QUESTIONS[0].size * scale), whole)


def contestants(partitions: int, output: Path) -> list[Contestant]:
    """Return the main job and those of preprocessing, on the same rows: one for each person."""
    shape = ["--partitions", str(partitions), "--one_row_each", "--even"]
    rows = partitions * PEOPLE
    command = [sys.executable, "-m", "benchmarks.data", "--rows", str(rows), *shape]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    paths = ["--input", made.stdout.strip(), "--output", str(output), "--public", str(partitions)]
    main_job = [sys.executable, "-m", "benchmarks.ours", *paths, "--max_partitions", "1"]
    job = [sys.executable, "-m", "benchmarks.preprocessing_job", *paths, "--statistic"]
    found = [Contestant("the main job", main_job, rows)]
    return [*found, *(Contestant(name, [*job, name], rows) for name in JOBS)]


def jobs(scale: float, rounds: int) -> Iterator[tuple[str, bool]]:
    """Yield the lines of whole jobs; their goal is a multiple of the main job's time."""
    with tempfile.TemporaryDirectory() as folder:
        partitions = round(PARTITIONS * scale)
        found = contestants(partitions, Path(folder) / "released.csv")
        interleave(found, rounds)
    first = found[0]
    for one in found:
        ratio = one.ratio(first)
        met = ratio <= MOST
        judged = ["", ""] if one is first else [f"{MOST:g} x the main job", "yes" if met else "NO"]
        on = f"{partitions:,} partitions, {ratio:.2f} x the main job"
        cells = [one.name, f"{one.rows:,}", "a whole job", f"{one.wall:.2f}", on, *judged]
        yield row(cells), met


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; return 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help='a part of a statistic\'s name, or "jobs"')
    parser.add_argument("--whole", action="store_true", help="the recursion on all values")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the values")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(words)
    sys.stdout.write(f"{row(HEAD)}\n{row(['---'] * len(HEAD))}\n")
    all_met = True
    parts = [functions(given.only, given.scale, given.rounds, given.whole)]
    parts += [jobs(given.scale, given.rounds)] if given.only in "jobs" else []
    for part in parts:
        for printed, met in part:
            all_met &= met
            sys.stdout.write(f"{printed}\n")
            sys.stdout.flush()
    return int(not all_met)


if __name__ == "__main__":
    sys.exit(main())

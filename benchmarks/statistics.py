"""Time the statistics of rows, values and owners, and measure how far their releases are off.

    python -m benchmarks.statistics                       every table of speed
    python -m benchmarks.statistics --only distinct       the files with such a case
    python -m benchmarks.statistics --accuracy            errors, beside the published mechanism

One table per file. Every line is a process of its own: wall time with the interpreter's start and
the imports, and peak memory. In a table the processes take turns, beside the main job's pass over
the same rows (private sums and counts by clip and noise). A case is answered by `PrivateAggregate`
("release"), by `RemovalLoss` ("profile"), and by the function of the mechanisms on whole columns
("pure"), so that one sees what the pipeline adds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.cases import CASES, MAINS, Case, Goal
from benchmarks.measure import MEBIBYTE, Contestant, interleave, row

HEAD = ["what", "way", "K", "wall s", "least s", "cpu s", "peak MiB", "x main job", "goal", "met"]


def rows_of(file: str) -> int:
    """Return the number of rows of a file, which is made unless it is there."""
    command = [sys.executable, "-m", "benchmarks.relations", file]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return int(made.stdout.split()[1])


def contestants_of(case: Case, rows: int) -> list[Contestant]:
    """Return one process per way of a case."""
    command = [sys.executable, "-m", "benchmarks.profiles", case.name, "--way"]
    return [Contestant(case.name, [*command, way], rows) for way in case.ways]


def is_met(goal: Goal, contestant: Contestant, main: Contestant) -> bool:
    """Return whether the medians of a process reach a goal."""
    return (
        (goal.seconds is None or contestant.wall <= goal.seconds)
        and (goal.peak is None or contestant.peak <= goal.peak)
        and (goal.ratio is None or contestant.ratio(main) <= goal.ratio)
    )


def line(case: Case, way: str, contestant: Contestant, main: Contestant) -> str:
    """Return a process's line of the table; the last cell is NO where its goal is missed."""
    cells = [
        case.name,
        way,
        str(case.removals or ""),
        f"{contestant.wall:.2f}",
        f"{min(run.wall for run in contestant.runs):.2f}",
        f"{contestant.processor:.2f}",
        f"{contestant.peak / MEBIBYTE:.0f}",
        f"{contestant.ratio(main):.2f}",
        str(case.goal),
        ("yes" if is_met(case.goal, contestant, main) else "NO") if str(case.goal) else "",
    ]
    return row(cells)


def table(file: str, cases: Sequence[Case], rounds: int) -> str:
    """Run the cases of one file and return their table."""
    rows = rows_of(file)
    main, asked = MAINS[file], [case for case in cases if case.file == file]
    found = [(case, contestants_of(case, rows)) for case in (main, *asked)]
    interleave([one for _, several in found for one in several], rounds)
    first = found[0][1][0]
    lines = [
        line(case, way, contestant, first)
        for case, several in found
        for way, contestant in zip(case.ways, several, strict=True)
    ]
    return "\n".join(
        [f"### {file}: {rows:,} rows", "", row(HEAD), row(["---"] * len(HEAD)), *lines]
    )


def speed(only: str, rounds: int) -> int:
    """Print the tables of the files with a case of that name; return 1 if a goal is missed."""
    asked, missed = [case for case in CASES if only in case.name], False
    for file in dict.fromkeys(case.file for case in asked):
        found = table(file, asked, rounds)
        missed = missed or "| NO |" in found
        sys.stdout.write(f"{found}\n\n")
        sys.stdout.flush()
    return int(missed)


def main(words: Sequence[str] | None = None) -> int:
    """Print what the command line asks for; return 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accuracy", action="store_true", help="errors instead of times")
    parser.add_argument("--only", default="", help="a part of the names of the statistics")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=100, help="releases drawn for errors")
    given = parser.parse_args(words)
    if given.accuracy:
        options = ["--runs", str(given.runs), "--only", given.only]
        command = [sys.executable, "-m", "benchmarks.published", *options]
        return subprocess.run(command, check=False).returncode
    return speed(given.only, given.rounds)


if __name__ == "__main__":
    sys.exit(main())

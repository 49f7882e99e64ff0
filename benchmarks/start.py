"""How long a job takes to start: the command that reads no row, beside a bare import of Beam.

    python -m benchmarks.start               20 rounds of both, interleaved
    python -m benchmarks.start --rounds 5

The ratio is of processor time, within rounds: it hardly depends on what else a machine does. The
program fails if it is above the goal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median

from benchmarks.measure import MEBIBYTE, Contestant, interleave, row

GOAL = 1.2
PLAN = (
    "--plan --input visits.parquet --output released.csv --person visitor_id --partition day "
    "--count --sum spent --epsilon 1 --delta 1e-6"
)
HEAD = ["what", "wall s", "cpu s", "peak MiB", "x Beam's import", "goal", "met"]


def contestants() -> list[Contestant]:
    """Return the bare import and the plan."""
    plan = [sys.executable, "-m", "pipelines.aggregate", *PLAN.split()]
    return [
        Contestant("import apache_beam", [sys.executable, "-c", "import apache_beam"], 0),
        Contestant("python -m pipelines.aggregate --plan", plan, 0),
    ]


def ratio(bare: Contestant, plan: Contestant) -> float:
    """Return the median over the rounds of the ratio of their processor times."""
    pairs = zip(bare.runs, plan.runs, strict=True)
    return median(ours.processor / theirs.processor for theirs, ours in pairs)


def table(bare: Contestant, plan: Contestant) -> str:
    """Return the table of both."""
    found = ratio(bare, plan)
    ends = (["1.00", "", ""], [f"{found:.2f}", f"{GOAL}", "yes" if found <= GOAL else "NO"])
    lines = [
        row([one.name, *(f"{number:.2f}" for number in (one.wall, one.processor)), peak(one), *end])
        for one, end in zip((bare, plan), ends, strict=True)
    ]
    return "\n".join(["### Start of a job", "", row(HEAD), row(["---"] * len(HEAD)), *lines, ""])


def peak(contestant: Contestant) -> str:
    """Return the median peak of memory in MiB."""
    return f"{contestant.peak / MEBIBYTE:.0f}"


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if the goal is missed."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=20)
    bare, plan = contestants()
    interleave([bare, plan], options.parse_args(words).rounds)
    sys.stdout.write(f"{table(bare, plan)}\n")
    return int(ratio(bare, plan) > GOAL)


if __name__ == "__main__":
    sys.exit(main())

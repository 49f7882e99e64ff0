"""How long a job takes to start: the command that reads no row, beside a bare import of Beam.

    python -m benchmarks start               20 rounds of both, interleaved
    python -m benchmarks start --rounds 5

The ratio is of processor time, within rounds: it hardly depends on what else a machine does. The
program fails if it is above the goal.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import median

from benchmarks import tables
from benchmarks.measure import MEBIBYTE, Contestant, interleave
from benchmarks.tables import line, say

GOAL = 1.2
PLAN = (
    "--plan --input visits.parquet --output released.csv --person visitor_id --partition day "
    "--count --sum spent --epsilon 1 --delta 1e-6"
)
HEAD = ["what", "wall s", "cpu s", "peak MiB", "x Beam's import", "goal", "met"]


def ratio(bare: Contestant, plan: Contestant) -> float:
    """Return the median over the rounds of the ratio of their processor times."""
    pairs = zip(bare.runs, plan.runs, strict=True)
    return median(ours.processor / theirs.processor for theirs, ours in pairs)


def table(bare: Contestant, plan: Contestant) -> str:
    """Return the table of both."""
    found = ratio(bare, plan)
    met = "yes" if found <= GOAL else "NO"
    text = f"### Start of a job\n\n{tables.heads(HEAD)}"
    for one, end in ((bare, ["1.00", "", ""]), (plan, [f"{found:.2f}", f"{GOAL}", met])):
        seconds = (f"{number:.2f}" for number in (one.wall, one.processor))
        text += line([one.name, *seconds, f"{one.peak / MEBIBYTE:.0f}", *end])
    return text


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if the goal is missed."""
    command = "import apache_beam", "python -m pipelines.aggregate --plan"
    bare = Contestant(command[0], [sys.executable, "-c", command[0]], 0)
    program = [sys.executable, "-m", "pipelines.aggregate", *PLAN.split()]
    plan = Contestant(command[1], program, 0)
    interleave([bare, plan], tables.options(__doc__, words, rounds=20).rounds)
    say(table(bare, plan))
    return int(ratio(bare, plan) > GOAL)


if __name__ == "__main__":
    sys.exit(main())

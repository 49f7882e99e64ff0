"""Print every table: how far the releases are from the truth, then how fast they are.

    python -m benchmarks                      everything (more than an hour)
    python -m benchmarks --scale 0.01         the same, the speed on a hundredth of the rows
    python -m benchmarks speed --growth 1,3   a part of it, by the options of `benchmarks.speed`
    python -m benchmarks coverage             sums, counts and means, with their intervals
    python -m benchmarks experts              other statistics beside a careful user of OpenDP
    python -m benchmarks statistics           other statistics beside the published mechanism
    python -m benchmarks together             numbers that share a draw; means far from 0
    python -m benchmarks many_partitions      tables of many partitions beside an expert
    python -m benchmarks agreement            tables that agree beside tables apart
    python -m benchmarks selection            partitions that are selected without a bound
    python -m benchmarks faults               processes killed at random moments, on every engine

Without a name the options go to `benchmarks.speed`, and all tables but those of `faults` are
printed. One that misses a goal, or fails, does not keep the others from running.
"""

import subprocess
import sys
from collections.abc import Sequence

from benchmarks import speed

TABLES = (
    ["coverage"],
    ["coverage", "--statistics"],
    ["experts"],
    ["statistics"],
    ["together"],
    ["many_partitions"],
    ["agreement"],
    ["selection"],
)
PROGRAMS = {name for name, *_ in TABLES} | {"speed", "data", "faults"}


def commands(words: Sequence[str]) -> list[list[str]]:
    """Return the programs to run, with their options."""
    if words and words[0] in PROGRAMS:
        return [[*words]]
    speed.parser().parse_args(["--all", *words])  # refused now, not after an hour
    return [["speed", "--all", *words], *TABLES]


def main(words: Sequence[str]) -> int:
    """Run the programs and return 1 if one of them failed."""
    if words and words[0] in ("-h", "--help"):
        sys.stdout.write(f"{__doc__}\n{speed.parser().format_help()}")
        return 0
    failed = 0
    for name, *options in commands(words):
        program = [sys.executable, "-m", f"benchmarks.{name}", *options]
        code = subprocess.run(program, check=False).returncode
        failed = failed or code
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

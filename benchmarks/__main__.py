"""Print every table: how far the releases are from the truth, then how fast they are.

    python -m benchmarks                      everything (more than an hour)
    python -m benchmarks --scale 0.01         the same, the speed on a hundredth of the rows
    python -m benchmarks speed --growth 1,3   a part of it, by the options of `benchmarks.speed`
    python -m benchmarks statistics           other statistics than sums and counts
    python -m benchmarks together             numbers that share a draw, and means far from 0
    python -m benchmarks ratio                private ratios a / b against b
    python -m benchmarks ranks                quantiles and extremes for few people, with goals
    python -m benchmarks reach                the chosen bound on partitions, with goals
    python -m benchmarks start                how long a job takes to start, with a goal
    python -m benchmarks preprocessing        how fast sensitivity preprocessing is, with goals
    python -m benchmarks accuracy_preprocessing   its errors beside those of other mechanisms
    python -m benchmarks neighbours --pairs 20000   removal profiles of neighbours, and wrong proofs
    python -m benchmarks faults               processes killed at random moments, on every engine

Without a name the options go to `benchmarks.speed`; the other tables, before and after it, are
those of all programs but `data`, `faults` and `neighbours`, of `benchmarks.statistics` also with `--accuracy`, of
`benchmarks.coverage` also with `--statistics`. One that misses a goal, or fails, does not keep the
others from running.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from benchmarks import NO_READER, speed

PROGRAMS = (
    "accuracy",
    "coverage",
    "experts",
    "speed",
    "statistics",
    "together",
    "ratio",
    "ranks",
    "reach",
    "start",
    "preprocessing",
    "accuracy_preprocessing",
    "data",
    "faults",
    "neighbours",
)
_OTHERS = [
    ["benchmarks.coverage"],
    ["benchmarks.coverage", "--statistics"],
    ["benchmarks.experts"],
    ["benchmarks.statistics"],
    ["benchmarks.statistics", "--accuracy"],
    ["benchmarks.together"],
    ["benchmarks.ratio"],
    ["benchmarks.ranks"],
    ["benchmarks.reach"],
    ["benchmarks.start"],
    ["benchmarks.preprocessing"],
    ["benchmarks.accuracy_preprocessing"],
]


def commands(words: Sequence[str]) -> list[list[str]]:
    """Return the programs to run, with their options."""
    if words and words[0] in PROGRAMS:
        return [[f"benchmarks.{words[0]}", *words[1:]]]
    return [["benchmarks.accuracy"], ["benchmarks.speed", "--all", *words], *_OTHERS]


def main(words: Sequence[str] | None = None) -> int:
    """Run the programs and return 1 if one of them failed."""
    asked = sys.argv[1:] if words is None else words
    if asked and asked[0] not in PROGRAMS:
        line = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
        line.formatter_class = argparse.RawDescriptionHelpFormatter
        line.epilog = f"The options are those of benchmarks.speed:\n{speed.parser().format_help()}"
        line.parse_known_args(asked)
        speed.parser().parse_args(["--all", *asked])  # refused now, not after an hour
    failed = 0
    for program in commands(asked):
        code = subprocess.run([sys.executable, "-m", *program], check=False).returncode
        if code == NO_READER:
            return code
        failed = failed or code
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())

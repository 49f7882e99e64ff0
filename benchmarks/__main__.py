"""Print every table: how far the releases are from the truth, then how fast they are.

    python -m benchmarks                      everything (an hour or more)
    python -m benchmarks --scale 0.01         a look at it: a hundredth of the rows

The options go to `benchmarks.speed`; the accuracy table is that of `benchmarks.accuracy`.
"""

from __future__ import annotations

import subprocess
import sys


def main() -> int:
    """Run both programs and return 1 if one of them failed."""
    programs = (["benchmarks.accuracy"], ["benchmarks.speed", "--all", *sys.argv[1:]])
    commands = ([sys.executable, "-m", *program] for program in programs)
    codes = [subprocess.run(command, check=False).returncode for command in commands]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())

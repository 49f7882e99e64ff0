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
    codes = [subprocess.run([sys.executable, "-m", *program]).returncode for program in programs]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())

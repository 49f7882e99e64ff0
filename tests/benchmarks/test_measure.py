"""What is measured of a process, and the table that is made of it."""

import subprocess
import sys
from pathlib import Path

from benchmarks import measure
from benchmarks.measure import MEBIBYTE, Contestant, Run

ROOT = Path(__file__).parents[2]


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_the_peak_is_that_of_the_process_alone() -> None:
    """Measured from a small process, as benchmarks are: the kernel books a big parent to a child."""
    program = (
        "import sys; from benchmarks import measure, speed\n"
        "peaks = [measure.run([sys.executable, '-c', one]).peak for one in sys.argv[1:]]\n"
        "heavy = {'numpy', 'pyarrow', 'apache_beam'} & set(sys.modules)\n"
        "print(*peaks, *heavy)"
    )
    command = [*python(program), "b'1' * (300 << 20)", "pass"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    large, small = map(int, done.stdout.split())  # and nothing heavy is imported
    assert large - small > 250 * MEBIBYTE


def timed(name: str, rows: int, *walls: float) -> Contestant:
    """Return a process that ran so often; of each run, half is after the imports."""
    runs = [Run(wall, 2 * wall, 64 << 20, {"n": 7, measure.INNER: wall / 2}) for wall in walls]
    return Contestant(name, [], rows, runs=runs)


def test_a_table_has_medians_and_ratios_within_rounds() -> None:
    one, two = timed("one", 1000, 1.0, 2.0, 10.0), timed("two", 3000, 2.0, 8.0, 10.0)
    lines = measure.table("Title", [one, two], one).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert lines[0] == "### Title" and {len(line) for line in cells} == {len(measure.HEAD)}
    assert cells[2] == (
        ["one", "1,000", "2.00", "1.00", "1.00", "4.00", "64", "500", "1.00", "1.00", "1.00", "n 7"]
    )
    # Ratios 2, 4 and 1 within the rounds: the median is 2, at three times the rows.
    assert cells[3] == (
        ["two", "3,000", "8.00", "2.00", "4.00", "16.00", "64", "375", "2.00", "2.00", "1.50", "n 7"]
    )  # fmt: skip

"""Run whole processes side by side and print what they took, as a Markdown table.

A process is measured from outside: wall time from before its start to after its end, processor time
(user and system) and peak resident memory as the kernel counted them for it and the children it
waited for. The rounds are interleaved (a b c, a b c, ...), so that a machine which slows down slows
all of them; a ratio is the median over the rounds of the ratio within one round.

This module and its callers import nothing heavy: the kernel books the parent's memory at the moment
of the start to the child, so a big parent would hide the peak of a small child.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import IO

from benchmarks import tables

MEBIBYTE = 1 << 20
KERNEL_UNIT = 1 if sys.platform == "darwin" else 1024
INNER = "seconds"
"""What a process calls the seconds that it took after its imports."""


@dataclass(frozen=True)
class Run:
    """What one process took: seconds, seconds, bytes, and the JSON object of its last line."""

    wall: float
    processor: float
    peak: int
    result: dict[str, object]


@dataclass
class Contestant:
    """One line of a table: a command, the rows it reads, and its runs so far.

    One that may fail takes its failure as its line: with too many rows for the memory, say.
    """

    name: str
    command: Sequence[str]
    rows: int
    once: bool = False
    may_fail: bool = False
    failure: str = ""
    runs: list[Run] = field(default_factory=list)

    @property
    def wall(self) -> float:
        return median(run.wall for run in self.runs)

    @property
    def processor(self) -> float:
        return median(run.processor for run in self.runs)

    @property
    def peak(self) -> float:
        return median(run.peak for run in self.runs)

    def inner(self) -> list[float]:
        """Return the seconds after the imports, of the runs that told them."""
        return [float(str(run.result[INNER])) for run in self.runs if INNER in run.result]

    def ratio(self, reference: Contestant) -> float:
        """Return the median over the rounds of this wall time over the reference's.

        Where one of them was run once only, it is the ratio of the medians.
        """
        if len(self.runs) != len(reference.runs):
            return self.wall / reference.wall
        return _ratio([run.wall for run in self.runs], [run.wall for run in reference.runs])

    def inner_ratio(self, reference: Contestant) -> float | None:
        """Return the same of the seconds after the imports; None where one did not tell them."""
        mine, theirs = self.inner(), reference.inner()
        return _ratio(mine, theirs) if mine and len(mine) == len(theirs) else None


def _ratio(mine: Sequence[float], theirs: Sequence[float]) -> float:
    return median(one / other for one, other in zip(mine, theirs, strict=True))


def run(command: Sequence[str]) -> Run:
    """Run a command to its end and return what it took.

    Raises:
        RuntimeError: it failed; the message ends with what it wrote to its error stream.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        # Modules are compiled once and kept, as where they are installed.
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said = f"with code {process.returncode}:\n{text(errors)[-2000:]}"
            raise RuntimeError(f"{' '.join(command)} failed, {said}")
        peak = usage.ru_maxrss * KERNEL_UNIT
        return Run(wall, usage.ru_utime + usage.ru_stime, peak, last_object(text(output)))


def text(file: IO[bytes]) -> str:
    """Return everything that was written to a temporary file."""
    file.seek(0)
    return file.read().decode(errors="replace")


def last_object(output: str) -> dict[str, object]:
    """Return the last line's JSON object, an empty one where the last line is something else."""
    lines = output.strip().splitlines()
    return json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}


def interleave(contestants: Sequence[Contestant], rounds: int) -> None:
    """Run every contestant once per round, those marked `once` in the first round only."""
    for number in range(rounds):
        for contestant in contestants:
            if not contestant.failure and (number == 0 or not contestant.once):
                progress(f"{contestant.name}, round {number + 1}: {one_run(contestant)}")


def one_run(contestant: Contestant) -> str:
    """Run a contestant once; return what to say of it."""
    try:
        contestant.runs.append(run(contestant.command))
    except RuntimeError as error:
        if not contestant.may_fail:
            raise
        contestant.runs.clear()
        contestant.failure = str(error).splitlines()[0].rpartition(" failed, ")[2].rstrip(":")
        return f"failed, {contestant.failure}"
    return f"{contestant.runs[-1].wall:.2f} s"


def progress(line: str) -> None:
    """Tell the person who waits, apart from the table."""
    sys.stderr.write(f"  {line}\n")
    sys.stderr.flush()


HEAD = ["what", "rows", "wall s", "least s", "after imports s", "cpu s", "peak MiB", "rows/s"]
HEAD += ["wall ratio", "ratio after imports", "speed ratio", "result"]


def table(title: str, contestants: Sequence[Contestant], reference: Contestant) -> str:
    """Return a Markdown table of medians; the ratios are to the reference's line.

    The wall ratio is below 1 and the speed ratio (rows per second) above 1 for what is faster.
    """
    lines = [line(contestant, reference) for contestant in contestants]
    return f"### {title}\n\n{tables.heads(HEAD)}{''.join(lines)}"


def line(contestant: Contestant, reference: Contestant) -> str:
    """Return a contestant's line of the table."""
    name, rows = contestant.name, f"{contestant.rows:,}"
    if contestant.failure:
        empty = [""] * (len(HEAD) - 3)
        return tables.line([name, rows, *empty, f"failed, {contestant.failure}"])
    ratio, inside = contestant.ratio(reference), contestant.inner_ratio(reference)
    inner, result = contestant.inner(), contestant.runs[-1].result
    cells = [
        name,
        rows,
        f"{contestant.wall:.2f}",
        f"{min(run.wall for run in contestant.runs):.2f}",
        f"{median(inner):.2f}" if inner else "",
        f"{contestant.processor:.2f}",
        f"{contestant.peak / MEBIBYTE:.0f}",
        f"{contestant.rows / contestant.wall:,.0f}",
        f"{ratio:.2f}",
        "" if inside is None else f"{inside:.2f}",
        f"{contestant.rows / reference.rows / ratio:.2f}",
        ", ".join(f"{name} {value}" for name, value in result.items() if name != INNER),
    ]
    return tables.line(cells)


def data_file(rows: int, *options: str) -> str:
    """Return the path of a generated file, made unless it is there: see `benchmarks.data`."""
    command = [sys.executable, "-m", "benchmarks.data", "--rows", str(rows), *options]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return made.stdout.strip()

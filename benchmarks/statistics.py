"""Time the statistics of rows, values and owners, and measure how far their releases are off.

    python -m benchmarks statistics                       every table of speed
    python -m benchmarks statistics --only distinct       the files with such a case
    python -m benchmarks statistics --accuracy            errors, beside the published mechanism

One table per file. Every line is a process of its own (`benchmarks.answers`): wall time with the
interpreter's start and the imports, and peak memory. In a table the processes take turns, beside
the main job's pass over the same rows (private sums and counts by clip and noise). A case with K
removals is answered by `RemovalLoss`, which ends with the removal profile; else it is released by
`PrivateAggregate`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import tables
from benchmarks.measure import MEBIBYTE, Contestant, interleave
from benchmarks.tables import line, say

GIBIBYTE = 1 << 30
HEAD = ["what", "K", "wall s", "least s", "cpu s", "peak MiB", "x main job", "goal", "met"]


@dataclass(frozen=True)
class Goal:
    """What a whole process may take: seconds, bytes, or a multiple of the main job's time."""

    seconds: float | None = None
    peak: int | None = None
    ratio: float | None = None

    def __str__(self) -> str:
        found = []
        if self.seconds is not None:
            found.append(f"{self.seconds:g} s")
        if self.peak is not None:
            found.append(f"{self.peak / GIBIBYTE:g} GiB")
        if self.ratio is not None:
            found.append(f"{self.ratio:g} x main")
        return ", ".join(found)

    def is_met(self, one: Contestant, main: Contestant) -> bool:
        """Return whether the medians of a process reach it."""
        return (
            (self.seconds is None or one.wall <= self.seconds)
            and (self.peak is None or one.peak <= self.peak)
            and (self.ratio is None or one.ratio(main) <= self.ratio)
        )


@dataclass(frozen=True)
class Case:
    """One question to one file.

    Attributes:
        name: unique.
        file: a name of `benchmarks.relations`.
        person: the columns of the owners.
        metrics: names of metrics of `beam_dp` with their arguments.
        removals: K; 0 where a release fixes it.
        goal: what it may take.
    """

    name: str
    file: str
    person: tuple[str, ...]
    metrics: tuple[tuple[str, dict[str, object]], ...]
    removals: int = 0
    goal: Goal = Goal()

    @property
    def columns(self) -> list[str]:
        asked = [str(options["column"]) for _, options in self.metrics if "column" in options]
        return list(dict.fromkeys([*self.person, *asked]))


_TEN, _HALF, _MINUTE, _LARGE = Goal(10), Goal(30), Goal(60), Goal(300, 8 * GIBIBYTE)
_NEAR = Goal(ratio=1.3)
_ORDER, _CUSTOMER, _EDGE, _BOTH = (
    ("order",),
    ("customer",),
    ("from", "to"),
    ("customer", "supplier"),
)
_PRICE = {"column": "price"}
_COUNT, _SUM = ("Count", {"one_sided": True}), ("Sum", {"one_sided": True, **_PRICE})
_THOUSANDTH = ("KthLargest", {"k": 1000, **_PRICE})
_MIDDLE = ("KthLargest", {"k": 3_000_608, **_PRICE})
_MEDIAN = ("Median", {"per": "person", **_PRICE})
_CLERKS, _PARTS = (("DistinctCount", {"column": name}) for name in ("clerk", "part"))
_QUANTITY = ("Sum", {"column": "quantity", "unit": 1})
_EDGES = ("Count", {})
_ZIPF, _ROAD = "zipf_1900000_1400000", "road_1900000_1400000"
CASES = (
    Case("count, a profile", "items", _ORDER, (_COUNT,), 69, _NEAR),
    Case("sum, a profile", "items", _ORDER, (_SUM,), 70, _NEAR),
    Case("count and sum, released by their profiles", "items", _ORDER, (_COUNT, _SUM), 0, _NEAR),
    Case("1000th largest, person = order", "items", _ORDER, (_THOUSANDTH,), 63, _TEN),
    Case("1000th largest, person = customer", "items", _CUSTOMER, (_THOUSANDTH,), 63, _TEN),
    Case("3,000,608th largest, person = order", "items", _ORDER, (_MIDDLE,), 63, _TEN),
    Case("3,000,608th largest, person = customer", "items", _CUSTOMER, (_MIDDLE,), 63, _TEN),
    Case("median, person = order", "items", _ORDER, (_MEDIAN,), 0, _TEN),
    Case("median, person = customer", "items", _CUSTOMER, (_MEDIAN,), 0, _TEN),
    Case("median of rows", "items", _CUSTOMER, (("Median", _PRICE),), 0, _TEN),
    Case("distinct clerks of 60,000", "orders_60000", _CUSTOMER, (_CLERKS,), 200, _TEN),
    Case("distinct parts of 60,000", "items_60000", _CUSTOMER, (_PARTS,), 200, _TEN),
    Case("distinct clerks of 600,000", "orders_600000", _CUSTOMER, (_CLERKS,), 200, _MINUTE),
    Case("distinct parts of 600,000", "items_600000", _CUSTOMER, (_PARTS,), 200, _MINUTE),
    Case("distinct parts of 600,000, released", "items_600000", _CUSTOMER, (_PARTS,), 0, _MINUTE),
    Case("distinct parts of all", "items", _CUSTOMER, (_PARTS,), 200, _MINUTE),
    Case("distinct parts of all, released", "items", _CUSTOMER, (_PARTS,), 0, _MINUTE),
    Case("edges of a Zipf graph", "zipf_150000_60000", _EDGE, (_EDGES,), 130, _HALF),
    Case("edges of a large Zipf graph", _ZIPF, _EDGE, (_EDGES,), 130, _LARGE),
    Case("edges of a road graph", _ROAD, _EDGE, (_EDGES,), 130, _LARGE),
    Case("items of customer and supplier", "items", _BOTH, (_EDGES,), 69, _LARGE),
    Case("quantity of customer and supplier", "items", _BOTH, (_QUANTITY,), 70, _LARGE),
    Case(
        "most frequent clerk",
        "orders_300000",
        _CUSTOMER,
        (("MaxFrequency", {"column": "clerk"}),),
        69,
        _HALF,
    ),
    Case(
        "sum of squares of clerks",
        "orders_300000",
        _CUSTOMER,
        (("SumOfSquares", {"column": "clerk"}),),
        69,
        _HALF,
    ),
)


def _main(file: str) -> Case:
    """Return the main job's pass over a file: what every other line of its table is compared to."""
    first = next(case for case in CASES if case.file == file)
    metrics = (_EDGES, ("Sum", _PRICE)) if file == "items" else (_EDGES,)
    return Case(f"main job on {file}", file, first.person[:1], metrics)


MAINS = {case.file: _main(case.file) for case in CASES}
"""Per file the main job on the same rows: private sums and counts by clip and noise."""
NAMED = {case.name: case for case in (*MAINS.values(), *CASES)}


def rows_of(file: str) -> int:
    """Return the number of rows of a file, which is made unless it is there."""
    command = [sys.executable, "-m", "benchmarks.relations", file]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return int(made.stdout.split()[1])


def table(file: str, cases: Sequence[Case], rounds: int) -> str:
    """Run the cases of one file and return their table; the last cell is NO where a goal is missed."""
    rows, asked = rows_of(file), [MAINS[file], *(case for case in cases if case.file == file)]
    program = [sys.executable, "-m", "benchmarks.answers"]
    found = [Contestant(case.name, [*program, case.name], rows) for case in asked]
    interleave(found, rounds)
    text = f"### {file}: {rows:,} rows\n\n{tables.heads(HEAD)}"
    for case, one in zip(asked, found, strict=True):
        least = min(run.wall for run in one.runs)
        seconds = (f"{number:.2f}" for number in (one.wall, least, one.processor))
        met = ("yes" if case.goal.is_met(one, found[0]) else "NO") if str(case.goal) else ""
        cells = [f"{one.peak / MEBIBYTE:.0f}", f"{one.ratio(found[0]):.2f}", str(case.goal), met]
        text += line([case.name, str(case.removals or ""), *seconds, *cells])
    return text + "\n"


def main(words: Sequence[str] | None = None) -> int:
    """Print what the command line asks for; return 1 where a goal is missed."""
    given = tables.options(__doc__, words, accuracy=False, only="", rounds=3, runs=100)
    if given.accuracy:
        options = ["--runs", str(given.runs), "--only", given.only]
        command = [sys.executable, "-m", "benchmarks.published", *options]
        return subprocess.run(command, check=False).returncode
    asked, missed = [case for case in CASES if given.only in case.name], False
    for file in dict.fromkeys(case.file for case in asked):
        found = table(file, asked, given.rounds)
        missed |= "| NO |" in found
        say(found)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

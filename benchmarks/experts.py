"""Compare statistics with what a careful user of OpenDP or PipelineDP gets at the same epsilon.

    python -m benchmarks experts                    every table
    python -m benchmarks experts --quick            a look at it

Their bounds are well chosen: from a million draws of the population (`benchmarks.expert_laws`), and
of several choices the one that errs least on the cell, which no user can know. Ours need no bounds.
A cell has our middle and 95% error, theirs, and the ratio of the 95% errors. Where errors count
people, values or rows, one is added to both sides of a ratio, so that 0 beside 1 is not infinite.
Empty releases ("e", in percent) are not among the errors: experts with bounds never have any.
"""

import dataclasses
import math
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks import other_statistics, tables
from benchmarks.draws import quantiles
from benchmarks.other_statistics import SIZES, Cell, Distance, Found, by_statistic
from benchmarks.tables import geometric, line, say, short

WORSE = 2.0
COUNTED = ("people", "values", "rows")


@dataclasses.dataclass(frozen=True)
class Compared:
    """Our errors of a cell, and an expert's middle and 95% error."""

    ours: Found
    middle: float
    error: float

    @property
    def cell(self) -> Cell:
        return self.ours.cell

    @property
    def ratio(self) -> float:
        """Our 95% error over the expert's."""
        more = float(self.cell.other.unit in COUNTED)
        if self.error + more == 0:
            return 1.0 if self.ours.error == 0 else math.inf
        return (self.ours.error + more) / (self.error + more)

    def __str__(self) -> str:
        empty = f" e{self.ours.empty:.0%}" if self.ours.empty > 0.005 else ""
        ours = f"{short(self.ours.middle)}, {short(self.ours.error)}"
        ratio = f"**{short(self.ratio)}**" if self.ratio > WORSE else short(self.ratio)
        return f"{ours}{empty} : {short(self.middle)}, {short(self.error)} = {ratio}"


def expert(cell: Cell, runs: int, seeds: int) -> tuple[float, float]:
    """Return the middle and 95% error of the best choice."""
    errors: dict[str, list[np.ndarray]] = {}
    for seed in range(seeds):
        rows, drawn = cell.rows(seed), np.random.default_rng(seed)
        for choice, law in cell.other.experts(cell.kind, rows).items():
            released = law(drawn, -(-runs // seeds))
            errors.setdefault(choice, []).append(cell.other.errors(rows, released))
    found = [quantiles(np.concatenate(several)) for several in errors.values()]
    return min(found, key=lambda each: each[::-1])


def compare(cell: Cell, runs: int, seeds: int, seconds: float) -> Compared:
    """Draw releases of both."""
    ours = other_statistics.measure(cell, runs, seeds, seconds)
    return Compared(ours, *expert(cell, runs, seeds))


def table(other: Distance, lines: Sequence[Sequence[Compared]]) -> str:
    """Return the table of one statistic."""
    sizes = (f"{one.cell.people:,}" for one in lines[0])
    text = tables.heads([f"{other.head}, ours : theirs", *sizes])
    for found in lines:
        text += line([found[0].cell.kind, *map(str, found)])
    columns = zip(*lines, strict=True)
    return text + line(["geometric mean", *(short(mean(column)) for column in columns)])


def mean(results: Sequence[Compared]) -> float:
    """Return the geometric mean of the ratios of a column."""
    return geometric(max(one.ratio, 1e-9) for one in results if not math.isnan(one.ratio))


def summary(results: Sequence[Compared]) -> str:
    return f"{short(mean(results))} ({short(max(one.ratio for one in results))})"


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables."""
    given = tables.options(__doc__, words, runs=int, seeds=4, only="", quick=False)
    runs = given.runs or (40 if given.quick else 400)
    sizes, seconds = (SIZES[:2], 0.2) if given.quick else (SIZES, 1.0)
    found: dict[Distance, list[list[Compared]]] = {}
    for other, asked in by_statistic(sizes, given.only):
        found[other] = [
            [compare(cell, runs, given.seeds, seconds) for cell in cells] for cells in asked
        ]
        say(f"{table(other, found[other])}\n")
    say(other_statistics.overview("95% error over the expert's: mean (worst)", found, summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())

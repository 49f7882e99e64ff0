"""Compare statistics with what a careful user of OpenDP or PipelineDP gets at the same epsilon.

    python -m benchmarks experts                    every table
    python -m benchmarks experts --quick            a look at it
    python -m benchmarks experts --package          OpenDP's own code for quantiles (extra `bench`)

Their bounds are well chosen: from a million draws of the population (`benchmarks.expert_laws`), and
of several choices the one that errs least on the cell, which no user can know. Ours need no bounds.
A cell has our middle and 95% error, theirs, and the ratio of the 95% errors. Where errors count
people, values or rows, one is added to both sides of a ratio, so that 0 beside 1 is not infinite.
Empty releases ("e", in percent) are not among the errors: experts with bounds never have any.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks import coverage_statistics, expert_laws
from benchmarks.accuracy import line
from benchmarks.coverage_statistics import Found, quantiles, short
from benchmarks.measured import geometric
from benchmarks.other_questions import SIZES, Cell, Other, Ranked, by_statistic

WORSE = 2.0
COUNTED = ("people", "values", "rows")


@dataclasses.dataclass(frozen=True)
class Compared:
    """Our errors of a cell and an expert's.

    Attributes:
        ours: what came out of ours.
        middle: the expert's middle error.
        error: the expert's 95% error.
        choice: the bounds that the expert chose.
    """

    ours: Found
    middle: float
    error: float
    choice: str

    @property
    def ratio(self) -> float:
        """Our 95% error over the expert's."""
        more = float(self.ours.cell.other.unit in COUNTED)
        if self.error + more == 0:
            return 1.0 if self.ours.error == 0 else float("inf")
        return (self.ours.error + more) / (self.error + more)


def expert(cell: Cell, runs: int, seeds: int) -> tuple[float, float, str]:
    """Return the middle and 95% error of the best choice, and which that is."""
    errors: dict[str, list[np.ndarray]] = {}
    for seed in range(seeds):
        rows, drawn = cell.rows(seed), np.random.default_rng(seed)
        for choice, (_, law) in enumerate(cell.other.experts(cell.kind, rows).items()):
            released = law(drawn, -(-runs // seeds))
            errors.setdefault(str(choice), []).append(cell.other.errors(rows, released))
    found = {choice: quantiles(np.concatenate(several)) for choice, several in errors.items()}
    best = min(found, key=lambda choice: (found[choice][1], found[choice][0]))
    names = list(cell.other.experts(cell.kind, cell.rows(0)))
    return *found[best], names[int(best)]


def compare(cell: Cell, runs: int, seeds: int, seconds: float) -> Compared:
    """Draw releases of both."""
    ours = coverage_statistics.measure(cell, runs, seeds, seconds)
    return Compared(ours, *expert(cell, runs, seeds))


def text(one: Compared) -> str:
    """Return the cell of a table."""
    empty = f" e{one.ours.empty:.0%}" if one.ours.empty > 0.005 else ""
    ours = f"{short(one.ours.middle)}, {short(one.ours.error)}"
    ratio = f"**{short(one.ratio)}**" if one.ratio > WORSE else short(one.ratio)
    return f"{ours}{empty} : {short(one.middle)}, {short(one.error)} = {ratio}"


def table(other: Other, results: Sequence[Compared]) -> str:
    """Return the table of one statistic, and a list of the cells where we are far worse."""
    sizes = list(dict.fromkeys(one.ours.cell.people for one in results))
    heads = [f"{other.head}, ours : theirs", *(f"{size:,}" for size in sizes)]
    lines = [line(heads), line(["---"] * len(heads))]
    for kind in other.kinds:
        lines.append(line([kind, *(text(one) for one in results if one.ours.cell.kind == kind)]))
    lines.append(line(["geometric mean", *map(short, means(results))]))
    return "".join([*lines, "\n", *map(worse, results)])


def means(results: Sequence[Compared]) -> list[float]:
    """Return the geometric mean of the ratios for each size."""
    found: dict[int, list[float]] = {}
    for one in results:
        known = found.setdefault(one.ours.cell.people, [])
        known += [] if math.isnan(one.ratio) else [one.ratio]
    return [geometric(np.maximum(known, 1e-9)) for known in found.values()]


def overview(found: Mapping[Other, Sequence[Compared]]) -> str:
    """Return one line per statistic: how its errors compare with the expert's, for each size."""
    sizes = list(dict.fromkeys(one.ours.cell.people for each in found.values() for one in each))
    heads = ["95% error over the expert's: mean (worst)", *(f"{size:,}" for size in sizes)]
    lines = [line(heads), line(["---"] * len(heads))]
    for other, results in found.items():
        worst = [
            max(one.ratio for one in results if one.ours.cell.people == size) for size in sizes
        ]
        pairs = zip(means(results), worst, strict=True)
        lines.append(line([other.head, *(f"{short(a)} ({short(b)})" for a, b in pairs)]))
    return "".join(lines)


def worse(one: Compared) -> str:
    """Return a line about a cell where we err far more; "" elsewhere."""
    if not one.ratio > WORSE:
        return ""
    cell = one.ours.cell
    where = f"{cell.other.name} of {cell.people:,} people, {cell.kind}"
    return f"* {where}: {short(one.ratio)} times the expert's (bounds: {one.choice})\n"


def check_package(runs: int) -> str:
    """Return the errors of OpenDP's own medians beside those of the law that stands for them."""
    found = []
    for other, several in by_statistic([300], "median"):
        for cell in several if isinstance(other, Ranked) else ():
            rows = cell.rows(0)
            law = next(iter(cell.other.experts(cell.kind, rows).values()))
            drawn = law(np.random.default_rng(0), runs)
            grid = next(iter(expert_laws.grids(cell.kind).values()))
            own = expert_laws.package_quantile(rows.columns["v"], grid, other.p, runs)
            errors = [quantiles(cell.other.errors(rows, released)) for released in (drawn, own)]
            found.append(line([cell.kind, *(f"{short(a)}, {short(b)}" for a, b in errors)]))
    heads = ["median of 300, OpenDP", "its law", "its own code"]
    return "".join([line(heads), line(["---"] * 3), *found])


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, help="releases of a cell")
    parser.add_argument("--seeds", type=int, default=4, help="draws of the data of a cell")
    parser.add_argument("--only", default="", help="a part of the names of the statistics")
    parser.add_argument("--quick", action="store_true", help="40 releases, small data")
    parser.add_argument("--package", action="store_true", help="check against OpenDP's own code")
    given = parser.parse_args(words)
    runs = given.runs or (40 if given.quick else 400)
    if given.package:
        sys.stdout.write(f"{check_package(1000)}\n")
    sizes, seconds = (SIZES[:2], 0.2) if given.quick else (SIZES, 1.0)
    found: dict[Other, list[Compared]] = {}
    for other, asked in by_statistic(sizes, given.only):
        found[other] = [compare(cell, runs, given.seeds, seconds) for cell in asked]
        sys.stdout.write(f"{table(other, found[other])}\n")
        sys.stdout.flush()
    sys.stdout.write(overview(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

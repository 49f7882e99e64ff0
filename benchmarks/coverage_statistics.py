"""Measure statistics that are no sums, and whether what is stated beside them is true.

    python -m benchmarks coverage --statistics

A cell has the middle and the 95% quantile of the errors, in the unit that heads the table; the
share of releases of which what they state is true (an interval of values, or a rank error), in
percent; and what is stated over the 95% error, the middle of all. An "e" is the percentage of
releases that are empty ("too few people"), which do not count as errors; an "a" that of absurd
ones, outside of the data by ten times their range. Where one release takes long, only as many are
drawn as a few seconds allow, but at least 10.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np

import beam_dp as dp
from benchmarks import draws
from benchmarks.accuracy import line
from benchmarks.other_questions import SIZES, Cell, Other, by_statistic

BUDGET = dp.Budget(1.0)
INSIDE, LEAST, ABSURD = 0.93, 0.80, 0.01


@dataclasses.dataclass(frozen=True)
class Found:
    """What came out of one cell.

    Attributes:
        cell: what was asked.
        middle: the middle error.
        error: the 95% error.
        inside: the share of releases of which what they state is true.
        width: what is stated, over the 95% error.
        empty: the share of releases that are empty.
        absurd: the share of releases that are absurd.
    """

    cell: Cell
    middle: float
    error: float
    inside: float
    width: float
    empty: float
    absurd: float


def measure(cell: Cell, runs: int, seeds: int, seconds: float = 1.0) -> Found:
    """Draw releases of one cell and compare them with the truth."""
    parts, start = [], time.monotonic()
    for seed in range(seeds):
        if parts and time.monotonic() > start + seeds * seconds:
            break
        rows, other = cell.rows(seed), cell.other
        summarised = draws.summarise(rows, [other.metric], BUDGET, other.depth)
        [drawn] = summarised.draws(-(-runs // seeds), seconds)
        errors, stated = other.errors(rows, drawn.value), other.stated(rows, drawn)
        absurd = other.absurd(rows, drawn.value)
        parts.append([errors, other.inside(rows, drawn), stated, drawn.empty, absurd])
    columns = [np.concatenate(column).ravel() for column in zip(*parts, strict=True)]
    errors, inside, stated, empty, absurd = columns
    middle, error = quantiles(errors[~empty])
    width = float(np.median(stated[~empty])) / error if error > 0 else float("nan")
    shares = (float(share.mean()) for share in (inside, empty, absurd & ~empty))
    true, nothing, far = shares
    return Found(cell, middle, error, true, width, nothing, far)


def quantiles(errors: np.ndarray) -> tuple[float, float]:
    """Return the middle of errors, and their 95% quantile; NaN where there are none."""
    if not len(errors):
        return float("nan"), float("nan")
    return float(np.median(errors)), float(np.quantile(errors, 0.95))


def short(number: float) -> str:
    """Return two digits of a number."""
    return f"{number:,.0f}" if abs(number) >= 9.95 else f"{number:.2g}"


def text(found: Found) -> str:
    """Return the cell of a table."""
    marks = [("e", found.empty), ("a", found.absurd)]
    shares = [f" {mark}{share:.1%}" for mark, share in marks if share > 0.0005]
    errors = f"{short(found.middle)}, {short(found.error)}"
    return f"{errors} / {100 * found.inside:.0f} / {short(found.width)}{''.join(shares)}"


def misses(results: Sequence[Found]) -> list[str]:
    """Return which goals a column misses."""
    inside = [one.inside for one in results]
    found = {
        "true": sum(inside) / len(inside) >= INSIDE,
        "a true": min(inside) >= LEAST,
        "absurd": max(one.absurd for one in results) <= ABSURD,
    }
    return [name for name, is_met in found.items() if not is_met]


def table(other: Other, results: Sequence[Found]) -> str:
    """Return the table of one statistic: a line per kind of data, a column per size."""
    sizes = list(dict.fromkeys(one.cell.people for one in results))
    heads = [other.head, *(f"{size:,}" for size in sizes)]
    lines = [line(heads), line(["---"] * len(heads))]
    for kind in other.kinds:
        lines.append(line([kind, *(text(one) for one in results if one.cell.kind == kind)]))
    columns = [[one for one in results if one.cell.people == size] for size in sizes]
    missed = [misses(column) for column in columns]
    return "".join(
        [*lines, line(["goals met", *(f"NO: {', '.join(m)}" if m else "yes" for m in missed)])]
    )


def overview(found: Mapping[Other, Sequence[Found]]) -> str:
    """Return one line per statistic: what comes out of its kinds of data, for each size."""
    sizes = list(dict.fromkeys(one.cell.people for results in found.values() for one in results))
    heads = ["95% error, the middle kind / true, mean (worst) / absurd, mean"]
    lines = [line([*heads, *(f"{size:,}" for size in sizes)]), line(["---"] * (1 + len(sizes)))]
    for other, results in found.items():
        columns = [[one for one in results if one.cell.people == size] for size in sizes]
        lines.append(line([other.head, *map(summary, columns)]))
    return "".join(lines)


def summary(results: Sequence[Found]) -> str:
    """Return the middle 95% error of a column, how often what is stated is true, and the absurd."""
    errors, inside, absurd = (
        np.array([getattr(one, name) for one in results]) for name in ("error", "inside", "absurd")
    )
    true = f"{100 * inside.mean():.0f} ({100 * inside.min():.0f})"
    return f"{short(float(np.nanmedian(errors)))} / {true} / {absurd.mean():.1%}"


def report(runs: int, seeds: int, quick: bool, only: str) -> int:
    """Print the tables; return 1 where a goal is missed."""
    sizes, seconds = (SIZES[:2], 0.2) if quick else (SIZES, 1.0)
    found: dict[Other, list[Found]] = {}
    for other, asked in by_statistic(sizes, only):
        found[other] = [measure(cell, runs, seeds, seconds) for cell in asked]
        sys.stdout.write(f"{table(other, found[other])}\n")
        sys.stdout.flush()
    sys.stdout.write(overview(found))
    return int(any("NO: " in table(other, results) for other, results in found.items()))

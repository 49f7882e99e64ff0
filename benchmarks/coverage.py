"""Measure how good released numbers are, and whether the intervals beside them hold the truth.

    python -m benchmarks coverage                   every table, under 10 minutes
    python -m benchmarks coverage --quick           a look at all of them, under a minute
    python -m benchmarks coverage --statistics      other statistics: see `other_statistics`

A cell has three numbers: the error over that of the best fixed clip, an expert's who knew the data;
the share of the releases whose interval holds the true number of all rows, in percent; and half the
interval over the error. Errors are 95% errors, in several partitions their mean; they are divided
by the expert's for the same data before draws of data are put together. Draws are by the library's
release code without Beam, about a millisecond each. Cells in parentheses do not count: "h" is
hopeless, for the expert too; in "u" few people are far above all others, whom no private mechanism
can see; of a cell of several draws of the data only such draws are left out, if they are not most
of them. An "e" is the percentage of releases that say nothing: their intervals are infinite. Of
privately selected partitions those count that are released most of the time, each where it is; the
expert knows which these are, and spends on the numbers what is left beside a share for their
selection. The last table has a line for each column of the others: geometric means, or the mean of
the shares, with the worst cell behind, of the cells that count. The exit code is 1 where a goal is
missed, which with `--quick` may be chance.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence

import numpy as np

import beam_dp as dp
from benchmarks import draws, other_statistics, questions, tables
from benchmarks.draws import QUANTILE, Interval
from benchmarks.questions import Question, Total
from benchmarks.suites import Rows
from benchmarks.tables import geometric, line, say

SEEN = 40
"""At epsilon 1: people who are too few to be seen apart from all others."""
PRESENT = 60
"""At epsilon 1: people who are too few for a clip, even if all have the same number."""
GAP = 8.0
EXACT = 0.01
"""An error below so much of the expert's counts as that: values that are all alike have none."""
NONE_SELECTED = "hopeless: no partition is selected most of the time"


@dataclasses.dataclass(frozen=True)
class Result:
    """What came out for one statistic of a question.

    Attributes:
        question: what was asked.
        name: of the statistic.
        error: its 95% error (in several partitions the mean error) over the expert's.
        inside: the share of releases whose interval holds the true number of all rows.
        width: half the interval over the 95% error; the middle of all releases.
        empty: the share of releases that say nothing: their interval is infinite on both sides.
        mark: why it does not count; "" if it does.
    """

    question: Question
    name: str
    error: float
    inside: float
    width: float
    empty: float
    mark: str

    @property
    def label(self) -> str:
        several = len(self.question.asked) > 1
        return f"{self.question.data}: {self.name}" if several else self.question.data

    def __str__(self) -> str:
        empty = f" e{self.empty:.0%}" if self.empty > 0.005 else ""
        text = f"{short(self.error)} / {100 * self.inside:.0f} / {short(self.width)}{empty}"
        return f"({text} {self.mark[0]})" if self.mark else text


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """The releases of one statistic for one draw of the data: arrays (runs, partitions).

    Where a partition was not released, all numbers are NaN. `best` is the expert's error; `seen`
    says which partitions have people enough for the width to be of interest.
    """

    errors: np.ndarray
    inside: np.ndarray
    halves: np.ndarray
    empty: np.ndarray
    best: float
    seen: np.ndarray
    mark: str

    def width(self) -> float:
        """Return half the intervals over the 95% errors, over the partitions that have people."""
        errors = np.nanquantile(self.errors, QUANTILE, axis=0)
        halves = np.nanmedian(self.halves, axis=0)
        seen = self.seen & (errors > 0)
        return geometric(halves[seen] / errors[seen]) if seen.any() else math.nan


def measure(question: Question, runs: int, seeds: int) -> list[Result]:
    """Draw so many releases of so many draws of the data, and return a result per statistic."""
    times = min(seeds, question.seeds)
    samples: list[list[Sample]] = [[] for _ in question.asked]
    for seed in range(times):
        rows = question.make(seed)
        metrics = [statistic.metric for statistic in question.asked]
        drawn = draws.summarise(rows, metrics, question.budget).draws(-(-runs // times))
        for kept, statistic, one in zip(samples, question.asked, drawn, strict=True):
            kept.append(sample(question, rows, statistic, one))
    named = zip(samples, question.asked, strict=True)
    return [result(question, statistic.name, kept) for kept, statistic in named]


def sample(question: Question, rows: Rows, statistic: Total, drawn: Interval) -> Sample:
    """Compare releases with the truth of all rows."""
    often = np.flatnonzero(drawn.absent.mean(axis=0) < 0.5)
    if not len(often):  # nothing is released: all say 0
        drawn = drawn._replace(absent=np.zeros_like(drawn.absent))
    elif rows.selected:
        rows, drawn = rows.only(often), Interval(*(column[:, often] for column in drawn))
    budget, truth = question.budget, statistic.truth(rows)
    part, max_partitions = 1 / (len(question.asked) + rows.selected), rows.max_partitions or 3
    best = statistic.best(rows, budget, part)
    rate = noise_rate(
        budget, None if rows.selected else rows.partitions, max_partitions, part / statistic.numbers
    )
    here = np.bincount(rows.per_pair(None)[0], minlength=rows.partitions)
    least = (
        80 * math.sqrt(max_partitions) if budget.is_zcdp or budget.delta else 30 * max_partitions
    )
    empty = np.isinf(drawn.low) & np.isinf(drawn.high)
    found = abs(drawn.value - truth), drawn.holds(truth), (drawn.high - drawn.low) / 2, empty
    return Sample(
        *(np.where(drawn.absent, np.nan, column) for column in found),
        best=best,
        seen=here >= least,
        mark=mark(statistic.amounts(rows), best, rows.partitions, rate)
        if len(often)
        else NONE_SELECTED,
    )


def result(question: Question, name: str, samples: list[Sample]) -> Result:
    """Put the draws of the data together: those that are not marked, unless most of them are."""
    marks = [one.mark for one in samples if one.mark]
    is_marked = 2 * len(marks) > len(samples)
    samples = [one for one in samples if is_marked or not one.mark]
    errors = np.concatenate([one.errors.ravel() / one.best for one in samples])
    halves = np.concatenate([one.halves.ravel() / one.best for one in samples])
    if samples[0].errors.shape[1] == 1:
        error = max(float(np.nanquantile(errors, QUANTILE)), EXACT)
        width = float(np.nanmedian(halves)) / error
    else:
        error, width = float(np.nanmean(errors)), geometric(one.width() for one in samples)
    inside, empty = (
        float(np.nanmean(np.concatenate([getattr(one, share).ravel() for one in samples])))
        for share in ("inside", "empty")
    )
    return Result(question, name, error, inside, width, empty, marks[0] if is_marked else "")


def mark(amounts: np.ndarray, best: float, partitions: int, rate: float) -> str:
    """Return why a cell does not count, in words; "" if it does.

    It is hopeless where too few people have a number at all, or the expert's error is more than
    half of the number. It cannot be seen where fewer people than any private mechanism tells apart
    from noise are a gap above all others, and cutting them costs more than half of that error.

    Args:
        amounts: what each person adds.
        best: the expert's error.
        partitions: how many share a clip.
        rate: how well people are seen, beside epsilon 1 in one partition.
    """
    ordered = np.sort(abs(amounts[amounts != 0]))[::-1]
    if len(ordered) <= PRESENT / rate:
        return f"hopeless: only {len(ordered)} numbers are not 0"
    few = ordered[: int(SEEN / rate)]
    below = np.append(ordered[1:], 0.0)[: len(few)]
    cut = few.cumsum() - np.arange(1, len(few) + 1) * below
    hidden = (few >= GAP * below) & (cut / partitions > best / 2)
    if hidden.any():
        return f"unseen: {int(np.flatnonzero(hidden)[0]) + 1} people are a gap above all others"
    total = abs(amounts.sum())
    if partitions == 1 and best > total / 2:
        return f"hopeless: the best clip errs by {best / total:.0%}"
    return ""


def noise_rate(
    budget: dp.Budget, partitions: int | None, max_partitions: int, part: float = 1.0
) -> float:
    """Return how well people are seen, beside epsilon 1 in one partition.

    Many partitions share one look at the people, for which a smaller share of the budget is spent;
    under zCDP 6.4 standard deviations are what 16 scales of Laplace noise are.

    Args:
        budget: the whole.
        partitions: how many there are; None: they are selected privately.
        max_partitions: how many a person is in.
        part: of the budget, what the number gets.
    """
    share = 1 / 8
    if partitions is not None:
        share = min(0.4, max(1 / 32, 0.8 / math.sqrt(partitions * max_partitions)))
    if is_gaussian(budget, max_partitions):
        rho = float(budget.to_zcdp().amount)
        return SEEN / (6.4 / math.sqrt(2 * part * share * rho))
    return part * float(budget.amount) * share / 0.4


def is_gaussian(budget: dp.Budget, max_partitions: int) -> bool:
    """Return whether Gaussian noise is the smaller one, of those that the budget allows."""
    if budget.is_zcdp or not budget.delta:
        return budget.is_zcdp
    rho, epsilon = float(budget.to_zcdp().amount), float(budget.amount)
    return math.sqrt(max_partitions / (2 * rho)) < math.sqrt(2) * max_partitions / epsilon


@dataclasses.dataclass(frozen=True)
class Goal:
    """What the cells of one column must reach.

    Attributes:
        error: the most that the geometric mean of the errors may be.
        cell: the most that an error may be.
        inside: the least mean share of intervals that hold the truth.
        least: the least of such a share.
        width: the most that the geometric mean of the widths may be.
        widest: the most that a width may be.
    """

    error: float = math.inf
    cell: float = math.inf
    inside: float = 0.93
    least: float = 0.80
    width: float = 3.0
    widest: float = 8.0


NO_GOAL = Goal(inside=0.0, least=0.0, width=math.inf, widest=math.inf)
ERRORS = {"100": 2.6, "300": 2.2, "1,000": 2.1, "10,000": 1.9, "100,000": 1.9}
MANY = {"10 partitions": 1.6, "100 partitions": 1.4, "1,000 partitions": 1.4}


def goal(family: str, people: str) -> Goal:
    """Return the goal of a column of a family's table."""
    if family == "sum, kept for checking":
        return NO_GOAL
    found = Goal(inside=0.85, least=0.0) if people == "100" else Goal()
    if family in ("sum", "count", "mean"):
        return dataclasses.replace(found, error=ERRORS.get(people, math.inf), cell=4.0)
    return dataclasses.replace(found, error=MANY.get(family, math.inf))


@dataclasses.dataclass(frozen=True)
class Column:
    """The cells of one column of a table: those that count, of all."""

    family: str
    people: str
    counted: list[Result]
    every: int

    @classmethod
    def of(cls, family: str, results: Sequence[Result]) -> list[Column]:
        """Return the columns of a family."""
        found: dict[str, list[Result]] = {}
        for one in results:
            found.setdefault(one.question.people, []).append(one)
        return [
            cls(family, people, [one for one in cells if not one.mark], len(cells))
            for people, cells in found.items()
        ]

    def numbers(self) -> tuple[list[float], list[float], list[float]]:
        """Return errors, shares of intervals that hold the truth, and widths if there are any."""
        errors, inside = (
            [getattr(one, name) for one in self.counted] for name in ("error", "inside")
        )
        widths = [one.width for one in self.counted if not math.isnan(one.width)]
        return errors, inside, widths or [1.0]

    def summary(self) -> list[str]:
        """Return the geometric means of errors and widths, the mean of coverage, and the worst."""
        if not self.counted:
            return ["", "", ""]
        errors, inside, widths = self.numbers()
        mean = 100 * sum(inside) / len(inside)
        return [
            f"**{geometric(errors):.2f}** ({short(max(errors))})",
            f"**{mean:.1f}** ({100 * min(inside):.0f})",
            f"**{geometric(widths):.2f}** ({short(max(widths))})",
        ]

    def reached(self) -> str:
        """Return "yes", or NO with the goals that are missed; "" if no cell counts."""
        return tables.judged(self.misses(goal(self.family, self.people))) if self.counted else ""

    def misses(self, wanted: Goal) -> list[str]:
        """Return which goals are missed, in words."""
        errors, inside, widths = self.numbers()
        found = {
            "error": geometric(errors) <= wanted.error,
            "an error": max(errors) <= wanted.cell,
            "inside": sum(inside) / len(inside) >= wanted.inside,
            "an inside": min(inside) >= wanted.least,
            "width": geometric(widths) <= wanted.width,
            "a width": max(widths) <= wanted.widest,
        }
        return [name for name, is_met in found.items() if not is_met]


def short(number: float) -> str:
    """Return two digits of a number."""
    return f"{number:.0f}" if number >= 9.95 else f"{number:.1f}"


def table(family: str, results: Sequence[Result]) -> str:
    """Return the table of one family: a line per kind of data, a column per size."""
    columns = Column.of(family, results)
    found = {(one.label, one.question.people): str(one) for one in results}
    text = tables.heads([family, *(column.people for column in columns)])
    for name in dict.fromkeys(one.label for one in results):
        text += line([name, *(found.get((name, column.people), "") for column in columns)])
    means = [" / ".join(column.summary()) if column.counted else "" for column in columns]
    text += line(["**geometric mean (worst)**", *means])
    text += line(["goals met", *(column.reached() for column in columns)])
    reasons = {f"* {one.label}, {one.question.people}: {one.mark}\n" for one in results if one.mark}
    return text + "\n" + "".join(sorted(reasons))


def overview(found: Mapping[str, Sequence[Result]]) -> str:
    """Return one line per column of all tables: what counts, and which goals are met."""
    text = tables.heads(["released", "of", "error", "inside", "width", "cells", "goals met"])
    for family, results in found.items():
        for column in Column.of(family, results):
            cells = f"{len(column.counted)} of {column.every}"
            text += line([family, column.people, *column.summary(), cells, column.reached()])
    return text


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables; return 1 where a goal is missed."""
    given = tables.options(
        __doc__, words, runs=int, seeds=int, quick=False, only="", statistics=False
    )
    runs = given.runs or (30 if given.quick else 240)
    seeds = given.seeds or (1 if given.quick else 4)
    if given.statistics:
        return other_statistics.report(runs, seeds, given.quick, given.only)
    families: dict[str, list[Question]] = {}
    for question in questions.asked(given.quick):
        families.setdefault(question.family, []).append(question)
    found: dict[str, list[Result]] = {}
    for family, several in families.items():
        if given.only in family:
            found[family] = [one for each in several for one in measure(each, runs, seeds)]
            say(f"{table(family, found[family])}\n")
    text = overview(found)
    say(text)
    return int("NO: " in text)


if __name__ == "__main__":
    sys.exit(main())

"""Measure how good released numbers are, and whether the intervals beside them hold the truth.

    python -m benchmarks coverage                   every table, under 10 minutes
    python -m benchmarks coverage --quick           a look at all of them, under a minute
    python -m benchmarks coverage --statistics      other statistics than sums, counts and means
    python -m benchmarks coverage --data FILE:PERSON:GROUP,GROUP:VALUE,VALUE     a CSV file, too

A cell has three numbers: the error over that of the best fixed clip, an expert's who knew the data;
the share of the releases whose interval holds the true number of all rows, in percent; and half the
interval over the error. Errors are 95% errors, in several partitions their mean. Draws are by the
library's release code without Beam, about a millisecond each. Cells in parentheses do not count:
"h" is hopeless, for the expert too; in "u" few people are far above all others, whom no private
mechanism can see; of a cell of several draws of the data only such draws are left out, if they are
not most of them. An "e" is the percentage of releases that say nothing: their intervals are
infinite. The last table has a line for each column of the others: geometric means, or the mean of
the shares, with the worst cell behind, of the cells that count. The exit code is 1 where a goal is
missed, which with `--quick` may be chance.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Iterator, Mapping, Sequence

from benchmarks import coverage_statistics, questions, suites
from benchmarks.accuracy import line
from benchmarks.measured import Result, geometric, measure
from benchmarks.questions import Question
from benchmarks.suites import File


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


ERRORS = {"100": 2.6, "300": 2.2, "1,000": 2.1, "10,000": 1.9, "100,000": 1.9}
MANY = {"10 partitions": 1.6, "100 partitions": 1.4, "1,000 partitions": 1.4}
ONE_ROW_EACH = 3.0
NO_GOAL = Goal(inside=0.0, least=0.0, width=math.inf, widest=math.inf)


def goal(family: str, people: str) -> Goal:
    """Return the goal of a column of a family's table."""
    if family == "sum, kept for checking":
        return NO_GOAL
    found = Goal(inside=0.85, least=0.0) if people == "100" else Goal()
    if family in ("sum", "count", "mean"):
        return dataclasses.replace(found, error=ERRORS.get(people, math.inf), cell=4.0)
    return dataclasses.replace(found, error=MANY.get(family, math.inf))


def cell(result: Result) -> str:
    """Return the three numbers of a cell."""
    empty = f" e{result.empty:.0%}" if result.empty > 0.005 else ""
    text = f"{short(result.error)} / {100 * result.inside:.0f} / {short(result.width)}{empty}"
    return f"({text} {result.mark[0]})" if result.mark else text


def short(number: float) -> str:
    """Return two digits of a number."""
    return f"{number:.0f}" if number >= 9.95 else f"{number:.1f}"


def table(family: str, results: Sequence[Result]) -> str:
    """Return the table of one family: a line per kind of data, a column per size."""
    heads = list(dict.fromkeys(one.question.people for one in results))
    found = {(label(one), one.question.people): one for one in results}
    lines = [line([family, *heads]), line(["---"] * (1 + len(heads)))]
    for name in dict.fromkeys(label(one) for one in results):
        cells = [found.get((name, head)) for head in heads]
        lines.append(line([name, *(cell(one) if one is not None else "" for one in cells)]))
    means = [summary(column(results, head)) for head in heads]
    lines.append(line(["**geometric mean (worst)**", *means]))
    lines.append(line(["goals met", *reached(family, results)]))
    reasons = sorted(
        {f"{label(one)}, {one.question.people}: {one.mark}" for one in results if one.mark}
    )
    return "".join([*lines, "\n", *(f"* {reason}\n" for reason in reasons)])


def label(result: Result) -> str:
    """Return the name of a result's line."""
    several = len(result.question.asked) > 1
    return f"{result.question.data}: {result.name}" if several else result.question.data


def column(results: Sequence[Result], people: str) -> list[Result]:
    """Return the results of a column that count."""
    return [one for one in results if one.question.people == people and not one.mark]


def summary(results: Sequence[Result]) -> str:
    """Return the geometric means of errors and widths, the mean of coverage, and the worst."""
    if not results:
        return ""
    errors, inside, widths = numbers(results)
    return (
        f"**{geometric(errors):.2f}** ({short(max(errors))}) / "
        f"**{100 * sum(inside) / len(inside):.1f}** ({100 * min(inside):.0f}) / "
        f"**{geometric(widths):.2f}** ({short(max(widths))})"
    )


def numbers(results: Sequence[Result]) -> tuple[list[float], list[float], list[float]]:
    """Return errors, shares of intervals that hold the truth, and widths where there are any."""
    widths = [one.width for one in results if not math.isnan(one.width)]
    return [one.error for one in results], [one.inside for one in results], widths or [1.0]


def misses(results: Sequence[Result], wanted: Goal) -> list[str]:
    """Return which goals a column misses, in words."""
    if not results:
        return []
    errors, inside, widths = numbers(results)
    found = {
        "error": geometric(errors) <= wanted.error,
        "an error": max(errors) <= wanted.cell,
        "inside": sum(inside) / len(inside) >= wanted.inside,
        "an inside": min(inside) >= wanted.least,
        "width": geometric(widths) <= wanted.width,
        "a width": max(widths) <= wanted.widest,
    }
    return [name for name, is_met in found.items() if not is_met]


def reached(family: str, results: Sequence[Result]) -> list[str]:
    """Return for each column "yes", or NO with the goals that are missed; "" if no cell counts."""
    answers = []
    for head in dict.fromkeys(one.question.people for one in results):
        counted = column(results, head)
        missed = misses(counted, goal(family, head)) + one_row_each(results, family, head)
        answers.append(f"NO: {', '.join(missed)}" if missed else "yes" if counted else "")
    return answers


def overview(found: Mapping[str, Sequence[Result]]) -> str:
    """Return one line per column of all tables: what counts, and which goals are met."""
    heads = ["released", "of", "error", "inside", "width", "cells", "goals met"]
    lines = [line(heads), line(["---"] * len(heads))]
    for family, results in found.items():
        sizes = list(dict.fromkeys(one.question.people for one in results))
        for people, answer in zip(sizes, reached(family, results), strict=True):
            counted = column(results, people)
            numbers_of = summary(counted).split(" / ") if counted else ["", "", ""]
            every = sum(one.question.people == people for one in results)
            cells = [*numbers_of, f"{len(counted)} of {every}", answer]
            lines.append(line([family, people, *cells]))
    return "".join(lines)


def one_row_each(results: Sequence[Result], family: str, people: str) -> list[str]:
    """Return whether counts of 300 people with one row each miss 3 times plain Laplace noise."""
    if (family, people) != ("count", "300"):
        return []
    errors = [one.error for one in column(results, people) if one.question.data == "all alike"]
    return ["one row each"] if max(errors, default=0.0) > ONE_ROW_EACH else []


def asked(quick: bool, files: Sequence[File]) -> Iterator[Question]:
    """Yield all questions."""
    sizes = suites.QUICK_SIZES if quick else suites.SIZES
    yield from questions.one_partition(sizes)
    if not quick:
        yield from questions.many_people(suites.LARGEST)
    yield from questions.together(sizes[1:])
    yield from questions.other_budgets(sizes[1:])
    layouts = questions.SMALL_LAYOUTS if quick else questions.LAYOUTS
    yield from questions.many_partitions(layouts)
    yield from questions.selected(questions.SELECTED_LAYOUTS[: 1 if quick else None])
    for file in files:
        yield from questions.of_file(file)


def options() -> argparse.ArgumentParser:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, help="releases of a cell")
    parser.add_argument("--seeds", type=int, help="draws of the data of a cell")
    parser.add_argument("--quick", action="store_true", help="30 releases of fewer cells")
    parser.add_argument("--only", default="", help="a part of the names of the families")
    parser.add_argument("--statistics", action="store_true", help="other statistics")
    parser.add_argument("--data", action="append", default=[], help="FILE:PERSON:GROUPS:VALUES")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables; return 1 where a goal is missed."""
    given = options().parse_args(words)
    runs = given.runs or (30 if given.quick else 240)
    seeds = given.seeds or (1 if given.quick else 4)
    if given.statistics:
        return coverage_statistics.report(runs, seeds, given.quick, given.only)
    families: dict[str, list[Question]] = {}
    for question in asked(given.quick, [File.of(words) for words in given.data]):
        families.setdefault(question.family, []).append(question)
    found: dict[str, list[Result]] = {}
    for family, several in families.items():
        if given.only not in family:
            continue
        found[family] = [one for each in several for one in measure(each, runs, seeds)]
        sys.stdout.write(f"{table(family, found[family])}\n")
        sys.stdout.flush()
    text = overview(found)
    sys.stdout.write(text)
    return int("NO: " in text)


if __name__ == "__main__":
    sys.exit(main())

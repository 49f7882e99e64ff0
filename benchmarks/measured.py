"""Measure questions: errors beside the best fixed clip's, and whether intervals hold the truth.

Errors are divided by the expert's for the same data before draws of data are put together. What is
said of several partitions is the mean over them. Of privately selected partitions those count that
are released most of the time, each where it is; the expert knows which these are, and spends on the
numbers what is left beside a share for their selection.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

import beam_dp as dp
from benchmarks import draws
from benchmarks.draws import Interval
from benchmarks.questions import Question, Statistic
from benchmarks.suites import Rows

QUANTILE = 0.95
SEEN = 40
"""At epsilon 1: people who are too few to be seen apart from all others."""
PRESENT = 60
"""At epsilon 1: people who are too few for a clip, even if all have the same number."""
GAP = 8.0
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


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """The releases of one statistic for one draw of the data: arrays (runs, partitions).

    Where a partition was not released, all numbers are NaN.
    """

    errors: np.ndarray
    inside: np.ndarray
    halves: np.ndarray
    empty: np.ndarray
    best: float
    seen: np.ndarray
    mark: str


def measure(question: Question, runs: int, seeds: int) -> list[Result]:
    """Draw so many releases of so many draws of the data, and return a result per statistic."""
    times = min(seeds, question.seeds)
    samples: list[list[Sample]] = [[] for _ in question.asked]
    for seed in range(times):
        rows = question.make(seed)
        metrics = [statistic.metric for statistic in question.asked]
        summarised = draws.summarise(rows, metrics, question.budget)
        drawn = summarised.draws(-(-runs // times))
        for kept, statistic, one in zip(samples, question.asked, drawn, strict=True):
            kept.append(sample(question, rows, statistic, one))
    named = zip(samples, question.asked, strict=True)
    return [result(question, statistic.name, kept) for kept, statistic in named]


def sample(question: Question, rows: Rows, statistic: Statistic, drawn: Interval) -> Sample:
    """Compare releases with the truth of all rows."""
    often = np.flatnonzero(drawn.absent.mean(axis=0) < 0.5)
    if not len(often):  # nothing is released: all say 0
        drawn = drawn._replace(absent=np.zeros_like(drawn.absent))
    elif rows.selected:
        rows, drawn = rows.only(often), Interval(*(column[:, often] for column in drawn))
    truth = statistic.truth(rows)
    part, reach = 1 / (len(question.asked) + rows.selected), rows.reach or 3
    shared = 1 if statistic.apart else rows.partitions
    best = statistic.best(rows, question.budget, part)
    slack = 1e-9 * abs(truth)
    here = np.bincount(rows.per_pair(None)[0], minlength=rows.partitions)
    inside = (drawn.low <= truth + slack) & (drawn.high >= truth - slack)
    empty = np.isinf(drawn.low) & np.isinf(drawn.high)
    errors, inside, halves, empty = (
        np.where(drawn.absent, np.nan, column)
        for column in (abs(drawn.value - truth), inside, (drawn.high - drawn.low) / 2, empty)
    )
    return Sample(
        errors=errors,
        inside=inside,
        halves=halves,
        empty=empty,
        best=best,
        seen=here >= least_people(question.budget, reach),
        mark=NONE_SELECTED
        if not len(often)
        else mark(
            statistic.amounts(rows),
            best,
            shared,
            noise_rate(
                question.budget, None if rows.selected else shared, reach, part / statistic.numbers
            ),
        ),
    )


def least_people(budget: dp.Budget, reach: int) -> float:
    """Return how many people a partition must have for its interval's width to be of interest."""
    return 80 * math.sqrt(reach) if budget.is_zcdp or budget.delta else 30 * reach


def result(question: Question, name: str, samples: list[Sample]) -> Result:
    """Put the draws of the data together: those that are not marked, unless most of them are."""
    marks = [one.mark for one in samples if one.mark]
    is_marked = 2 * len(marks) > len(samples)
    samples = [one for one in samples if is_marked or not one.mark]
    alone = samples[0].errors.shape[1] == 1
    bests = [one.best for one in samples]
    halves, errors = together(samples, "halves", bests), together(samples, "errors", bests)
    error = float(np.nanquantile(errors, QUANTILE) if alone else np.nanmean(errors))
    widths = [width(one) for one in samples] if not alone else [float(np.nanmedian(halves)) / error]
    return Result(
        question,
        name,
        error,
        float(np.nanmean(together(samples, "inside"))),
        geometric(widths),
        float(np.nanmean(together(samples, "empty"))),
        marks[0] if is_marked else "",
    )


def together(samples: list[Sample], name: str, divisors: Sequence[float] = ()) -> np.ndarray:
    """Return what all samples found, in one row.

    Args:
        samples: one for each draw of the data.
        name: of an attribute.
        divisors: by what that of each sample is divided; empty: by nothing.
    """
    by = divisors or [1.0] * len(samples)
    return np.concatenate(
        [getattr(one, name).ravel() / each for one, each in zip(samples, by, strict=True)]
    )


def width(one: Sample) -> float:
    """Return half the intervals over the 95% errors, over the partitions that have people."""
    errors = np.nanquantile(one.errors, QUANTILE, axis=0)
    halves = np.nanmedian(one.halves, axis=0)
    seen = one.seen & (errors > 0)
    return geometric(halves[seen] / errors[seen]) if seen.any() else math.nan


def geometric(numbers: np.ndarray | list[float]) -> float:
    """Return the geometric mean; infinite if one is, else 0 if one is."""
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(numbers))))


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


def noise_rate(budget: dp.Budget, partitions: int | None, reach: int, part: float = 1.0) -> float:
    """Return how well people are seen, beside epsilon 1 in one partition.

    Many partitions share one look at the people, for which a smaller share of the budget is spent;
    under zCDP 6.4 standard deviations are what 16 scales of Laplace noise are.

    Args:
        budget: the whole.
        partitions: how many there are; None: they are selected privately.
        reach: how many a person is in.
        part: of the budget, what the number gets.
    """
    share = 1 / 8
    if partitions is not None:
        share = min(0.4, max(1 / 32, 0.8 / math.sqrt(partitions * reach)))
    if is_gaussian(budget, reach):
        rho = float(budget.to_zcdp().amount)
        return SEEN / (6.4 / math.sqrt(2 * part * share * rho))
    return part * float(budget.amount) * share / 0.4


def is_gaussian(budget: dp.Budget, reach: int) -> bool:
    """Return whether Gaussian noise is the smaller one, of those that the budget allows."""
    if budget.is_zcdp or not budget.delta:
        return budget.is_zcdp
    rho, epsilon = float(budget.to_zcdp().amount), float(budget.amount)
    return math.sqrt(reach / (2 * rho)) < math.sqrt(2) * reach / epsilon

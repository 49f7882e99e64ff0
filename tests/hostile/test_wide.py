"""One value beyond 64 bits makes its column wide: what comes of other people's rows stays as it is.

Columns of values are int64 while they fit and Python integers otherwise (`exact`), so every step
has two forms of arithmetic. Whatever the unit, it must neither fail nor warn in either, and a value
of one person in one partition must leave what is computed for the others, up to the noise.
"""

import collections
import dataclasses
import functools
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.metrics import (
    base,
    mean,
    own_function,
    preprocessed,
    quantiles,
    sums,
    values,
)
from beam_dp.mechanisms.metrics.person_epsilon import PersonalisedStatistic
from beam_dp.mechanisms.noise.sampling import LazyUniform, Noise
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.stages import bound_and_summarise as settling
from beam_dp.transforms.stages import draw_once
from tests.doubles import ZeroNoise, compile_program
from tests.relations import KEY, bundle, grouped

LEAST, MOST = Fraction(1, 1 << 200), Fraction(1 << 200)
UNITS = [LEAST, *(Fraction(10) ** power for power in (-22, -6, 19)), MOST]
GIANTS = [1e308, 5e-324, -(10**400)]
LISTED = dp.Candidates.linear(0, 100, 1)
GENEROUS = dp.Budget(20_000.0)  # with noise of 0 the searches see what is there, not their slack
DAYS = ("a", "b", "c")
JOINT = {f"{name}{end}" for name in ("m4", "m16") for end in ("", "_low", "_high")}
JOINT |= {"m5_low", "m6_low"}
"""A mean over people, and a variance: what a shared clip cuts is given back by all released numbers;
and shares, whose lower ends have their part of what all of them may have lost."""
Made = list[float]


class NoNoise(ZeroNoise):
    """Noise of 0; and where an answer is drawn by its weight, the one a third of the way."""

    def uniform(self) -> LazyUniform:
        return LazyUniform(self, (1 << 64) // 3, 64)


def one_owner(unit: Fraction) -> list[base.Metric]:
    """Return every metric of one owner, and every way in which it is computed."""
    found: list[base.Metric] = [
        sums.Count(),
        sums.Sum("v", unit=unit),
        sums.Sum("v", unit=unit, search=dp.AboveThreshold),
        mean.Mean("v", unit=unit),
        mean.Mean("v", unit=unit, per="person"),
        dp.Ratio("v"),
        dp.Ratio("v", per="person"),
        dp.Ratio("v", method="kulesza_suresh_wang"),
        quantiles.KthLargest("v", 2, unit=unit),
        quantiles.Quantile("v", 0.3, unit=unit),
        quantiles.Quantile("v", 0.3, unit=unit, per="person"),
        quantiles.Median("v", unit=unit, candidates=LISTED),
        values.DistinctCount("v"),
        values.MaxFrequency("v"),
        values.SumOfSquares("v"),
        own_function.CustomProfile("v", largest, candidates=LISTED, unit=unit),
        mean.Variance("v", unit=unit),
        dp.Preprocessed("v", "variance", unit=unit, person_value="max"),
        dp.Preprocessed("v", "standard_deviation", unit=unit, sensitivity=MOST),
        preprocessed.Preprocessed("v", "mean", unit=unit, empty=MOST),
        preprocessed.Preprocessed("v", "median", unit=unit, empty=-MOST, sensitivity=LEAST),
        dp.BlackBox("v", sum, candidates=LISTED, unit=unit, blocks=50, person_value="sum"),
    ]
    for extreme in (quantiles.Max, quantiles.Min):
        ways: list[dict[str, Any]] = [{}, {"search": dp.AboveThreshold}, {"candidates": LISTED}]
        found += [extreme("v", unit=unit, **way) for way in ways]
    for value in ("mean", "sum", "max", "min"):
        found += [preprocessed.TrimmedMean("v", unit=unit, person_value=value)]
        for of in ("mean", "median", "maximum", "minimum"):
            found += [preprocessed.Preprocessed("v", of, unit=unit, person_value=value)]
    return found


def several_owners(unit: Fraction) -> list[base.Metric]:
    """Return every metric of several owners, and every way in which it is computed."""
    return [
        sums.Count(),
        sums.Count(search=dp.AboveThreshold),
        sums.Sum("v", unit=unit),
        sums.Sum("v", unit=unit, search=dp.AboveThreshold),
        sums.Sum("v", unit=unit, search=dp.AboveThreshold, candidates=LISTED),
        quantiles.Max("v", unit=unit),
        quantiles.Max("v", unit=unit, search=dp.AboveThreshold),
        quantiles.Min("v", unit=unit),
        values.DistinctCount("v", search=dp.AboveThreshold),
    ]


def own_epsilons(unit: Fraction) -> list[base.Metric]:
    """Return every statistic of people with an epsilon of their own."""
    return [
        PersonalisedStatistic(
            "v", of, person_epsilon="e", epsilons=(10_000, 20_000), unit=unit, person_value=value
        )
        for of in ("sum", "maximum", "minimum", "median")
        for value in ("mean", "sum", "max")
    ]


def largest(people: tuple[tuple[float, ...], ...]) -> list[float]:
    """Return the profile of a maximum, as far as B[0]."""
    return [max((max(values) for values in people), default=0)]


@dataclasses.dataclass(frozen=True)
class Case:
    """A program, and how its rows are bounded."""

    asked: tuple[base.Metric, ...]
    bounds: dp.ContributionBounds
    others: tuple[str, ...] = ()

    @functools.cached_property
    def program(self) -> Program:
        rows = self.bounds.max_rows_per_partition or 5
        how = {"max_rows_per_partition": rows, "others": self.others, "partitions": 3}
        return compile_program(self.asked, GENEROUS, 3, **how)


def cases(unit: Fraction) -> Iterator[Case]:
    """Yield programs of all metrics; those with epsilons of people's own stand alone."""
    free = dp.ContributionBounds(None)
    bound = dp.ContributionBounds(2, rows_per_partition=2)
    for bounds in (free, bound):
        named = [named_by_place(metric, place) for place, metric in enumerate(one_owner(unit))]
        yield Case(tuple(named), bounds)
    named = [named_by_place(metric, place) for place, metric in enumerate(several_owners(unit))]
    yield Case(tuple(named), free, ("other", "third"))
    yield from (Case((metric,), free) for metric in own_epsilons(unit))


def named_by_place(metric: base.Metric, place: int) -> base.Metric:
    return dataclasses.replace(metric, name=f"m{place}")


def rows_of(scale: float) -> list[dict[str, Any]]:
    """Return rows of 30 people in three partitions; values are small multiples of the scale."""
    draw = np.random.default_rng(7)
    rows = []
    for person in range(30):
        for visit in range(1 + person % 4):
            value = None if draw.random() < 0.1 else float(draw.integers(-3, 9)) * scale
            row = {"person": f"p{person}", "other": f"q{person % 5}", "v": value, "t": visit}
            rows.append({**row, "day": DAYS[(person + visit) % 3], "e": 10_000 * (1 + person % 2)})
    return rows


def giant(value: object) -> dict[str, Any]:
    """Return the one row of one person more."""
    return {"person": "x", "other": "y", "day": "c", "v": value, "t": value, "e": value}


def measures_of(program: Program) -> list[Measure | Relation]:
    """Return what is summarised, and at last the people, whose lines name partitions."""
    return [*program.measures, Measure(PEOPLE)]


def summaries(case: Case, program: Program, rows: list[Any]) -> tuple[Layout, dict[int, list]]:
    """Return what a pipeline has behind its shuffles, by bucket."""
    layout = Layout("person", ("day",), program.columns, None, KEY)
    bounder = Bounder(case.bounds, program.fields, KEY, keep_rows=program.keep_rows)
    packed = grouped([bundle(settling.Collect(layout, bounder, 4), rows)])
    settle = settling.Settle(bounder, measures_of(program), program.shared_measures, 1)
    found = collections.defaultdict(list)
    for bucket, blob in (one for shard in packed.items() for one in bundle(settle, [shard])):
        found[bucket].append(blob)
    return layout, found


def released(
    case: Case, rows: list[Any], noise: Noise, clips: tuple[int, ...] | None = None
) -> tuple[tuple[int, ...], dict[str, Made]]:
    """Return the shared clips, and the output columns of each partition."""
    program = case.program
    layout, found = summaries(case, program, rows)
    summary, lines = settling.open_bucket(found[0], measures_of(program))
    every = draw_once.named_partitions(0, summary)
    cells, names = draw_once.BucketPartitions(layout, 1).cells(0, summary, lines, [every])
    if clips is None:
        everybody = settling.open_bucket(found[settling.SHARED], program.shared_measures)[0]
        view = PartitionView(everybody, np.zeros(len(everybody), np.int64), 1)
        clips = program.choose_clips(view, noise, [program.coverage(cells)])
    drawn = program.release(cells, clips, noise)
    columns = program.combine(drawn, program.sums(drawn))
    by_day = zip(names, zip(*(map(float, column) for column in columns), strict=True), strict=True)
    return clips, {day: list(made) for (day,), made in by_day}


@pytest.mark.audit
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{float(unit):.0e}")
def test_a_wide_column_changes_nothing_of_others(unit: Fraction) -> None:
    """Every value added alone; the clips that partitions share are those without it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for case in cases(unit):
            # Small numbers of units, which only the giant widens; and numbers around 1.
            check(case, rows_of(float(unit) if case.bounds.max_rows_per_partition is None else 1.0))


def check(case: Case, rows: list[Any]) -> None:
    columns = [each.name for metric in case.program.request.metrics for each in metric.outputs]
    clips, before = released(case, rows, NoNoise())
    for value in GIANTS:
        _, after = released(case, [*rows, giant(value)], NoNoise(), clips)
        for day in ("a", "b"):
            pairs = zip(columns, before[day], after[day], strict=True)
            changed = {name for name, old, new in pairs if str(old) != str(new)}  # NaN is NaN
            assert changed <= JOINT


@pytest.mark.sampled(5)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{float(unit):.0e}")
def test_wide_columns_are_released_with_noise(unit: Fraction) -> None:
    """With real noise, whose integers are wide where the unit makes them so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        every = list(cases(unit))
        for case in [*every[:3], *every[3::4]]:  # some of those with epsilons of people's own
            _, found = released(case, [*rows_of(1.0), giant(1e308)], Noise())
            assert set(found) == set(DAYS)

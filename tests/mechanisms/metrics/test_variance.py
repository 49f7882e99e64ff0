"""Variances of rows: exact squares about a centre, wide values, and what is refused."""

import dataclasses
import itertools
import random
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.planning.program import Program, compile_program
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.doubles import ZeroNoise
from tests.mechanisms.releases.test_clipped import chosen
from tests.reference import Row, table_of

WIDEST = 1 << 59
HOSTILE = [1e300, -1e300, 1e30, -1e30, 1e25, float("nan"), float("inf"), -float("inf"), 1e13, 0.0]


def settled(program: Program, rows: list[Row]):
    """Return the fields of people in partitions."""
    bounder = Bounder(ContributionBounds(None), program.fields, bytes(32))
    return bounder.settle(bounder.prepare(table_of(rows)))


def test_squared_distances_are_exact_and_cut_first() -> None:
    source = random.Random(4)
    fields = (Field(0, "squares", -WIDEST, WIDEST), Field(0, "sum", -WIDEST, WIDEST))
    fields = (*fields, Field(0, "count"))
    for _ in range(200):
        centre = source.choice([0, 7, -3, 10**9, WIDEST])
        values = [
            source.choice([None, 0, 5, -(10**6), WIDEST, 1 << 100, -(1 << 119)]) for _ in "abc"
        ]
        bounder = Bounder(ContributionBounds(None), fields, bytes(32))
        table = bounder.settle(
            bounder.prepare(table_of([Row((1, 0), (0, 0), (v,)) for v in values]))
        )
        measure = Measure(0, 1, (1, 2), counted=2, centre=centre, totals=1)
        cut = [max(-WIDEST, min(WIDEST, v)) for v in values if v is not None]
        exact = sum((v - centre) ** 2 for v in cut)
        _, numbers = measure.of(table)
        assert [int(number) for number in numbers] == [exact] * (exact > 0)


def test_its_numbers_have_the_same_ends_and_one_draw() -> None:
    for ends in ({}, {"low": 0, "high": 1e30}, {"low": -1e13, "high": 5}, {"low": -1e30}):
        program = compile_program([dp.Variance("x", **ends)], dp.Budget(1), 1)
        cuts = {(field.low, field.high) for field in program.fields if field.operation != "count"}
        [(low, high)] = cuts
        assert -WIDEST <= low < high <= WIDEST
        numbers = [step.release for step in program.steps]
        assert all(isinstance(number, ClippedSum) for number in numbers)
        assert {number.pool for number in numbers} == {numbers[0].pool}


@pytest.mark.parametrize(
    "ends", [{}, {"low": 0, "high": 1e30}, {"low": -1e13, "high": 1e13}], ids=str
)
@pytest.mark.parametrize("metric", [dp.Mean, dp.Variance, dp.StandardDeviation], ids=str)
def test_no_value_decides_whether_a_release_ends(metric, ends) -> None:
    people = [*range(60), *range(60, 60 + len(HOSTILE))]
    data = pd.DataFrame({"who": people, "x": [1.7e18 + n for n in range(60)] + HOSTILE})
    for rows in (data, data[:60], data[60:]):
        released = dp.release(
            rows, person="who", metrics=[metric("x", **ends)], budget=dp.Budget(9)
        )
        assert len(released.table) == 1


def test_few_rows_give_no_warning() -> None:
    """Where nobody is shown, the ends of the interval are infinite."""
    kinds = itertools.product((dp.Variance, dp.StandardDeviation), (False, True))
    metrics = [
        metric("x", sample=sample, name=f"{metric.__name__}_{sample}") for metric, sample in kinds
    ]
    for size in (0, 1, 3):
        data = pd.DataFrame({"who": np.arange(size), "x": np.arange(size, dtype=float)})
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            dp.release(data, person="who", metrics=metrics, budget=dp.Budget(4))


def moves_by_at_most_the_clips() -> bool:
    """A person moves each number by its clip at most, whatever the clips and the centre are."""
    source = random.Random(8)
    program = compile_program([dp.Variance("x", unit=1)], dp.Budget(1), 1)
    reached = set()
    for _ in range(60):
        people = [
            [
                source.choice([None, 0, 3, -40, 1 << 20, 1 << 70])
                for _ in range(source.randrange(1, 5))
            ]
            for _ in range(4)
        ]
        rows = [Row((who, 0), (0, 0), (v,)) for who, values in enumerate(people) for v in values]
        fewer = [row for row in rows if row.person != (0, 0)]
        centre, index = source.choice([0, 5, -(1 << 30), WIDEST]), source.randrange(64)
        for step in program.steps:
            release = dataclasses.replace(step.release, pool=None, place=0)
            if release.source != program.fields.index(Field(0, "count")):
                release = dataclasses.replace(release, centre=centre)
            place = min(index, len(release.thresholds) - 1)
            both = [cut_at(release, program, some, place) for some in (rows, fewer)]
            move, clip = both[0] - both[1], release.thresholds[place]
            if not (-clip if release.signed else 0) <= move <= clip:
                return False
            reached.add(abs(move) == clip)
    return True in reached


def cut_at(release: ClippedSum, program: Program, rows: list[Row], place: int) -> int:
    """Return a number before its noise, in units, at the clip of an index."""
    table = settled(program, rows)
    summary = histograms.summarise(table, release.measures)
    view = PartitionView(summary, np.zeros(len(summary), np.int64), 1)
    [total] = release.taken(view.at(0, chosen(release, place)), ZeroNoise()).totals
    return int(total)


def test_a_person_moves_each_number_by_at_most_its_clip() -> None:
    assert moves_by_at_most_the_clips()


def test_a_clip_that_is_one_too_small_is_noticed(monkeypatch) -> None:
    whole = ClippedSum._edges
    monkeypatch.setattr(ClippedSum, "_edges", lambda self, indexes: whole(self, indexes) + 1)
    assert not moves_by_at_most_the_clips()


def test_a_mean_over_people_leaves_out_who_has_no_value() -> None:
    people = np.arange(1200)
    values = np.where(people < 600, 1003.0, np.nan)
    data = pd.DataFrame({"who": people, "x": values})
    metric = dp.Mean("x", per="person", name="mean")
    [mean] = dp.release(data, person="who", metrics=[metric], budget=dp.Budget(50)).table["mean"]
    # The clip is at most a unit where all are alike; noise beyond 1 has a chance below 1e-20.
    assert abs(mean.as_py() - 1003) < 1


def test_the_account_is_the_budget() -> None:
    for budget in (dp.Budget(1), dp.Budget.zcdp(Fraction(1, 3))):
        program = dp.PrivateAggregate("p", [dp.Variance("x"), dp.Ratio("y")], budget)._program
        assert sum(cost.amount * times for _, cost, times in program.entries) == budget.amount

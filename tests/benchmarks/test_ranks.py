"""The table of ranks: what it measures, and when a goal is missed."""

import dataclasses
import math

import numpy as np
import pytest

import beam_dp as dp
from benchmarks import ranks
from benchmarks.other_statistics import Cell, Found
from benchmarks.suites import Rows

MEDIAN = ranks.quantile(100, 0.5, 2, 5)
FINE = Found(Cell(MEDIAN, "t3", 100), 1.0, 3.0, 0.99, 1.0, 0.0, 0.0)


def test_errors_are_people_between_the_rank_and_the_value():
    rows = Rows.together(np.arange(10), v=np.array([1.0, 2, 2, 2, 5, 6, 7, 8, 9, 10]))
    half = ranks.quantile(10, 0.5).errors(rows, np.array([5, 5.5, 6, 2, 1, 9]))
    assert half.tolist() == [0, 0, 0, 1, 4, 3]
    assert ranks.largest(10).errors(rows, np.array([8.5])) == 2
    assert ranks.kth(10, 3).errors(rows, np.array([9])) == 1
    assert ranks.several(10, 0.9, (0.5, 0.9, 0.99)).place == 1


@pytest.mark.parametrize(
    ("changes", "goals"),
    [
        ({}, []),
        ({"middle": 2.5}, ["2/5"]),
        ({"error": 5.5}, ["2/5"]),
        ({"absurd": 0.05}, ["absurd"]),
        ({"inside": 0.9}, ["stated"]),
    ],
)
def test_goals_that_are_missed(changes, goals):
    assert MEDIAN.misses(dataclasses.replace(FINE, **changes), 1000) == goals
    of_largest = ranks.largest(100, 2, 5).misses(dataclasses.replace(FINE, **changes), 1000)
    assert of_largest == [goal for goal in goals if goal != "stated"]


def test_what_is_empty_states_nothing():
    """Of 5 people hardly any answer is given; none of 20 is counted as true without one."""
    found = ranks.quantile(5, 0.99).measured(["t3"], 20)
    assert found.empty > 0.5 and (math.isnan(found.inside) or found.inside <= 1)


def test_a_table_is_printed_and_a_missed_goal_is_returned(capsys, monkeypatch):
    few = (MEDIAN, ranks.largest(100), ranks.kth(100, 3), ranks.several(100, 0.5, (0.5, 0.9)))
    monkeypatch.setattr(ranks, "TASKS", few)
    monkeypatch.setattr(ranks, "HELD_OUT", ["t3"])
    monkeypatch.setattr(ranks, "TUNED", ["pareto"])
    assert ranks.main(["--runs", "5"]) in (0, 1)
    assert len(capsys.readouterr().out.splitlines()) == 2 * (2 + len(few)) + 1
    hopeless = dataclasses.replace(MEDIAN, name="none", goals=(-1, -1))
    monkeypatch.setattr(ranks, "TASKS", (hopeless,))
    assert ranks.main(["--runs", "5"]) == 1
    assert capsys.readouterr().out.count("NO: -1/-1") == 2


def test_every_task_can_be_released():
    for task in {(one.name, one.metric): one for one in ranks.TASKS}.values():
        found = dataclasses.replace(task, n=3000).measured(["lognormal 1"], 5)
        # One in 200 answers may be anywhere: three of five of a task with a chance below 2e-6.
        assert found.empty < 1 and found.middle < 40
    assert {type(task.metric) for task in ranks.TASKS} == {
        dp.Quantile, dp.Quantiles, dp.Max, dp.KthLargest
    }  # fmt: skip


def test_a_mechanism_of_many_windows_needs_hardly_more_than_the_bound():
    # The exponential mechanism whose weight is the number of people in a window: J windows, m
    # people in one of them. No fewer people make it right in half of all cases with so few strays.
    windows, stray, epsilon = 500, 0.01, 0.7
    least = ranks.supported(windows, stray, epsilon)
    nothing = stray / (1 - stray)  # the windows beside an answer "none" of weight 1

    def right(people: float) -> float:
        weight = nothing / windows * math.exp(epsilon * people)
        return weight / (weight + nothing + 1)

    assert right(least) < 0.5 < right(least + 0.72 / epsilon)
    assert least == pytest.approx(math.log(25_000) / 0.7)


def test_the_bound_is_printed(capsys):
    assert ranks.main(["--bound"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "| 10% | 10.3 | 7.1 |" and len(lines) == 6

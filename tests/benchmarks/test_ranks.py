"""The table of ranks: what it measures, and when a goal is missed."""

import dataclasses
import math

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.search.ranks.node import Answer
from benchmarks import ranks
from benchmarks.ranks import Result, Task

FINE = Result(1.0, 3.0, 0.0, 0.0, 0.99)
MEDIAN = ranks.quantile(100, 0.5, 2, 5)


def test_errors_are_people_between_the_rank_and_the_value():
    data = np.array([1.0, 2, 2, 2, 5, 6, 7, 8, 9, 10])
    half = ranks.quantile(10, 0.5)
    assert [half.error(data, value) for value in (5, 5.5, 6, 2, 1, 9)] == [0, 0, 0, 1, 4, 3]
    assert ranks.largest(10).error(data, 8.5) == 2
    assert ranks.kth(10, 3).error(data, 9) == 1


def test_the_place_among_several():
    assert ranks.several(10, 0.9, (0.5, 0.9, 0.99)).place == 1
    assert ranks.largest(10).place == MEDIAN.place == 0


@pytest.mark.parametrize(
    ("changes", "goals"),
    [
        ({}, []),
        ({"middle": 2.5}, ["2/5"]),
        ({"most": 5.5}, ["2/5"]),
        ({"absurd": 0.05}, ["absurd"]),
        ({"stated": 0.9}, ["stated"]),
    ],
)
def test_goals_that_are_missed(changes, goals):
    assert ranks.missed(MEDIAN, dataclasses.replace(FINE, **changes), 1000) == goals


def test_of_the_largest_no_rank_is_stated():
    assert ranks.missed(ranks.largest(100), dataclasses.replace(FINE, stated=0.0), 1000) == []


def test_runs_are_counted():
    grid = ranks._GRID
    answers = iter([10.0, math.nan, 1e9, 55.0] * 25)

    def answer(data: np.ndarray) -> Answer:
        value = next(answers)
        return Answer() if math.isnan(value) else Answer(grid.index(value), 30.0)

    draw = ranks.TUNED["uniform"]
    found = ranks.measured(ranks.quantile(100, 0.5), draw, 100, answer)
    assert (found.absurd, found.none) == (0.25, 0.25)
    assert found.stated == pytest.approx(1 / 3, abs=0.02)  # 10 and 10^9 are 40 and 50 people off


def test_a_table_is_printed_and_all_tasks_have_a_release(capsys, monkeypatch):
    few = (MEDIAN, ranks.largest(100), ranks.kth(100, 3), ranks.several(100, 0.5, (0.5, 0.9)))
    monkeypatch.setattr(ranks, "TASKS", few)
    monkeypatch.setattr(ranks, "HELD_OUT", {"t3": ranks.HELD_OUT["t3"]})
    monkeypatch.setattr(ranks, "TUNED", {"pareto": ranks.TUNED["pareto"]})
    assert ranks.main(["--runs", "5"]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(few) + 3
    assert ranks.main(["--runs", "5", "--only", "largest", "--stray", "0.3"]) in (0, 1)
    assert len(capsys.readouterr().out.splitlines()) == 2 * 2 + 3
    [mine, theirs] = (ranks.strayed(few[1].release, stray).search for stray in (None, 0.3))
    assert theirs == dataclasses.replace(mine, stray=0.3) and mine.stray < 0.01


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
    assert lines[2].split() == ["10%", "10.3", "7.1"]
    assert len(lines) == 5


def test_a_missed_goal_is_returned(capsys, monkeypatch):
    hopeless = Task("none", dp.Median("x"), 100, 0.5, goals=(-1, -1, 1))
    monkeypatch.setattr(ranks, "TASKS", (hopeless,))
    draws = {"pareto": ranks.TUNED["pareto"]}
    monkeypatch.setattr(ranks, "TUNED", draws)
    monkeypatch.setattr(ranks, "HELD_OUT", draws)
    assert ranks.main(["--runs", "5"]) == 1
    assert capsys.readouterr().out.count("MISSED: -1/-1") == 2

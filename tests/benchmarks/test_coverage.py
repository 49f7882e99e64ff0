"""What is measured of releases: errors beside the expert's, coverage, widths, marks and goals."""

import dataclasses
import math

import numpy as np
import pytest

import beam_dp as dp
from benchmarks import coverage, draws, questions, suites
from benchmarks.coverage import Column, Goal, Result, table
from benchmarks.draws import Interval
from benchmarks.questions import COUNT, MEAN, SUM, Question, Total
from benchmarks.suites import Rows

GOOD = Goal(error=2.0, cell=4.0)


def question(rows: Rows, *asked: Total) -> Question:
    return Question("a family", "a kind", "some", lambda seed: rows, asked)


@dataclasses.dataclass(frozen=True)
class Fixed:
    """Stands for what is summarised: releases that are known."""

    drawn: list[Interval]

    def draws(self, runs: int) -> list[Interval]:
        return self.drawn


def fixed(truth: np.ndarray, errors: np.ndarray, half: float) -> Interval:
    """Return releases that err by so much, (runs,) for all partitions, with such intervals."""
    values = truth[None] + errors[:, None]
    nobody = np.zeros(values.shape, bool)
    return Interval(
        values, values - half, values + half, np.full(values.shape, np.inf), nobody, nobody
    )


def test_errors_coverage_and_width_are_those_of_the_releases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Errors 0, 1, ..., 100 and intervals of 90 on each side, for 1,000 people with 1."""
    rows = suites.alone("all alike", 1000, 0)
    known = Fixed([fixed(np.array([1000.0]), np.arange(101.0), 90.0)])
    monkeypatch.setattr(draws, "summarise", lambda *_: known)
    [found] = coverage.measure(question(rows, SUM), 101, 2)
    assert found.error == pytest.approx(95 / math.log(20), rel=1e-3)
    assert found.inside == pytest.approx(91 / 101) and found.mark == "" and found.empty == 0
    assert found.width == pytest.approx(90 / 95)


def test_an_empty_release_counts_as_0_and_says_nothing() -> None:
    rows = suites.alone("all alike", 1000, 0)
    nan = np.array([[np.nan]])
    columns = {"v": nan, "v_low": np.array([[-np.inf]]), "v_high": np.array([[np.inf]])}
    one = coverage.sample(question(rows, SUM), rows, SUM, draws.interval(columns, "v"))
    assert one.errors.tolist() == [[1000.0]] and one.inside.all() and one.empty.all()


def test_the_library_is_measured_as_it_is() -> None:
    """At epsilon 1 a count of 3,000 people is nowhere off by half, in 60 releases.

    Half is 1,500 noise scales of a clip 1: whatever the clip is, that is e^-20 and less.
    """
    rows = suites.several_rows("uniform", 3000, 0)
    found = coverage.measure(question(rows, COUNT, SUM, MEAN), 60, 1)
    assert [one.name for one in found] == ["count", "sum", "mean"]
    for one, truth in zip(found, (9000, 4500, 0.5), strict=True):
        assert one.mark == "" and 0 < one.error and 0 <= one.inside <= 1
        best = next(s for s in (COUNT, SUM, MEAN) if s.name == one.name).best(
            rows, questions.PURE, 1 / 3
        )
        assert one.error * best < truth / 2


@pytest.mark.parametrize(
    ("kind", "size", "word"),
    [
        ("all alike", 1000, ""),
        ("all alike", 60, "hopeless: only 60"),
        ("5% are not 0", 1000, "hopeless: only 50"),
        ("5% are not 0", 10_000, ""),
        ("one giant", 1000, "unseen: 1 "),
        ("1 and 1,000", 1000, "unseen: 10 "),
        ("1 and 1,000", 10_000, ""),
        ("80 people x30", 10_000, ""),
        ("lognormal 2", 1000, ""),
    ],
)
def test_marks(kind: str, size: int, word: str) -> None:
    amounts = suites.numbers(kind, size, 0)
    best = SUM.best(suites.alone(kind, size, 0), questions.PURE, 1.0)
    found = coverage.mark(amounts, best, 1, 1.0)
    assert found.startswith(word) and bool(found) == bool(word)


def test_of_several_draws_of_the_data_those_that_are_marked_are_left_out() -> None:
    rows = suites.alone("all alike", 1000, 0)
    one = fixed(np.array([1000.0]), np.full(10, 2.0), 5.0)
    good = coverage.sample(question(rows, SUM), rows, SUM, one)
    bad = dataclasses.replace(good, errors=1e9 * good.errors, mark="unseen: 1 people")
    [few, most] = (
        coverage.result(question(rows, SUM), "sum", samples)
        for samples in ([good, bad, good], [good, bad, bad])
    )
    assert few.mark == "" and few.error == pytest.approx(2 / math.log(20))
    assert most.mark == "unseen: 1 people" and most.error > 1e6


def test_of_selected_partitions_those_count_that_are_released() -> None:
    """Two partitions of 2,000 people are always kept at epsilon 1, two of 3 people never.

    (The chance of the one is 1 - e^-900 or so, that of the other below 10^-12.)
    """
    place = np.repeat([0, 1, 2, 3], [2000, 3, 3, 2000])
    person = np.arange(len(place))
    rows = Rows(person, place, {"v": np.ones(len(place))}, 4, 1, selected=True)
    # With a given clip, as one that is chosen is far too high in 1 of 4,000 draws or so.
    given, budget = dataclasses.replace(SUM, metric=dp.Sum("v", clip=1)), dp.Budget(1.0, 1e-14)
    asked = dataclasses.replace(question(rows, given), budget=budget)
    [found] = coverage.measure(asked, 40, 1)
    assert found.mark == "" and found.empty == 0 and 0.5 < found.inside <= 1
    assert 0.5 < found.error < 10
    few = dataclasses.replace(rows.only(np.array([1, 2])), selected=True)
    asked = dataclasses.replace(question(few, SUM), budget=budget)
    assert coverage.measure(asked, 5, 1)[0].mark == coverage.NONE_SELECTED


def test_experts_of_totals_and_means_know_the_rows() -> None:
    rows = Rows(np.array([0, 0, 1]), np.array([0, 1, 1]), {"v": np.array([1.0, 2.0, 3.0])}, 2, 2)
    assert SUM.truth(rows).tolist() == [1, 5] and COUNT.truth(rows).tolist() == [1, 2]
    assert sorted(SUM.amounts(rows)) == [1, 2, 3] and COUNT.amounts(rows).tolist() == [1, 1, 1]
    alone = suites.several_rows("uniform", 50, 0)
    assert MEAN.truth(alone)[0] == pytest.approx(alone.columns["v"].mean())
    assert MEAN.amounts(alone).sum() == pytest.approx(MEAN.truth(alone)[0])


def result(error: float, inside: float, width: float, mark: str = "", kind: str = "k") -> Result:
    asked = Question("sum", kind, "1,000", lambda seed: suites.alone("uniform", 9, seed), (SUM,))
    return Result(asked, "sum", error, inside, width, 0.0, mark)


@pytest.mark.parametrize(
    ("second", "missed"),
    [
        (result(2.0, 0.95, 2.9), []),
        (result(2.1, 0.95, 2.9), ["error"]),
        (result(4.1, 0.95, 2.9), ["error", "an error"]),
        (result(2.0, 0.90, 2.9), ["inside"]),
        (result(2.0, 0.79, 2.9), ["inside", "an inside"]),
        (result(2.0, 0.95, 3.3), ["width"]),
        (result(2.0, 0.95, 8.1), ["width", "a width"]),
        (result(2.0, 0.95, float("inf")), ["width", "a width"]),
        (result(2.0, 0.95, float("nan")), []),
    ],
)
def test_a_column_misses_what_it_misses(second: Result, missed: list[str]) -> None:
    column = Column("sum", "1,000", [result(1.99, 0.95, 2.9), second], 2)
    assert column.misses(GOOD) == missed


def test_marked_cells_are_shown_and_not_counted() -> None:
    hidden = result(50.0, 0.0, 0.0, "unseen: 1 people", "giant")
    text = table("sum", [result(1.5, 0.96, 2.0), hidden])
    assert "| giant | (50 / 0 / 0.0 u) |" in text and "* giant, 1,000: unseen: 1 people" in text
    assert "| **1.50** (1.5) / **96.0** (96) / **2.00** (2.0) |" in text
    assert "NO" not in text
    assert "NO: error, an error, inside, an inside |" in table(
        "sum", [result(1.5, 0.96, 2.0), dataclasses.replace(hidden, mark="")]
    )

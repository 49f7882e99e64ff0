"""What is measured of releases: errors beside the expert's, coverage, widths, and what is marked."""

import dataclasses
import math

import numpy as np
import pytest

import beam_dp as dp
from benchmarks import draws, measured, questions, suites
from benchmarks.best_clips import Scale
from benchmarks.draws import Interval
from benchmarks.questions import COUNT, MEAN, SUM, Question, Statistic, Total
from benchmarks.suites import Layout, Rows


def question(rows: Rows, *asked: Statistic) -> Question:
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
    [found] = measured.measure(question(rows, SUM), 101, 2)
    assert found.error == pytest.approx(95 / math.log(20), rel=1e-3)
    assert found.inside == pytest.approx(91 / 101) and found.mark == "" and found.empty == 0
    assert found.width == pytest.approx(90 / 95)


def test_in_several_partitions_errors_are_means(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = suites.spread("all alike", 1000, Layout(4), 0)
    truth = SUM.truth(rows)
    known = Fixed([fixed(truth, np.array([-6.0, -2.0, 2.0, 6.0]), 3.0)])
    monkeypatch.setattr(draws, "summarise", lambda *_: known)
    [found] = measured.measure(question(rows, SUM), 4, 1)
    assert found.error == pytest.approx(4.0, rel=1e-6)  # beside noise of scale 1, whose mean is 1
    assert found.inside == 0.5 and found.width == pytest.approx(3 / 6)


def test_an_empty_release_counts_as_0_and_says_nothing() -> None:
    rows = suites.alone("all alike", 1000, 0)
    nan = np.array([[np.nan]])
    columns = {"v": nan, "v_low": np.array([[-np.inf]]), "v_high": np.array([[np.inf]])}
    one = measured.sample(question(rows, SUM), rows, SUM, draws.interval(columns, "v"))
    assert one.errors.tolist() == [[1000.0]] and one.inside.all() and one.empty.all()


def test_the_library_is_measured_as_it_is() -> None:
    """At epsilon 1 a count of 3,000 people is nowhere off by half, in 60 releases.

    Half is 1,500 noise scales of a clip 1: whatever the clip is, that is e^-20 and less.
    """
    rows = suites.several_rows("uniform", 3000, 0)
    found = measured.measure(question(rows, COUNT, SUM, MEAN), 60, 1)
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
    found = measured.mark(amounts, best, 1, 1.0)
    assert found.startswith(word) and bool(found) == bool(word)


def test_where_each_partition_has_its_clip_one_of_them_is_looked_at() -> None:
    rows = suites.spread("5% are not 0", 10_000, Layout(10), 0)
    shared, own = (Total("sum", SUM.metric, apart, column="v") for apart in (False, True))
    marks = [
        measured.measure(question(rows, one), 1, 1)[0].mark.split(":")[0] for one in (shared, own)
    ]
    assert marks == ["", "hopeless"]


def test_of_several_draws_of_the_data_those_that_are_marked_are_left_out() -> None:
    rows = suites.alone("all alike", 1000, 0)
    one = fixed(np.array([1000.0]), np.full(10, 2.0), 5.0)
    good = measured.sample(question(rows, SUM), rows, SUM, one)
    bad = dataclasses.replace(good, errors=1e9 * good.errors, mark="unseen: 1 people")
    [few, most] = (
        measured.result(question(rows, SUM), "sum", samples)
        for samples in ([good, bad, good], [good, bad, bad])
    )
    assert few.mark == "" and few.error == pytest.approx(2 / math.log(20))
    assert most.mark == "unseen: 1 people" and most.error > 1e6


def test_who_is_seen_depends_on_the_budget() -> None:
    assert measured.noise_rate(questions.PURE, 1, 1) == 1.0
    assert measured.noise_rate(dp.Budget(0.5), 1, 1) == 0.5
    assert measured.noise_rate(questions.PURE, 1, 1, 0.25) == 0.25
    assert measured.noise_rate(questions.PURE, 10**6, 1) == pytest.approx(1 / 32 / 0.4)
    assert measured.noise_rate(questions.PURE, None, 1) == pytest.approx(1 / 8 / 0.4)
    assert 0.5 < measured.noise_rate(questions.ZCDP, 1, 1) < 1.0
    # With delta, pure noise for one partition, Gaussian for many.
    assert measured.noise_rate(questions.APPROXIMATE, 1, 1) == 1.0
    assert measured.is_gaussian(questions.APPROXIMATE, 100)


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
    [found] = measured.measure(asked, 40, 1)
    assert found.mark == "" and found.empty == 0 and 0.5 < found.inside <= 1
    assert 0.5 < found.error < 10
    few = dataclasses.replace(rows.only(np.array([1, 2])), selected=True)
    asked = dataclasses.replace(question(few, SUM), budget=budget)
    assert measured.measure(asked, 5, 1)[0].mark == measured.NONE_SELECTED


def test_experts_of_totals_and_means_know_the_rows() -> None:
    rows = Rows(np.array([0, 0, 1]), np.array([0, 1, 1]), {"v": np.array([1.0, 2.0, 3.0])}, 2, 2)
    assert SUM.truth(rows).tolist() == [1, 5] and COUNT.truth(rows).tolist() == [1, 2]
    assert sorted(SUM.amounts(rows)) == [1, 2, 3] and COUNT.amounts(rows).tolist() == [1, 1, 1]
    alone = suites.several_rows("uniform", 50, 0)
    assert MEAN.truth(alone)[0] == pytest.approx(alone.columns["v"].mean())
    assert MEAN.amounts(alone).sum() == pytest.approx(MEAN.truth(alone)[0])


def test_a_clip_for_each_partition_is_at_least_as_good_as_one_for_all() -> None:
    rows = suites.spread("lognormal 1", 2000, Layout(4, 1, False, False), 0)
    rows.columns["v"][rows.partition == 2] *= 100
    shared, own = (Total("sum", SUM.metric, apart, column="v") for apart in (False, True))
    place, amounts = rows.per_pair("v")
    least = own.best(rows, questions.PURE, 1.0)
    assert least < shared.best(rows, questions.PURE, 1.0)
    scale = Scale.laplace(1.0, 1)
    each = [
        min(
            float(scale.mean(np.array([mine.sum() - np.minimum(mine, c).sum()]), np.array([c]))[0])
            for c in np.geomspace(0.05, mine.max(), 500)
        )
        for mine in (amounts[place == index] for index in range(4))
    ]
    assert least == pytest.approx(np.mean(each), rel=0.01)

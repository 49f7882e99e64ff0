"""What is measured of releases: errors beside the expert's, coverage, widths and marks."""

import dataclasses
import math

import numpy as np
import pytest

from benchmarks import coverage, draws, questions, suites
from benchmarks.draws import Interval
from benchmarks.questions import COUNT, MEAN, SUM, Question, Total
from benchmarks.suites import Rows


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

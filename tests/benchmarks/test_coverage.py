"""What is measured of releases: errors beside the expert's, coverage, widths and marks."""

from benchmarks import coverage, questions, suites
from benchmarks.questions import COUNT, MEAN, SUM, Question, Total
from benchmarks.suites import Rows


def question(rows: Rows, *asked: Total) -> Question:
    return Question("a family", "a kind", "some", lambda seed: rows, asked)


def test_the_library_is_measured_as_it_is():
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

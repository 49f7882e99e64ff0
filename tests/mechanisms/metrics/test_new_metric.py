"""A metric is one file and one line of the registry: here is a new one, and nothing else.

`Range` stands for a user's own file. Where something is released, epsilon is 10,000 or more: noise
moves a number by more than 1 with a chance below e^-40.
"""

import csv
import json
import math
import pickle
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms import metrics
from beam_dp.mechanisms.metrics.base import Metric, MetricPart, OfNumbers
from beam_dp.mechanisms.metrics.released import ALPHA, Released
from beam_dp.mechanisms.planning.program import compile_program
from pipelines import aggregate
from tests.hostile import support


class Range(OfNumbers):
    """The largest value of a column minus the smallest."""

    def parts(self) -> tuple[MetricPart, ...]:
        """Return the largest and the smallest value."""
        ends = dp.Max(self.column, unit=self.unit), dp.Min(self.column, unit=self.unit)
        return tuple(part for end in ends for part in end.parts())

    def combine(self, released: Sequence[Released]) -> Released:
        """Return the difference: what each end may be off adds up."""
        largest, smallest = released
        below, above = largest.below + smallest.above, largest.above + smallest.below
        return Released.between(largest.values - smallest.values, below, above)


HUGE = dp.Budget(30_000.0)
PUBLIC = dp.PublicPartitions(["a", "b"])
# In day a from -7 to 42, in day b from 3 to 12.
ROWS = [
    *({"person": n, "day": "a", "minutes": n % 50 - 7} for n in range(1000)),
    *({"person": n, "day": "b", "minutes": n % 10 + 3} for n in range(1000)),
]


def released(
    *asked: Metric, budget: dp.Budget = HUGE, rows: Sequence[dict[str, object]] = ROWS
) -> list[beam.Row]:
    """Return what the in-memory runner releases of both days, in their order."""
    bounds = dp.ContributionBounds(2)
    transform = dp.PrivateAggregate("person", asked, budget, ["day"], bounds, PUBLIC)
    return sorted(support.released(rows, transform), key=lambda row: row.day)


def test_it_is_released_near_the_truth() -> None:
    first, second = released(Range("minutes"))
    assert (first.day, second.day) == ("a", "b")
    assert abs(first.range_minutes - 49) < 1 and abs(second.range_minutes - 9) < 1
    assert 48 < first.range_minutes_low <= 49 and 8 < second.range_minutes_low <= 9
    assert first.range_minutes_high == second.range_minutes_high == math.inf  # as of both ends


def test_its_interval_is_that_of_both_ends() -> None:
    """The ends that are asked for beside it are the same numbers: nothing is drawn twice.

    At epsilon 300 neither is NaN: fewer than 10 of 1,000 people are passed over but for e^-40.
    """
    asked = Range("minutes"), dp.Max("minutes"), dp.Min("minutes")
    rows = [{"person": n, "day": "ab"[n % 2], "minutes": n} for n in range(2000)]
    for row in released(*asked, budget=dp.Budget(300.0), rows=rows):
        assert math.isfinite(row.max_minutes) and math.isfinite(row.min_minutes)
        assert row.range_minutes == row.max_minutes - row.min_minutes
        assert row.min_minutes_low == -math.inf and row.max_minutes_high == math.inf
        assert row.range_minutes_low == pytest.approx(row.max_minutes_low - row.min_minutes_high)
        assert row.range_minutes_low <= 1998  # of each day's truth


def test_its_intervals_hold_together() -> None:
    """Each end fails with less than half of the chance to be further off."""
    program = compile_program([Range("minutes")], dp.Budget(1.0), 1)
    assert all(step.release.search.stray < ALPHA / 2 for step in program.steps)
    mixed = [Released.within(np.array([9.0, math.nan]), np.array([1.0, 1.0]))] * 2
    found = Range("minutes").combine(mixed)
    assert found.values[0] == 0 and math.isnan(found.values[1])
    assert found.low.tolist() == [-2, -math.inf] and found.high.tolist() == [2, math.inf]


def test_equal_parts_are_paid_once() -> None:
    asked = [Range("x"), dp.Max("x")]
    rows = dp.PrivateAggregate("p", asked, dp.Budget(1.0)).plan().rows
    assert [row.metric for row in rows] == ["range_x (max), max_x", "range_x (min)"]
    assert [row.epsilon for row in rows] == pytest.approx([3 / 4, 1 / 4])


def test_what_it_cannot_do_is_refused_by_name() -> None:
    budget = dp.Budget(1.0)
    for build in (
        lambda: dp.RemovalLoss(Range("x"), "p"),
        lambda: dp.ShiftedInverse(Range("x"), "p", budget),
        lambda: dp.PreprocessSensitivity(Range("x"), "p", budget),
        lambda: dp.PrivateAggregate(["a", "b"], [Range("x")], budget),
    ):
        with pytest.raises(TypeError, match=r"not Range \(output column range_x\)"):
            build()
    with pytest.raises(ValueError, match="^Max: unit must be the same for all metrics of 'x'"):
        dp.PrivateAggregate("p", [Range("x"), dp.Max("x", unit=1)], budget)
    metric = Range("x", unit=Fraction(1, 2))
    assert pickle.loads(pickle.dumps(metric)) == metric


# ------------------------------------------------------------------------- the command line


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the one line of the registry."""
    monkeypatch.setitem(metrics.REGISTRY, "range", Range)


@pytest.mark.usefixtures("registered")
def test_the_job_releases_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = ["person,day,minutes", *(",".join(map(str, row.values())) for row in ROWS)]
    source, out = tmp_path / "visits.csv", tmp_path / "released.csv"
    source.write_text("\n".join(lines) + "\n")
    words = ["--input", str(source), "--output", str(out), "--person", "person"]
    words += ["--partition", "day", "--public_partitions", "a,b", "--bounds", "partitions=2"]
    asked = {"range": "minutes", "unit": 1, "weight": 2}
    (tmp_path / "release.json").write_text(json.dumps({"metrics": [asked]}))
    words += ["--config", str(tmp_path / "release.json")]
    assert aggregate.main([*words, "--epsilon", "30000", "--runner", "FnApiRunner"]) == 0
    first, second = csv.DictReader(out.open())
    assert list(first) == ["day", "range_minutes", "range_minutes_low", "range_minutes_high"]
    assert abs(float(first["range_minutes"]) - 49) < 2
    assert abs(float(second["range_minutes"]) - 9) < 2
    said = capfd.readouterr().out
    assert "range_minutes" in said


def test_the_help_tells_of_it_where_it_has_its_line(
    capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    words = ["--person", "p", "--range", "minutes", "--epsilon", "2", "--plan"]
    with pytest.raises(SystemExit) as left:
        aggregate.main(words)
    assert left.value.code == 2 and "unrecognized argument: --range" in capfd.readouterr().err
    request.getfixturevalue("registered")
    assert aggregate.main(words) == 0 and "range_minutes (min)" in capfd.readouterr().out
    with pytest.raises(SystemExit):
        aggregate.main(["--help"])
    said = " ".join(capfd.readouterr().out.split())
    assert re.search(r"Also [\w, ]*, range\b", said)

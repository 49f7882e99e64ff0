"""A metric is one file and one line of the registry: here is a new one, and nothing else.

`Width` stands for a user's own file. Where something is released, epsilon is 10,000 or more: noise
moves a number by more than 1 with a chance below e^-40.
"""

import csv
import dataclasses
import json
import math
import pickle
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms import metrics
from beam_dp.mechanisms.metrics.base import Context, MetricPart, OfNumbers
from beam_dp.mechanisms.metrics.released import ALPHA, Description, Release, Released, Spending
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from pipelines import aggregate
from tests.doubles import compile_program


class Width(OfNumbers):
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


# In day a from -7 to 42, in day b from 3 to 12.
ROWS = [
    *({"person": n, "day": "a", "minutes": n % 50 - 7} for n in range(1000)),
    *({"person": n, "day": "b", "minutes": n % 10 + 3} for n in range(1000)),
]


def test_its_intervals_hold_together() -> None:
    """Each end fails with less than half of the chance to be further off."""
    program = compile_program([Width("minutes")], dp.Budget(1.0), 1)
    assert all(step.release.search.false_stop < ALPHA / 2 for step in program.steps)
    mixed = [Released.between(np.array([9.0, math.nan]), 1.0, 1.0)] * 2
    found = Width("minutes").combine(mixed)
    assert found.values[0] == 0 and math.isnan(found.values[1])
    assert found.low.tolist() == [-2, -math.inf] and found.high.tolist() == [2, math.inf]


def test_equal_parts_are_paid_once() -> None:
    asked = [Width("x"), dp.Max("x")]
    rows = dp.PrivateAggregate("p", asked, dp.Budget(1.0)).plan().rows
    assert [row.metric for row in rows] == ["width_x (max), max_x", "width_x (min)"]
    assert [row.epsilon for row in rows] == pytest.approx([3 / 4, 1 / 4])


def test_what_it_cannot_do_is_refused_by_name() -> None:
    budget = dp.Budget(1.0)
    for build in (
        lambda: dp.RemovalLoss(Width("x"), "p"),
        lambda: dp.ShiftedInverse(Width("x"), "p", budget),
        lambda: dp.PreprocessSensitivity(Width("x"), "p", budget),
        lambda: dp.PrivateAggregate(["a", "b"], [Width("x")], budget),
    ):
        with pytest.raises(TypeError, match=r"not Width \(output column width_x\)"):
            build()
    with pytest.raises(ValueError, match="^Max: unit must be the same for all metrics of 'x'"):
        dp.PrivateAggregate("p", [Width("x"), dp.Max("x", unit=1)], budget)
    metric = Width("x", unit=Fraction(1, 2))
    assert pickle.loads(pickle.dumps(metric)) == metric


class Unmade(OfNumbers):
    """A metric that says neither `build` nor `parts`."""

    word: ClassVar[str] = "unmade"


class Uncombined(OfNumbers):
    """Parts, and nothing that is made of them."""

    parts = Width.parts


class OtherUnit(Width):
    """Parts that read another column than it says: one of whole numbers."""

    def parts(self) -> tuple[MetricPart, ...]:
        return (dp.Max(self.column, unit=1), dp.Min(self.column, unit=1))


class Free(OfNumbers):
    """A number whose release says of no draw what it costs."""

    word: ClassVar[str] = "free"

    def build(self, context: Context, share: dp.Budget) -> Release:
        return FreeRelease(dp.Sum(self.column).build(context, share))


@dataclasses.dataclass(frozen=True)
class FreeRelease(Release):
    """A release that claims to cost nothing."""

    true: Release
    spends: ClassVar[tuple[Spending, ...]] = ()

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        return self.true.measures

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        return self.true.draw(view, noise)

    def describe(self) -> Description:
        return self.true.describe()


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (Unmade, "^Unmade: a metric defines `build`; or `parts` and `combine`"),
        (Uncombined, "^Uncombined: `combine` must make its number of its 2 parts"),
        (OtherUnit, "^OtherUnit: `columns` must name every column .* it lacks 'x', or gives"),
        (Free, "^Free: spends of FreeRelease must name what each draw costs"),
    ],
)
def test_what_its_author_forgot_is_said_before_a_row_is_read(
    metric: type[OfNumbers], said: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        dp.PrivateAggregate("p", [metric("x")], dp.Budget(1.0)).plan()


# ------------------------------------------------------------------------- the command line


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the one line of the registry."""
    monkeypatch.setitem(metrics.REGISTRY, "width", Width)


@pytest.mark.usefixtures("registered")
def test_the_job_releases_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = ["person,day,minutes", *(",".join(map(str, row.values())) for row in ROWS)]
    source, out = tmp_path / "visits.csv", tmp_path / "released.csv"
    source.write_text("\n".join(lines) + "\n")
    words = ["--input", str(source), "--output", str(out), "--person", "person"]
    words += ["--partition", "day", "--public_partitions", "a,b", "--bounds", "partitions=2"]
    asked = {"width": "minutes", "unit": 1, "weight": 2}
    (tmp_path / "release.json").write_text(json.dumps({"metrics": [asked]}))
    words += ["--config", str(tmp_path / "release.json")]
    assert aggregate.main([*words, "--epsilon", "30000", "--runner", "FnApiRunner"]) == 0
    first, second = csv.DictReader(out.open())
    assert list(first) == ["day", "width_minutes", "width_minutes_low", "width_minutes_high"]
    assert abs(float(first["width_minutes"]) - 49) < 2
    assert abs(float(second["width_minutes"]) - 9) < 2
    said = capfd.readouterr().out
    assert "width_minutes" in said


def test_the_help_tells_of_it_where_it_has_its_line(
    capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    words = ["--person", "p", "--width", "minutes", "--epsilon", "2", "--plan"]
    with pytest.raises(SystemExit) as left:
        aggregate.main(words)
    assert left.value.code == 2 and "unrecognized argument: --width" in capfd.readouterr().err
    request.getfixturevalue("registered")
    assert aggregate.main(words) == 0 and "width_minutes (min)" in capfd.readouterr().out
    with pytest.raises(SystemExit):
        aggregate.main(["--help"])
    said = " ".join(capfd.readouterr().out.split())
    assert re.search(r"Also [\w, ]*, width\b", said)

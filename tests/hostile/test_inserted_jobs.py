"""Hostile rows in whole pipelines and jobs, with every option: they succeed, silently.

The noise has a rate of 100,000 or more: a count strays from the truth by 1 with a probability below
e^-10000. So the counts tell that no good row was lost and that no row became two.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import cautions
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.transforms.io.read_rows import ReadRows
from tests.hostile import support
from tests.hostile.inserted import folders, layouts, watch

DAYS = ("1", "2", "3")
EACH = folders.GOOD // len(DAYS)
INSERTED = 90
MANY = dp.Budget(1e6)
PUBLIC = dp.PublicPartitions([1, 2, 3])
TOLD = f"warning: PrivateAggregate: {cautions(MANY)[0]}\n"
TIERS = [0.5, 1.0]


def preprocessed(statistic: Metric, **options: Any) -> beam.PTransform:
    return dp.PreprocessSensitivity(
        statistic, "person", partition=["day"], partitions=PUBLIC, **options
    )


OPTIONS: dict[str, Callable[[], beam.PTransform]] = {
    "metrics": lambda: dp.PrivateAggregate(
        "person",
        [dp.Count(), dp.PeopleCount(), dp.Sum("value"), dp.Max("time"), dp.Median("mark")],
        MANY, ["day"], partitions=PUBLIC),
    "several owners": lambda: dp.PrivateAggregate(
        ["person", "other", "day"], [dp.Count(), dp.Sum("value"), dp.DistinctCount("item")],
        MANY, ["day"], partitions=PUBLIC),
    "compared items": lambda: dp.PrivateAggregate(
        "person", [dp.DistinctCount("item"), dp.MaxFrequency("item"), dp.Ratio("flag", equals="yes", per="person")],
        MANY, ["day"], partitions=PUBLIC),
    "the largest row": lambda: preprocessed(
        dp.Variance("value"), budget=MANY, person_value="max"),
    "an epsilon for each person": lambda: preprocessed(
        dp.Sum("value"), budget=dp.Budget(1), person_epsilon="epsilon", epsilons=TIERS, sensitivity=100),
}  # fmt: skip


def read(pattern: str) -> ReadRows:
    numbers = ["value", "mark", "time", "epsilon"]
    return ReadRows(pattern, layouts.NAMES, [name for name in layouts.NAMES if name in numbers])


def released(pattern: str, transform: beam.PTransform) -> dict[Any, Any]:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        seen = support.keep(pipeline | read(pattern) | transform)
    return {row.day: row for row in seen}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "extension",
    [
        pytest.param(name, marks=[] if name == "csv" else pytest.mark.audit)
        for name in folders.FORMATS
    ],
)
@pytest.mark.parametrize("option", OPTIONS)
def test_pipelines_with_every_option(option: str, extension: str, tmp_path: Path) -> None:
    pattern = folders.write(tmp_path, extension, random.Random(f"{option} {extension}"), INSERTED)
    with watch.watching() as heard:
        found = released(pattern, OPTIONS[option]())
        assert heard.heard() in ("", TOLD)
    assert set(found) == {1, 2, 3}
    if option in ("metrics", "several owners"):
        counts = [row.count for row in found.values()]
        # Packings of several owners are below the truth by what few people carry.
        least = EACH if option == "metrics" else EACH // 2
        assert min(counts) >= least and sum(counts) <= folders.GOOD + INSERTED

"""The record in a pipeline: parameters and released numbers, and nothing else."""

import dataclasses
import datetime
import functools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.noise.noise_on_a_sum import JointNoise
from beam_dp.transforms import run_record
from beam_dp.transforms.stages import guards

CANARY = "canary-5c1e"
METRICS = [dp.Count(), dp.Sum("spent"), dp.PeopleCount()]
BUDGET = dp.Budget(1.0, 1e-6)
ROWS = [
    {"who": f"{CANARY}-{person}", "day": day, "spent": 765_432.5, "also": CANARY}
    for person in range(60)
    for day in (1, 2)
]


def release_of(**options: Any) -> dp.PrivateAggregate:
    fields: dict[str, Any] = {"partitions": dp.PublicPartitions([1, 2, 3]), **options}
    bounds = dp.ContributionBounds(2)
    return dp.PrivateAggregate("who", METRICS, BUDGET, ["day"], bounds, **fields)


def recorded(path: Path, rows: list[dict[str, Any]] = ROWS, **options: Any) -> dict[str, Any]:
    """Run a release that writes a file, and return the record beside it."""
    release = release_of(**options)
    with beam.Pipeline("FnApiRunner") as p:
        released = p | beam.Create(rows) | release
        record = release.record({"program": "test", "epsilon": Fraction(1, 3)})
        _ = released | dp.WriteRows(str(path), record=record)
    content: dict[str, Any] = json.loads(Path(f"{path}.json").read_text())
    return content


def test_it_stands_beside_the_file_and_holds_no_data(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    record = recorded(path, batches=True)
    text = Path(f"{path}.json").read_text()
    assert CANARY not in text and "765432" not in text
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.csv", "out.csv.json"]
    assert record["parameters"]["partition"] == ["day"]
    assert record["parameters"]["partitions"] == {"type": "PublicPartitions", "keys": 3}
    assert record["parameters"]["budget"]["epsilon"] == record["budget"]["epsilon"] == "1"
    assert record["job"] == {"program": "test", "epsilon": "1/3"}
    assert [release["metric"] for release in record["releases"]] == [m.output for m in METRICS]
    [count, total, _] = record["releases"]
    for release in (count, total):
        assert len(release["clip"]["clips"]) <= 1  # none where nobody was shown
    assert set(record["versions"]) >= {"python", "apache-beam", "numpy", "pyarrow"}


def test_all_who_are_protected_are_named() -> None:
    """Rows of several owners: the record, and so the page, must not name the first one alone."""
    several = dp.PrivateAggregate(["who", "by"], [dp.Count()], dp.Budget(1.0))
    assert run_record.facts(several, None)["parameters"]["person"] == ["who", "by"]
    again = dataclasses.replace(several, metrics=[dp.Count()], budget=dp.Budget(0.5))
    assert run_record.facts(again, None)["parameters"]["person"] == ["who", "by"]
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    known = run_record.facts(release_of(), None)
    assert known["parameters"]["person"] == "who"  # and its date is that of building
    assert before <= datetime.datetime.fromisoformat(known["date"])
    loss = dp.RemovalLoss(dp.Sum("spent"), ["who", "by"])
    assert loss.person == ("who", "by") and dp.RemovalLoss(dp.Count(), "who").person == "who"


def test_it_does_not_tell_no_row_from_one(tmp_path: Path) -> None:
    """The one row's partition is selected with a chance of 1e-13, and the test fails."""
    budget = dp.Budget(1.0, 1e-13)
    records = []
    for rows in [], ROWS[:1]:
        release = dp.PrivateAggregate("who", [dp.Count(), dp.Median("spent")], budget, ["day"])
        with beam.Pipeline("FnApiRunner") as p:
            released = p | beam.Create(rows) | release
            path = str(tmp_path / f"{len(rows)}.csv")
            _ = released | dp.WriteRows(path, record=release.record())
        records.append(json.loads(Path(f"{path}.json").read_text()))
    for name in "spent", "composition", "partitions_of_one_person":
        none, one = (record[name] for record in records)
        assert none == one
    none, one = ([r["mechanism"] for r in record["releases"]] for record in records)
    assert none == one and records[0]["releases"][0]["clip"]["clips"] == []
    assert all(record["selection"].startswith("a partition with ") for record in records)


@dataclasses.dataclass
class Point:
    x: float
    y: Any


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Fraction(1, 3), "1/3"),
        (math.inf, "inf"),
        ((1, ["a"]), [1, ["a"]]),
        (Point(1.0, (2,)), {"type": "Point", "x": 1.0, "y": [2]}),
        (math.sqrt, "math:sqrt"),
        (functools.partial(print), "functools:partial"),
        (dp.Budget.zcdp(0.5), {"rho": "1/2", "delta": "0"}),
        (dp.PublicPartitions(range(1000)), {"type": "PublicPartitions", "keys": 1000}),
        (np.ones(3), "ndarray"),
    ],
)
def test_parameters_become_plain_values(value: object, expected: object) -> None:
    found = run_record.json_value(value)
    assert found == expected and type(found) is type(expected)
    json.dumps(found, allow_nan=False)


def test_runners_that_compute_again_read_it_from_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On Spark and Flink all that was drawn is a side input: the record reads the same one.
    monkeypatch.setattr(guards, "RECOMPUTING", ("FnApiRunner",))
    record = recorded(tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert len(lines) == 4 and len(record["releases"]) == 3


def test_the_record_says_where_nobody_was_clipped() -> None:
    # Of 3,000 people in two of three partitions each, one draw for all three errs least.
    keys = [(n + n // 3000) % 3 for n in range(6000)]
    table = pa.table({"who": [*range(3000)] * 2, "k": keys})
    found = dp.release(
        table,
        person="who",
        metrics=[dp.PeopleCount()],
        partition=["k"],
        partitions=dp.PublicPartitions(range(3)),
        budget=dp.Budget(1.0),
    )
    [told] = found.record["releases"]
    clip, cost = told["clip"], Fraction(told["clip"]["cost_of_the_noise"])
    assert told["mechanism"] == "joint noise for 3 numbers, nobody clipped"
    assert (clip["clips"], clip["norm"]) == ([], "none")
    assert told["noise_scale"] == f"{clip['noise_scales'][0]:.4g}"
    noise = dataclasses.replace(JointNoise(dp.Budget(cost), (False,)), partitions=3)
    assert clip["noise_scales"] == [pytest.approx(noise.scale(0), rel=1e-6)]


def test_the_clips_are_those_of_the_released_numbers(tmp_path: Path) -> None:
    # Each of 60 people spends 765,432.5: far above epsilon 1000 they are all there, in one bucket.
    release = dp.PrivateAggregate("who", [dp.Sum("spent")], dp.Budget(1000.0))
    with beam.Pipeline("FnApiRunner") as p:
        released = p | beam.Create(ROWS[::2]) | release
        _ = released | dp.WriteRows(str(tmp_path / "out.jsonl"), record=release.record())
    [row] = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    [told] = json.loads((tmp_path / "out.jsonl.json").read_text())["releases"]
    [clip], [scale] = told["clip"]["clips"], told["clip"]["noise_scales"]
    assert clip / 2 < 765_432.5 <= clip
    assert scale == pytest.approx(clip / float(Fraction(told["clip"]["cost_of_the_noise"])))
    # P(|noise| > 50 scales) = e^-50.
    assert abs(row["sum_spent"] - 60 * 765_432.5) <= 50 * scale
    for histogram in told["clip"]["histograms"]:
        edges = [0, *histogram["people_up_to"]]
        places = [i for i, edge in enumerate(edges[1:]) if edges[i] < 765_432.5 <= edge]
        # The noise has a rate of 50 at least: it is 0 but for a chance of e^-50.
        assert histogram["noisy_people"][0][places[0]] == 60

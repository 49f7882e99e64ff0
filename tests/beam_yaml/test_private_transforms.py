"""Pipelines of Beam YAML release what the same Python call does."""

import csv
import datetime
import functools
import json
import re
import runpy
import sys
import traceback
from decimal import Decimal
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import yaml

from beam_dp.beam_yaml import PROVIDERS, private_transforms

PIPELINE = """
pipeline:
  type: composite
  transforms:
    - type: ReadFromCsv
      name: Visits
      config: {path: visits.csv}
    - type: PrivateAggregate
      name: Named
      input: Visits
      config:
        person: visitor_id
        partition: day
        metrics: [people_count, {sum: spent, clip: 10}]
        budget: {epsilon: 5}
        partitions: [1, 2, 9]
    - type: PrivateAggregate
      name: Chosen
      input: Visits
      config:
        person: visitor_id
        partition: [day]
        metrics: [people_count]
        budget: {epsilon: 5, delta: 1e-6}
        bounds: {partitions: 3}
    - type: PrivateAggregate
      name: Several
      input: Visits
      config:
        person: visitor_id
        partition: [day, half]
        metrics: [count, {sum: spent}]
        budget: {epsilon: 9, delta: 1e-6}
        also_by: [day, {partition: total, weight: 2}]
    - {type: WriteToJson, name: A, input: Named, config: {path: a.json, num_shards: 1}}
    - {type: WriteToJson, name: B, input: Chosen, config: {path: b.json, num_shards: 1}}
    - {type: WriteToJson, name: C, input: Several.first, config: {path: c.json, num_shards: 1}}
    - {type: WriteToJson, name: D, input: Several.by_day, config: {path: d.json, num_shards: 1}}
    - {type: WriteToJson, name: E, input: Several.total, config: {path: e.json, num_shards: 1}}
providers:
  - include: PROVIDERS
""".replace("PROVIDERS", PROVIDERS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where 600 people have a row on each of three days, and a pipeline is."""
    monkeypatch.chdir(tmp_path)
    with Path("visits.csv").open("w", newline="") as file:
        written = csv.writer(file)
        written.writerow(["visitor_id", "day", "spent", "half"])
        for at in range(1800):
            written.writerow([f"v{at // 3}", at % 3 + 1, 2, "ab"[at % 2]])
    Path("pipeline.yaml").write_text(PIPELINE)
    return tmp_path


def rows(name: str) -> list[dict[str, Any]]:
    [path] = Path().glob(f"{name}.json*")
    return sorted(map(json.loads, path.read_text().splitlines()), key=str)


def test_the_transforms_of_the_provider_file_run_and_their_tables_agree(folder, monkeypatch):
    """A day of 600 people is not selected with a chance below e^-70."""
    words = ["main", "--yaml_pipeline_file=pipeline.yaml", "--runner=FnApiRunner"]
    monkeypatch.setattr(sys, "argv", words)
    runpy.run_module("apache_beam.yaml.main", run_name="__main__")
    found = rows("a")
    assert [row["day"] for row in found] == [1, 2, 9]
    # Scales are 3 / 2.5 and 10 times that: 40 and 400 are strayed from with e^-33.
    for row, people in zip(found, (600, 600, 0), strict=True):
        assert abs(row["people_count"] - people) < 40
        assert abs(row["sum_spent"] - 2 * people) < 400
        assert row["sum_spent_low"] < row["sum_spent"] < row["sum_spent_high"]
    assert [row["day"] for row in rows("b")] == ["1", "2", "3"]
    cells, days, [total] = (rows(name) for name in "cde")
    listed = [day for day in days if not day["is_other"]]
    assert [(day["day"], day["is_other"]) for day in days] == [
        *((str(day), False) for day in (1, 2, 3)), (None, True),
    ]  # fmt: skip
    for name in ("count", "sum_spent"):
        exact = {day["day"]: Decimal(str(day[name])) for day in days}
        assert sum(exact.values()) == Decimal(str(total[name]))
        for day in listed:
            parts = [Decimal(str(c[name])) for c in cells if c["day"] == day["day"]]
            assert sum(parts) == exact[day["day"]]


def test_the_provider_file_ships_and_names_what_there_is(capsys):
    runpy.run_module("beam_dp.beam_yaml", run_name="__main__")
    [provider] = yaml.safe_load(Path(capsys.readouterr().out.strip()).read_text())
    for name, place in provider["transforms"].items():
        assert place == f"beam_dp.beam_yaml.private_transforms.{place.rpartition('.')[2]}"
        assert hasattr(private_transforms, place.rpartition(".")[2]), name
    assert set(provider["transforms"]) == {"PrivateAggregate"}
    setup = (Path(__file__).parents[2] / "setup.py").read_text()
    assert '"beam_dp.beam_yaml": ["*.yaml"]' in setup


def test_keys_of_unknown_types_become_text():
    row = beam.Row(a=1, b=None, c=datetime.date(2020, 1, 2), count=3.5)
    found = private_transforms.with_text(row, ["a", "b", "c"])
    assert found == beam.Row(a="1", b=None, c="2020-01-02", count=3.5)


def test_a_misspelt_part_is_told_with_the_right_one(folder, monkeypatch):
    Path("pipeline.yaml").write_text(PIPELINE.replace("partition: day\n", "partition_keys: day\n"))
    monkeypatch.setattr(sys, "argv", ["main", "--yaml_pipeline_file=pipeline.yaml"])
    with pytest.raises(ValueError) as failed:
        runpy.run_module("apache_beam.yaml.main", run_name="__main__")
    said = "".join(traceback.format_exception(failed.value))
    assert "not have the word 'partition_keys'. Did you mean partitions or partition?" in said


def test_totals_may_be_apart_and_words_are_checked():
    asked = functools.partial(
        private_transforms.private_aggregate, "p", ["count"], {"epsilon": 1}, also_by=["total"]
    )
    apart = asked(partition="day", partitions=[1, 2], totals="apart")
    assert apart.run.agreeing == [] and len(apart.run.tables) == 2
    for word, said in {
        "query": "Write select: SELECT ",
        "foo": "It has .* select, .* totals",
    }.items():
        with pytest.raises(ValueError, match=said):
            asked(**{word: "SELECT 1"})
    with pytest.raises(ValueError, match="totals must be one of agree, apart"):
        asked(partition="day", partitions=[1, 2], totals="no")
    with pytest.raises(ValueError, match="Did you mean weight"):
        asked(partition="day", partitions=[1, 2], also_by=[{"partition": "total", "weigth": 2}])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"person": 3}, "person must be a list of column names, not 3"),
        ({"person": [["who"]]}, "person must be the name of a column"),
        ({"period": {"a": 1}}, "period must be the name of a column"),
        ({"select": {"a": 1}}, "statement must be SQL, not {'a': 1}. Write SELECT"),
    ],
)
def test_what_is_said_beside_a_select_is_checked_first(given: dict[str, Any], said: str) -> None:
    asked = {"person": "who", "budget": {"epsilon": 1}, "select": "SELECT count(*) FROM rows"}
    with pytest.raises(TypeError, match=f"^PrivateAggregate: {re.escape(said)}"):
        private_transforms.private_aggregate(**{**asked, **given})

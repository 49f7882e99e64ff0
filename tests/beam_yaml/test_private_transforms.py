"""Pipelines of Beam YAML release what the same Python call does."""

import csv
import datetime
import json
import runpy
import subprocess
import sys
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
    - {type: WriteToJson, name: A, input: Named, config: {path: a.json, num_shards: 1}}
    - {type: WriteToJson, name: B, input: Chosen, config: {path: b.json, num_shards: 1}}
providers:
  - include: PROVIDERS
""".replace("PROVIDERS", PROVIDERS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where 600 people have a row on each of three days, and a pipeline is."""
    monkeypatch.chdir(tmp_path)
    with Path("visits.csv").open("w", newline="") as file:
        written = csv.writer(file)
        written.writerow(["visitor_id", "day", "spent"])
        for person in range(600):
            written.writerows([f"v{person}", day, 2] for day in (1, 2, 3))
    Path("pipeline.yaml").write_text(PIPELINE)
    return tmp_path


def rows(name: str) -> list[dict[str, Any]]:
    [path] = Path().glob(f"{name}.json*")
    return sorted(map(json.loads, path.read_text().splitlines()), key=str)


def test_the_transforms_of_the_provider_file_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_provider_file_ships_and_names_what_there_is() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "beam_dp.beam_yaml"], check=True, capture_output=True, text=True
    )
    [provider] = yaml.safe_load(Path(told.stdout.strip()).read_text())
    for name, place in provider["transforms"].items():
        assert place == f"beam_dp.beam_yaml.private_transforms.{place.rpartition('.')[2]}"
        assert hasattr(private_transforms, place.rpartition(".")[2]), name
    assert set(provider["transforms"]) == {"PrivateAggregate"}
    setup = (Path(__file__).parents[2] / "setup.py").read_text()
    assert '"beam_dp.beam_yaml": ["*.yaml"]' in setup


def test_keys_of_unknown_types_become_text() -> None:
    row = beam.Row(a=1, c=datetime.date(2020, 1, 2), count=3.5)
    found = private_transforms.with_text(row, ["a", "c"])
    assert found == beam.Row(a="1", c="2020-01-02", count=3.5)


def test_a_misspelt_part_is_told_with_the_right_one(folder: Path) -> None:
    Path("pipeline.yaml").write_text(PIPELINE.replace("partition: day", "partition_keys: day"))
    words = [sys.executable, "-m", "apache_beam.yaml.main", "--yaml_pipeline_file=pipeline.yaml"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert (
        "not have the word 'partition_keys'. Did you mean partitions or partition?" in done.stderr
    )


def test_a_further_table_is_another_transform() -> None:
    said = "also_by must be left out: a transform releases one table. Write one PrivateAggregate"
    with pytest.raises(ValueError, match=said):
        private_transforms.private_aggregate("p", ["count"], {"epsilon": 1}, also_by=["total"])

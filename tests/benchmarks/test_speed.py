"""The tables of speed: what each runs, and one of them from beginning to end."""

import csv
import importlib.util
import json
import os
from pathlib import Path

import pytest

from benchmarks import __main__ as everything
from benchmarks import data, ours, speed
from benchmarks.data import Shape

ROOT = Path(__file__).parents[2]


def test_a_table_from_beginning_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    speed.main(["--growth", "1,2", "--rounds", "1", "--scale", "0.001"])
    lines = capsys.readouterr().out.splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| beam_dp")]
    assert lines[0] == "### Growth with the rows"
    assert [line[:2] for line in cells] == [["beam_dp", "1,000"], ["beam_dp", "2,000"]]
    assert all(line[-1].startswith("partitions 1000, counted ") for line in cells)
    assert lines[-2].startswith("Seconds per further million rows")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return data.write(Shape(rows=3000, people=100, partitions=5), tmp_path / "rows.parquet")


@pytest.mark.parametrize("public", [5, 0])
def test_the_library_is_run_as_a_contestant(
    small: Path, public: int, capsys: pytest.CaptureFixture[str]
) -> None:
    output = small.with_suffix(".csv")
    ours.main(["--input", str(small), "--output", str(output), "--public", str(public)])
    result = json.loads(capsys.readouterr().out)
    with output.open(newline="") as file:
        lines = list(csv.reader(file))[1:]
    assert result["partitions"] == len(lines)
    assert set(result) == {"partitions", "counted", "seconds"} and result["seconds"] > 0
    assert {line[0] for line in lines} <= set("01234")
    assert public == 0 or len(lines) == 5


def counted(module: object, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Assert that every way keeps at most 3 of 5 partitions of each person, and all that have 3."""
    for way in module.WAYS:
        output = small.with_suffix(".csv")
        module.main(["--input", str(small), "--output", str(output), "--max_partitions", "5"])
        whole = json.loads(capsys.readouterr().out)
        module.main(["--input", str(small), "--output", str(output), "--way", way])
        found = json.loads(capsys.readouterr().out)
        assert whole["partitions"] == found["partitions"] == 5 and whole["counted"] == 3000
        assert 0.4 * 3000 < found["counted"] < 3000


def test_everything_is_every_program_that_prints_a_table() -> None:
    run = {words[0] for words in everything.commands([])}
    assert run == {*everything.PROGRAMS} - {"data", "faults"}
    for name in everything.PROGRAMS:
        assert importlib.util.find_spec(f"benchmarks.{name}")
    assert everything.commands(["--scale", "1"])[0] == ["speed", "--all", "--scale", "1"]
    assert everything.commands(["speed", "--heavy"]) == [["speed", "--heavy"]]

"""The tables of speed: what each runs, and one of them from beginning to end."""

import csv
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as everything
from benchmarks import data, ours, speed
from benchmarks.data import Shape
from benchmarks.measure import Contestant

ROOT = Path(__file__).parents[2]
PEERS = {
    "polars": "polars_bounded",
    "duckdb": "duckdb_bounded",
    "pipeline_dp": "pipelinedp_beam",
}
MISSING = [name for name in PEERS if importlib.util.find_spec(name) is None]


def made(name: str) -> list[speed.Table]:
    """Return the tables of a part, with all its numbers."""
    _, some, make = speed.PARTS[name]
    return list(make(*([] if some is None else [some])))


class Recorder(speed.Bench):
    """Runs nothing; keeps the tables."""

    def show(self, asked: speed.Table) -> None:
        shown.append(asked)


shown: list[speed.Table] = []


@pytest.mark.parametrize("name", speed.PARTS)
def test_every_part_compares_processes_on_files(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def file(rows: int, *options: str) -> str:
        return data.shape_of(["--rows", str(rows), *options])[0].name

    monkeypatch.setattr(speed, "data_file", file)
    bench = speed.Bench(1, 1.0, "peers-python", tmp_path / "released.csv")
    for table in made(name):
        assert 0 < table.references < len(table.lines)
        for line in table.lines:
            python, minus_m, module, *options = bench.contestant(line, True).command
            assert python == ("peers-python" if "peers" in module else sys.executable)
            assert minus_m == "-m" and importlib.util.find_spec(module) is not None
            assert str(bench.output) in options and f"rows{line.millions * 10**6}" in str(options)


def test_a_table_may_be_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "Bench", Recorder)
    shown.clear()
    speed.main(["--growth", "1,10", "--partitions", "10"])
    growing, partitions = shown
    assert [one.millions for one in growing.lines] == [1, 10] and growing.slopes
    assert [one.name for one in partitions.lines] == [
        "beam_dp, 10 partitions, public", "beam_dp, 10 partitions, selected"
    ]  # fmt: skip
    shown.clear()
    speed.main(["--growth"])
    assert len(shown) == 1 and len(shown[0].lines) == 5
    shown.clear()
    speed.main(["--all"])
    every = [table for name in speed.PARTS if name != "sizes" for table in made(name)]
    assert [table.title for table in shown] == [table.title for table in every]


def test_a_billion_rows_are_run_once_and_peers_may_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(speed, "data_file", lambda *_: "rows")
    bench = speed.Bench(1, 1.0, "python", tmp_path)
    tables = made("sizes")
    assert [len(table.lines) for table in tables] == [6, 6, 5, 5]
    for table in tables:
        found = [bench.contestant(line, table.may_fail) for line in table.lines]
        assert table.references == 4 and len({one.rows for one in found}) == 1
        assert [one.may_fail for one in found] == [True] * (len(found) - 1) + [False]
        large = found[0].rows > 10**8
        once = [large or one.name.startswith("PipelineDP") for one in found]
        assert [one.once for one in found] == once


def test_a_table_whose_peers_all_failed_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Contestant("lost", [sys.executable, "-c", "raise MemoryError"], 1, True, True)
    found = {"lost": lost, "ours": Contestant("ours", [sys.executable, "-c", "pass"], 1, once=True)}
    monkeypatch.setattr(speed.Bench, "contestant", lambda self, line, may_fail: found[line.name])
    bench = speed.Bench(2, 1.0, sys.executable, tmp_path / "released.csv")
    bench.show(speed.Table("Lost", [speed.Line("lost", 1), speed.Line("ours", 1)]))
    lines = capsys.readouterr().out.splitlines()
    assert "failed, with code 1" in lines[4] and " 1.00 | " in lines[5]


def test_a_part_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        speed.main([])
    assert "name a part: --all or any of --growth" in capsys.readouterr().err


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


def bounded(module: object, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Assert that every way keeps at most 3 of 5 partitions of each of 100 people, and says so."""
    for way in module.WAYS:
        output = small.with_suffix(".csv")
        module.main(["--input", str(small), "--output", str(output), "--way", way])
        assert json.loads(capsys.readouterr().out)["partitions"] == 5
        groups = module.grouped(str(small))
        kept = module.WAYS[way](groups, 3).collect()
        sizes = kept.group_by("person").len()["len"].to_list()
        whole = groups.collect().group_by("person").len()["len"].to_list()
        assert sorted(sizes) == sorted(min(size, 3) for size in whole)


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


def private(module: object, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Assert that the peer releases every public partition."""
    output = small.with_suffix(".csv")
    module.main(["--input", str(small), "--output", str(output), "--public", "5"])
    assert json.loads(capsys.readouterr().out)["partitions"] == 5


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_runs_or_says_how_to_install_it(
    name: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = f"benchmarks.peers.{PEERS[name]}"
    if name in MISSING:
        with pytest.raises(SystemExit) as stopped:
            importlib.import_module(module)
        line = str(stopped.value.code)
        assert line.startswith(f"{name} is not here: python -m pip install --editable '.[bench]'")
        assert "--peer_python" in line
    else:
        check = {"polars": bounded, "duckdb": counted}.get(name, private)
        check(importlib.import_module(module), small, capsys)


def test_a_missing_peer_ends_the_benchmark_in_words(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = [sys.executable, "-c", "from benchmarks import peers; peers.imported('no_such_peer')"]
    monkeypatch.chdir(ROOT)
    contestant = Contestant("lost", lost, 1)
    monkeypatch.setattr(speed.Bench, "contestant", lambda *_: contestant)
    with pytest.raises(SystemExit) as stopped:
        speed.main(["--uuid"])
    assert str(stopped.value.code).strip().splitlines()[-1].startswith("no_such_peer is not here: ")


def test_everything_is_every_program_that_prints_a_table() -> None:
    run = {words[0] for words in everything.commands([])}
    assert run == {*everything.PROGRAMS} - {"data", "faults"}
    for name in everything.PROGRAMS:
        assert importlib.util.find_spec(f"benchmarks.{name}")
    assert everything.commands(["--scale", "1"])[0] == ["speed", "--all", "--scale", "1"]
    assert everything.commands(["speed", "--heavy"]) == [["speed", "--heavy"]]

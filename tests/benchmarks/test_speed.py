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
from benchmarks.measure import Contestant, Run

ROOT = Path(__file__).parents[2]
PEERS = {
    "polars": "polars_bounded",
    "duckdb": "duckdb_bounded",
    "pipeline_dp": "pipelinedp_beam",
}
MISSING = [name for name in PEERS if importlib.util.find_spec(name) is None]


class Recorder(speed.Bench):
    """Runs nothing; keeps the contestants, and the shapes of the files they would read."""

    def file(self, rows: int, *options: str) -> tuple[str, int]:
        arguments = vars(data.parser().parse_args(["--rows", str(rows), *options]))
        arguments.pop("output")
        return Shape(**arguments).name, rows

    def show(self, title: str, contestants: list[Contestant], first: int = 1) -> None:
        for contestant in contestants:
            contestant.runs = [Run(contestant.rows / 1e6, 1.0, 1, {})]
        shown.append((title, contestants, first))


shown: list[tuple[str, list[Contestant], int]] = []


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    shown.clear()
    return Recorder(1, 1.0, "peers-python", tmp_path / "released.csv")


@pytest.mark.parametrize("name", speed.PARTS)
def test_every_part_compares_processes_on_files(name: str, recorder: Recorder) -> None:
    speed.PARTS[name](recorder)
    assert shown
    for _, contestants, first in shown:
        names = [contestant.name for contestant in contestants]
        assert 0 < first < len(names) and len(set(names)) >= len(names) - 5
        for contestant in contestants:
            python, minus_m, module, *options = contestant.command
            assert python == ("peers-python" if "peers" in module else sys.executable)
            assert minus_m == "-m" and importlib.util.find_spec(module) is not None
            assert options[0] == "--input" and options[2:4] == ["--output", str(recorder.output)]


def test_growing_tables_have_a_process_for_each_line(recorder: Recorder) -> None:
    speed.growth(recorder)
    [(_, contestants, _)] = shown
    assert [one.rows for one in contestants] == [size * 10**6 for size in speed.GROWTH]
    shown.clear()
    speed.partitions(recorder)
    [(_, contestants, _)] = shown
    assert len({tuple(one.command) for one in contestants}) == 2 * len(speed.PARTITIONS)


def test_a_table_may_be_asked_for_in_parts(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speed, "Bench", Recorder)
    speed.main(["--growth", "1,10", "--partitions", "10"])
    (_, growing, _), (_, partitions, _) = shown
    assert [one.rows for one in growing] == [10**6, 10**7]
    assert [one.name for one in partitions] == [
        "beam_dp, 10 partitions, public", "beam_dp, 10 partitions, selected"
    ]  # fmt: skip
    assert "further million rows, from line to line: 1.000." in capsys.readouterr().out
    shown.clear()
    speed.main(["--growth"])
    assert len(shown) == 1 and len(shown[0][1]) == len(speed.GROWTH)


def test_a_billion_rows_are_run_once_and_peers_may_fail(recorder: Recorder) -> None:
    speed.sizes(recorder)
    assert [contestants[-1].rows for _, contestants, _ in shown] == [10**6, 10**7, 10**8, 10**9]
    assert [len(contestants) for _, contestants, _ in shown] == [6, 6, 5, 5]
    for _, contestants, first in shown:
        assert first == 4 and len({(one.command[4], one.rows) for one in contestants}) == 1
        assert [one.may_fail for one in contestants] == [True] * (len(contestants) - 1) + [False]
        large = contestants[0].rows > 10**8
        assert [one.once for one in contestants] == [
            large or one.name.startswith("PipelineDP") for one in contestants
        ]


def test_a_table_whose_peers_all_failed_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lost = [sys.executable, "-c", "raise MemoryError"]
    well = Contestant("ours", [sys.executable, "-c", "pass"], 1, once=True)
    bench = speed.Bench(2, 1.0, sys.executable, tmp_path / "released.csv")
    bench.show("Lost", [Contestant("lost", lost, 1, True, True), well], first=1)
    lines = capsys.readouterr().out.splitlines()
    assert "failed, with code 1" in lines[4] and " 1.00 | " in lines[5]


def test_everything_is_without_what_is_asked_for_by_name(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(
        speed, "PARTS", {name: lambda _, name=name: ran.append(name) for name in speed.PARTS}
    )
    speed.main(["--all"])
    assert set(ran) == set(speed.PARTS) - {"sizes"}
    ran.clear()
    speed.main(["--sizes"])
    assert ran == ["sizes"]


def test_one_person_has_all_rows_beside_many(recorder: Recorder) -> None:
    speed.heavy(recorder)
    [(_, contestants, _)] = shown
    files = [contestant.command[4] for contestant in contestants]
    assert [("people1_" in file, "partitions1000000_" in file) for file in files] == [
        (True, False), (False, False), (True, True), (False, True)
    ]  # fmt: skip
    assert all(one.rows == 10**7 for one in contestants)


def test_a_part_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        speed.main([])
    assert "name a part: --all or any of --polars" in capsys.readouterr().err


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


@pytest.mark.parametrize("rows_as", ["table", "dict"])
@pytest.mark.parametrize("public", [5, 0])
def test_the_library_is_run_as_a_contestant(
    small: Path, public: int, rows_as: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = small.with_suffix(".csv")
    words = ["--input", str(small), "--output", str(output), "--public", str(public)]
    ours.main([*words, "--rows_as", rows_as])
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
    monkeypatch.setitem(
        speed.PARTS, "dicts", lambda bench: bench.show("Lost", [Contestant("lost", lost, 1)])
    )
    with pytest.raises(SystemExit) as stopped:
        speed.main(["--dicts"])
    assert str(stopped.value.code).strip().splitlines()[-1].startswith("no_such_peer is not here: ")


OTHERS = [
    ["benchmarks.coverage"],
    ["benchmarks.coverage", "--statistics"],
    ["benchmarks.experts"],
    ["benchmarks.statistics"],
    ["benchmarks.statistics", "--accuracy"],
    ["benchmarks.together"],
    ["benchmarks.ratio"],
    ["benchmarks.ranks"],
    ["benchmarks.reach"],
    ["benchmarks.start"],
    ["benchmarks.preprocessing"],
    ["benchmarks.accuracy_preprocessing"],
]


def test_everything_is_every_program_that_prints_a_table() -> None:
    run = {words[0].removeprefix("benchmarks.") for words in everything.commands([])}
    assert run == {*everything.PROGRAMS} - {"data", "faults", "neighbours"}
    for name in everything.PROGRAMS:
        assert importlib.util.find_spec(f"benchmarks.{name}")


@pytest.mark.parametrize(
    ("words", "programs"),
    [
        ([], [["benchmarks.accuracy"], ["benchmarks.speed", "--all"], *OTHERS]),
        (
            ["--scale", "1"],
            [["benchmarks.accuracy"], ["benchmarks.speed", "--all", "--scale", "1"], *OTHERS],
        ),
        (["speed", "--heavy"], [["benchmarks.speed", "--heavy"]]),
        (["accuracy", "--runs", "9"], [["benchmarks.accuracy", "--runs", "9"]]),
    ],
)
def test_all_programs_or_one(words: list[str], programs: list[list[str]]) -> None:
    assert everything.commands(words) == programs

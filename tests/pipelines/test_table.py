"""The table that a job prints, and the page that it writes."""

import json
import sys
from pathlib import Path

import pytest

import beam_dp as dp
from pipelines import releasing, terminal

COLUMNS = {
    "keys": ["day"],
    "numbers": [["sum", "sum_low", "sum_high"], ["max", "max_low", "max_high"]],
}

CLIP = {"clips": [67.108864], "noise_scales": [1_078.2, 13_421_772.8]}


@pytest.fixture
def released(tmp_path: Path) -> str:
    path = tmp_path / "out.csv"
    path.write_text(
        "day,sum,sum_low,sum_high,max,max_low,max_high\n東,100.0,80.0,120.5,nan,-inf,inf\n"
    )
    record = {"columns": COLUMNS, "budget": {"epsilon": "1", "delta": "0"}}
    Path(f"{path}.json").write_text(json.dumps(record))
    return str(path)


def test_it_is_printed_whole_where_there_is_no_terminal(
    released: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(releasing.show(released).table) == 1
    heading, row, *remarks = capsys.readouterr().out.splitlines()
    assert heading.split() == ["day", "sum", "max"] and "100.0 [80.0, 120.5]" in row
    assert remarks[0].startswith("* 1 of 2 numbers")


def test_the_noise_and_the_cost_are_told(
    released: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = [
        {"metric": "count", "noise_scale": "16 clips", "clip": CLIP, "expected_error": "9"},
        {"metric": "people", "noise_scale": "16", "expected_error": "9"},
        {"metric": "max", "noise_scale": "-", "shift_T": 9, "expected_error": "at most 9 people"},
    ]
    cost = "epsilon 3, one person in at most 4 partitions"
    told = {"releases": releases, "composition": cost, "partitions_chosen": {"steps": [1, 4]}}
    record = Path(f"{released}.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), **told}))
    releasing.show(released)
    said = capsys.readouterr().out.splitlines()[-2:]
    noise = "count: clip 67.1, noise 1,080 or 13,400,000; people: noise 16; max: at most 9 people"
    assert said == [noise, f"in all: {cost}, chosen privately"]
    monkeypatch.setattr(terminal, "width", lambda: 50)
    releasing.show(released)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 50


def test_a_page_that_cannot_be_written_does_not_spoil_the_run(
    released: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: dp.Released, page: str) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dp.Released, "report", full)
    assert len(releasing.show(released, "page.html").table) == 1
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("report: not written, No space left on device; at no cost: dp.report('")


def test_a_terminal_without_the_signs_shows_their_numbers(
    released: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "said").open("w", encoding="ascii") as output:
        monkeypatch.setattr(sys, "stdout", output)
        releasing.show(released)
    assert "\\u6771" in (tmp_path / "said").read_text(encoding="ascii")

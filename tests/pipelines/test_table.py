"""The table that a job prints, and the page that it writes."""

import json
import sys
from pathlib import Path

import pytest

import beam_dp as dp
from pipelines import releasing, table, terminal

COLUMNS = {
    "keys": ["day"],
    "numbers": [["sum", "sum_low", "sum_high"], ["max", "max_low", "max_high"]],
}


@pytest.fixture
def released(tmp_path: Path) -> str:
    path = tmp_path / "out.csv"
    path.write_text(
        "day,sum,sum_low,sum_high,max,max_low,max_high\n東,100.0,80.0,120.5,nan,-inf,inf\n"
    )
    record = {"columns": COLUMNS, "budget": {"epsilon": "1", "delta": "0"}}
    Path(f"{path}.json").write_text(json.dumps(record))
    return str(path)


def test_it_is_printed_whole_where_there_is_no_terminal(released, capsys):
    assert len(releasing.show([released])[0].table) == 1
    heading, row, *remarks = capsys.readouterr().out.splitlines()
    assert heading.split() == ["day", "sum", "max"] and "100.0 [80.0, 120.5]" in row
    assert remarks[0].startswith("* 1 of 2 numbers")


def test_the_cost_is_told(released, capsys, monkeypatch):
    cost = "epsilon 3, one person in at most 4 partitions"
    told = {"composition": cost, "partitions_chosen": {"steps": [1, 4]}}
    record = Path(f"{released}.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), **told}))
    releasing.show([released])
    assert capsys.readouterr().out.splitlines()[-1] == f"in all: {cost}, chosen privately"
    monkeypatch.setattr(terminal, "width", lambda: 50)
    releasing.show([released])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 50


def test_a_page_that_cannot_be_written_does_not_spoil_the_run(released, capsys, monkeypatch):
    def full(self: dp.Released, page: str, **style: str) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dp.Released, "report", full)
    assert len(releasing.show([released], ["page.html"])[0].table) == 1
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith(
        "report: not written, No space left on device; at no cost: dp.Released.read('"
    )


def test_the_page_of_a_released_file_has_a_title_and_signs(released, tmp_path, capsys):
    path = tmp_path / "p.html"
    words = ["--report", str(path), "--title", "In all", "--number_style", "1.234,5"]
    assert table.main([released, *words]) == 0
    text = path.read_text(encoding="utf-8")
    assert "<h1>In all</h1>" in text and "100,0 [80,0; 120,5]" in text
    assert "100.0 [80.0, 120.5]" in capsys.readouterr().out


def test_a_terminal_without_the_signs_shows_their_numbers(released, monkeypatch, tmp_path):
    with (tmp_path / "said").open("w", encoding="ascii") as output:
        monkeypatch.setattr(sys, "stdout", output)
        releasing.show([released])
    assert "\\u6771" in (tmp_path / "said").read_text(encoding="ascii")

"""The table that a job prints, and the page that it writes."""

import json
import os
import sys
from pathlib import Path

import pytest

from pipelines import table

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


def test_it_is_printed_whole_where_there_is_no_terminal(
    released: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = table.show(released, COLUMNS)
    heading, row, *remarks = capsys.readouterr().out.splitlines()
    assert heading.split() == ["day", "sum", "max"] and "100.0 [80.0, 120.5]" in row
    assert remarks == shown.remarks and remarks[0].startswith("* 1 of 2 numbers")
    assert remarks[0].endswith("--plan --people N says what to expect")


def test_it_is_cut_to_the_terminal(
    released: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((26, 10)))
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1)
    table.show(released, COLUMNS)
    said = capsys.readouterr().out
    assert said.splitlines()[0].split() == ["day", "sum"]
    assert "1 more number per row (max)" in " ".join(said.split())


def test_a_page_is_written_and_named(released: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = released.replace("out.csv", "page.html")
    table.show(released, COLUMNS, page)
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {page}"
    assert "<svg" in Path(page).read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_does_not_spoil_the_run(
    released: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, page: str) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(table, "report", full)
    assert table.show(released, COLUMNS, "page.html").rows == 1
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("report: not written, No space left on device; at no cost: dp.report('")


def test_a_terminal_without_the_signs_shows_their_numbers(
    released: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "said").open("w", encoding="ascii") as output:
        monkeypatch.setattr(sys, "stdout", output)
        table.show(released, COLUMNS)
    assert "\\u6771" in (tmp_path / "said").read_text(encoding="ascii")

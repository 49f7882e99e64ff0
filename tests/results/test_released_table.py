"""A released table with its record, read back from the file of a job."""

import json
from pathlib import Path

import pandas as pd
import pytest

import beam_dp as dp
from tests.results.releases import HOSTILE_KEYS, made


def test_a_released_file_becomes_a_table_with_its_record(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("day,count,count_low,count_high\r\n1,5,3.5,\r\n")
    columns = {"keys": ["day"], "numbers": [["count", "count_low", "count_high"]]}
    Path(f"{path}.json").write_text(json.dumps({"columns": columns, "budget": {"epsilon": "1"}}))
    released = dp.Released.read(path)
    assert released.record["budget"] == {"epsilon": "1"}
    row = {"day": "1", "count": 5, "count_low": 3.5, "count_high": None}
    assert released.table.to_pylist() == [row]
    assert isinstance(released.to_pandas(), pd.DataFrame)


def test_it_is_printed_rounded_with_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    released = dp.Released(*made(["a", "b"]))
    lines = str(released).splitlines()
    assert lines[0].split() == ["day", "sum_spent", "median_ms"]
    assert lines[1].split("  ")[-2:] == ["1,000 [799, 1,321]", "1,000 (rank ±73)"]
    assert max(map(len, lines[:-1])) <= 60 and lines[-1].startswith("in all: epsilon 1")


def test_a_notebook_shows_a_table_of_text() -> None:
    page = dp.Released(*made(HOSTILE_KEYS))._repr_html_()
    assert page.startswith("<table>") and "<script" not in page and "in all: epsilon 1" in page
    assert page.count("<tr>") == 7

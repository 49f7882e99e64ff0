"""The demonstration, at a hundredth of its size."""

import csv
import os
from pathlib import Path

import pytest

from pipelines import demo
from tests.pipelines.described import described

ROOT = Path(__file__).parents[2]


@pytest.mark.audit
def test_the_demo_releases_all_nations(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(demo, "SCALE", "0.001")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("COLUMNS")  # it is gone again after the test, whatever the demo sets
    assert demo.main([]) == 0
    with Path("build/released.csv").open(newline="") as file:
        released = [row["nation"] for row in csv.DictReader(file)]
    assert released == sorted(demo.nations()) and len(released) == 25
    said = capfd.readouterr().out
    assert "sum_o_totalprice" in said and "in all: epsilon 1" in said
    assert "median_o_totalprice" in said and "report: build/released.html" in said
    page = Path("build/released.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 2 and "UNITED KINGDOM" in page
    assert max(map(len, said.splitlines())) <= demo.WIDE


def test_a_maximum_is_of_use_at_the_size_of_the_demo():
    """25 nations with 4,000 customers each; a maximum needs ten times the people above it."""
    release = described(*demo.words([f"nation {place}" for place in range(25)])).release
    [shift] = [row.shift for row in release.plan().rows if row.metric.startswith("max_")]
    assert 0 < 20 * shift < 4000

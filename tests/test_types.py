"""What type checkers see of this package, for who installs it.

That the sources themselves are clean is the business of `make lint`.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

ROOT = Path(__file__).resolve().parents[1]
CALLS = """
import apache_beam as beam

import beam_dp as dp


def build(pipeline: beam.Pipeline) -> None:
    rows = pipeline | "Read" >> dp.ReadRows("visits.csv", ["visitor", "day", "minutes"])
    bounds, budget = dp.ContributionBounds(partitions=3), dp.Budget(epsilon=1.0, delta=1e-6)
    metrics = [dp.Count(), dp.Sum("minutes"), dp.Quantile("minutes", 0.9)]
    release = dp.PrivateAggregate("visitor", metrics, budget, ["day"], bounds=bounds)
    _ = rows | "Release" >> release | "Write" >> dp.WriteRows("released.csv")
    print(release.plan())


dp.Budget(epsilon="1")  # wrong
dp.PrivateAggregate("visitor", dp.Count(), dp.Budget(1))  # wrong
dp.PrivateAggregate("visitor", [dp.Count()], 1.0)  # wrong
dp.PrivateAggregate("visitor", [dp.Count()], dp.Budget(1), bounds=3)  # wrong
dp.Count(weight="two")  # wrong
"""


def test_an_installed_copy_says_that_it_has_types(monkeypatch):
    monkeypatch.chdir(ROOT)
    declared = re.search(
        r"package_data=(\{.*?\}),\n", (ROOT / "setup.py").read_text("utf-8"), re.DOTALL
    )
    assert declared is not None
    command = build_py(
        Distribution({"packages": ["beam_dp"], "package_data": ast.literal_eval(declared[1])})
    )
    command.ensure_finalized()
    [(_, _, _, files)] = command.data_files
    assert "py.typed" in files and {"results/report.html", "results/report.js"} <= set(files)


@pytest.mark.audit
def test_a_wrong_argument_is_found_and_a_right_one_is_not(tmp_path):
    (tmp_path / "calls.py").write_text(CALLS, encoding="utf-8")
    settings = f"[mypy]\nmypy_path = {ROOT}\nignore_missing_imports = true\n"
    (tmp_path / "mypy.ini").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "mypy.ini", "calls.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = re.findall(r"^calls\.py:(\d+): error", checked.stdout, re.MULTILINE)
    wrong = [n for n, line in enumerate(CALLS.splitlines(), 1) if line.endswith("# wrong")]
    assert sorted({int(number) for number in found}) == wrong, checked.stdout + checked.stderr

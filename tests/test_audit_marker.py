"""Exhaustive tests are left out by default, run by `make audit`, and run by the continuous check."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TWO = """
import pytest

def test_quick():
    pass

@pytest.mark.audit
def test_exhaustive():
    pass
"""


def options(target: str) -> list[str]:
    """Return what a target of the Makefile gives to pytest, but for the number of workers."""
    [line] = re.findall(rf"^{target}: .*\n\t.*-m pytest (.*)$", MAKEFILE, re.MULTILINE)
    return line.removeprefix("-n auto --dist worksteal").split()


@pytest.mark.parametrize(("target", "name"), [("test", "quick"), ("audit", "exhaustive")])
def test_each_target_runs_its_part_of_the_tests(tmp_path: Path, target: str, name: str) -> None:
    path = tmp_path / "test_two.py"
    path.write_text(TWO)
    words = ["-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider", "-v", *options(target), path]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *map(str, words)],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0
    assert re.findall(r"test_(\w+) PASSED", ran.stdout) == [name]


def test_the_continuous_check_runs_both() -> None:
    said = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert re.findall(r"make (\w+)$", said, re.MULTILINE) == ["lint", "test", "audit"]

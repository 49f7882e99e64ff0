"""Small visits in every format."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.row_files import read, write

DAYS, PEOPLE = (1, 2, 3), 200
# What only a Python programmer can make sense of: calls, classes and their parameters.
PYTHON = re.compile(r"\bdp\.|\w=\[|[A-Za-z]\w*\(|\bNone\b|Fraction|Error\b|^\w+: error: [A-Z]\w+: ")


@pytest.fixture(autouse=True)
def log() -> Iterator[None]:
    """A failed job that leaves threads keeps the log silent: give it back to the next test."""
    logging.disable(logging.NOTSET)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def refused(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return what calls a job that must end with the code 2 and one line, without Python: that."""

    def called(job: Any, *words: str) -> str:
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            job.main([*words])
        said = capfd.readouterr()
        start = f"python -m {job.__name__}: error: "
        assert stopped.value.code == 2 and said.out == "" and said.err.count("\n") == 1
        assert said.err.startswith(start) and not PYTHON.search(said.err.removeprefix(start))
        return said.err

    return called


@pytest.fixture
def rows() -> list[dict[str, object]]:
    """200 people with one visit of 30 minutes on each of three days."""
    return [
        {"visitor": f"visitor-{person}", "day": day, "minutes": 30, "spent": 1.5}
        for day in DAYS
        for person in range(PEOPLE)
    ]


@pytest.fixture
def visits(tmp_path: Path, rows: list[dict[str, object]]) -> str:
    """The visits as CSV."""
    return write(tmp_path / "visits.csv", rows)


@pytest.fixture
def released(visits: str, tmp_path: Path) -> Callable[..., list[dict[str, str]]]:
    """Return what runs a job on the visits, or on another file, and reads its output."""

    def called(job: Any, *words: str, source: str = visits) -> list[dict[str, str]]:
        out = str(tmp_path / "out.csv")
        files = ["--input", source, "--output", out, "--overwrite"]
        assert job.main([*files, *words, "--runner", "FnApiRunner"]) == 0
        return read(out)

    return called


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., list[str]]:
    """Return the words that name a file with a mapping."""

    def written(**given: Any) -> list[str]:
        path = tmp_path / "release.json"
        path.write_text(json.dumps(given))
        return ["--config", str(path)]

    return written

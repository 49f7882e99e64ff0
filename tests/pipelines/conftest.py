"""Small visits in every format."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.row_files import write

DAYS, PEOPLE = (1, 2, 3), 200


@pytest.fixture(autouse=True)
def log() -> Iterator[None]:
    """A failed job that leaves threads keeps the log silent: give it back to the next test."""
    logging.disable(logging.NOTSET)
    yield
    logging.disable(logging.NOTSET)


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
def config(tmp_path: Path) -> Callable[..., list[str]]:
    """Return the words that name a file with a mapping."""

    def written(**given: Any) -> list[str]:
        path = tmp_path / "release.json"
        path.write_text(json.dumps(given))
        return ["--config", str(path)]

    return written

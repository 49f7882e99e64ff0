"""Small visits in every format."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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


def write(path: Path, rows: list[dict[str, object]]) -> str:
    """Write rows in the format that the path names."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [list(rows[0]), *(row.values() for row in rows)]
        cells = [["" if cell is None else str(cell) for cell in line] for line in lines]
        path.write_text("".join(",".join(line) + "\n" for line in cells))
    return str(path)

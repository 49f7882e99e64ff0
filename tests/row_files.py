"""Rows written as files, in the format that a path names."""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    """Write rows as Parquet, JSON Lines or CSV (None as an empty cell), and return the path.

    The last two are compressed where the path ends in .gz.
    """
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
        return str(path)
    text = as_lines(rows) if ".jsonl" in path.suffixes else as_csv(rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def read(path: str | Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def as_lines(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as CSV, with a header."""
    made = io.StringIO()
    writer = csv.DictWriter(made, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return made.getvalue()

"""Read a released file back, with the record that stands beside it."""

import contextlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.io import csv_files, json_lines, parquet, table_files, whole_files
from beam_dp.transforms.run_record import COLUMNS

_WHOLE = re.compile(r"-?\d{1,18}")
EXTENSIONS = (".parquet", ".csv", ".jsonl")


def read(owner: str, path: str) -> tuple[pa.Table, dict[str, Any]]:
    """Return the table of a released file, and its record.

    The keys of a CSV file are text (without the quote in front of formulas), its numbers become
    floats; a number that is not known is null.

    Args:
        owner: the name that errors begin with.
        path: the file, local or on any file system that Beam knows.

    Raises:
        ValueError: for another extension, a file that is missing, and a record of another kind.
    """
    rule = f"end in {', '.join(EXTENSIONS)}, not {checks.shown(path)}"
    checks.require(path.endswith(EXTENSIONS), owner, "path", rule)
    beside = whole_files.beside(path)
    for name in (path, beside):
        mend = "A release by dp.release, WriteRows(path, record=...) or a job writes both files."
        checks.require(
            FileSystems.exists(name),
            owner,
            "path",
            f"name a released file with its record, and {name!r} is missing",
            mend,
        )
    with FileSystems.open(beside) as file:
        record = json.loads(file.read())
    checks.require(
        isinstance(record, dict) and COLUMNS in record,
        owner,
        "path",
        f"have the record of a released table beside it, and {beside!r} is none",
    )
    return table_of(path, record[COLUMNS]), record


def table_of(path: str, columns: dict[str, Any]) -> pa.Table:
    """Return the table of a released file.

    Args:
        path: the file.
        columns: what its record says of its columns.
    """
    keys = list(columns["keys"])
    numbers = [name for names in columns["numbers"] for name in names]
    rows = list(rows_of(path, [*keys, *numbers]))
    cells = list(zip(*rows, strict=True)) if rows else [() for _ in (*keys, *numbers)]
    named = table_files.unquoted if path.endswith(".csv") else table_files.plain
    listed = [pa.array(list(map(named, column))) for column in cells[: len(keys)]]
    listed += [_numbers(list(map(number, column))) for column in cells[len(keys) :]]
    return pa.Table.from_arrays(listed, names=[*keys, *numbers])


def _numbers(cells: list[float | None]) -> pa.Array:
    kinds = {type(cell) for cell in cells if cell is not None}
    return pa.array(cells, pa.int64() if kinds == {int} else pa.float64())


def number(cell: object) -> float | None:
    """Return a cell as a number, whole where it is written so; None where it is empty or NaN."""
    text = str(cell)
    with contextlib.suppress(ValueError):
        whole = _WHOLE.fullmatch(text) is not None
        value = int(text) if whole else float(text)
        return None if math.isnan(value) else value
    return None


def rows_of(path: str, names: Sequence[str]) -> Iterator[Sequence[object]]:
    """Yield the rows of a written file; the cells of a CSV file are text."""
    if path.endswith(".jsonl"):
        for row in json_lines.read_jsonl(path, path, names):
            yield list(row.values())
        return
    if path.endswith(".csv"):
        batches = csv_files.read_csv(path, path, names, ())
    else:
        parts = parquet.ranges([path], path, names)
        batches = (batch for part in parts for batch in parquet.read_parquet(part, path, names))
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

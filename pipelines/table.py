"""Print a released file as a table."""

import json
import re
import sys
from collections.abc import Iterator, Sequence

import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from beam_dp.transforms.io import csv_files, parquet

SHOWN = 50
_LONG = re.compile(r"-?\d+\.\d{4,}(e.*)?")


def show(path: str, names: Sequence[str]) -> None:
    """Print the first rows of a released file, aligned."""
    rows = [[_short(str(cell)) for cell in row] for row in rows_of(path, names)]
    table = [list(names), *rows[:SHOWN]]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells) + "\n")
    if len(rows) > SHOWN:
        sys.stdout.write(f"... and {len(rows) - SHOWN} more in {path}\n")


def _short(cell: str) -> str:
    if not _LONG.fullmatch(cell):
        return cell
    number = float(cell)
    return f"{number:.2f}" if 1 <= abs(number) < 1e15 else f"{number:.4g}"


def rows_of(path: str, names: Sequence[str]) -> Iterator[Sequence[object]]:
    """Yield the rows of a written file; the cells of a CSV file are text."""
    if path.endswith(".jsonl"):
        with FileSystems.open(path) as file:
            yield from (list(json.loads(line).values()) for line in file.read().splitlines())
        return
    for batch in _batches(path, names):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _batches(path: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if path.endswith(".csv"):
        yield from csv_files.read_csv(path, path, names, ())
        return
    for part in parquet.ranges([path], path, names):
        yield from parquet.read_parquet(part, path, names)

"""Print a released file as a table."""

import dataclasses
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence

import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from beam_dp.transforms.io import csv_files, parquet

SHOWN = 50
_LONG = re.compile(r"-?\d+\.\d{4,}(e.*)?")


@dataclasses.dataclass(frozen=True)
class Shown:
    """What a released table holds: functions of released numbers alone.

    Attributes:
        rows: how many rows it has.
        doubtful: for each number with an interval, in how many rows it is of little use.
        empty: the numbers that are missing in every row.
    """

    rows: int
    doubtful: dict[str, int]
    empty: tuple[str, ...]

    @property
    def remarks(self) -> list[str]:
        """What to say below the table."""
        lines = []
        found = {name: count for name, count in self.doubtful.items() if count}
        if found:
            each = ", ".join(f"{count} of {name}" for name, count in found.items())
            marked, numbers = sum(found.values()), self.rows * len(self.doubtful)
            lines.append(
                f"* {marked} of {numbers} numbers are of little use: NaN, or with an interval that "
                f"is open or as wide as they are: {each}. More people per partition, fewer metrics "
                "or a larger budget would help: --plan --people N"
            )
        if self.empty and self.rows:
            lines.append(
                f"{', '.join(self.empty)}: no number in any row. There are too few people, or the "
                "column is misspelt or holds no plain numbers (1234.5 is one, 1,234.5 is none)"
            )
        return lines


def show(path: str, names: Sequence[str]) -> Shown:
    """Print the first rows of a released file, with marks and remarks on numbers of little use.

    Args:
        path: the file.
        names: its columns; `x` with `x_low` and `x_high` is a number with its interval, `x` with
            `x_rank_error` a quantile.
    """
    rows = list(rows_of(path, names))
    kinds = [(at, _ends(name, names)) for at, name in enumerate(names)]
    places = [at for at, ends in kinds if ends]
    marks = {
        (i, at)
        for i, row in enumerate(rows)
        for at, ends in kinds
        if is_of_little_use(row, at, ends)
    }
    cells = [
        [_short(str(cell)) + "*" * ((i, at) in marks) for at, cell in enumerate(row)]
        for i, row in enumerate(rows[:SHOWN])
    ]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    for line in (names, *cells):
        padded = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(padded) + "\n")
    if len(rows) > SHOWN:
        sys.stdout.write(f"... and {len(rows) - SHOWN} more in {path}\n")
    doubtful = {names[at]: sum((i, at) in marks for i in range(len(rows))) for at in places}
    empty = [names[at] for at in places if all(math.isnan(_number(row[at])) for row in rows)]
    shown = Shown(len(rows), doubtful, tuple(empty))
    for remark in shown.remarks:
        sys.stdout.write(f"{remark}\n")
    return shown


def is_of_little_use(row: Sequence[object], place: int, ends: int) -> bool:
    """Return whether the number at a place is of little use, by itself and what stands behind it.

    It is missing; or of the two ends of its interval none is known, or what is known of them is as
    far from it as 0 is.

    Args:
        row: the cells.
        place: that of the number.
        ends: 2 for a number with an interval, 1 for a quantile, 0 for no released number.
    """
    if ends < 2:
        return bool(ends) and math.isnan(_number(row[place]))
    value, low, high = (_number(cell) for cell in row[place : place + 3])
    known = [side for side in (value - low, high - value) if math.isfinite(side)]
    return not known or not sum(known) < abs(value)


def _ends(name: str, names: Sequence[str]) -> int:
    """Return how many columns behind a number say how far off it may be."""
    if f"{name}_rank_error" in names:
        return 1
    return 2 if {f"{name}_low", f"{name}_high"} <= {*names} else 0


def _number(cell: object) -> float:
    """Return a cell as a number, NaN where it is none."""
    try:
        return float(str(cell))
    except ValueError:
        return math.nan


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

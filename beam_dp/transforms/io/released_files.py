"""Read a released file back, with the record that stands beside it."""

import contextlib
import json
import math
import re
from typing import Any

import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.io import formats, table_files, whole_files
from beam_dp.transforms.io.file_format import Format, Wanted, cells_of
from beam_dp.transforms.run_record import COLUMNS

_WHOLE = re.compile(r"-?\d{1,18}")


def read(subject: str, path: str) -> tuple[pa.Table, dict[str, Any]]:
    """Return the table of a released file, and its record.

    The keys of a CSV file are text (without the quote in front of formulas), its numbers become
    floats; a number that is not known is null.

    Args:
        subject: the name that errors begin with.
        path: the file, local or on any file system that Beam knows.

    Raises:
        ValueError: for another extension, a file that is missing, a record of another kind, and a
            table that is not the one of its record.
    """
    kind = formats.written(subject, path)
    beside = whole_files.beside(path)
    for name in (path, beside):
        hint = "A release by dp.release, WriteRows(path, record=...) or a job writes both files."
        checks.require(
            FileSystems.exists(name),
            subject,
            "path",
            f"name a released file with its record, and {name!r} is missing",
            hint,
        )
    with FileSystems.open(beside) as file:
        record = json.loads(file.read())
    columns: Any = record.get(COLUMNS) if isinstance(record, dict) else None
    checks.require(
        isinstance(columns, dict) and {"keys", "numbers"} <= columns.keys(),
        subject,
        "path",
        f"have the record of a released table beside it, and {beside!r} is none",
    )
    # It is of this file alone, and not of the table where that is written again.
    is_its = record.pop(whole_files.DIGEST, "") in ("", whole_files.digest(path))
    rule = f"be as it was written: its SHA-256 is not the one in {beside!r}"
    checks.require(is_its, subject, "path", rule, "Take the file that the job wrote.")
    return table_of(path, kind, columns), record


def table_of(path: str, kind: Format, columns: dict[str, Any]) -> pa.Table:
    """Return the table of a released file.

    Args:
        path: the file.
        kind: its format.
        columns: what its record says of its columns.
    """
    keys = list(columns["keys"])
    numbers = [name for names in columns["numbers"] for name in names]
    wanted = Wanted(path, [*keys, *numbers])
    elements = [each for part in kind.parts([path], wanted) for each in kind.rows(part, wanted)]
    cells = {name: cells_of(elements, name) for name in wanted.columns}
    if not kind.typed:
        cells |= {name: list(map(table_files.unquoted, cells[name])) for name in keys}
    read = {name: pa.array(cells[name]) for name in keys}
    return pa.table(read | {name: _numbers(list(map(number, cells[name]))) for name in numbers})


def _numbers(cells: list[float | None]) -> pa.Array:
    kinds = {type(cell) for cell in cells if cell is not None}
    return pa.array(cells, pa.int64() if kinds == {int} else pa.float64())


def number(cell: object) -> float | None:
    """Return a cell as a number, whole where it is written so; None where it is empty or NaN."""
    text = str(cell)
    with contextlib.suppress(ValueError):
        value = int(text) if _WHOLE.fullmatch(text) else float(text)
        return None if math.isnan(value) else value
    return None

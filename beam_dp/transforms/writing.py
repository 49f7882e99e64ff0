"""WriteRows: a released table as one file of the very name that was asked for."""

import dataclasses
import types
import typing
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.typehints import row_type, typehints

from beam_dp.mechanisms import checks
from beam_dp.transforms.files import tables

_WRITERS = {
    ".csv": tables.write_csv,
    ".parquet": tables.write_parquet,
    ".jsonl": tables.write_jsonl,
}


@dataclasses.dataclass(eq=False)
class WriteRows(beam.PTransform):
    """Write `beam.Row` elements to one .csv, .parquet or .jsonl file.

    The file appears whole under its name or not at all: it is written under another name
    beside it and renamed. Its rows are sorted by all their cells, first column first, so
    their order tells nothing about the data. Meant for released rows: everything passes
    through one worker and its memory (a million rows are fine), and nothing is hidden.

    Edge cases: without rows the file has its header (CSV), its schema (Parquet) or nothing
    (JSON Lines). A retried write replaces its own file. In CSV, text that a spreadsheet
    would run as a formula begins with a single quote; the infinities are `inf` and `-inf`.

    Args:
        path: the file, local or on any file system that Beam knows.
        columns: the columns to write, in order; None: those of the rows' schema.
        overwrite: whether a file of that name may be replaced.

    Returns:
        a PCollection with the path as its one element, after the file is there.

    Raises:
        TypeError, ValueError: at construction: an unknown extension, or a file that exists
            without `overwrite`; when applied: rows without a schema and no `columns`.
    """

    path: str
    columns: Sequence[str] | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        checks.require(
            type(self.path) is str and self.path.endswith(tuple(_WRITERS)),
            f"WriteRows: path must end in {', '.join(_WRITERS)}, not {self.path!r}.",
        )
        checks.require(
            self.overwrite is True or not FileSystems.exists(self.path),
            f"WriteRows: path must name a new file, not {self.path!r}. "
            "Write overwrite=True to replace it.",
        )
        if self.columns is not None:
            self.columns = checks.columns("WriteRows", "columns", self.columns)

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[str]:
        """Apply the transform to rows."""
        schema = dict(_schema(rows.element_type))
        names = tuple(schema) if self.columns is None else tuple(self.columns)
        checks.require(
            bool(names), "WriteRows: columns must be given where the rows have no schema, not None."
        )
        kinds = [schema.get(name) for name in names]
        table = rows | "TakeCells" >> beam.Map(_cells, names)  # (None, (cell, ...))
        # A file without rows is written too: the key occurs at least once.
        header = rows.pipeline | "Start" >> beam.Impulse() | "Header" >> beam.Map(_no_cells)
        return (
            (table, header)
            | "Table" >> beam.Flatten()
            | "OneFile" >> beam.GroupByKey()
            | "WriteFile" >> beam.Map(_write, self.path, names, kinds)
        )

    def display_data(self) -> dict[str, Any]:
        """Return the public parameters."""
        return {"path": self.path, "overwrite": self.overwrite}


def _schema(element: Any) -> list[tuple[str, Any]]:
    known = element if isinstance(element, row_type.RowTypeConstraint) else None
    row = known or row_type.RowTypeConstraint.from_user_type(element)
    return [(name, _required(kind)) for name, kind in (row._fields if row else ())]


def _required(kind: Any) -> Any:
    """Return X for Optional[X]."""
    given = [part for part in _parts(kind) if part not in (type(None), None)]
    return given[0] if len(given) == 1 else kind


def _parts(kind: Any) -> Sequence[Any]:
    if isinstance(kind, typehints.UnionConstraint):
        return list(kind.inner_types())
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return typing.get_args(kind)
    return [kind]


def _cells(row: Any, names: Sequence[str]) -> tuple[None, tables.Cells]:
    return None, tuple(getattr(row, name) for name in names)


def _no_cells(start: bytes) -> tuple[None, None]:
    return None, None


def _write(
    table: tuple[None, Iterable[tables.Cells | None]],
    path: str,
    names: Sequence[str],
    kinds: Sequence[Any],
) -> str:
    rows = sorted((row for row in table[1] if row is not None), key=tables.order)
    extension = next(known for known in _WRITERS if path.endswith(known))
    partial = f"{path}.{uuid.uuid4().hex}.partial"
    try:
        with FileSystems.create(partial) as file:
            _WRITERS[extension](file, names, kinds, rows)
        FileSystems.rename([partial], [path])
    finally:
        if FileSystems.exists(partial):
            FileSystems.delete([partial])
    return path

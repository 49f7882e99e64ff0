"""WriteRows: write a released table as one file, of exactly the name that was asked for."""

import contextlib
import dataclasses
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems
from apache_beam.typehints import row_type, typehints

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import release_record
from beam_dp.transforms.building import quick_steps
from beam_dp.transforms.io import table_files, whole_files
from beam_dp.transforms.steps import runtime

_KEYED = tuple[int, Any]
"""What is written, under the one key of all; None is no part of the table."""
_WRITERS = {
    ".csv": table_files.write_csv,
    ".parquet": table_files.write_parquet,
    ".jsonl": table_files.write_jsonl,
}
_TABLE_WRITERS = {
    ".csv": table_files.write_table_csv,
    ".parquet": table_files.write_table_parquet,
    ".jsonl": table_files.write_table_jsonl,
}


@dataclasses.dataclass(eq=False)
class WriteRows(beam.PTransform[beam.PCollection[Any], beam.PCollection[str]]):
    """Write `beam.Row`s or `pyarrow.RecordBatch`es to one .csv, .parquet or .jsonl file.

    The file appears whole under its name or not at all: it is written under another name in the
    same folder and renamed (a process that is killed can leave that file: `<name>.<number>.<random
    digits>.partial`). Its rows are sorted by all their cells, first column first, so
    their order tells nothing about the data. Meant for released rows: everything passes
    through one worker and its memory (a million rows are fine), and nothing is hidden.

    Edge cases: without rows the file has its header (CSV), its schema (Parquet) or nothing
    (JSON Lines). A retried write replaces its own file. In CSV, text that a spreadsheet
    would run as a formula begins with a single quote; the infinities are `inf` and `-inf`, in JSON
    Lines null, as is a number that is missing.

    With a record, `<path>.json` holds it as JSON, and a Parquet file also has it in its schema,
    under the key "beam_dp". Both files are complete before one of them takes its name, the record
    first: where a new table is, its record is.

    Args:
        path: the file, local or on any file system that Beam knows.
        columns: the columns to write, in order; None: all of the rows' schema, or of the batches.
        header: their names in the file; None: the same.
        overwrite: whether a file of that name, and its record, may be replaced.
        record: a collection of one dict of plain values, `release.record()`, or such a dict; None:
            no such file.

    Returns:
        a PCollection with the path as its one element, which appears after the file.

    Raises:
        TypeError, ValueError: at construction: an unknown extension, a file that exists without
            `overwrite`, or a local path where this machine cannot write, which is tried with an
            empty file (whether a bucket or another machine can be written, or a disk is full, shows
            only when the job writes); when applied: rows without a schema and no `columns`.
    """

    path: str
    columns: Sequence[str] | None = None
    overwrite: bool = False
    record: beam.PCollection[dict[str, Any]] | dict[str, Any] | None = None
    header: Sequence[str] | None = None

    def __post_init__(self) -> None:
        super().__init__()
        checks.require(
            type(self.path) is str and self.path.endswith(tuple(_WRITERS)),
            "WriteRows",
            "path",
            f"end in {', '.join(_WRITERS)}, not {self.path!r}",
        )
        for path in (
            self.path,
            *([whole_files.beside(self.path)] if self.record is not None else []),
        ):
            whole_files.check("WriteRows", path)
            checks.require(
                self.overwrite is True or not FileSystems.exists(path),
                "WriteRows",
                "path",
                f"name a new file, not {path!r}",
                "Write overwrite=True to replace it.",
            )
        if self.columns is not None:
            self.columns = checks.columns("WriteRows", "columns", self.columns)
        if self.header is not None:
            self.header = checks.columns("WriteRows", "header", self.header)
            checks.require(
                len(self.header) == len(self.columns or ()),
                "WriteRows",
                "header",
                "have a name for each of columns",
            )

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[str]:
        """Apply the transform to rows or batches."""
        if rows.element_type is pa.RecordBatch:
            checks.require(
                self.header is None,
                "WriteRows",
                "header",
                "be left out for batches: these keep names",
            )
            pack = quick_steps.mapped(_packed, self.columns).with_output_types(_KEYED)
            return self._written(rows | "PackBatches" >> pack, _Batches(self.path, self.columns))
        schema = dict(_schema(rows.element_type))
        names = tuple(schema) if self.columns is None else tuple(self.columns)
        checks.require(
            bool(names), "WriteRows", "columns", "be given where the rows have no schema, not None"
        )
        cells = rows | "TakeCells" >> quick_steps.mapped(_cells, names).with_output_types(_KEYED)
        kinds = [schema.get(name) for name in names]
        return self._written(cells, _Rows(self.path, self.header or names, kinds))

    def _written(
        self, table: beam.PCollection[_KEYED], file: "_Rows | _Batches"
    ) -> beam.PCollection[str]:
        # A file without rows is written too: the key occurs at least once.
        none = quick_steps.mapped(_nothing).with_output_types(_KEYED)
        nothing = table.pipeline | "StartHeader" >> beam.Impulse() | "AddHeader" >> none
        known: Any = self.record
        if isinstance(known, beam.PCollection):
            known = beam.pvalue.AsSingleton(known)
        return (
            (table, nothing)
            | "FlattenTable" >> beam.Flatten()
            | "GroupIntoOneFile" >> beam.GroupByKey()
            | "WriteFile" >> quick_steps.mapped(_write, file, known).with_output_types(str)
        )

    def display_data(self) -> dict[str, Any]:
        """Return the public parameters."""
        return {"path": self.path, "overwrite": self.overwrite}


def _write(
    table: tuple[int, Iterable[Any]],
    file: "_Rows | _Batches",
    record: dict[str, Any] | None = None,
) -> str:
    """Write a file from all that belongs to it; return its path."""
    return file.write(table[1], "" if record is None else release_record.text(record))


@contextlib.contextmanager
def _written(path: str, record: str) -> Iterator[BinaryIO]:
    """Yield the file; its record, if there is one, takes its name when the file is complete."""
    with whole_files.written(path) as file:
        yield file
        if record:
            with whole_files.written(whole_files.beside(path)) as noted:
                noted.write(record.encode())


def _schema(element: Any) -> list[tuple[str, Any]]:
    known = element if isinstance(element, row_type.RowTypeConstraint) else None
    row = known or row_type.RowTypeConstraint.from_user_type(element)
    return [(name, _required(kind)) for name, kind in (row._fields if row else ())]


def _required(kind: Any) -> Any:
    """Return X for Optional[X], and other types as they are."""
    kinds = [part for part in _parts(kind) if part not in (type(None), None)]
    return kinds[0] if len(kinds) == 1 else kind


def _parts(kind: Any) -> Sequence[Any]:
    if isinstance(kind, typehints.UnionConstraint):
        return list(kind.inner_types())
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return typing.get_args(kind)
    return [kind]


def _cells(row: Any, names: Sequence[str]) -> tuple[int, Any]:
    return 0, tuple(getattr(row, name) for name in names)


def _packed(batch: pa.RecordBatch, names: Sequence[str] | None) -> tuple[int, Any]:
    return 0, table_files.packed(batch, names)


def _nothing(_: bytes) -> tuple[int, Any]:
    return 0, None


@dataclasses.dataclass(frozen=True)
class _Rows:
    """A file of rows.

    Attributes:
        path: the file.
        names: its columns.
        kinds: their types, None where unknown.
    """

    path: str
    names: Sequence[str]
    kinds: Sequence[Any]

    def write(self, parts: Iterable[table_files.Cells | None], record: str = "") -> str:
        """Write all rows, sorted; None is no row. Beside them the record, if there is one."""
        rows = sorted((row for row in parts if row is not None), key=table_files.order)
        with _written(self.path, record) as file:
            _WRITERS[_extension(self.path)](file, self.names, self.kinds, rows, record)
        return self.path


@dataclasses.dataclass(frozen=True)
class _Batches:
    """A file of column batches: a row becomes a Python object only when its line is written.

    Attributes:
        path: the file.
        names: its columns, None for those of the batches.
    """

    path: str
    names: Sequence[str] | None

    def write(self, parts: Iterable[bytes | None], record: str = "") -> str:
        """Write the rows of all packed batches, sorted, and the record; None is no batch."""
        runtime.give_back()
        table = table_files.ordered(self._joined(parts))
        with _written(self.path, record) as file:
            _TABLE_WRITERS[_extension(self.path)](file, table, record)
        return self.path

    def _joined(self, parts: Iterable[bytes | None]) -> pa.Table:
        batches = [table_files.unpacked(part) for part in parts if part is not None]
        nothing = pa.table({name: pa.nulls(0) for name in self.names or ()})
        return pa.Table.from_batches(batches) if batches else nothing


def _extension(path: str) -> str:
    return next(known for known in _WRITERS if path.endswith(known))

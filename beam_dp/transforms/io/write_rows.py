"""WriteRows: write a released table as one file, of exactly the name that was asked for."""

import dataclasses
import json
import os
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems
from apache_beam.typehints import typehints

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns
from beam_dp.transforms.io import table_files, whole_files
from beam_dp.transforms.stages import quick_steps, threads_and_memory

_KEYED = tuple[int, Any]
"""What is written, under the one key of all; None is no part of the table."""
_EXTENSIONS = (".csv", ".parquet", ".jsonl")


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
            `overwrite`, or a local path in a folder where this machine cannot write (whether a
            bucket or another machine can be written, or a disk is full, shows only when the job
            writes); when applied: rows without a schema and no `columns`.
    """

    path: str
    columns: Sequence[str] | None = None
    overwrite: bool = False
    record: beam.PCollection[dict[str, Any]] | dict[str, Any] | None = None
    header: Sequence[str] | None = None

    def __post_init__(self) -> None:
        super().__init__()
        checks.require(
            type(self.path) is str and self.path.endswith(_EXTENSIONS),
            "WriteRows",
            "path",
            f"end in {', '.join(_EXTENSIONS)}, not {self.path!r}",
        )
        beside = [whole_files.beside(self.path)] if self.record is not None else []
        for path in (self.path, *beside):
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
            return self._written(rows | "PackBatches" >> pack, self.columns, None)
        fields = known_columns.fields_of(rows) or ()
        schema = {name: _required(kind) for name, kind in fields}
        names = tuple(schema) if self.columns is None else tuple(self.columns)
        checks.require(
            bool(names), "WriteRows", "columns", "be given where the rows have no schema, not None"
        )
        cells = rows | "TakeCells" >> quick_steps.mapped(_cells, names).with_output_types(_KEYED)
        return self._written(cells, self.header or names, [schema.get(name) for name in names])

    def _written(
        self,
        parts: beam.PCollection[_KEYED],
        names: Sequence[str] | None,
        kinds: Sequence[Any] | None,
    ) -> beam.PCollection[str]:
        # A file without rows is written too: the key occurs at least once.
        none = quick_steps.mapped(_nothing).with_output_types(_KEYED)
        nothing = parts.pipeline | "StartHeader" >> beam.Impulse() | "AddHeader" >> none
        known: Any = self.record
        if isinstance(known, beam.PCollection):
            known = beam.pvalue.AsSingleton(known)
        write = quick_steps.mapped(_write, self.path, names, kinds, known)
        return (
            (parts, nothing)
            | "FlattenTable" >> beam.Flatten()
            | "GroupIntoOneFile" >> beam.GroupByKey()
            | "WriteFile" >> write.with_output_types(str)
        )


def _write(
    grouped: tuple[int, Iterable[Any]],
    path: str,
    names: Sequence[str] | None,
    kinds: Sequence[Any] | None,
    record: dict[str, Any] | None = None,
) -> str:
    """Write a file, sorted, and its record, if there is one; return its path.

    Args:
        grouped: the rows, or packed batches; None is neither.
        path: the file.
        names: its columns; None: those of the batches.
        kinds: the types of the rows, None where unknown; None: these are batches.
        record: takes its name when the file is complete, and before the file does.
    """
    parts = (part for part in grouped[1] if part is not None)
    table = _table(parts, names, kinds)
    text = "" if record is None else json.dumps(record, indent=1, allow_nan=False)
    with whole_files.written(path) as file:
        table_files.write(file, os.path.splitext(path)[1], table, text)
        if text:
            with whole_files.written(whole_files.beside(path)) as noted:
                noted.write(text.encode())
    return path


def _table(
    parts: Iterable[Any], names: Sequence[str] | None, kinds: Sequence[Any] | None
) -> pa.Table:
    """Return rows or batches as one sorted table."""
    threads_and_memory.give_back()
    if kinds is None:
        return table_files.ordered(_joined(parts, names))
    return table_files.ordered(table_files.table_of(names or (), kinds, list(parts)))


def _joined(parts: Iterable[bytes], names: Sequence[str] | None) -> pa.Table:
    batches = list(map(table_files.unpacked, parts))
    nothing = pa.table({name: pa.nulls(0) for name in names or ()})
    return pa.Table.from_batches(batches) if batches else nothing


def _required(kind: Any) -> Any:
    """Return X for Optional[X], and other types as they are."""
    if isinstance(kind, typehints.UnionConstraint):
        parts = list(kind.inner_types())
    else:
        union = typing.get_origin(kind) in (typing.Union, types.UnionType)
        parts = list(typing.get_args(kind)) if union else [kind]
    kinds = [part for part in parts if part not in (type(None), None)]
    return kinds[0] if len(kinds) == 1 else kind


def _cells(row: Any, names: Sequence[str]) -> tuple[int, Any]:
    return 0, tuple(getattr(row, name) for name in names)


def _packed(batch: pa.RecordBatch, names: Sequence[str] | None) -> tuple[int, Any]:
    return 0, table_files.packed(batch, names)


def _nothing(_: bytes) -> tuple[int, Any]:
    return 0, None

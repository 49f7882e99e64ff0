"""WriteRows: write a released table as one file, of exactly the name that was asked for."""

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns
from beam_dp.transforms.io import formats, table_files, whole_files
from beam_dp.transforms.io.file_format import Format
from beam_dp.transforms.sql.released_queries import ReleasedQuery
from beam_dp.transforms.stages import quick_steps, threads_and_memory


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

    With a record, `<path>.json` holds it as JSON, with the SHA-256 of the table's file. Both files
    are complete before the record takes its name, and then the table: where a new table is, its
    record is. A table that has appeared since the pipeline was built is not replaced without
    `overwrite`: the run fails. Two jobs that end in the same moment are not told apart.

    Args:
        path: the file, local or on any file system that Beam knows.
        columns: the columns to write, in order; None: all of the rows' schema, or of the batches.
        header: their names in the file; None: the same.
        post_process: SQL on the table, which says the rows' order too; None: none.
        overwrite: whether a file of that name, and its record, may be replaced.
        record: a collection of one dict of plain values, `release.record()`; None: no such file.

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
    record: beam.PCollection[dict[str, Any]] | None = None
    header: Sequence[str] | None = None
    post_process: ReleasedQuery | None = None

    def __post_init__(self) -> None:
        super().__init__()
        self._format = formats.written("WriteRows", self.path)
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

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[str]:
        """Apply the transform to rows or batches."""
        columns = self.columns
        if rows.element_type is pa.RecordBatch:
            rule = "be left out for batches, which keep their names"
            checks.require(self.header is None, "WriteRows", "header", rule)
            parts, names, kinds = rows, columns, None
        else:
            schema = dict(known_columns.fields_of(rows) or ())
            columns = tuple(schema) if columns is None else tuple(columns)
            rule = "be given where the rows have no schema, not None"
            checks.require(bool(columns), "WriteRows", "columns", rule)
            take = quick_steps.mapped(_cells, columns).with_output_types(tuple)
            parts, names = rows | "TakeCells" >> take, self.header or columns
            kinds = [schema.get(name) for name in columns]
        record = None if self.record is None else beam.pvalue.AsSingleton(self.record)
        given = beam.pvalue.AsIter(parts)
        how = self.path, self._format, names, kinds, self.post_process, self.overwrite
        write = quick_steps.mapped(_write, *how, given, record)
        start = rows.pipeline | "Start" >> beam.Impulse()
        return start | "WriteFile" >> write.with_output_types(str)


def _write(
    start: bytes,
    path: str,
    form: Format,
    names: Sequence[str] | None,
    kinds: Sequence[Any] | None,
    query: ReleasedQuery | None,
    overwrite: bool,
    given: Iterable[Any],
    record: dict[str, Any] | None,
) -> str:
    """Write a file, sorted, and its record, if there is one; return its path.

    Args:
        start: the one element.
        path: the file.
        form: its format.
        names: its columns; None: those of the batches.
        kinds: the types of the rows, None where unknown; None: these are batches.
        query: SQL on the table, or none.
        overwrite: whether a file of that name may be replaced; its own is, by a retry.
        given: the rows, or batches.
        record: takes its name when the file is complete, and before the file does.
    """
    threads_and_memory.give_back()
    parts = list(given)
    if kinds is not None:
        table = table_files.table_of(names or (), kinds, parts)
    elif parts:
        table = pa.Table.from_batches(parts).select(names or parts[0].schema.names)
    else:
        table = pa.table({name: pa.nulls(0) for name in names or ()})
    with whole_files.written(path) as file:
        hashed: Any = whole_files.Hashed(file)
        form.write(hashed, table_files.ordered(table) if query is None else query.run(table))
        digest, before = hashed.hash.hexdigest(), ""
        if not overwrite:
            with contextlib.suppress(Exception):  # who may write need not be allowed to read
                before = whole_files.digest(path)
        if before not in ("", digest):
            why = (
                "has appeared since this job was built, and is kept: name another, or overwrite it"
            )
            raise RuntimeError(f"WriteRows: the file {path!r} {why}")
        if record is not None:
            whole = {**record, whole_files.DIGEST: digest}
            with whole_files.written(whole_files.beside(path)) as noted:
                noted.write(json.dumps(whole, indent=1, allow_nan=False).encode())
    return path


def _cells(row: Any, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in names)

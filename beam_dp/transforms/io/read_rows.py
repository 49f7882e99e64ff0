"""ReadRows: read files of rows in parallel, with no word about their content in any message.

*Local files are looked at when the pipeline is built*, so that nothing is paid for what cannot be
read. The names in a header and the types in a schema belong to a table and not to one of its rows:
a table of nobody has the same ones, so a refusal for them tells nothing of a person. The first 1
MiB of text must not show that rows would be misread: bytes that are not UTF-8, lines that are no
rows, numbers in another form (each format's `sniff` says what). *That looks at rows*: who starts
the run learns whether it starts, and which rule a file breaks, never a cell; nobody else learns
anything. What comes later in a file decides about its own row only. A file of 0 bytes is a table of
nobody in JSON Lines, but not in CSV, where such a table has its header.

Files on other systems are left to the run, which reads their headers and schemas before any row:
who builds a pipeline need not have the right to read what its workers read.
"""

import copy
import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

from beam_dp.mechanisms.bounding.table import Role, table_order, with_role
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import written_forms
from beam_dp.transforms.io import formats, open_files
from beam_dp.transforms.io.file_format import RFC_4180, CsvFormat, Format, Sniffed, Wanted
from beam_dp.transforms.sql.row_queries import Query
from beam_dp.transforms.stages import quick_steps

MOST = 100
"""How many local files are looked at; the run looks at all."""


@dataclasses.dataclass(eq=False)
class ReadRows(beam.PTransform[beam.pvalue.PBegin, beam.PCollection[Any]]):
    """Read the wanted columns of Parquet, CSV or JSON Lines files.

    A row's content never decides whether the job fails and never appears in a message: a bad
    row is dropped or a bad cell becomes null, by rules that look at that row alone. In a CSV
    file this holds if its writer quotes as in RFC 4180, and if no cell is above 64 MiB: see
    `csv_files.Csv` for other files, and convert those first, or write `CsvFormat(quotes=False)` if
    their writer does not quote at all.

    The output is `pyarrow.RecordBatch`es of at most 131,072 rows for Parquet and CSV, one
    dict per row for JSON Lines. Parquet files are split at row groups, about a million rows
    a piece; a CSV or JSON Lines file is read by one worker. Memory is bounded by blocks of
    4 MiB (64 MiB where a CSV cell is above 1 MiB), and by one row group's pages, also for
    compressed files; time is not.

    What is wrong at the start of a file (a missing column, text that is not UTF-8, another kind of
    file, rows and numbers that would be misread: see the module) is refused when the pipeline is
    built, if the file is one of the first 100 local ones; in any other file it fails the running
    job. JSON Lines have no header, so a misspelt column of theirs is null in every row; an
    `UnknownColumns` warning says so.

    A wanted column may be the name of folders, `day=2026-11-24/`, as Hive, Spark, DuckDB and Delta
    write them: it is text, and null where the folder says `__HIVE_DEFAULT_PARTITION__`.

    Edge cases: a pattern that matches nothing, and a file that is damaged further on, fail the
    running job, with one line that names pattern and column. CSV files of 0 bytes are refused,
    unless others have a header; JSON Lines files of 0 bytes have no rows. See `Csv`, `JsonLines`
    and `Parquet` for rows. A directory is refused: write `directory/*.parquet`. A .gz file that
    ends early or is damaged anywhere fails the job, whatever its rows hold; a file that is not
    compressed and ends in a row is read as far as that row is there.

    Args:
        pattern: a path, a glob, or several of these with commas between; local or on any
            file system that Beam knows; all of one format: .parquet, .csv, .tsv or
            .jsonl, all but the first also with .gz.
        columns: the names of the wanted columns; nothing else is read.
        numbers: those of `columns` that hold numbers; it matters for CSV only, where all other
            columns are text.
        csv: how the cells of CSV files are written: `CsvFormat(decimal=",", encoding="cp1252")`.

    Raises:
        ValueError, TypeError: at construction, for a wrong parameter; when applied, for a local
            file that cannot be read.
    """

    pattern: str
    columns: Sequence[str]
    numbers: Sequence[str] = ()
    csv: CsvFormat = RFC_4180

    def __post_init__(self) -> None:
        super().__init__()
        self.format = format_of(self.pattern)
        hint = 'Write csv=dp.CsvFormat(decimal=",").'
        checks.of_type("ReadRows", "csv", self.csv, CsvFormat, hint)
        for part in dataclasses.fields(self.csv):
            checks.require(
                getattr(self.csv, part.name) == part.default or not self.format.typed,
                "ReadRows",
                part.name,
                f"be left out for {self.pattern!r}: only files whose cells are text have it",
            )
        self.columns = checks.columns("ReadRows", "columns", self.columns)
        self.numbers = checks.columns("ReadRows", "numbers", self.numbers)
        checks.require(bool(self.columns), "ReadRows", "columns", "name a column, not ()")
        rule = f"be among columns, not {checks.listed(self.numbers)}"
        checks.require(set(self.numbers) <= set(self.columns), "ReadRows", "numbers", rule)
        self._wanted = Wanted(self.pattern, self.columns, self.numbers, self.csv)

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[Any]:
        """Apply the transform to a pipeline."""
        sniffed = self._sniff()
        parts = quick_steps.flat_mapped(self._parts).with_output_types(tuple[int, Any])
        read = quick_steps.flat_mapped(self._rows).with_output_types(self.format.element)
        rows = (
            pbegin
            | "StartReading" >> beam.Impulse()
            | "ListParts" >> parts
            # A shuffle of the list, so that the parts are read in parallel.
            | "SpreadParts" >> beam.GroupByKey()
            | "ReadParts" >> read
        )
        return known_columns.remember(rows, self.columns, sniffed)

    def _sniff(self) -> Sniffed:
        """Refuse local files that the run could not read; return what is known of the columns."""
        return self.sniff(self._local())

    def _local(self) -> list[str]:
        local = ",".join(filter(open_files.is_local, self.pattern.split(",")))
        found = (file.path for file in (open_files.matched(local) if local else ()))
        # Not pipes, which are read once.
        return list(itertools.islice(filter(os.path.isfile, found), MOST))

    def taken(self) -> list[str]:
        """Return what is taken of how local files are written, in words: no row is looked at.

        Raises:
            ValueError: for a file that cannot be read.
        """
        wanted = [(path, self._of_folders([path])[1]) for path in self._local()]
        return [said for each in wanted if (said := self.format.taken(*each))]

    def sniff(self, paths: Sequence[str]) -> Sniffed:
        """Refuse files that could not be read, or would be misread; return what is known of them."""
        named, wanted = self._of_folders(paths)
        for name in named:
            rule = "be a column of the files, or the name of a folder as day=1, and not both"
            checks.require(not self._has(name, paths), "ReadRows", f"column {name!r}", rule)
        types, forms = self.format.sniff(paths, wanted)
        folders = list(map(open_files.folders_of, paths))
        texts = {name: pa.array([each[name] for each in folders], pa.string()) for name in named}
        found = {name: written_forms.of_texts(cells) for name, cells in texts.items()}
        of_folders = dict.fromkeys(named, pa.string())
        return Sniffed([{**each, **of_folders} for each in types], {**forms, **found})

    def _has(self, name: str, paths: Sequence[str]) -> bool:
        """Tell whether the header of the files has a column, or an object at their start."""
        wanted = dataclasses.replace(self._wanted, columns=(name,), numbers=())
        try:
            forms = self.format.sniff(paths, wanted).forms
        except checks.ParameterError:
            return False
        return self.format.element is pa.RecordBatch or bool(forms[name])

    def size_in_bytes(self) -> int:
        """Return the size of the files; raises what file systems raise that cannot tell."""
        return open_files.size_of(self.pattern)

    def here(self) -> list[Any]:
        """Return the same elements in this process, for files that are public and small."""
        self._sniff()
        return [row for part in self._parts(b"") for row in self._rows((0, [part[1]]))]

    def _parts(self, start: bytes) -> Iterator[tuple[int, Any]]:
        """Return the parts of the files, each with its number."""
        return enumerate(self.parts(self.paths()))

    def parts(self, paths: Sequence[str]) -> list[Any]:
        """Return the parts of these files, which belong together."""
        return list(self.format.parts(paths, self._of_folders(paths)[1]))

    def paths(self) -> list[str]:
        """Return the files; raises ValueError where there is none."""
        return [path for part in self.pattern.split(",") for path in matched_files(part)]

    def _rows(self, numbered: tuple[int, Iterable[Any]]) -> Iterator[Any]:
        for part in numbered[1]:
            named, wanted = self._of_folders([getattr(part, "path", part)])
            rows = self.format.rows(part, wanted)
            yield from (
                (_completed(row, named, self._wanted.columns) for row in rows) if named else rows
            )

    def of_file(
        self, path: str, parts: Sequence[Any] = (), as_text: bool = False
    ) -> tuple[list[Any], dict[str, int]]:
        """Return the rows of one of the files, and how many of its records are none, and why.

        Args:
            path: the file.
            parts: those of files that belong together; of one without parts here, its own.
            as_text: whether only the columns of numbers are read, as they are written.
        """
        made = copy.copy(self)
        columns, numbers = (self.numbers, ()) if as_text else (self.columns, self.numbers)
        made._wanted = Wanted(path, columns, numbers, self.csv)
        wanted = made._of_folders([path])[1]
        own = [part for part in parts if getattr(part, "path", part) == path]
        rows = made._rows((0, own or self.format.parts([path], wanted)))
        return list(rows), self.format.dropped(path, wanted)

    def _of_folders(self, paths: Sequence[str]) -> tuple[dict[str, str | None], Wanted]:
        """Return the wanted columns that folders name, with those of the first file, and the rest.

        Raises:
            ValueError: not all files are in folders of these names; a column of numbers is one.
        """
        found = [open_files.folders_of(path) for path in paths]
        wanted = self._wanted
        named = {name: found[0][name] for name in wanted.columns if found and name in found[0]}
        for name in wanted.columns:
            same = all((name in each) == (name in named) for each in found)
            good = same and not (name in named and name in wanted.numbers)
            rule = (
                "be text in the names of folders, as day=1, of all files of the pattern or of none"
            )
            checks.require(good, "ReadRows", f"column {name!r}", rule)
        kept = [name for name in wanted.columns if name not in named]
        checks.require(bool(kept), "ReadRows", "columns", "name one that is in the files too")
        return named, dataclasses.replace(wanted, columns=kept)


def _completed(row: Any, named: Mapping[str, str | None], columns: Sequence[str]) -> Any:
    """Return a dict, or a batch, with the columns of its file's folders."""
    if isinstance(row, dict):
        return {**row, **named}
    texts = {
        name: pa.repeat(pa.scalar(text, pa.string()), len(row)) for name, text in named.items()
    }
    arrays = [texts[name] if name in texts else row.column(name) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def reader_of(
    pattern: str,
    owners: Sequence[str],
    partition: Sequence[str],
    metrics: Sequence[Metric],
    query: Query | None = None,
    numbers: Sequence[str] = (),
    csv: CsvFormat = RFC_4180,
) -> ReadRows:
    """Return the reader of the columns that the metrics need.

    A CSV file has no types. Columns whose values are added or ordered are read as numbers; all
    others stay the text that they are, so that "017" and "17", or two integers beyond 2^53, remain
    two ids or two items.

    Args:
        pattern: the files.
        owners: the columns of the person, or those of rows with several owners.
        partition: the columns of the partition.
        metrics: what is released.
        query: what makes the rows of those that are read; None: nothing.
        numbers: columns that the query takes as numbers, beside those that it passes on.
        csv: how the cells of CSV files are written.

    Raises:
        ValueError: for a column of a CSV file that would have to be text and numbers, or for
            a `CsvFormat` of other files than CSV.
    """
    columns = table_order(column for metric in metrics for column in metric.columns())
    compared = with_role(columns, Role.ITEM, Role.FLAG)
    ordered = with_role(columns, Role.VALUE, Role.EPSILON)
    text = [*owners, *partition, *(column.name for column in compared)]
    added = [column.name for column in ordered]
    if query is not None:
        text, added = query.columns_of(text), [*query.columns_of(added), *numbers]
    both = [name for name in added if name in text]
    if both and not format_of(pattern).typed:
        raise checks.ParameterError(
            "ReadRows",
            f"column {both[0]!r} of a file whose cells are text",
            "be read as text (as the person, a partition, or a value that is compared) or as "
            "numbers (for sums, quantiles and the like), not as both",
            "Convert the file to Parquet, or give it a copy of the column.",
        )
    needs = query.needs if query is not None else ()
    every = list(dict.fromkeys([*text, *added, *needs]))
    made = ReadRows(pattern, every, list(dict.fromkeys(added)), csv)
    casts = query.casts if query is not None else ()
    made._wanted = dataclasses.replace(made._wanted, casts=casts)
    return made


def format_of(pattern: object) -> Format:
    """Return the one format of all files of a pattern."""
    if type(pattern) is not str:
        raise checks.ParameterTypeError("ReadRows", "pattern", f"be a string, not {pattern!r}")
    parts = pattern.split(",")
    common = [end for end in formats.READ if all(part.endswith(end) for part in parts)]
    checks.require(
        bool(common),
        "ReadRows",
        "pattern",
        f"end in one of {', '.join(formats.READ)}, the same for all its parts, not {pattern!r}",
        f'{formats.SHEETS} For a directory write "directory/*.parquet".',
    )
    return formats.READ[common[0]]


def matched_files(pattern: str, subject: str = "ReadRows") -> list[str]:
    """Return the paths that match one pattern; `subject` is the name that errors begin with.

    Raises:
        ValueError: no file matches, or the files cannot be listed.
    """
    paths = [file.path for file in open_files.matched(pattern)]
    checks.require(
        bool(paths),
        subject,
        "pattern",
        f"match a file, and {pattern!r} matches none",
        "A path without a slash in front begins where the command is started; the files of a "
        "directory are directory/*.parquet.",
    )
    return paths

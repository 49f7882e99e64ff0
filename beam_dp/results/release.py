"""`release`: a private table of a file or a DataFrame, without a line of Beam code; `Released`.

When a run fails, Beam quotes elements in what it raises, logs and prints. So its log and its prints
are held back while it runs, and of its errors only texts that this package wrote are shown: they
name parameters, columns, types and paths.
"""

import contextlib
import dataclasses
import errno
import io
import logging
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import table_order
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.results import report
from beam_dp.results.view import View
from beam_dp.spending.ledger import Ledger
from beam_dp.transforms import run_record
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.io import frames, read_rows, released_files, whole_files
from beam_dp.transforms.io.file_format import RFC_4180, CsvFormat
from beam_dp.transforms.io.write_rows import WriteRows
from beam_dp.transforms.partitions import PrivatePartitions, PublicPartitions
from beam_dp.transforms.private_tables import AGREE, PrivateTables
from beam_dp.transforms.sql import person_queries
from beam_dp.transforms.sql.released_queries import ReleasedQuery
from beam_dp.transforms.sql.row_queries import Query
from beam_dp.transforms.stages.output_names import field_names, output_names
from beam_dp.transforms.suppress_unreliable import SuppressUnreliable

RUNNER = "FnApiRunner"
"""Beam's runner in the memory of this process: it asks for no service and no other process."""
_SUBJECT = "release"
_PATIENCE = 1.0
_COLUMNS = 100  # where the width of the terminal is not known
_RAISED = (Exception,)
# The errors of this package name parameters, columns and types, those of files their path.
_OWNERS = "ReadRows|Rows|WriteRows|PrivateAggregate|PublicPartitions"
_KIND = r"(?:\w+: (?:beam_dp\.[\w.]+: )?|beam_dp\.[\w.]+: )"
_START = rf"(?:(?:{_OWNERS}): |column '|\[Errno \d+\] )"
_OURS = re.compile(rf"^{_KIND}({_START}.*?)(?: \[while running .*)?$", re.MULTILINE)
# Beam wraps an OSError, whose text could name a file by a cell. These are known word for word.
_FULL = "|".join(re.escape(f"[Errno {n}] {os.strerror(n)}") for n in (errno.ENOSPC, errno.EFBIG))
_FULL_DISK = re.compile(rf"RuntimeError: OSError: ({_FULL})(?: \[while running .*)?")


class RunFailed(RuntimeError):
    """A run failed: the message is without data, or it says where data may be seen."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Released:
    """A released table, and the record of what it cost and how it was drawn.

    `print(released)` shows the table rounded to what its noise allows.

    Attributes:
        table: one row per partition: the partition columns, then for each metric its number,
            `<name>_low` and `<name>_high`, which hold the true number in 95 of 100 releases
            (quantiles: `<name>_rank_error`, a number of people).
        record: what was spent on what, the parameters, the clips, the versions.
        others: the further tables of the same run.
    """

    table: pa.Table
    record: dict[str, Any]
    others: tuple["Released", ...] = ()

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Released":
        """Return what a job released: the file at `path`, and its record beside it, `<path>.json`.

        Raises:
            ValueError: for another extension, where one of the two files is missing, and where the
                first is not as it was written.
        """
        return cls(*released_files.read("Released", os.fspath(path)))

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame; pandas must be installed."""
        return self.table.to_pandas()

    def total(self, rows: Iterable[int] | None = None) -> dict[str, tuple[float | None, ...]]:
        """Return, of what adds up, the sum over some rows, and the ends of its interval.

        In 95 of 100 releases the true sum is between the ends; None: nothing is known. The noises
        of rows are independent, so the interval is far narrower than the sum of theirs; what
        clipping may err adds up. It holds less often for rows that are chosen by their numbers.

        Args:
            rows: their places in the table, from 0; None: all but (other).

        Raises:
            ValueError: for what is no place in the table.
        """
        rows = None if rows is None else list(rows)
        rule = f"be places in the table, 0 to {len(self.table) - 1}, not {checks.shown(rows)}"
        known = all(type(row) is not bool and row in range(len(self.table)) for row in rows or ())
        checks.require(known, "Released", "rows", rule)
        totals = View.of(self.table, self.record).total(rows).items()
        return {name: (each.value, each.low, each.high) for name, each in totals}

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        title: str = "",
        number_style: str = report.PLAIN,
        overwrite: bool = False,
    ) -> str:
        """Return the table as a page of HTML, and write the page to a file.

        It costs no budget, as it looks at nothing but the released table and its record.

        Args:
            path: the file to write, which ends in .html; None: none.
            title: the heading of the page; "": one that names the input.
            number_style: how 1234.5 is written on the page: "1.234,5", "1 234,5", "1234.5", ...
            overwrite: whether a file of that name is replaced.

        Raises:
            ValueError: for a wrong path or style, and a file that exists; where jinja2 is not
                installed: the extra `report` has it.
        """
        report.check(path, number_style, overwrite)
        view, *others = (View.of(each.table, each.record) for each in (self, *self.others))
        page = report.html(view, title, number_style, others)
        if path is not None:
            with whole_files.written(os.fspath(path)) as file:
                file.write(page.encode())
        return page

    def __repr__(self) -> str:  # a notebook shows it
        view = View.of(self.table, self.record)
        columns = shutil.get_terminal_size((_COLUMNS, 0)).columns
        return "\n\n".join([f"{view.text(columns)}\n{view.cost}", *map(repr, self.others)])


def release(
    data: Any,
    *,
    person: str | Sequence[str],
    metrics: Sequence[Metric],
    budget: Budget,
    partition: Sequence[str] = (),
    bounds: ContributionBounds | None = None,
    partitions: PublicPartitions | PrivatePartitions | None = None,
    suppress: SuppressUnreliable | None = None,
    nonnegative: bool = False,
    ledger: Ledger | None = None,
    period: str | None = None,
    ledger_period: str | None = None,
    query: str | None = None,
    numbers: Sequence[str] = (),
    csv: CsvFormat = RFC_4180,
    show_errors: bool = False,
    also_by: Sequence[Any] = (),
    totals: str = AGREE,
    post_process: str | None = None,
) -> Released:
    """Release statistics about people per partition, from a file or a table of this process.

    The result together is (epsilon, delta)-differentially private (or rho-zCDP) as `budget` says,
    when one person with all their rows is added or removed: see `PrivateAggregate`, which does the
    work, here in the memory of this process. **Every call spends its budget anew.**

        released = dp.release(
            "visits.csv",
            person="visitor_id",
            partition=["day"],
            metrics=[dp.Count(), dp.Sum("spent")],
            budget=dp.Budget(epsilon=1.0),
            partitions=dp.PublicPartitions(range(1, 8)),
        )
        print(released)
        released.report("released.html")

    Args:
        data: a path or glob of .parquet, .csv or .jsonl files; or a pyarrow Table, a DataFrame of
            pandas or Polars, or any other table with Arrow's PyCapsule interface. Only the columns
            that are needed are read.
        person, metrics, budget, partition, bounds, partitions, suppress, nonnegative, period,
            ledger_period: as in `PrivateAggregate`.
        ledger: is charged before the run: a run that would pass its limit is refused.
        query: SQL that makes the rows of those of `data`, each of one row alone: see `Rows`.
        numbers: columns of CSV files that the query takes as numbers; others are text for it.
        csv: how the cells of CSV files are written: `CsvFormat(decimal=",", encoding="cp1252")`.
        show_errors: whether the error of a run that fails is raised as it is: IT MAY QUOTE DATA.
        also_by, totals: further tables of the same budget, as in `PrivateTables`; they are the
            `others` of what is returned.
        post_process: SQL on each released table, as
            `SELECT *, spent / visits AS each FROM released WHERE people >= 100 ORDER BY visits`: a
            function of what was released, which costs nothing.

    Raises:
        TypeError, ValueError: before a row is read, for a wrong call; the message says what to
            write instead.
        RunFailed: where the run fails, as for a file that is damaged in its middle.
    """
    aggregate = PrivateAggregate(
        person,
        metrics,
        budget,
        partition,
        bounds,
        partitions,
        batches=isinstance(partitions, PublicPartitions),
        period=period,
        ledger_period=ledger_period,
        suppress=suppress,
        nonnegative=nonnegative,
    )
    tables = PrivateTables(aggregate, also_by, totals)
    if ledger is not None:
        checks.of_type(_SUBJECT, "ledger", ledger, Ledger, 'Write dp.Ledger("l.jsonl").')
    owners = aggregate.people_columns
    parsed = None if query is None else person_queries.parsed(query)
    after = ReleasedQuery.of(post_process, tables)
    with contextlib.ExitStack() as stack:
        if isinstance(data, (str, os.PathLike)):
            pattern = os.fspath(data)
            keys, asked = tables.columns, aggregate.metrics
            read: Any = read_rows.reader_of(
                pattern,
                owners,
                keys,
                asked,
                parsed,
                numbers,
                csv,
            )
            for part in pattern.split(","):
                read_rows.matched_files(part)  # raises where there is none
        else:
            pattern = ""
            rule = "be left out for a table in memory: it is of CSV files"
            checks.require(csv == RFC_4180, _SUBJECT, "csv", rule)
            read = stack.enter_context(frames.held(_read_of(data, owners, tables, parsed)))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        paths = [os.path.join(folder, f"released{at}.parquet") for at in range(len(tables.tables))]
        made = beam.Pipeline(RUNNER)
        rows = made | "Read" >> read
        rows = rows if query is None else rows | "Query" >> person_queries.Rows(query)
        released = rows | "Release" >> tables
        if ledger is not None:
            ledger.charge(aggregate, label("dp.release", pattern))
        name = pattern or type(data).__name__
        job = {"program": "beam_dp.release", "input": run_record.file_names(name)}
        job |= {} if query is None else {"query": run_record.sql_text(query)}
        job |= {} if after is None else {"post_process": after.text}
        job |= {"tables": tables.summary} if tables.summary else {}
        for part, table, path in zip(released, tables.tables, paths, strict=True):
            _ = part | f"Write {path[len(folder) :]}" >> write_of(table, path, job, after=after)
        run(made, show_errors)
        first, *others = map(Released.read, paths)
        return dataclasses.replace(first, others=tuple(others))


def write_of(
    aggregate: PrivateAggregate,
    path: str,
    job: dict[str, Any],
    overwrite: bool = False,
    after: ReleasedQuery | None = None,
) -> WriteRows:
    """Return what writes a release to a file, and its record beside it.

    Batches have the names that their user gave; fields of rows have plain ones.

    Args:
        aggregate: the release.
        path: the file.
        job: further public parameters of the record.
        overwrite: whether a file that exists is replaced.
        after: SQL on the released table; None: none.
    """
    named = aggregate.keys, aggregate.metrics
    names, record = output_names(*named), aggregate.record(job)
    if after is not None:
        record = record | f"Columns of {run_record.file_names(path)}" >> beam.Map(after.noted)
    if aggregate.batches:
        return WriteRows(path, names, overwrite, record, post_process=after)
    return WriteRows(path, field_names(*named), overwrite, record, names, after)


def _read_of(
    data: Any, owners: Sequence[str], tables: PrivateTables, query: Query | None
) -> frames.Frame:
    """Return the columns of a table that the release reads."""
    metrics = tables.first.metrics
    columns = table_order(column for metric in metrics for column in metric.columns())
    names = [*owners, *tables.columns, *(column.name for column in columns)]
    if query is not None:
        names = [*query.columns_of(names), *query.needs]
    return frames.frame_of(_SUBJECT, data, names)


def label(program: str, path: str) -> str:
    """Return what a ledger says of a run: its program, and the name of its files, if it has one."""
    name = "".join(letter for letter in run_record.file_names(path) if letter.isprintable())
    return f"{program}: {name}" if name else program


def run(made: beam.Pipeline, show_errors: bool = False) -> None:
    """Run a pipeline to its end in this process.

    Raises:
        RunFailed: without the error that was its cause, for that quotes data; with `show_errors`
            that error itself.
    """
    failure: Exception | None = None
    with hushed():
        try:
            made.run().wait_until_finish()
        except _RAISED as error:
            failure = error
    if failure is None:
        return
    if show_errors:
        raise failure
    raise RunFailed(message_of(failure))


def message_of(failure: BaseException) -> str:
    """Return what is said of a failed run: what this package wrote of it, or that it failed.

    Runners wrap the error in tracebacks, and errors of Beam quote elements.
    """
    kind = type(failure).__name__
    text = f"{kind}: {failure}"
    if full := _FULL_DISK.fullmatch(text):
        return full[1]
    if ours := _OURS.findall(text):
        return str(ours[-1])
    return f"the run failed with {kind}; its text may quote data: show_errors shows it"


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Hold back what Beam logs and prints.

    A failed run can leave threads at work, with elements to log: the log stays silent for as long
    as they live, but for at most a second.
    """
    log, running = logging.getLogger("apache_beam"), set(threading.enumerate())
    nothing, before = logging.NullHandler(), log.propagate
    log.addHandler(nothing)
    log.propagate = False
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        until = time.monotonic() + _PATIENCE
        while set(threading.enumerate()) - running and time.monotonic() < until:
            time.sleep(0.01)  # threads of other libraries cannot be joined
        log.propagate = before
        log.removeHandler(nothing)

"""What jobs that release with one transform have in common, from command line to output file."""

import functools
import re
import sys
from collections.abc import Sequence
from pathlib import PurePath

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

import beam_dp as dp
from beam_dp.mechanisms.planning.shown_tables import wrapped
from beam_dp.results.release import label, write_of
from beam_dp.results.view import View
from beam_dp.spending.ledger import Balance
from beam_dp.transforms.io import read_rows, whole_files
from beam_dp.transforms.stages.output_names import field_name
from pipelines import command_line, running, stopping, terminal
from pipelines.description import Description, without_folders

NOTHING = (
    "no partition was selected, so nothing was released (one is {}): give a larger epsilon or "
    "delta, or a smaller bound on partitions; take coarser partitions; or, which costs nothing, "
    "name the partitions: 1,2,3{}\n"
)
"""The last line of a job whose output has no row, which is a released fact."""
OF_QUERIES = (
    ". A query drops each row in which an expression fails, as CAST of a date like 24.11.2026: try "
    "it on rows that you made up"
)
TEMPLATE = "--ledger cannot count the runs of a template: leave --template_location out"


def pipeline(
    asked: Description, beam_options: PipelineOptions, program: str, quiet: bool
) -> beam.Pipeline:
    """Return the pipeline: read, release, write, with the record of the release beside it.

    Args:
        asked: what the job does.
        beam_options: those of Beam.
        program: the name of the job, for the record.
        quiet: whether no stage is named.
    """
    asked.check_files()
    release, given = asked.release, asked.given
    made = beam.Pipeline(options=beam_options)
    released = rows_of(asked, made) | "Release" >> release
    if asked.top is not None:
        by, k = asked.top
        released = released | "Top" >> dp.TopPartitions(k, field_name(by))
    if not quiet and running.is_here(made):
        terminal.when_ready("Writing", released)
    job = {"program": program, **without_folders({**given, "input": asked.input})}
    write = write_of(release, asked.output, job, given.get("overwrite", False))
    _ = released | "Write" >> write
    return made


def rows_of(asked: Description, made: beam.Pipeline) -> beam.PCollection[object]:
    """Return the rows that a job releases, read in this pipeline."""
    release = asked.release
    people, keys = release.people_columns, list(release.partition)
    query = None if asked.query is None else dp.Rows(asked.query)
    parsed = query and query.parsed
    read = read_rows.reader_of(
        asked.input, people, keys, release.metrics, parsed, asked.numbers, **asked.dialect
    )
    rows = made | "Read" >> read
    return rows if query is None else rows | "Query" >> query


def run(line: command_line.Parser, words: Sequence[str] | None) -> int:
    """Run the job that a command line asks for; returns the exit code.

    Args:
        line: the parser.
        words: those of the call; None: those of this process.
    """
    options, beam_options = line.read(words)
    balance: Balance | None = None
    with line.refusing():
        asked = Description(command_line.described(options))
        plan = asked.release.plan()
        name = label(re.split(r"[. ]", line.prog)[-1], asked.output or "no output")
        if options.plan:
            if asked.ledger is not None:
                balance = asked.ledger.foresee(asked.release, name)
            sys.stdout.write(f"{plan.text(terminal.width())}\n{told(balance, foreseen=True)}")
            return 0
        with terminal.warned():
            made = pipeline(asked, beam_options, line.prog, options.quiet)
        asked.check_input(made)
        if asked.ledger is not None:
            if beam_options.view_as(GoogleCloudOptions).template_location:
                raise ValueError(TEMPLATE)
            balance = asked.ledger.charge(asked.release, name)
    stopping.cleanings.append(functools.partial(whole_files.remove_unfinished, asked.output))
    running.run(made, "Reading and bounding", options.show_errors, options.quiet)
    if not FileSystems.exists(asked.output):  # a template was written, no job has run
        sys.stdout.write(f"{plan.text(terminal.width())}\n{told(balance)}")
        return 0
    released = show(asked.output, asked.given.get("report"))
    sys.stdout.write(told(balance))
    said = released.record["selection"]
    if said and not len(released.table):
        sys.stdout.write(NOTHING.format(said, OF_QUERIES if asked.query is not None else ""))
    return 0


def show(path: str, page: str | None = None) -> dp.Released:
    """Print a released file as a table, with its cost; return it.

    Args:
        path: the file.
        page: the file of the page that is to be written; None: none.
    """
    released = dp.Released.read(path)
    view = View.of(released.table, released.record)
    reported = _reported(released, path, page) if page else ""  # first: the reader may go away
    columns = terminal.width()
    lines = [view.text(columns)]
    lines += [wrapped(view.cost, columns)] if view.cost else []
    text = "\n".join([*lines, *([reported] if reported else [])])
    encoding = sys.stdout.encoding or "utf-8"  # a sign that it has not is shown by its number
    sys.stdout.write(f"{text.encode(encoding, 'backslashreplace').decode(encoding)}\n")
    return released


def _reported(released: dp.Released, path: str, page: str) -> str:
    """Write the page, and return what to say: the release is there, and paid for, in any case."""
    try:
        released.report(page)
    except OSError as error:
        again = f"dp.Released.read({path!r}).report({page!r})"
        return f"report: not written, {error.strerror}; at no cost: {again}"
    return f"report: {page}"


def told(balance: Balance | None, foreseen: bool = False) -> str:
    """Return the balance as a line of output; "" without a ledger.

    Args:
        balance: what the ledger holds.
        foreseen: whether it would hold that, and nothing has been charged.
    """
    if balance is None:
        return ""
    when = " after this run" * foreseen
    refused = ": THIS RUN WOULD BE REFUSED" * (not balance.is_within)
    return f"ledger {PurePath(balance.path).name}{when}: {balance.line}{refused}\n"

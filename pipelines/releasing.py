"""What jobs that release with one transform have in common, from command line to output file."""

import dataclasses
import functools
import itertools
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import apache_beam as beam
import yaml
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import cautions
from beam_dp.results.release import label, write_of
from beam_dp.results.view import View
from beam_dp.spending.ledger import Balance
from beam_dp.text.text_tables import wrapped
from beam_dp.transforms.io import read_rows, whole_files
from beam_dp.transforms.run_record import COLUMNS
from beam_dp.transforms.stages import guards
from beam_dp.transforms.stages.output_names import OTHER
from pipelines import command_line, running, stopping, terminal
from pipelines.description import Description, without_folders

NOTHING = (
    "no partition was selected, so nothing was released ({}): give a larger epsilon or "
    "delta, or a smaller bound on partitions; take coarser partitions; or, which costs nothing, "
    "name the partitions: 1,2,3. Are the columns the right ones? beam-dp check says it (not private){}\n"
)
"""The last line of a job whose output has no row, which is a released fact."""
NO_ROW = "no partition is left: none was selected, or HAVING or LIMIT leaves none\n"
"""The same of a job with SQL on its released table."""
OF_QUERIES = (
    ". In a query what CAST cannot read is null, as a date like 24.11.2026, and a row without a key "
    "is dropped"
)
CHECK = "to see what would be dropped of your own files, and why: beam-dp check (not private)\n"
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
    given = asked.given
    made = beam.Pipeline(options=beam_options)
    guards.warn_of_unusual("PrivateAggregate", asked.release.budget)
    job = {"program": program, **without_folders({**given, "input": asked.input})}
    if "select" in given and given.get("input"):  # its text names the files too
        job["select"] = job["select"].replace(given["input"], job["input"])
    if asked.together:
        job["tables"] = asked.together
    rows, ready = rows_of(asked, made), []
    triples = zip(rows | "Release" >> asked.run, asked.tables, asked.files("output"), strict=True)
    for released, table, output in triples:
        if asked.top is not None:
            released = released | f"Top{table.ending}" >> asked.top
        write = write_of(table.release, output, job, given.get("overwrite", False), asked.after)
        _ = released | f"Write{table.ending}" >> write
        ready.append(released)
    if not quiet and running.is_here(made):
        terminal.when_ready("Writing", ready)
    return made


def rows_of(asked: Description, made: beam.Pipeline) -> beam.PCollection[object]:
    """Return the rows that a job releases, read in this pipeline."""
    rows = made | "Read" >> reader_of(asked)
    return rows if asked.query is None else rows | "Query" >> dp.Rows(asked.query)


def reader_of(asked: Description) -> dp.ReadRows:
    """Return the reader of the columns that a job needs."""
    release = asked.release
    return read_rows.reader_of(
        asked.input,
        release.people_columns,
        asked.run.columns,
        release.metrics,
        asked.parsed,
        asked.numbers,
        asked.csv,
    )


def run(line: command_line.Parser, words: Sequence[str] | None) -> int:
    """Run the job that a command line asks for; returns the exit code.

    Args:
        line: the parser.
        words: those of the call; None: those of this process.
    """
    options, beam_options = line.read(words)
    balance: Balance | None = None
    with line.refusing(options.config):
        asked = Description(command_line.described(options))
        if options.show_mapping:
            sys.stdout.write(shown_mapping(asked.given))
            return 0
        plans = plans_of(asked)
        name = label(re.split(r"[. ]", line.prog)[-1], asked.output or "no output")
        if options.plan:
            if asked.ledger is not None:
                balance = asked.ledger.preview(asked.release, name)
            sys.stdout.write(f"{plans}{CHECK}{balance_line(balance, is_preview=True)}")
            return 0
        with terminal.warned():
            made = pipeline(asked, beam_options, line.prog, options.quiet)
        of_template = beam_options.view_as(GoogleCloudOptions).template_location
        if asked.ledger is not None and of_template:
            raise ValueError(TEMPLATE)
        running.check(made)
        asked.check_reachable(made)
        if asked.ledger is not None:
            balance = asked.ledger.charge(asked.release, name)
    outputs = asked.files("output")
    stopping.cleanings += [functools.partial(whole_files.remove_unfinished, o) for o in outputs]
    running.run(made, "Reading and bounding", options.show_errors, options.quiet)
    if of_template or not FileSystems.exists(
        asked.output
    ):  # no job has run; there may be an old file
        sys.stdout.write(f"{plans}{balance_line(balance)}")
        return 0
    found = show(outputs, asked.files("report"), asked.page)
    sys.stdout.write(balance_line(balance))
    for output, released in zip(outputs, found, strict=True):
        selection = released.record["selection"]
        selected = len(released.table)
        if "other" in released.record[COLUMNS]:
            marks = released.table[OTHER].to_pylist()
            selected -= sum(str(mark).lower() == "true" for mark in marks)
        if (selection or asked.after) and not selected:
            which = f"{PurePath(output).name}: " * (len(outputs) > 1)
            of_query = OF_QUERIES if asked.query is not None else ""
            why = NOTHING.format(selection, of_query) if asked.after is None else NO_ROW
            sys.stdout.write(f"{which}{why}")
    return 0


def plans_of(asked: Description) -> str:
    """Return the plan of each table, and what to say of several."""
    columns = terminal.width()
    texts = [table.release.plan().text(columns) for table in asked.tables]
    if asked.together:
        pairs = zip(asked.run.tables, texts, strict=True)
        texts = [f"{table.title}:\n{text}\n" for table, text in pairs]
        unusual = [f"Warning: {line}" for line in cautions(asked.release.budget)]
        texts += [wrapped(line, columns) for line in (asked.together, *unusual)]
    taken = reader_of(asked).taken() if asked.input else []
    texts += [wrapped(line, columns) for line in (*asked.became, *taken)]
    return "".join(f"{text}\n" for text in texts)


def shown_mapping(given: Mapping[str, Any]) -> str:
    """Return a mapping as a file of `--config` has it, in the words that its SELECT became."""
    plain = {name: part for name, part in given.items() if name != "select"}
    plain = json.loads(json.dumps(plain, default=float))  # the fractions of a budget
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
    return text


def show(
    paths: Sequence[str], pages: Sequence[str] = (), style: Mapping[str, str] | None = None
) -> list[dp.Released]:
    """Print the released files of a run as tables, with their cost; return them.

    Args:
        paths: the files.
        pages: the files of the pages that are to be written.
        style: their title and number_style, as far as these are asked for.
    """
    first, *others = map(dp.Released.read, paths)
    found = [dataclasses.replace(first, others=tuple(others)), *others]
    write = functools.partial(_reported, style=style or {})
    reported = list(map(write, found, paths, pages))  # first: the reader may go away
    columns, texts = terminal.width(), []
    for released, path, page in itertools.zip_longest(found, paths, reported):
        view = View.of(released.table, released.record)
        lines = [f"{PurePath(path).name}:"] if view.together else []
        lines += [view.text(columns), *([wrapped(view.cost, columns)] if view.cost else [])]
        texts.append("\n".join([*lines, *([page] if page else [])]))
    texts += [wrapped(view.together, columns)] if view.together else []
    text = "\n\n".join(texts)
    encoding = sys.stdout.encoding or "utf-8"  # a sign that it has not is shown by its number
    sys.stdout.write(f"{text.encode(encoding, 'backslashreplace').decode(encoding)}\n")
    return found


def _reported(released: dp.Released, path: str, page: str, style: Mapping[str, str]) -> str:
    """Write the page, and return what to say: the release is there, and paid for, in any case."""
    try:
        released.report(page, **style, overwrite=True)
    except OSError as error:
        again = f"dp.Released.read({path!r}).report({page!r})"
        return f"report: not written, {error.strerror}; at no cost: {again}"
    return f"report: {page}"


def balance_line(balance: Balance | None, is_preview: bool = False) -> str:
    """Return the balance as a line of output; "" without a ledger.

    Args:
        balance: what the ledger holds.
        is_preview: whether it would hold that, and nothing has been charged.
    """
    if balance is None:
        return ""
    when = " after this run" * is_preview
    refused = ": THIS RUN WOULD BE REFUSED" * (not balance.is_within)
    if refused and balance.period and not balance.charges[-1].ledger_period:
        refused += f". Name the {balance.period}: --ledger_period"
    return f"ledger {PurePath(balance.path).name}{when}: {balance.line}{refused}\n"

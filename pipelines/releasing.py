"""The common part of jobs that release with one transform, from command line to output file."""

import argparse
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.spending.ledger import Balance
from beam_dp.transforms import release_record
from beam_dp.transforms.inputs import wanted_columns
from beam_dp.transforms.io import whole_files
from beam_dp.transforms.steps.output_rows import field_name, field_names, output_names
from pipelines import charging, running, stopping, table, terminal
from pipelines.arguments import command, files, people, spending, words

NOTHING = (
    "no partition was selected, so nothing was released (one is {}): give more --epsilon or "
    "--delta, or a smaller --bounds partitions=N; take a coarser --partition; or name the "
    "partitions, which costs nothing: --public_partitions 1,2,3\n"
)
"""The last line of a job whose output has no row, which is a released fact."""


def add_spending(made: argparse.ArgumentParser) -> None:
    """Add the options of the budget, --pre_threshold, --top_partitions, --plan and its guesses."""
    spending.add(made)
    fewest = "name no private partition with fewer people"
    made.add_argument("--pre_threshold", type=words.whole, default=1, metavar="N", help=fewest)
    best = "write the K partitions with the largest number of an output column, at no cost"
    largest: dict[str, Any] = {"metavar": "NAME=K", "help": f"{best}: people_count=10"}
    made.add_argument("--top_partitions", type=words.top, **largest)
    made.add_argument("--plan", action="store_true", help="print costs and errors; read no row")
    guess = "with --plan: how many people there are in all, known or guessed: what to expect"
    made.add_argument("--people", type=words.whole, metavar="N", help=guess)
    most = (
        "with --people, what you guess: spent<=100, the most that one person adds to a partition; "
        "rows<=3, their rows in it; each<=2, in how many partitions a person is; partitions<=30, "
        "how many there are"
    )
    form: dict[str, Any] = {
        "type": words.assumed,
        "action": words.Gathered,
        "default": {},
        "metavar": "COLUMN<=MOST",
        "help": most,
    }
    made.add_argument("--assume", **form)


def transform(options: argparse.Namespace, asked: Sequence[Metric]) -> dp.PrivateAggregate:
    """Return the release of the metrics that the options ask for."""
    keys: dp.PublicPartitions | dp.PrivatePartitions | None = people.public_partitions(options)
    if options.pre_threshold > 1 and (keys is not None or not options.partition):
        raise ValueError("--pre_threshold is for private partitions only")
    _check_top(options, asked)
    if keys is None and options.partition:
        keys = dp.PrivatePartitions(options.pre_threshold)
    bounds, budget, person = (
        people.bounds(options),
        spending.budget(options),
        people.person(options),
    )
    batches = isinstance(keys, dp.PublicPartitions) and options.top_partitions is None
    size = options.partition_rows
    further: dict[str, Any] = {"partition_rows": size, "shards": options.shards}
    further |= {"batches": batches, "plain_names": True}
    return dp.PrivateAggregate(person, asked, budget, options.partition, bounds, keys, **further)


def _check_top(options: argparse.Namespace, asked: Sequence[Metric]) -> None:
    """Refuse to rank by what is no number of the output, and where there is one partition."""
    if options.top_partitions is None:
        return
    if not options.partition:
        raise ValueError("--top_partitions needs --partition COLUMN, whose values it ranks")
    names, (by, _) = output_names((), asked), options.top_partitions
    if by not in names:
        raise ValueError(
            f"--top_partitions: {by!r} is none of the output columns: {', '.join(names)}"
        )


def pipeline(
    options: argparse.Namespace,
    beam_options: PipelineOptions,
    release: dp.PrivateAggregate,
    job: Mapping[str, object],
) -> beam.Pipeline:
    """Return the pipeline: read, release, write, with the record of the release beside it.

    Args:
        options: the job's options.
        beam_options: those of Beam.
        release: what is released.
        job: the parameters of the job, for the record.
    """
    files.check(options)
    keys, quotes = options.partition, files.quotes(options)
    read = wanted_columns.reader(options.input, options.person, keys, release.metrics, quotes)
    made = beam.Pipeline(options=beam_options)
    released = made | "Read" >> read | "Release" >> release
    if options.top_partitions is not None:
        by, k = options.top_partitions
        released = released | "Top" >> dp.TopPartitions(k, field_name(by))
    names = output_names(release.partition, release.metrics)
    if not options.quiet:
        terminal.when_ready("Writing", released)
    record = release.record(job)
    write = dp.WriteRows(options.output, names, options.overwrite, record)
    if not release.batches:
        fields = field_names(release.partition, release.metrics)
        write = dp.WriteRows(options.output, fields, options.overwrite, record, names)
    _ = released | "Write" >> write
    return made


def run(
    line: command.Parser,
    release_of: Callable[[argparse.Namespace], dp.PrivateAggregate],
    given: Sequence[str] | None,
) -> int:
    """Run the job that a command line asks for; returns the exit code."""
    options, beam_options = line.read(given)
    with line.refusing():
        release = release_of(options)
        plan = release.plan(options.people, options.assume)
        if options.people is not None and not options.plan:
            raise ValueError("--people is for --plan: the run itself needs no guess")
        balance = charging.planned(options, line.prog, release)
    released: int | None = None
    if not options.plan:
        with stopping.cleaning(functools.partial(whole_files.remove_unfinished, options.output)):
            released, balance = _write(line, options, beam_options, release)
    if released is None:
        sys.stdout.write(f"{plan.text(table.width())}\n")
    sys.stdout.write(charging.told(balance, foreseen=options.plan))
    if released == 0 and (said := table.selection(options.output)):
        sys.stdout.write(NOTHING.format(said))
    return 0


def _write(
    line: command.Parser,
    options: argparse.Namespace,
    beam_options: PipelineOptions,
    release: dp.PrivateAggregate,
) -> tuple[int | None, Balance | None]:
    """Run the pipeline and print the file that it wrote.

    Returns:
        its number of rows, None for a template; and what the ledger held after the charge.
    """
    with line.refusing(), terminal.warned():
        made = pipeline(options, beam_options, release, line.chosen(options))
        files.check_there(options, made)
        balance = charging.charge(options, beam_options, line.prog, release)
    shown = {"show_errors": options.show_errors, "quiet": options.quiet}
    running.run(made, "Reading and bounding", reads=options.input, **shown)
    if not FileSystems.exists(options.output):  # a template was written, no job has run
        return None, balance
    columns = release_record.columns(release)
    return table.show(options.output, columns, options.report).rows, balance

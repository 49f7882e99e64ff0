"""The common part of jobs that release with one transform, from command line to output file."""

import argparse
import functools
import sys
from collections.abc import Callable, Sequence

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.transforms.io import whole_files
from beam_dp.transforms.steps.output_rows import output_names
from pipelines import reading, stopping, table, terminal
from pipelines.arguments import command, files, people, spending, words


def add_spending(made: argparse.ArgumentParser) -> None:
    """Add the options of the budget, --pre_threshold and --plan."""
    spending.add(made)
    fewest = "name no private partition with fewer people"
    made.add_argument("--pre_threshold", type=words.whole, default=1, metavar="N", help=fewest)
    made.add_argument("--plan", action="store_true", help="print costs and errors; read no row")


def transform(options: argparse.Namespace, asked: Sequence[Metric]) -> dp.PrivateAggregate:
    """Return the release of the metrics that the options ask for."""
    keys: dp.PublicPartitions | dp.PrivatePartitions | None = people.public_partitions(options)
    if options.pre_threshold > 1 and (keys is not None or not options.partition):
        raise ValueError("--pre_threshold is for private partitions only")
    if keys is None and options.partition:
        keys = dp.PrivatePartitions(options.pre_threshold)
    bounds, budget, person = (
        people.bounds(options),
        spending.budget(options),
        people.person(options),
    )
    batches, size = isinstance(keys, dp.PublicPartitions), options.partition_rows
    further = {"partition_rows": size, "batches": batches}
    return dp.PrivateAggregate(person, asked, budget, options.partition, bounds, keys, **further)


def pipeline(
    options: argparse.Namespace, beam_options: PipelineOptions, release: dp.PrivateAggregate
) -> beam.Pipeline:
    """Return the pipeline: read, release, write."""
    files.check(options)
    keys, quotes = options.partition, options.csv_quotes == "standard"
    read = reading.rows_of(options.input, options.person, keys, release.metrics, quotes)
    made = beam.Pipeline(options=beam_options)
    released = made | "Read" >> read | "Release" >> release
    names = output_names(release.partition, release.metrics)
    terminal.when_ready("Writing", released)
    _ = released | "Write" >> dp.WriteRows(options.output, names, options.overwrite)
    return made


def run(
    line: command.Parser,
    release_of: Callable[[argparse.Namespace], dp.PrivateAggregate],
    given: Sequence[str] | None,
) -> int:
    """Run the job that a command line asks for; returns the exit code."""
    options, beam_words = line.read(given)
    with line.refusing():
        release = release_of(options)
    if not options.plan:
        with stopping.cleaning(functools.partial(whole_files.remove_unfinished, options.output)):
            _write(line, options, beam_words, release)
    sys.stdout.write(f"{release.plan()}\n")
    return 0


def _write(
    line: command.Parser,
    options: argparse.Namespace,
    beam_words: Sequence[str],
    release: dp.PrivateAggregate,
) -> None:
    """Run the pipeline and print the file that it wrote."""
    with line.refusing():
        made = pipeline(options, line.for_beam(beam_words), release)
    terminal.run(made, "Reading and bounding", options.show_errors)
    if FileSystems.exists(options.output):  # a template was written, no job has run
        table.show(options.output, output_names(release.partition, release.metrics))

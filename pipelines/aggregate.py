"""Release private statistics per partition from files of rows about people.

For example, what visitors spent per day, with no bound on what one of them spends:

    python -m pipelines.aggregate --input visits.parquet --output released.csv \\
        --person visitor_id --partition day --count --sum spent --max minutes \\
        --epsilon 1 --max_partitions 3 --public_partitions 1,2,3,4,5,6,7

Every metric becomes two columns: its value, and <metric>_error, a bound that holds for 95% of
releases (for all that is released from below, and for quantiles, a number of people; inf: too few
people for a bound, see "shift T" in the plan). --plan says what each metric would cost and how far
it would stray, and reads no row. A second run is a second release: it spends again.
"""

import argparse
import sys
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.transforms.rows import output_names
from pipelines import reading, table, terminal
from pipelines.arguments import command, files, metrics, people, spending, words


def parser() -> command.Parser:
    """Return the command line."""
    made = command.parser("aggregate", __doc__)
    metrics.add(made)
    spending.add(made)
    fewest = "name no private partition with fewer people"
    made.add_argument("--pre_threshold", type=words.whole, default=1, metavar="N", help=fewest)
    made.add_argument("--plan", action="store_true", help="print costs and errors; read no row")
    return made


def transform(options: argparse.Namespace) -> dp.PrivateAggregate:
    """Return the release that the options ask for."""
    keys = people.public_partitions(options)
    if options.pre_threshold > 1 and (keys is not None or not options.partition):
        raise ValueError("--pre_threshold is for private partitions only")
    if keys is None and options.partition:
        keys = dp.PrivatePartitions(options.pre_threshold)
    asked, bounds, budget = metrics.asked(options), people.bounds(options), spending.budget(options)
    person = people.person(options)
    return dp.PrivateAggregate(person, asked, budget, options.partition, bounds, keys)


def pipeline(
    options: argparse.Namespace, beam_options: PipelineOptions, release: dp.PrivateAggregate
) -> beam.Pipeline:
    """Return the pipeline: read, release, write."""
    files.check(options)
    read = reading.rows_of(options.input, options.person, options.partition, release.metrics)
    made = beam.Pipeline(options=beam_options)
    released = made | "Read" >> read | "Release" >> release
    names = output_names(release.partition, release.metrics)
    terminal.when_ready("Writing", released)
    _ = released | "Write" >> dp.WriteRows(options.output, names, options.overwrite)
    return made


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    line = parser()
    options, beam_words = line.read(given)
    with line.refusing():
        release = transform(options)
        made = None if options.plan else pipeline(options, line.for_beam(beam_words), release)
    if made is not None:
        terminal.run(made, "Reading and bounding")
        if FileSystems.exists(options.output):  # a template was written, no job has run
            table.show(options.output, output_names(release.partition, release.metrics))
    sys.stdout.write(f"{release.plan()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

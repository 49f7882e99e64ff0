"""Release one statistic by the shifted inverse mechanism, in two steps that can be seen.

A Beam job writes, per partition, B[0], ..., B[K]: the statistic without the best k people. Then the
search runs here, on the driver, and draws one value from each profile. For example:

    python -m pipelines.shifted_inverse --input visits.csv --output released.csv \\
        --person visitor_id --partition day --public_partitions 1,2,3,4,5,6,7 \\
        --bounds partitions=3 --max minutes --candidates 0:1440:1 --epsilon 1

Between the steps the profiles lie in a file. THEY ARE NOT PRIVATE: it is in a directory of its own,
below --temp_location if that is given, and is deleted. `pipelines.aggregate` needs no such file.
"""

import argparse
import functools
import sys
from collections.abc import Sequence
from fractions import Fraction

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.plan import cost
from beam_dp.mechanisms.releases.shifted_inverse import DirectRelease
from beam_dp.mechanisms.search import Search
from beam_dp.mechanisms.search.choose import build_search
from beam_dp.transforms import release_record
from beam_dp.transforms.inputs import wanted_columns
from beam_dp.transforms.io import whole_files
from beam_dp.transforms.partitions import reach_of
from beam_dp.transforms.steps.output_rows import field_names, output_names
from pipelines import charging, scratch, stopping, table, terminal
from pipelines.arguments import chosen, command, files, metrics, people, spending

BETA = 0.05


def parser() -> command.Parser:
    """Return the command line."""
    made = command.parser("shifted_inverse", __doc__, several_owners=True)
    metrics.add_statistic(made)
    spending.add(made)
    return made


def steps(options: argparse.Namespace) -> tuple[dp.RemovalLoss, Search, Candidates]:
    """Return the two steps that the options ask for, and the outputs to search."""
    keys, bounds = people.public_partitions(options), people.given_bounds(options)
    if bool(options.partition) != (keys is not None):
        raise ValueError("--partition and --public_partitions must be given together")
    [statistic] = chosen.asked(options)
    # One person moves the loss of at most `reach` partitions: each search gets that part.
    reach = reach_of("shifted_inverse", bounds, keys)
    share = spending.budget(options).scaled(Fraction(1, reach))
    mirrored = statistic.profile_request().sign < 0
    outputs = options.candidates.mirrored() if mirrored else options.candidates
    search = build_search(options.search or dp.AboveThreshold, share, BETA, outputs.size)
    person, partition, cap = people.person(options), options.partition, search.cap(outputs.size)
    size = {"partition_rows": options.partition_rows, "shards": options.shards}
    loss = dp.RemovalLoss(statistic, person, partition, cap, bounds, keys, **size)
    return loss, search, outputs


def write_loss(
    lost: beam.PCollection[beam.Row],
    path: str,
    show_errors: bool = False,
    reads: str = "",
    quiet: bool = False,
) -> None:
    """Run the job: write the removal loss of its rows."""
    scratch.write_lines(lost, path)
    terminal.run(lost.pipeline, "Reading and bounding", show_errors, reads, quiet)


def main(given: Sequence[str] | None = None) -> int:
    """Run the job, search, write; returns the exit code."""
    line = parser()
    options, beam_options = line.read(given)
    with stopping.cleaning(functools.partial(whole_files.remove_unfinished, options.output)):
        return _release(line, options, beam_options)


def _release(
    line: command.Parser, options: argparse.Namespace, beam_options: PipelineOptions
) -> int:
    with line.refusing(), terminal.warned():
        files.check(options)
        loss, search, outputs = steps(options)
        owners, partition = options.person, options.partition
        quotes = files.quotes(options)
        read = wanted_columns.reader(options.input, owners, partition, [loss.statistic], quotes)
        budget = spending.budget(options)
        names = output_names(loss.partition, [loss.statistic])
        record = release_record.facts(loss, line.chosen(options)) | {
            "budget": cost(budget),
            "search": type(search).__name__,
            "shift_T": search.shift(outputs.size),
        }
        fields = field_names(loss.partition, [loss.statistic])
        write = dp.WriteRows(options.output, fields, options.overwrite, record, names)
        made = beam.Pipeline(options=beam_options)
        lost = made | "Read" >> read | "RemovalLoss" >> loss
        files.check_there(options, made)
        charged = charging.charge(options, made.options, line.prog, budget, loss.person)
    release = DirectRelease(loss.profiler, search, outputs)
    with scratch.private_directory(made.options, "the loss") as path:
        write_loss(lost, path, options.show_errors, options.input, options.quiet)
        if not options.quiet:
            terminal.say("Searching")
        *keys, profiles = zip(*scratch.read_lines(path), strict=True)
    drawn = release.released([release.draw_one(dp.Profile(p), Noise()) for p in profiles])
    numbers = (column.tolist() for column in loss.statistic.output_columns(drawn))
    writing = beam.Pipeline("FnApiRunner")
    cells = zip(*keys, *numbers, strict=True)
    rows = [beam.Row(**dict(zip(fields, row, strict=True))) for row in cells]
    _ = writing | "Rows" >> beam.Create(rows) | "Write" >> write
    terminal.run(writing, "Writing", options.show_errors, quiet=options.quiet)
    table.show(options.output, release_record.columns(loss), options.report)
    sys.stdout.write(charging.told(charged))
    return 0


if __name__ == "__main__":
    sys.exit(main())

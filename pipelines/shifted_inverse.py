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
import contextlib
import functools
import json
import os
import sys
import tempfile
import uuid
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

import beam_dp as dp
from beam_dp.beam_yaml.mappings import columns_of, partitions_of
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.metrics.base import takes
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.plan import cost
from beam_dp.mechanisms.releases.shifted_inverse import DirectRelease
from beam_dp.mechanisms.search import Search
from beam_dp.mechanisms.search.choose import BY_WORD, build_search
from beam_dp.transforms import release_record
from beam_dp.transforms.inputs import wanted_columns
from beam_dp.transforms.io import whole_files
from beam_dp.transforms.partitions import reach_of
from beam_dp.transforms.steps.output_rows import field_names, output_names
from pipelines import command_line, releasing, running, stopping, table, terminal
from pipelines.description import Description

BETA = 0.05
OWNER = "shifted_inverse"


def parser() -> command_line.Parser:
    """Return the command line."""
    made = command_line.parser("shifted_inverse", __doc__, plans=False)
    command_line.add_metrics(made, lambda kind: takes(kind, "search"), from_below=True)
    outputs = "the values that may be released, public; or LOW:HIGH:xRATIO; =LOW:... below 0"
    made.add_argument("--candidates", metavar="LOW:HIGH:STEP", help=outputs)
    searches = f"one of {', '.join(BY_WORD)}; auto has the smallest proved shift T"
    made.add_argument("--search", choices=BY_WORD, metavar="NAME", help=searches)
    return made


def described(line: command_line.Parser, options: argparse.Namespace) -> dict[str, Any]:
    """Return the mapping that the options make."""
    beside: dict[str, Any] = {"search": options.search or "above_threshold"}
    if not options.metrics and (options.search or options.candidates):
        raise ValueError(
            "--search and --candidates need a statistic beside them, like --max COLUMN"
        )
    if options.candidates is not None:
        low, _, rest = options.candidates.partition(":")
        high, _, step = rest.partition(":")
        by = {"ratio": step[1:]} if step.startswith("x") else {"step": step}
        beside["candidates"] = {"low": low, "high": high, **by}
    for asked in options.metrics:
        asked |= beside
        if takes(REGISTRY[next(iter(asked))], "one_sided"):
            asked["one_sided"] = True
    return command_line.described(line, options)


def steps(asked: Description) -> tuple[dp.RemovalLoss, Search, Candidates]:
    """Return the two steps that a mapping asks for, and the outputs to search."""
    given, metrics = asked.given, asked.metrics
    if len(metrics) != 1 or vars(metrics[0]).get("candidates") is None:
        raise ValueError("one statistic is required, and its candidates: --candidates 0:1440:1")
    if "top_partitions" in given:
        raise ValueError("top_partitions is for pipelines.aggregate: leave it out")
    statistic: Any = metrics[0]
    columns = columns_of(given.get("partition"))
    keys = partitions_of(OWNER, given.get("partitions"), columns)
    if isinstance(keys, dp.PrivatePartitions) or bool(columns) != (keys is not None):
        raise ValueError("--partition and --public_partitions must be given together")
    bounds = dp.ContributionBounds(**{"partitions": None, **given.get("bounds", {})})
    # One person moves the loss of at most `reach` partitions: each search gets that part.
    share = asked.budget.scaled(Fraction(1, reach_of(OWNER, bounds, keys)))
    outputs = statistic.candidates
    outputs = outputs.mirrored() if statistic.sign < 0 else outputs
    search = build_search(statistic.search, share, BETA, outputs.size)
    size = {name: given[name] for name in ("partition_rows", "shards") if name in given}
    person: Any = given.get("person")
    loss = dp.RemovalLoss(
        statistic, person, columns, search.cap(outputs.size), bounds, keys, **size
    )
    return loss, search, outputs


@contextlib.contextmanager
def private_directory(options: PipelineOptions) -> Iterator[str]:
    """Make a directory, warn of it, and delete it at the end, also after a failure or Ctrl-C.

    It is below --temp_location if that is given (other machines must reach it), else in this
    machine's directory for temporary files, where only this user may read it.
    """
    shared = options.view_as(GoogleCloudOptions).temp_location
    path = FileSystems.join(shared or tempfile.gettempdir(), uuid.uuid4().hex)

    def delete(processes: Collection[int] = ()) -> None:
        with contextlib.suppress(OSError):  # a thread may put a file there meanwhile
            FileSystems.delete([path])
        if FileSystems.exists(path):
            FileSystems.delete([path])

    with stopping.cleaning(delete):
        FileSystems.mkdirs(path) if shared else os.mkdir(path, 0o700)
        terminal.say(f"Warning: the loss is not private; it is in {path} until the end of the job")
        try:
            yield path
        finally:
            delete()


def write_lines(rows: beam.PCollection[beam.Row], path: str) -> None:
    """Write each row's fields as one line of JSON (-inf is written as -Infinity)."""
    lines = rows | "ToLine" >> beam.Map(lambda row: json.dumps(list(row.as_dict().values())))
    _ = lines | "WriteLines" >> beam.io.WriteToText(FileSystems.join(path, "rows"), num_shards=1)


def read_lines(path: str) -> Iterator[list[Any]]:
    """Yield the fields of every row that was written."""
    for file in FileSystems.match([FileSystems.join(path, "rows*")])[0].metadata_list:
        with FileSystems.open(file.path) as lines:
            yield from map(json.loads, lines)


def main(given: Sequence[str] | None = None) -> int:
    """Run the job, search, write; returns the exit code."""
    line = parser()
    options, beam_options = line.read(given)
    with line.refusing(), terminal.warned():
        asked = Description(described(line, options))
        asked.check_files()
        loss, search, outputs = steps(asked)
        owners = [loss.person] if isinstance(loss.person, str) else list(loss.person)
        keys = list(loss.partition)
        read = wanted_columns.reader(asked.input, owners, keys, [loss.statistic], asked.quotes)
        record = release_record.facts(loss, releasing.facts(line, asked)) | {
            "budget": cost(asked.budget),
            "search": type(search).__name__,
            "shift_T": search.shift(outputs.size),
        }
        names = output_names(loss.partition, [loss.statistic])
        fields = field_names(loss.partition, [loss.statistic])
        write = dp.WriteRows(asked.output, fields, asked.overwrite, record, names)
        made = beam.Pipeline(options=beam_options)
        lost = made | "Read" >> read | "RemovalLoss" >> loss
        asked.check_input(made)
        charged = releasing.charge(asked, made.options, line.prog, asked.budget, loss.person)
    release = DirectRelease(loss.profiler, search, outputs)
    clean = functools.partial(whole_files.remove_unfinished, asked.output)
    shown = {"show_errors": options.show_errors, "quiet": options.quiet}
    with stopping.cleaning(clean), private_directory(made.options) as path:
        write_lines(lost, path)
        running.run(made, "Reading and bounding", reads=asked.input, **shown)
        if not options.quiet:
            terminal.say("Searching")
        *parts, profiles = zip(*read_lines(path), strict=True)
        drawn = release.released([release.draw_one(dp.Profile(p), Noise()) for p in profiles])
        numbers = (column.tolist() for column in loss.statistic.output_columns(drawn))
        cells = zip(*parts, *numbers, strict=True)
        rows = [beam.Row(**dict(zip(fields, row, strict=True))) for row in cells]
        writing = beam.Pipeline("FnApiRunner")
        _ = writing | "Rows" >> beam.Create(rows) | "Write" >> write
        running.run(writing, "Writing", **shown)
    table.show(asked.output, release_record.columns(loss), asked.report)
    sys.stdout.write(releasing.told(charged))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Release one statistic by the shifted inverse mechanism, in two steps that can be seen.

A Beam job writes, per partition, B[0], ..., B[K]: the statistic when the best k people are removed.
Then the search runs here, on the driver, and draws one value from each profile. For example:

    python -m pipelines.shifted_inverse --input visits.csv --output released.csv \\
        --person visitor_id --partition day --public_partitions 1,2,3,4,5,6,7 --max_partitions 3 \\
        --max minutes --candidates 0:1440:1 --epsilon 1

Between the steps the profiles lie in a file. THEY ARE NOT PRIVATE: the file is in a directory of
its own, below --temp_location if that is given (a runner with other machines needs one), else
below this machine's own, and is deleted at the end. `pipelines.aggregate` writes no such file.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from fractions import Fraction

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

import beam_dp as dp
from beam_dp.mechanisms.metrics import build_search
from beam_dp.transforms.partitions import reach_of
from pipelines import arguments, terminal

BETA = 0.05
SEARCHES = {
    "above_threshold": dp.AboveThreshold,
    "exponential": dp.ExponentialMechanism,
    "binary": dp.NoisyBinarySearch,
}


def parser() -> arguments.Parser:
    """Return the command line."""
    made = arguments.parser("shifted_inverse", __doc__)
    arguments.add_statistic(made)
    made.add_argument("--search", choices=list(SEARCHES), default="above_threshold")
    arguments.add_budget(made)
    return made


@contextlib.contextmanager
def private_directory(shared: str | None) -> Iterator[str]:
    """Make a directory for data that is not private, and delete it at the end."""
    path = FileSystems.join(shared, uuid.uuid4().hex) if shared else tempfile.mkdtemp()
    if shared:
        FileSystems.mkdirs(path)
    terminal.say(f"Warning: private data (the loss) is in {path} until the search is done")
    try:
        yield path
    finally:
        FileSystems.delete([path])


def to_line(row: beam.Row) -> str:
    """Return a profile with its key as one line of JSON (-inf is written as -Infinity)."""
    return json.dumps(row.as_dict())


def write_loss(
    options: argparse.Namespace, pipeline: beam.Pipeline, loss: dp.RemovalLoss, path: str
) -> None:
    """Read the rows and write their removal loss."""
    values = list(loss.statistic.columns)
    columns = dict.fromkeys([options.person, *options.partition, *values])
    rows = pipeline | "Read" >> dp.ReadRows(options.input, list(columns), values)
    lines = rows | "RemovalLoss" >> loss | "ToLine" >> beam.Map(to_line)
    _ = lines | "Write" >> beam.io.WriteToText(FileSystems.join(path, "loss"), num_shards=1)


def read_loss(path: str, columns: Sequence[str]) -> Iterator[tuple[tuple[object, ...], dp.Profile]]:
    """Yield the key and the profile of every partition."""
    [found] = FileSystems.match([FileSystems.join(path, "loss*")])
    for file in found.metadata_list:
        with FileSystems.open(file.path) as lines:
            for row in map(json.loads, lines):
                yield tuple(row[column] for column in columns), dp.Profile(row["profile"])

"""A directory for data that is not private, which does not outlive its use."""

import contextlib
import json
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any, NoReturn

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from pipelines import terminal


@contextlib.contextmanager
def private_directory(options: PipelineOptions, holds: str) -> Iterator[str]:
    """Make a directory, warn of it, and delete it at the end, also after a failure or SIGTERM.

    It lies below --temp_location if that is given (other machines must reach it), else below this
    machine's own and only this user may read it.

    Args:
        options: the pipeline's.
        holds: what lies there, for the warning.
    """
    shared = options.view_as(GoogleCloudOptions).temp_location
    path = FileSystems.join(shared, uuid.uuid4().hex) if shared else tempfile.mkdtemp()
    if shared:
        FileSystems.mkdirs(path)
    terminal.say(f"Warning: {holds} is not private; it is in {path} until the end of the job")
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        yield path
    finally:
        FileSystems.delete([path])
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: object) -> NoReturn:
    """Leave by an exception, so that what must be deleted is deleted."""
    sys.exit(f"error: stopped by signal {number}")


def write_lines(rows: beam.PCollection[beam.Row], path: str) -> None:
    """Write each row's fields as one line of JSON (-inf is written as -Infinity)."""
    lines = rows | "ToLine" >> beam.Map(to_line)
    _ = lines | "WriteLines" >> beam.io.WriteToText(FileSystems.join(path, "rows"), num_shards=1)


def to_line(row: beam.Row) -> str:
    """Return the fields of a row as JSON."""
    return json.dumps(list(row.as_dict().values()))


def read_lines(path: str) -> Iterator[list[Any]]:
    """Yield the fields of every row that `write_lines` wrote."""
    for file in FileSystems.match([FileSystems.join(path, "rows*")])[0].metadata_list:
        with FileSystems.open(file.path) as lines:
            yield from map(json.loads, lines)

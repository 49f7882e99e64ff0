"""A temporary directory for data that is not private, deleted after its use."""

import contextlib
import json
import os
import tempfile
import uuid
from collections.abc import Collection, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from pipelines import stopping, terminal


@contextlib.contextmanager
def private_directory(options: PipelineOptions, holds: str) -> Iterator[str]:
    """Make a directory, warn of it, and delete it at the end, also after a failure or Ctrl-C.

    It is below --temp_location if that is given (other machines must reach it), else in this
    machine's directory for temporary files, where only this user may read it.

    Args:
        options: the pipeline's options.
        holds: the content of the directory, for the warning.
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
        terminal.say(f"Warning: {holds} is not private; it is in {path} until the end of the job")
        try:
            yield path
        finally:
            delete()


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

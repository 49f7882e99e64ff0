"""The last step of a benchmarked pipeline: one small CSV file, the same for every contestant."""

from __future__ import annotations

import csv
import itertools
import json
import time
from collections.abc import Iterable

import apache_beam as beam

from benchmarks.measure import INNER


class WriteTable(beam.PTransform):
    """Write (partition, count, sum) triples as one CSV file."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def expand(self, triples: beam.PCollection) -> beam.PCollection:
        """Gather the triples in one place and write them there; none at all are a file too."""
        keyed = triples | "Key" >> beam.WithKeys(None)
        nothing = triples.pipeline | "Nothing" >> beam.Create([(None, None)])
        return (
            (keyed, nothing)
            | "Gather" >> beam.Flatten()
            | "GroupByKey" >> beam.GroupByKey()
            | "Write" >> beam.Map(write, self.path)
        )


def write(gathered: tuple[None, Iterable[tuple[object, float, float] | None]], path: str) -> None:
    """Write the triples as lines."""
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(triple for triple in gathered[1] if triple)


def report(path: str, started: float, header: bool = False) -> str:
    """Return how many partitions a written file names and their counts' sum, as a JSON object.

    Args:
        path: the file.
        started: `time.perf_counter()` after the imports.
        header: whether the file has one.
    """
    seconds = round(time.perf_counter() - started, 3)
    with open(path, newline="") as file:
        lines = itertools.islice(csv.reader(file), int(header), None)
        partitions, counted = 0, 0.0
        for line in lines:
            partitions, counted = partitions + 1, counted + float(line[1])
    return json.dumps({"partitions": partitions, "counted": round(counted), INNER: seconds})

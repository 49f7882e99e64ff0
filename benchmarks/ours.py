"""beam_dp: private sum and count per partition, 3 partitions per person, no clipping bounds.

    python -m benchmarks.ours --input rows.parquet --output sums.csv

It runs as the jobs do. The options that are not named here go to Beam, for instance
--direct_running_mode=multi_threading.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from pipelines import running  # isort: skip  (first: it imports the rest as the jobs do)

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from benchmarks import sink

COLUMNS = ["person", "partition", "value"]
WRITTEN = ["partition", "count", "sum_value"]


def reader(path: str, rows_as: str) -> beam.PTransform:
    """Return the source: column batches (the fast way) or one dict per row."""
    if rows_as == "table":
        return dp.ReadRows(path, columns=COLUMNS, numbers=["value"])
    return beam.io.ReadFromParquet(path, columns=COLUMNS)


def bound(text: str) -> int | str:
    """Return a bound on partitions per person: a number, or "auto"."""
    return text if text == "auto" else int(text)


def release(max_partitions: int | str, public: int) -> dp.PrivateAggregate:
    """Return the transform under test."""
    return dp.PrivateAggregate(
        person="person",
        partition=["partition"],
        metrics=[dp.Count(), dp.Sum("value")],
        bounds=dp.ContributionBounds(partitions=max_partitions),
        partitions=dp.PublicPartitions(range(public)) if public else dp.PrivatePartitions(),
        budget=dp.Budget(epsilon=1.0, delta=1e-6),
        batches=public > 0,
    )


def build(pipeline: beam.Pipeline, arguments: argparse.Namespace) -> None:
    """Read, aggregate and write."""
    rows = pipeline | "Read" >> reader(arguments.input, arguments.rows_as)
    released = rows | "Release" >> release(arguments.max_partitions, arguments.public)
    _ = released | "Write" >> dp.WriteRows(arguments.output, WRITTEN, overwrite=True)


def main(words: Sequence[str] | None = None) -> None:
    """Run on one file and print how many rows and partitions were released."""
    started = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--max_partitions", type=bound, default=3, help='a number, or "auto"')
    parser.add_argument("--public", type=int, default=1000, help="0: select partitions privately")
    parser.add_argument("--rows_as", choices=["table", "dict"], default="table")
    arguments, beam_arguments = parser.parse_known_args(words)
    pipeline = beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(beam_arguments))
    build(pipeline, arguments)
    running.run(pipeline, "Reading and bounding")
    sys.stdout.write(sink.report(arguments.output, started, header=True))


if __name__ == "__main__":
    main()

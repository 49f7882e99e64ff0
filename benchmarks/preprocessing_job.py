"""beam_dp: one preprocessed statistic per partition of one number per person.

    python -m benchmarks.preprocessing_job --statistic mean --input rows.parquet --output means.csv

The rows are those of `benchmarks.data`, one for each person.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from benchmarks import sink
from benchmarks.ours import COLUMNS, reader

STATISTICS = {
    "mean": dp.Mean("value", name="found"),
    "median": dp.Median("value", name="found"),
    "maximum": dp.Max("value", name="found"),
    "variance": dp.Variance("value", name="found"),
    "trimmed_mean": dp.TrimmedMean("value", name="found"),
}


def release(statistic: str, public: int) -> dp.PreprocessSensitivity:
    """Return the transform under test."""
    return dp.PreprocessSensitivity(
        STATISTICS[statistic],
        person=COLUMNS[0],
        partition=[COLUMNS[1]],
        bounds=dp.ContributionBounds(partitions=1),
        partitions=dp.PublicPartitions(range(public)),
        budget=dp.Budget(epsilon=1.0),
    )


def main(words: Sequence[str] | None = None) -> None:
    """Run on one file and print how many partitions were released."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--statistic", choices=STATISTICS, default="mean")
    parser.add_argument("--public", type=int, default=1000, help="how many partitions there are")
    arguments, beam_arguments = parser.parse_known_args(words)
    started = time.perf_counter()
    with beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(beam_arguments)) as pipeline:
        rows = pipeline | "Read" >> reader(arguments.input, "table")
        released = rows | "Release" >> release(arguments.statistic, arguments.public)
        triples = released | beam.Map(lambda row: (row.partition, 1, row.found))
        triples | sink.WriteTable(arguments.output)
    sys.stdout.write(sink.report(arguments.output, started))


if __name__ == "__main__":
    main()

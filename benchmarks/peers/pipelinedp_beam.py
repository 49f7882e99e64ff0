"""PipelineDP on Beam: private sum and count per partition, 3 partitions per person.

    python -m benchmarks.peers.pipelinedp_beam --input rows.parquet --output sums.csv

Its sums need bounds, which a real user would have to guess; they cost no time. The options that are
not named here go to Beam, for instance --direct_running_mode=multi_processing.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterable, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from benchmarks import peers

pipeline_dp = peers.imported("pipeline_dp")


def parameters(max_partitions: int) -> pipeline_dp.AggregateParams:
    """Return what is asked: as many rows per person and partition as make the bound rarely bite."""
    return pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM],
        max_partitions_contributed=max_partitions,
        max_contributions_per_partition=100,
        min_sum_per_partition=0.0,
        max_sum_per_partition=10_000.0,
    )


def extractors() -> pipeline_dp.DataExtractors:
    """Return where a row keeps its person, partition and value."""
    return pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row["person"],
        partition_extractor=lambda row: row["partition"],
        value_extractor=lambda row: row["value"],
    )


def build(pipeline: beam.Pipeline, arguments: argparse.Namespace) -> None:
    """Read, aggregate and write; the budget must be settled before the pipeline runs."""
    rows = pipeline | beam.io.ReadFromParquet(arguments.input)
    public = list(range(arguments.public)) if arguments.public else None
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.BeamBackend())
    asked = parameters(arguments.max_partitions)
    released = engine.aggregate(rows, asked, extractors(), public_partitions=public)
    accountant.compute_budgets()
    triples = released | beam.MapTuple(
        lambda key, metrics: (None, (key, metrics.count, metrics.sum))
    )
    nothing = pipeline | "Nothing" >> beam.Create([(None, None)])  # no partition is a file, too
    gathered = (triples, nothing) | "Gather" >> beam.Flatten() | beam.GroupByKey()
    _ = gathered | "Write" >> beam.Map(write, path=arguments.output)


def write(gathered: tuple[None, Iterable[tuple[object, float, float] | None]], path: str) -> None:
    """Write the triples as lines of a CSV file."""
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(triple for triple in gathered[1] if triple)


def main(words: Sequence[str] | None = None) -> None:
    """Run on one file and print how many rows and partitions were released."""
    started = time.perf_counter()
    parser = peers.options(__doc__, public=1000)
    arguments, beam_arguments = parser.parse_known_args(words)
    with beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(beam_arguments)) as pipeline:
        build(pipeline, arguments)
    sys.stdout.write(peers.report(arguments.output, started))


if __name__ == "__main__":
    main()

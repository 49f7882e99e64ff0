"""beam_dp: private sum and count per partition, 3 partitions per person, no clipping bounds.

    python -m benchmarks.ours --input rows.parquet --output sums.csv

It runs as the jobs do. The options that are not named here go to Beam, for instance
--direct_running_mode=multi_threading.
"""

import sys
import time
from collections.abc import Sequence

from pipelines import running  # isort: skip  (first: it imports the rest as the jobs do)

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from benchmarks import peers

COLUMNS = ["person", "partition", "value"]


def release(max_partitions: int | str, public: int) -> beam.PTransform:
    """Return the transform under test."""
    bounds = dp.ContributionBounds(partitions=max_partitions)
    partitions = dp.PublicPartitions(range(public)) if public else dp.PrivatePartitions()
    return dp.PrivateAggregate(
        person="person",
        partition=["partition"],
        metrics=[dp.Count(), dp.Sum("value")],
        bounds=bounds,
        partitions=partitions,
        budget=dp.Budget(epsilon=1.0, delta=1e-6),
        batches=public > 0,
    )


def main(words: Sequence[str] | None = None) -> None:
    """Run on one file and print how many rows and partitions were released."""
    started = time.perf_counter()
    parser = peers.options(__doc__, public=1000)
    given, beam_arguments = parser.parse_known_args(words)
    pipeline = beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(beam_arguments))
    read = dp.ReadRows(given.input, columns=COLUMNS, numbers=["value"])
    rows = pipeline | "Read" >> read
    released = rows | "Release" >> release(given.max_partitions, given.public)
    written = ["partition", "count", "sum_value"]
    _ = released | "Write" >> dp.WriteRows(given.output, written, overwrite=True)
    running.run(pipeline, "Reading and bounding")
    sys.stdout.write(peers.report(given.output, started, header=True))


if __name__ == "__main__":
    main()

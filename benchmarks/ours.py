"""beam_dp: private sum and count per partition, 3 partitions per person, no clipping bounds.

    python -m benchmarks.ours --input rows.parquet --output sums.csv

It runs as the jobs do. The options that are not named here go to Beam, for instance
--direct_running_mode=multi_threading.
"""

import sys
import time
from collections.abc import Sequence

sys.argv[0] = "beam-dp benchmark"  # a job, which imports no more of Beam than it needs
from pipelines import running  # isort: skip

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from benchmarks import peers

METRICS = [dp.Sum("value"), dp.Count(), dp.Sum("value2"), dp.Mean("value3"), dp.PeopleCount()]
VALUES = ["value", "value", "value2", "value3", "value3"]


def release(metrics: int, max_partitions: int | str, public: int) -> beam.PTransform:
    """Return the transform under test."""
    bounds = dp.ContributionBounds(partitions=max_partitions) if max_partitions else None
    partitions = dp.PublicPartitions(range(public)) if public else dp.PrivatePartitions()
    return dp.PrivateAggregate(
        person="person",
        partition=["partition"],
        metrics=METRICS[:metrics],
        bounds=bounds,
        partitions=partitions,
        budget=dp.Budget(epsilon=1.0, delta=1e-6),
        batches=public > 0,
    )


def main(words: Sequence[str] | None = None) -> None:
    """Run on one file and print how many rows and partitions were released."""
    started = time.perf_counter()
    parser = peers.options(__doc__, public=1000)
    parser.add_argument("--metrics", type=int, default=2, help="how many of METRICS")
    parser.add_argument("--dicts", action="store_true", help="Beam reads the file, as dicts")
    parser.add_argument("--alone", action="store_true", help="... and no more is done")
    given, beam_arguments = parser.parse_known_args(words)
    pipeline = beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(beam_arguments))
    numbers = list(dict.fromkeys(VALUES[: given.metrics]))
    columns = ["person", "partition", *numbers]
    read = dp.ReadRows(given.input, columns=columns, numbers=numbers)
    if given.dicts:
        read = beam.io.ReadFromParquet(given.input, columns=columns)
    rows = pipeline | "Read" >> read
    if given.alone:
        _ = rows | "Drop" >> beam.FlatMap(lambda row: ())
        running.run(pipeline, "Reading")
        return
    released = rows | "Release" >> release(given.metrics, given.max_partitions, given.public)
    _ = released | "Write" >> dp.WriteRows(given.output, overwrite=True)
    running.run(pipeline, "Reading and bounding")
    sys.stdout.write(peers.report(given.output, started, header=True))


if __name__ == "__main__":
    main()

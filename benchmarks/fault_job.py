"""One release with three readers, for `benchmarks.faults`, which kills parts of it.

    python -m benchmarks.fault_job FOLDER --runner=...

The first reader writes down each row that it sees, at once. The second does the same behind a
shuffle, and slowly, so that there is time to kill something between the two. The third writes the
file that a job writes, and the job is run and cleaned up after as those of `pipelines` are. Each row of the input holds the word CANARY: a file that has it has rows.
"""

import functools
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.transforms.io import whole_files
from beam_dp.transforms.io.write_rows import WriteRows
from pipelines import running, stopping

CANARY = "canary-5f1d"
DAYS = tuple(range(8))
COLUMNS = ["day", "people_count", "sum_value"]
# At this scale two draws are equal with probability below 2^-15 each: of 8 days below 2^-120.
FAINT = dp.Budget(2.0**-16)
PAUSE = 0.3
FIRST, SECOND, OUTPUT = "first", "second", "released.csv"


class Show(beam.DoFn):
    """Write down what is read, at once: what a reader has shown stays shown if its bundle fails."""

    def __init__(self, path: str, pause: float = 0.0) -> None:
        self._path, self._pause = path, pause

    def process(self, row: Any) -> Iterator[Any]:
        time.sleep(self._pause)
        with open(self._path, "a", encoding="utf-8") as shown:
            shown.write(",".join(str(getattr(row, name)) for name in COLUMNS) + "\n")
        yield row


def main(words: Sequence[str]) -> None:
    """Run the job."""
    folder = Path(words[0])
    rows = [
        {"person": f"{CANARY}-{n % 80}", "day": DAYS[n % 8], "value": n % 7} for n in range(400)
    ]
    release = dp.PrivateAggregate(
        "person",
        [dp.PeopleCount(), dp.Sum("value")],
        FAINT,
        ["day"],
        partitions=dp.PublicPartitions(DAYS),
    )
    pipeline = beam.Pipeline(options=PipelineOptions(list(words[1:])))
    released = pipeline | beam.Create(rows) | release
    _ = released | "First" >> beam.ParDo(Show(str(folder / FIRST)))
    shuffled = released | "Shuffle" >> beam.Reshuffle()
    _ = shuffled | "Second" >> beam.ParDo(Show(str(folder / SECOND), PAUSE))
    _ = released | "Write" >> WriteRows(str(folder / OUTPUT), COLUMNS)
    output = str(folder / OUTPUT)
    stopping.cleanings.append(functools.partial(whole_files.remove_unfinished, output))
    running.run(pipeline, "Reading")


if __name__ == "__main__":
    stopping.watch()
    main(sys.argv[1:])

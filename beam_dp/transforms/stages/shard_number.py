"""Into how many shards the people are cut: enough for the size of the input, and for all workers.

A shard is a part of the people, by a keyed hash; one worker settles the bounds of all its lines at
once. So the memory for a shard, and how many workers have work, depend on the number:

    shards = the power of two from 64 (16 for Beam's local runners) to 65,536 that is not below
             max(bytes of the input / 32 MiB, 4 * workers)

and, where the runner is one of engines that send a shard as one message, nor below

             min(bytes of the input / 1 MiB, 1024).

*Why 32 MiB.* To settle a line of a person in a partition takes 130 to 144 bytes of memory. Parquet
has 14 bytes per row of two integers and a number, CSV about 20: so 32 MiB hold 2.4 million rows. If
each were a line of its own, a shard would need 350 MB, which the workers of all engines have; rows
of one person in one partition are merged, which leaves far fewer. Each bundle sends each shard a
header of 176 bytes, which is why there are not more shards.

*Why 16 locally.* The threads of one machine are few. With 64 shards a job without bounds takes a
seventh more time than with 16, for a million and for 10 million rows.

*Why 4 times the workers.* Shards have a common size up to chance; 4 for each worker let none wait
for long.

*Why 1 MiB.* Beam's Java runners queue up to 100 messages to a Python worker in memory outside of
the heap (`DirectStreamObserver`), and Flink leaves some 100 MB for that: 20 million rows in 64
shards ended as "OutOfMemoryError: Direct buffer memory". More than 1024 shards would cost Collect
more time than they save memory.

*What is known.* The sizes of the files that `ReadRows` and Beam's own readers of files match, the
bytes of a table in memory, and the options of the runner, when the pipeline is built. Where nothing
is known there are the fewest.

*What it tells.* Nothing of it is released. The number decides which lines travel together, and what
is computed of the lines of a person does not depend on that: the same key and the same noise give
the same bits for every number, so the distribution of the output does not depend on it either. But
who sees the job sees the number, which tells the size of the input; they can see that size anyway.
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filebasedsource import FileBasedSource
from apache_beam.pipeline import AppliedPTransform

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.stages import guards

FEWEST, FEWEST_LOCAL, MANY, MOST = 64, 16, 1 << 10, 1 << 16
BYTES, SMALL = 32 << 20, 1 << 20
PER_WORKER = 4
WORKERS = ("direct_num_workers", "parallelism", "num_workers", "max_num_workers")
"""The options of runners that say how many workers there are."""
UNKNOWN = (OSError, RuntimeError, ValueError, ImportError)
"""What file systems and sources raise whose size cannot be known when the pipeline is built."""


def check(subject: str, shards: object) -> None:
    """Refuse values that are no number of shards; None is a number that is chosen here."""
    checks.require(
        shards is None
        or (type(shards) is int and 1 <= shards <= MOST and shards & (shards - 1) == 0),
        subject,
        "shards",
        f"be a power of two from 1 to {MOST}, not {checks.shown(shards)}",
    )


def number_of(rows: beam.PCollection[Any], given: int | None = None) -> int:
    """Return the number of shards of a release of some rows.

    Args:
        rows: the rows.
        given: the number, where the caller has chosen it.
    """
    if given is not None:
        return given
    options = rows.pipeline.options.get_all_options()
    workers = max(options.get(name) or 0 for name in WORKERS)
    size = sum(map(_bytes_of, _below(rows.pipeline.transforms_stack[0])))
    wanted = max(math.ceil(size / BYTES), PER_WORKER * workers)
    if guards.may_recompute(rows.pipeline):
        wanted = max(wanted, min(MANY, math.ceil(size / SMALL)))
    is_local = type(rows.pipeline.runner).__name__ in guards.LOCAL
    fewest = FEWEST_LOCAL if is_local else FEWEST
    return min(MOST, 1 << (max(fewest, wanted) - 1).bit_length())


def _below(applied: AppliedPTransform) -> Iterator[AppliedPTransform]:
    yield applied
    for part in applied.parts:
        yield from _below(part)


def _bytes_of(applied: AppliedPTransform) -> int:
    made = applied.transform
    with contextlib.suppress(*UNKNOWN):
        if hasattr(made, "size_in_bytes"):
            return int(made.size_in_bytes())
        source = getattr(made, "source", None)
        if isinstance(source, FileBasedSource):
            return int(source.estimate_size() or 0)
    return 0

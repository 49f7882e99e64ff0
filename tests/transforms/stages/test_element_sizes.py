"""No element between stages is larger than the limit, whatever the sizes of the data."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.coders.coder_impl import create_InputStream
from apache_beam.runners.portability.fn_api_runner import execution

import beam_dp as dp
import beam_dp.testing
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.summaries import wire
from beam_dp.transforms.stages import bound_and_summarise, draw_once, guards
from beam_dp.transforms.stages.bound_and_summarise import ReduceShards, bucket_of
from beam_dp.transforms.stages.draw_once import bucket_count
from tests.hostile import support
from tests.transforms.stages.test_bound_and_summarise import layout

MOST = 4000
"""The limit of this module's jobs, whose data are as much smaller than those of large ones."""
AROUND = 400
"""What coders, keys and windows add to an element; one line or row, and its header."""
KEYS = 1000
NAMES = [f"a partition with a {'very ' * 20}long name, number {key}" for key in range(250)]
SURE = dp.Budget(1e6, 1e-3)


def measured(element: Any) -> bool:
    """Return whether an element is no group: what a GroupByKey makes is read piece by piece."""
    return not (isinstance(element, tuple) and isinstance(element[-1], list))


@pytest.fixture
def groups() -> Counter[tuple[Any, Any]]:
    """Return the bytes under each key of each GroupByKey, which engines send as one message."""
    return Counter()


@pytest.fixture
def largest(
    monkeypatch: pytest.MonkeyPatch, groups: Counter[tuple[Any, Any]]
) -> Iterator[list[int]]:
    """Return the bytes of each element that leaves a stage; the limit is small."""
    sizes: list[int] = []

    def watch(buffer: Any, coder_of: Callable[[Any], Any]) -> None:
        append = buffer.append

        def seen(self: Any, data: bytes) -> None:
            stream, coder = create_InputStream(data), coder_of(self)
            while left := stream.size():
                element = coder.decode_from_stream(stream, True)
                if measured(element.value):
                    sizes.append(left - stream.size())
                if isinstance(self, execution.GroupingBuffer):
                    groups[self, element.value[0]] += left - stream.size()
            append(self, data)

        monkeypatch.setattr(buffer, "append", seen)

    watch(execution.ListBuffer, lambda self: self._coder_impl)
    watch(execution.GroupingBuffer, lambda self: self._pre_grouped_coder.get_impl())
    monkeypatch.setattr(wire, "MOST_BYTES", MOST)
    yield sizes


def rows(people: int, each: int, names: Sequence[object]) -> pa.Table:
    """Return so many rows of each person, in partitions from all over the list."""
    person, place = (part.ravel() for part in np.indices((people, each)))
    key = [names[at] for at in (person * 7919 + place * 613) % len(names)]
    return pa.table({"person": person, "key": key, "value": place})


def public(metrics: Sequence[Any], keys: int = KEYS, **options: Any) -> dp.PrivateAggregate:
    listed = dp.PublicPartitions(range(keys))
    budget = dp.Budget(1.0, 1e-6)
    return dp.PrivateAggregate("person", metrics, budget, ["key"], partitions=listed, **options)


def private(metrics: Sequence[Any], **options: Any) -> dp.PrivateAggregate:
    selected = dp.PrivatePartitions()
    return dp.PrivateAggregate("person", metrics, SURE, ["key"], partitions=selected, **options)


ADDED = [dp.Count(), dp.Sum("value")]
OF_ALL = range(KEYS)
THREE = dp.ContributionBounds(3)
JOBS: dict[str, Callable[[], tuple[beam.PTransform, pa.Table]]] = {
    "many public partitions": lambda: (
        public(ADDED, bounds=THREE, batches=True),
        rows(300, 4, OF_ALL),
    ),
    "owner lines": lambda: (
        public([dp.DistinctCount("value")], keys=4, bounds=THREE),
        rows(200, 5, range(4)),
    ),
    "one person everywhere": lambda: (
        private(ADDED),
        pa.concat_tables([rows(1, 250, NAMES), rows(750, 1, NAMES)]),
    ),
    "rows stay rows": lambda: (
        dp.BoundContributions("person", ["key"], THREE, values=["value"]),
        rows(80, 12, NAMES),
    ),
}


def run(job: str) -> None:
    transform, given = JOBS[job]()
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        found = pipeline | beam.Create([given], reshuffle=False) | transform
        _ = found | beam.Map(lambda _: (0, b"")) | beam.GroupByKey()


@pytest.mark.parametrize("job", JOBS)
def test_no_element_is_larger_than_the_limit(job: str, largest: list[int]) -> None:
    run(job)
    assert sum(largest) > 10 * MOST  # so there was something to cut
    assert MOST // 4 < max(largest) <= MOST + AROUND


def whole(lines: Any, packed: Callable[[Any], bytes]) -> Iterator[tuple[Any, bytes]]:
    yield lines, packed(lines)


def together(_: Any, shard: int, reduced: Table) -> Iterator[tuple[int, bytes]]:
    yield from ((shard, blob) for _, blob in bound_and_summarise.packed_pieces(reduced, 1 << 16))


MUTANTS = {
    "nothing is cut by bytes": (wire, "parts", whole, "many public partitions"),
    "a person is never parted": (ReduceShards, "_packed", together, "one person everywhere"),
    "what is selected is one element": (
        draw_once,
        "cut",
        lambda rows: [rows],
        "one person everywhere",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_limit_finds_every_mutant(
    mutant: str, largest: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, other, job = MUTANTS[mutant]
    monkeypatch.setattr(where, name, other)
    run(job)
    assert max(largest) > MOST + 2 * AROUND


def released(metrics: Sequence[Any], given: pa.Table) -> dict[str, Any]:
    with dp.testing.without_noise(), beam.Pipeline(runner="FnApiRunner") as pipeline:
        rows = pipeline | beam.Create([given], reshuffle=False) | private(metrics)
        found = support.keep(rows)
    return {key: numbers for key, *numbers in found}


@pytest.mark.filterwarnings("ignore::beam_dp.transforms.stages.noise_off.NotPrivate")
def test_what_is_released_does_not_depend_on_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    _, given = JOBS["one person everywhere"]()
    expected = released(ADDED, given)
    monkeypatch.setattr(wire, "MOST_BYTES", MOST)
    found = released(ADDED, given)
    assert sorted(found) == sorted(expected) == sorted(NAMES)
    # An end is a function of sums of floats over partitions, in the order of a random hash.
    for name, numbers in found.items():
        assert numbers == pytest.approx(expected[name], rel=1e-12)


def largest_group(groups: Counter[tuple[Any, Any]]) -> float:
    """Run a job with many keys as on an engine; return the largest part of all in one group."""
    groups.clear()
    whole = public(ADDED, batches=True, shards=32)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        _ = pipeline | beam.Create([rows(120, 5, OF_ALL)], reshuffle=False) | whole
    return max(groups.values()) / groups.total()


@pytest.mark.usefixtures("largest")
def test_on_engines_no_group_has_much_of_all(
    groups: Counter[tuple[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flink failed at a million keys: all draws of a worker under one key are one record."""
    monkeypatch.setattr(guards, "may_recompute", lambda _: True)
    monkeypatch.setattr(draw_once, "MESSAGE_ROWS", 20)
    assert largest_group(groups) < 0.06
    under = draw_once.draw_bucket

    def together(*given: Any) -> Iterator[Any]:
        yield from ((min(0, key), block) for key, block in under(*given))

    with monkeypatch.context() as broken:
        broken.setattr(draw_once, "draw_bucket", together)
        assert largest_group(groups) > 0.3
    monkeypatch.setattr(draw_once, "MESSAGE_ROWS", draw_once.BLOCK_ROWS)
    assert largest_group(groups) > 0.3


@pytest.mark.parametrize(("keys", "buckets"), [(1, 1), (8192, 1), (8193, 2), (100_000, 13)])
def test_a_bucket_of_public_partitions_holds_a_block_of_keys(keys: int, buckets: int) -> None:
    made = layout(dp.PublicPartitions(range(keys)).index)
    assert bucket_count(made) == buckets
    assert bucket_count(made, is_engine=True) == -(-keys // 2048)
    assert bucket_count(made, True, is_engine=True) == max(-(-keys // 256), min(64, keys))
    assert bucket_count(layout(None), True, is_engine=True) == 512
    places = draw_once.BucketPartitions(made, buckets)
    found = [places._public(bucket) for bucket in range(buckets)]
    assert sorted(np.concatenate(found).tolist()) == list(range(keys))
    for bucket, indexes in enumerate(found):
        assert (bucket_of(indexes[None], buckets, None) == bucket).all()
    assert max(map(len, found)) < 1.1 * draw_once.BLOCK_ROWS

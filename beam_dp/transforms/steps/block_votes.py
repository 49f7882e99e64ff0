"""Ask users' functions about blocks of people, in parallel: between the summaries and the draw.

Lines of a `BlockRelation` take a way of their own:

    (group, lines)
      GroupByBlock       by the partition and the block: everything of a block meets here
      Votes              the user's function, made anew for each block (see `made`)
                                                    # (bucket, votes)

A group holds blocks of many partitions, and the blocks of one partition fall into different groups:
few large elements, and yet one partition is shared among all workers.

Which part of the partitions a partition belongs to.
"""

import copy
import functools
import types
from collections.abc import Iterable, Iterator, Sequence

import apache_beam as beam
import numpy as np
from apache_beam.internal import pickler

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.numerics import hashing
from beam_dp.mechanisms.summaries import owner_lines, wire
from beam_dp.mechanisms.summaries.block_votes import BlockFunction, BlockRelation
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation


def bucket_of(partition: np.ndarray, buckets: int, key: bytes) -> np.ndarray:
    """Return the bucket of each partition."""
    hashes = hashing.fold(table.two_words(partition), hashing.salt(key, "bucket"))
    return (hashes % np.uint64(buckets)).astype(np.int64)


GROUPS = 256
TAG = "blocks"
Measures = Sequence[Measure | Relation]


def wanted(measures: Measures) -> dict[int, BlockRelation]:
    """Return the relations whose lines become votes, by their place."""
    return {
        place: measure
        for place, measure in enumerate(measures)
        if isinstance(measure, BlockRelation)
    }


def split(lines: Owned, measures: Measures, key: bytes) -> tuple[Owned, list[tuple[int, bytes]]]:
    """Return the lines that stay as they are, and those that become votes, packed by group."""
    asked = wanted(measures)
    if not asked:
        return lines, []
    group = np.full(len(lines), -1, np.int64)
    for place, relation in asked.items():
        chosen = lines.relation == place
        group[chosen] = _groups(lines.take(chosen), relation, key)
    packed = [
        (number, wire.pack_owned(lines.take(group == number)))
        for number in np.unique(group[group >= 0]).tolist()
    ]
    return lines.take(group < 0), packed


def _groups(lines: Owned, relation: BlockRelation, key: bytes) -> np.ndarray:
    """Return a group per line, which its partition and block decide."""
    constant = hashing.salt(key, "group")
    start = hashing.fold(table.two_words(lines.partition), constant)
    return ((start % np.uint64(GROUPS)).astype(np.int64) + relation.block(lines)) % GROUPS


class _Votes(beam.DoFn):
    """Turn the lines of a group of blocks into votes, by the bucket of their partition."""

    def __init__(self, measures: Measures, buckets: int, key: bytes) -> None:
        self._relations, self._buckets, self._key = wanted(measures), buckets, key
        self._packed = {place: packed(each.function) for place, each in self._relations.items()}

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, bytes]]:
        """Take all lines of one group."""
        lines = owner_lines.merge([wire.unpack_owned(blob) for blob in element[1]])
        for place, relation in self._relations.items():
            fresh = functools.partial(made, self._packed[place])
            own = lines.take(lines.relation == place)
            if len(own):
                yield from self._sent(relation.votes(own, fresh))

    def _sent(self, votes: Owned) -> Iterator[tuple[int, bytes]]:
        buckets = bucket_of(votes.partition, self._buckets, self._key)
        for bucket in np.unique(buckets).tolist():
            yield bucket, wire.pack_owned(votes.take(buckets == bucket))


def packed(function: BlockFunction) -> bytes:
    """Return a function as bytes that `made` makes it of."""
    return pickler.dumps(function)


def made(content: bytes) -> BlockFunction:
    """Return a function as it was packed.

    A function of a module is pickled by its name, so what it keeps in its default arguments would
    stay: it is copied with new ones. What it keeps in its module, in a class or in attributes of
    its own is out of reach.
    """
    function = pickler.loads(content)
    if not isinstance(function, types.FunctionType):
        return function
    parts = function.__code__, function.__globals__, function.__name__
    copied = types.FunctionType(*parts, copy.deepcopy(function.__defaults__), function.__closure__)
    copied.__kwdefaults__ = copy.deepcopy(function.__kwdefaults__)
    return copied


class Votes(beam.PTransform):
    """Turn (group, packed lines) into (bucket, packed votes); not private by itself.

    Args:
        measures: all measures of the program.
        buckets: how many parts the partitions are cut into.
        key: the run's key.
    """

    def __init__(self, measures: Measures, buckets: int, key: bytes) -> None:
        super().__init__()
        self._votes = _Votes(measures, buckets, key)

    def expand(self, lines: beam.PCollection) -> beam.PCollection:
        """Bring each block together, then ask."""
        asking = beam.ParDo(self._votes).with_output_types(tuple[int, bytes])
        return lines | "GroupByBlock" >> beam.GroupByKey() | "Votes" >> asking

"""Call users' functions for blocks of people, in parallel: between the summaries and the draw.

Only the lines of a `BlockRelation` take these steps:

    (group, lines)
      GroupByBlock       by the partition and the block: all lines of a block meet here
      Votes              the user's function, made anew for each block (see `made`)
                                                    # (bucket, votes)

A group holds blocks of many partitions, and the blocks of one partition fall into different groups:
few large elements, and yet all workers share one partition. `bucket_of` says which bucket (part of
the partitions) a partition belongs to.
"""

import copy
import functools
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import apache_beam as beam
import numpy as np
from apache_beam.internal import pickler

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.numerics import hashing
from beam_dp.mechanisms.summaries import owner_lines, wire
from beam_dp.mechanisms.summaries.block_votes import BlockFunction, BlockRelation
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation
from beam_dp.transforms.steps import quick_steps


def bucket_of(partition: np.ndarray, buckets: int, key: bytes) -> np.ndarray:
    """Return the bucket of each partition, by a keyed hash."""
    hashes = hashing.fold(table.two_words(partition), hashing.salt(key, "bucket"))
    return (hashes % np.uint64(buckets)).astype(np.int64)


GROUPS = 256
TAG: Literal["blocks"] = "blocks"
Measures = Sequence[Measure | Relation]


def wanted(measures: Measures) -> dict[int, BlockRelation]:
    """Return the relations whose lines become votes, by their index."""
    return {
        index: measure
        for index, measure in enumerate(measures)
        if isinstance(measure, BlockRelation)
    }


def split(lines: Owned, measures: Measures, key: bytes) -> tuple[Owned, list[tuple[int, bytes]]]:
    """Return the lines that stay lines, and the lines that become votes, packed by group."""
    relations = wanted(measures)
    if not relations:
        return lines, []
    group = np.full(len(lines), -1, np.int64)
    for index, relation in relations.items():
        chosen = lines.relation == index
        group[chosen] = _groups(lines.take(chosen), relation, key)
    packed = [
        (number, wire.pack(lines.take(group == number)))
        for number in np.unique(group[group >= 0]).tolist()
    ]
    return lines.take(group < 0), packed


def _groups(lines: Owned, relation: BlockRelation, key: bytes) -> np.ndarray:
    """Return the group of each line, which its partition and block decide."""
    constant = hashing.salt(key, "group")
    start = hashing.fold(table.two_words(lines.partition), constant)
    first = (start % np.uint64(GROUPS)).astype(np.int64)
    return np.asarray((first + relation.block(lines)) % GROUPS)


class Votes(quick_steps.QuickStep):
    """Turn the lines of a group of blocks into votes, by the bucket of their partition."""

    def __init__(self, measures: Measures, buckets: int, key: bytes) -> None:
        self._relations, self._buckets, self._key = wanted(measures), buckets, key
        relations = self._relations.items()
        self._packed = {index: pickler.dumps(relation.function) for index, relation in relations}

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, bytes]]:
        """Take all lines of one group."""
        lines = owner_lines.merge([wire.unpack(blob) for blob in element[1]])
        for index, relation in self._relations.items():
            fresh = functools.partial(made, self._packed[index])
            own = lines.take(lines.relation == index)
            if len(own):
                yield from self._sent(relation.votes(own, fresh))

    def _sent(self, votes: Owned) -> Iterator[tuple[int, bytes]]:
        buckets = bucket_of(votes.partition, self._buckets, self._key)
        for bucket in np.unique(buckets).tolist():
            yield bucket, wire.pack(votes.take(buckets == bucket))


def made(content: bytes) -> BlockFunction:
    """Return a function as it was pickled.

    A function of a module is pickled by its name, so state in its default arguments would stay
    between blocks: the function is copied, with new defaults. State that it keeps in its module, in
    a class or in its attributes is out of reach.
    """
    function: BlockFunction = pickler.loads(content)
    if not isinstance(function, types.FunctionType):
        return function
    parts = function.__code__, function.__globals__, function.__name__
    copied = types.FunctionType(*parts, copy.deepcopy(function.__defaults__), function.__closure__)
    copied.__kwdefaults__ = copy.deepcopy(function.__kwdefaults__)
    return copied


def asked(
    lines: beam.PCollection[tuple[int, bytes]], measures: Measures, buckets: int, key: bytes
) -> beam.PCollection[tuple[int, bytes]]:
    """Turn (group, packed lines) into (bucket, packed votes); not private by itself.

    Args:
        lines: the lines that `split` sends.
        measures: all measures of the program.
        buckets: how many parts the partitions are cut into.
        key: the run's key.
    """
    votes = beam.ParDo(Votes(measures, buckets, key)).with_output_types(tuple[int, bytes])
    return lines | "GroupByBlock" >> beam.GroupByKey() | "AskBlocks" >> votes

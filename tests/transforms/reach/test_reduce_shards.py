"""Reduced shards hold whole people, and the counts are those of the people."""

import collections
import random

import numpy as np
import pytest

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.planning.first_choices import FirstVotes
from beam_dp.mechanisms.reach import ladder
from beam_dp.mechanisms.summaries import wire
from beam_dp.transforms.reach.reduce_shards import VOTES, ReduceShards, pieces
from tests.reference import Row, table_of

FIELDS = (Field(0, "sum"),)
EDGES = ladder.edges_up_to(6)


def rows_of(seed: int, size: int) -> list[Row]:
    generator = random.Random(seed)
    people = [(number, number % 3) for number in range(12)]
    return [
        Row(generator.choice(people), (generator.randrange(9), 0), (generator.randrange(5),))
        for _ in range(size)
    ]


def run(blobs: list[bytes], bounds: ContributionBounds) -> tuple[list[bytes], np.ndarray]:
    """Return the lines and the counts of one shard."""
    votes = FirstVotes(EDGES, ())
    step = ReduceShards(Bounder(bounds, FIELDS, b"key"), votes)
    step.start_bundle()
    lines = [blob for _, blob in step.process((3, blobs))]
    [counted] = step.finish_bundle()
    assert counted.tag == VOTES
    return lines, votes.people_per_step(wire.unpack_summary(counted.value.value[1]))


@pytest.mark.parametrize("bounds", [(6,), (6, 2), (6, None, 4), (6, 1, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_the_counts_are_those_of_the_people_however_the_rows_are_cut(
    bounds: tuple[int | None, ...], seed: int
) -> None:
    rows = rows_of(seed, 60)
    limits = ContributionBounds(*bounds)
    bounder = Bounder(limits, FIELDS, b"key")
    found = []
    for parts in (1, 3, 7):
        cut = [rows[part::parts] for part in range(parts)]
        blobs = [wire.pack_table(bounder.reduce(bounder.prepare(table_of(p)))) for p in cut]
        lines, counts = run(blobs, limits)
        settled = [bounder.settle_reduced(wire.unpack_table(blob)) for blob in lines]
        found.append((counts.tolist(), [wire.pack_table(table) for table in settled]))
    assert found[0] == found[1] == found[2]
    reaches: dict[tuple[int, int], set[tuple[int, int]]] = collections.defaultdict(set)
    for row in rows:
        reaches[row.person].add(row.partition)
    most = bounder.bounds.reach or 6
    people = np.array([min(len(own), most) for own in reaches.values()])
    assert counts.tolist() == ladder.people_per_step(people, EDGES).tolist()


def test_an_empty_shard_has_nobody() -> None:
    step = ReduceShards(Bounder(ContributionBounds(6), FIELDS, b"key"), FirstVotes(EDGES, ()))
    step.start_bundle()
    assert list(step.process((3, []))) == [] == list(step.finish_bundle())
    votes = FirstVotes(EDGES, ())
    assert votes.people_per_step(votes.merged([])).tolist() == [0] * len(EDGES)


@pytest.mark.parametrize("lines", [1, 2, 5, 17, 1000])
def test_no_piece_cuts_a_person(lines: int) -> None:
    bounder = Bounder(ContributionBounds(6), FIELDS, b"key")
    table = bounder.reduce(bounder.prepare(table_of(rows_of(1, 80))))
    found = list(pieces(table, lines))
    assert sum(map(len, found)) == len(table)
    people = [set(map(tuple, piece.person.T.tolist())) for piece in found]
    assert sum(map(len, people)) == len(set.union(*people)) == 12
    assert all(len(piece) < lines + 6 for piece in found)
    assert list(pieces(table.take(slice(0, 0)), lines)) == []

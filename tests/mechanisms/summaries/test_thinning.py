"""Thinned lines: what no removal of K people brings to light is dropped, and nothing else."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from beam_dp.mechanisms.profiles import kth_largest
from beam_dp.mechanisms.summaries import owner_lines
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation
from tests.relations import owners_of, people_of

PARTITIONS = 2
Columns = list[np.ndarray]


def made(columns: Columns) -> Owned:
    """Return the lines (partition, relation, person, item, count), merged."""
    partition, relation, person, item, count = columns
    words = partition.astype(np.uint64)[None]
    who = owners_of(person.tolist())
    lines = Owned(partition=words, relation=relation, person=who, item=item, count=count)
    return owner_lines.merge([lines])


def random_columns(generator: np.random.Generator, size: int) -> Columns:
    """Return lines of relation 1, with a few of relation 2 between them."""
    return [
        generator.integers(0, PARTITIONS, size),
        generator.choice([1, 1, 1, 2], size),
        generator.integers(0, 8, size) * 1_000_003,
        generator.integers(-3, 4, size),
        generator.integers(1, 4, size),
    ]


def measures(most: int, rank: int) -> tuple[Measure | Relation, ...]:
    return Measure(PEOPLE), Relation(0, most=most, rank=rank), Relation(0)


def in_shards(columns: Columns, generator: np.random.Generator, most: int, rank: int) -> Owned:
    """Return the lines thinned in three shards, and then together, in random order."""
    shard = generator.integers(0, 3, len(columns[0]))
    parts = [made([column[shard == s] for column in columns]) for s in range(3)]
    thin = [owner_lines.thin(part, measures(most, rank)) for part in parts]
    return owner_lines.merge([thin[s] for s in generator.permutation(3)], measures(most, rank))


def per_partition(lines: Owned, relation: int = 1) -> list[owner_lines.Lines]:
    return lines.of(lines.partition[0].astype(np.int64), PARTITIONS, relation)


def plain(lines: Owned, relation: int) -> list[tuple[Any, ...]]:
    chosen = lines.take(np.flatnonzero(lines.relation == relation))
    columns = (column.tolist() for column in (chosen.partition[0], chosen.item, chosen.count))
    partition, item, count = columns
    return sorted(zip(partition, people_of(chosen.person), item, count, strict=True))


def kth(lines: Owned, rank: int, removals: int) -> list[Any]:
    """Return the profiles of the largest rows."""
    return [
        kth_largest.profile(p.people, p.items + 3, p.counts, rank, removals)
        for p in per_partition(lines)
    ]


@pytest.mark.audit
def test_largest_rows_keep_every_profile_whatever_the_shards() -> None:
    generator = np.random.default_rng(4)
    different = 0
    for _ in range(600):
        columns = random_columns(generator, int(generator.integers(0, 60)))
        rank, most = (int(number) for number in generator.integers(1, 5, 2))
        whole, found = made(columns), in_shards(columns, generator, most, rank)
        assert plain(found, 2) == plain(whole, 2)
        assert all(lines.counts.sum() <= most * rank for lines in per_partition(found))
        expected = kth(whole, rank, most - 1)
        assert kth(found, rank, most - 1) == expected
        # The broken twin keeps a row less per partition.
        fewer = found.count.copy()
        ours = found.relation == 1
        last = np.unique(found.partition[0][ours], return_index=True)[1]
        fewer[np.flatnonzero(ours)[last]] -= 1
        twin = dataclasses.replace(found, count=fewer, names={})
        twin = twin.take(np.flatnonzero(fewer > 0))
        different += kth(twin, rank, most - 1) != expected
    assert different > 50


def test_a_person_is_cut_before_everybody_is() -> None:
    # One person with all the largest rows must not push the others out.
    person = np.array([7] * 50 + [1, 2])
    item = np.array([*range(9, 59), 5, 4])
    ones = np.ones(52, np.int64)
    lines = owner_lines.thin(made([ones * 0, ones, person, item, ones]), measures(3, 1))
    assert sorted(lines.item.tolist()) == [4, 5, 58]


@pytest.mark.parametrize("rank", [4, 1 << 70])
def test_nothing_stays_nothing_and_few_lines_stay_all(rank: int) -> None:
    assert len(owner_lines.merge([], measures(2, rank))) == 0
    columns = [np.array([0, 1]), np.array([1, 1]), *[np.array([3, 4])] * 3]
    assert plain(owner_lines.thin(made(columns), measures(2, rank)), 1) == plain(made(columns), 1)

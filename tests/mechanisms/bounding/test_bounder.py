"""Bounding keeps what its definition says, however the rows are cut, merged and represented.

Rows and keys come from a seeded generator here: these are tests of deterministic functions, so
they have no false alarm. The tests of a distribution draw their keys afresh.
"""

import dataclasses
import itertools
import math
import os
import random

import numpy as np
import pytest

from beam_dp.mechanisms.bounding import bounder as bounder_module
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field, Table
from beam_dp.mechanisms.numerics import hashing
from beam_dp.mechanisms.summaries import wire
from tests.reference import (
    Row,
    concatenate,
    fields_in,
    fields_of,
    reference,
    rows_in,
    table_of,
)

BOUNDS = [
    ContributionBounds(*limits) for limits in itertools.product((None, 2), (None, 3), (None, 4))
]
FIELDS = tuple(Field(0, operation) for operation in ("sum", "max", "min", "count", "peak"))
FALSE_ALARM = 1e-10


def random_rows(generator: random.Random, size: int, wide: bool = False) -> list[Row]:
    """Return rows of few people in few partitions, with ids of both widths and absent values."""
    people = [(place, 0) for place in range(4)] + [(place, 2 * place + 1) for place in range(3)]
    partitions = [(place, 0) for place in range(4)] + [(9, 1), (8, 2), (8, 3)]
    values = [None, -3, 0, 1, 1, 7, 10**9]
    if wide:
        values += [1 << 63, -(1 << 63), (1 << 63) - 1, 1 << 64, (1 << 64) + 1, 1 - (1 << 119)]
        values += [1 << 62]
    return [
        Row(generator.choice(people), generator.choice(partitions), (generator.choice(values),))
        for _ in range(size)
    ]


def some_tree(generator: random.Random, bounder: Bounder, rows: list[Row]) -> Table:
    """Cut rows at random, and merge the parts in a random tree, some of them twice reduced."""
    generator.shuffle(rows)
    cuts = sorted(generator.choices(range(len(rows) + 1), k=generator.randrange(6)))
    parts = [rows[a:b] for a, b in itertools.pairwise([0, *cuts, len(rows)])]
    tables = [
        bounder.prepare(table_of(part, generator.choice((0, 2)), generator.random() < 0.3))
        for part in parts
        if part or generator.random() < 0.5 or len(parts) == 1
    ] or [bounder.prepare(table_of([]))]
    while len(tables) > 1 or generator.random() < 0.5:
        first = tables.pop(generator.randrange(len(tables)))
        second = tables.pop(generator.randrange(len(tables))) if tables else None
        merged = bounder.reduce(concatenate([first, second]) if second else first)
        if generator.random() < 0.3:
            merged = wire.unpack(wire.pack(bounder.reduce(merged)))
        tables.append(merged)
    return bounder.settle(tables[0])


def check_settled(bounder: Bounder, settled: Table, rows: list[Row]) -> None:
    """Check that what settled is what the definition keeps of the rows."""
    kept = reference(bounder, rows)
    if bounder.keep_rows:
        assert rows_in(settled) == kept
    else:
        assert fields_in(settled) == fields_of(bounder, kept)


def check_trees(generator: random.Random, bounder: Bounder, rows: list[Row]) -> None:
    """Check that any tree of any cut keeps what the definition says."""
    for _ in range(3):
        check_settled(bounder, some_tree(generator, bounder, rows), rows)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("keep_rows", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_any_tree_of_any_cut_keeps_what_the_definition_says(monkeypatch, bounds, wide, keep_rows):
    """Without fields rows are counted; a third of the people has too many different rows."""
    generator = random.Random(f"{bounds}{wide}{keep_rows}")
    for trial in range(9):
        monkeypatch.setattr(bounder_module, "MOST_DIFFERENT", 3 if trial % 3 == 2 else 1 << 10)
        fields = () if keep_rows or trial == 0 else FIELDS
        bounder = Bounder(bounds, fields, b"%d" % trial, keep_rows)
        rows = random_rows(generator, generator.choice((0, 1, 5, 40, 100)), wide)
        check_trees(generator, bounder, rows)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("bits", [0, 1, 3])
@pytest.mark.parametrize("top", [False, True])
@pytest.mark.parametrize("keep_rows", [False, True])
def test_colliding_hashes_change_nothing_but_who_comes_first(monkeypatch, bits, top, keep_rows):
    # All hashes have few bits: most people share a hash, most partitions and rows a priority.
    real = hashing.mix

    def few(words, constant):
        mixed = real(words, constant) >> np.uint64(60) & np.uint64(2**bits - 1)
        return mixed << np.uint64(61) if top else mixed

    monkeypatch.setattr(hashing, "mix", few)
    monkeypatch.setattr(ordering, "_FEW", 0 if top else 1 << 19)  # both ways to sort words
    generator = random.Random(f"{bits}{top}{keep_rows}")
    for trial, bounds in enumerate(BOUNDS):
        bounder = Bounder(bounds, () if keep_rows else FIELDS, b"%d" % trial, keep_rows)
        rows = random_rows(generator, 60, wide=True)
        settled = some_tree(generator, bounder, rows)
        check_settled(bounder, settled, rows)
        people = np.flatnonzero(ordering.changes(settled.person))
        assert len(people) == len({row.person for row in rows})  # each stands together


# 320 neighbours: 8 databases of 40 people, each of whom is taken out once. (That what is kept of a
# person is a function of their rows alone, `reference` says, for any rows.)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("bounds", [ContributionBounds(2), ContributionBounds(2, 2, 3)], ids=str)
def test_taking_a_person_out_changes_no_line_of_anybody_else(bounds):
    generator = random.Random(str(bounds))
    bounder = Bounder(bounds, (Field(0, "sum"),), b"key")
    for _ in range(8):
        rows = neighbours(generator)
        whole = fields_in(bounder.settle(bounder.prepare(table_of(rows))))
        for person in {row.person for row in rows}:
            rest = [row for row in rows if row.person != person]
            found = fields_in(bounder.settle(bounder.prepare(table_of(rest))))
            assert found == {pair: line for pair, line in whole.items() if pair[0] != person}


def neighbours(generator: random.Random) -> list[Row]:
    """Return rows of 40 people; one has a wide value, one an id of two words, one a key of two."""
    rows = [
        Row((person, 0), (generator.randrange(5), 0), (generator.choice((None, -2, 1, 5, 8, 9)),))
        for person in range(37)
        for _ in range(generator.randrange(1, 8))
    ]
    rows += [Row((40, 0), (place, 0), ((1 << 80) + place,)) for place in range(4)]
    rows += [Row((3, 5), (place % 3, 0), (place,)) for place in range(6)]
    return rows + [Row((41, 0), (place, 7), (place,)) for place in range(4)]


def test_the_second_word_counts_in_the_hash():
    bounder = Bounder(ContributionBounds(2), (), b"key")
    people = table_of([Row((7, second), (1, 0), (1,)) for second in range(100)], 2)
    assert len(set(bounder.person_hash(people).tolist())) == 100
    places = table_of([Row((7, 0), (1, second), (1,)) for second in range(100)], 2)
    priorities = bounder.priority(places, bounder.person_hash(places))
    assert len(set(priorities.tolist())) == 100


def kept_subsets(people: int, key: bytes) -> np.ndarray:
    """Return how often each pair of 6 partitions is kept, over `people` people in all of them."""
    person = np.repeat(np.arange(people, dtype=np.uint64), 6)[None]
    partition = np.tile(np.arange(6, dtype=np.uint64), people)[None]
    table = Table(person, partition, np.ones(6 * people, np.int64), [])
    settled = Bounder(ContributionBounds(2), (), key).settle(table)
    chosen = np.zeros((people, 6), bool)
    chosen[settled.person[0].astype(np.int64), settled.partition[0].astype(np.int64)] = True
    codes = chosen @ (1 << np.arange(6))
    return np.array([(codes == 2**a + 2**b).sum() for b in range(6) for a in range(b)])


def test_the_kept_partitions_are_a_uniform_sample():
    # Hoeffding for each of the 15 subsets: P(|share - 1/15| > t) <= 2 e^(-2 n t^2), in all at most
    # 1e-10 for this t = 0.0163.
    people, key = 50_000, os.urandom(16)
    tolerance = math.sqrt(math.log(2 * 15 / FALSE_ALARM) / (2 * people))
    counts = kept_subsets(people, key)
    assert counts.sum() == people
    assert np.abs(counts / people - 1 / 15).max() <= tolerance


def test_the_share_of_a_person_is_right_on_average_over_keys():
    # 7 rows of one value, 3 of another, two clicks of 13: each kept with its share, over 20,000
    # keys. Hoeffding for 12 means of numbers within 1: t = 0.026; the false alarm is 1e-10.
    counts, trials = np.array([7, 3, 3]), 20_000
    person = np.repeat(np.arange(trials, dtype=np.uint64), 3)[None]
    values = np.tile(np.array([-5, 0, 11]), trials)
    table = Table(person, np.zeros_like(person), np.tile(counts, trials), [values])
    for limit in (1, 2, 5, 12):
        bounds = ContributionBounds(None, limit)
        settled = Bounder(bounds, (), os.urandom(16), keep_rows=True).settle(table)
        means = [settled.rows[settled.values[0] == value].sum() / trials for value in (-5, 0, 11)]
        tolerance = math.sqrt(math.log(2 * 3 * 4 / FALSE_ALARM) / (2 * trials))
        assert np.abs(np.array(means) - counts * limit / 13).max() <= tolerance


@pytest.mark.parametrize("keep_rows", [False, True])
def test_limits_beyond_64_bits_are_no_limits(keep_rows):
    rows = random_rows(random.Random(6), 60)
    huge = ContributionBounds(1 << 80, 1 << 80, 1 << 80)
    fields = () if keep_rows else FIELDS
    for bounds in (huge, dataclasses.replace(huge, rows=1 << 63)):
        bounder = Bounder(bounds, fields, b"key", keep_rows)
        free = Bounder(ContributionBounds(None), fields, b"key", keep_rows)
        found = rows_in if keep_rows else fields_in
        expected = found(free.settle(free.prepare(table_of(rows))))
        assert found(bounder.settle(bounder.prepare(table_of(rows)))) == expected


def test_names_travel_with_their_lines():
    one, other = table_of([Row((1, 0), (2, 3), (1,))]), table_of([Row((1, 0), (4, 5), (1,))])
    one.names[2, 3], other.names[4, 5] = b"first", b"second"
    bounder = Bounder(ContributionBounds(2), FIELDS, b"key")
    settled = bounder.settle(bounder.prepare(concatenate([one, other])))
    assert settled.names == {(2, 3): b"first", (4, 5): b"second"}


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("rows", [[], [Row((1, 0), (2, 0), (5, 7))]], ids=len)
def test_no_rows_become_as_many_fields_as_some(limit, rows):
    bounder = Bounder(ContributionBounds(None, limit), (Field(1, "sum"),), b"key")
    [field] = bounder.settle(bounder.prepare(table_of(rows, columns=2))).values
    assert field.tolist() == [row.values[1] for row in rows]


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("keep_rows", [False, True])
def test_of_reduced_lines_some_partitions_and_the_lowest_pairs_are_taken(limit, keep_rows):
    """What is left is what bounding makes of the rows of these partitions, with that bound."""
    fields = () if keep_rows else FIELDS
    found_in = rows_in if keep_rows else fields_in
    for seed in range(10):
        generator = random.Random(seed)
        rows = random_rows(generator, generator.randrange(80))
        chosen = {row.partition for row in rows if generator.random() < 0.7}
        free = Bounder(ContributionBounds(None, limit), fields, b"key", keep_rows)
        reduced = free.reduce(free.prepare(table_of(rows, 2)))
        listed = [pair in chosen for pair in zip(*reduced.partition.tolist(), strict=True)]
        settled = free.settle_reduced(reduced.take(np.array(listed, bool)))
        for most in (1, 3, None):
            bounder = Bounder(ContributionBounds(most, limit), fields, b"key", keep_rows)
            own = [row for row in rows if row.partition in chosen]
            expected = bounder.settle(bounder.prepare(table_of(own, 2)))
            assert found_in(free.lines_of_pairs(settled, most)) == found_in(expected)

"""An accumulator hands on what settles to the same, and holds a bounded number of lines.

Rows and keys are seeded: the claims are about deterministic functions, there is no false alarm.
"""

import itertools
import random

import numpy as np
import pytest

from beam_dp.mechanisms.bounding import accumulator
from beam_dp.mechanisms.bounding.accumulator import Accumulator
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field, Table
from beam_dp.mechanisms.numerics import hashing
from tests.mechanisms.bounding.test_bounder import random_rows
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
    ContributionBounds(*limits) for limits in itertools.product((None, 1, 2), (None, 3), (None, 4))
]
FIELDS = (Field(0, "sum"), Field(0, "max"))


def through(bounder: Bounder, tables: list[Table], batch: int, held: int) -> tuple[Table, int]:
    """Return what settles behind an accumulator, and the most lines it held between calls."""
    accumulator, handed, most = Accumulator(bounder, batch, held), [], 0
    for table in tables:
        handed += accumulator.add(table)
        held = [*accumulator._raw, *accumulator._reduced, *accumulator._full]
        most = max(most, sum(map(len, held)))
    handed += accumulator.drain()
    assert not accumulator.drain()
    return bounder.settle(concatenate(handed)), most


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_every_size_of_batch_and_store_settles_to_the_definition(bounds):
    generator = random.Random(str(bounds))
    for trial in range(15):
        keep_rows = trial % 3 == 2
        bounder = Bounder(bounds, () if keep_rows else FIELDS, b"%d" % trial, keep_rows)
        rows = random_rows(generator, 200, wide=trial % 2 == 0)
        cuts = sorted(generator.choices(range(201), k=9))
        tables = [
            table_of(rows[a:b], generator.choice((0, 2)), generator.random() < 0.2)
            for a, b in itertools.pairwise([0, *cuts, 200])
        ]
        batch, held = generator.choice([(1, 1), (3, 5), (7, 30), (50, 20), (1000, 1000)])
        settled, most = through(bounder, tables, batch, held)
        kept = reference(bounder, rows)
        if keep_rows:
            assert rows_in(settled) == kept
        else:
            assert fields_in(settled) == fields_of(bounder, kept)
        assert most <= held + batch


def test_the_filter_drops_lines_and_changes_nothing(monkeypatch):
    # 50 people with 40 partitions each, sent three times: behind the first batches nearly all
    # lines are hopeless. Without the filter the result is the same.
    generator = random.Random(7)
    bounder = Bounder(ContributionBounds(2), FIELDS, b"key")
    rows = [Row((p, p % 2), (q, 0), (p + q,)) for p in range(50) for q in range(40)] * 3
    generator.shuffle(rows)
    tables = [table_of(rows[start : start + 100]) for start in range(0, len(rows), 100)]
    dropped = []
    real = accumulator._Hopeless.drop

    def counting(self, table):
        left = real(self, table)
        dropped.append(len(table) - len(left))
        return left

    monkeypatch.setattr(accumulator._Hopeless, "drop", counting)
    settled, _ = through(bounder, tables, 200, 300)
    assert sum(dropped) > len(rows) // 2
    monkeypatch.setattr(accumulator._Hopeless, "drop", lambda self, table: table)
    assert fields_in(through(bounder, tables, 200, 300)[0]) == fields_in(settled)
    assert fields_in(settled) == fields_of(bounder, reference(bounder, rows))


@pytest.mark.parametrize("bits", [1, 4])
def test_people_who_share_a_slot_of_the_filter_are_told_apart(monkeypatch, bits):
    real = hashing.mix
    kept = np.uint64(2**64 - 2 ** (64 - bits))
    monkeypatch.setattr(hashing, "mix", lambda words, constant: real(words, constant) & kept)
    generator = random.Random(bits)
    for trial in range(20):
        bounder = Bounder(ContributionBounds(2), FIELDS, b"%d" % trial)
        rows = random_rows(generator, 300)
        tables = [table_of(rows[start : start + 20]) for start in range(0, 300, 20)]
        settled, _ = through(bounder, tables, 10, 20)
        assert fields_in(settled) == fields_of(bounder, reference(bounder, rows))


@pytest.mark.parametrize(
    ("bounds", "lines"),
    [
        (ContributionBounds(3), 3),
        (ContributionBounds(3, 2), 6),
        (ContributionBounds(None, None, 5), 25),
    ],
)
def test_a_person_with_a_million_rows_takes_no_more_lines_than_the_bounds(bounds, lines):
    generator = np.random.default_rng(1)
    bounder = Bounder(bounds, (Field(0, "sum"),), b"key")
    accumulator = Accumulator(bounder, 1 << 17, 1 << 17)
    handed = []
    for _ in range(10):
        partition = generator.integers(0, 10**5, (1, 10**5)).astype(np.uint64)
        values = [generator.integers(0, 50, 10**5)]
        person = np.full_like(partition, 77)
        handed += accumulator.add(Table(person, partition, np.ones(10**5, np.int64), values))
    handed += accumulator.drain()
    assert sum(map(len, handed)) <= lines


def test_batches_that_are_dropped_whole_leave_nothing():
    bounder = Bounder(ContributionBounds(1), FIELDS, b"key")
    accumulator = Accumulator(bounder, 4, 8)
    for _ in range(50):
        accumulator.add(table_of([Row((1, 0), (place, 0), (1,)) for place in range(6)]))
    assert sum(map(len, accumulator._raw)) < 4
    assert len(accumulator._raw) < 4 and len(accumulator._reduced) <= 8


def test_nothing_in_nothing_out():
    accumulator = Accumulator(Bounder(ContributionBounds(1), FIELDS, b"key"))
    assert accumulator.drain() == []
    assert accumulator.add(table_of([])) == []
    assert accumulator.drain() == []


def test_batches_that_do_not_shrink_are_handed_on_unsorted(monkeypatch):
    # 400 people, three rows each in three of six partitions: nothing to merge, something to drop.
    rows = [Row((person, 0), (place, 0), (1,)) for place in range(3) for person in range(400)]
    bounder = Bounder(ContributionBounds(2), (Field(0, "sum"),), b"key")
    reduced = []
    original = Bounder.reduce

    def counted(self, table):
        reduced.append(len(table))
        return original(self, table)

    monkeypatch.setattr(Bounder, "reduce", counted)
    accumulator = Accumulator(bounder, batch=40, held=80)
    tables = [table_of(rows[start : start + 40]) for start in range(0, len(rows), 40)]
    handed = [part for table in tables for part in accumulator.add(table)]
    handed += accumulator.drain()
    assert len(reduced) < len(rows) / 40 / 2
    monkeypatch.undo()
    settled = bounder.settle(concatenate(handed))
    whole = bounder.settle(bounder.prepare(table_of(rows)))
    assert fields_in(settled) == fields_in(whole)
    assert len(settled) == 800

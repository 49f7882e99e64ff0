"""An accumulator hands on what settles to the same, and holds a bounded number of lines.

The same in one thread and in several, however they meet.

Rows and keys are seeded: the claims are about deterministic functions, there is no false alarm.
"""

import gc
import itertools
import random
import weakref
from concurrent import futures

import numpy as np
import pytest

from beam_dp.mechanisms.bounding import accumulator
from beam_dp.mechanisms.bounding.accumulator import Accumulator
from beam_dp.mechanisms.bounding.bounder import MOST_DIFFERENT, Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field, Table
from beam_dp.mechanisms.numerics import hashing
from tests.mechanisms.bounding.test_bounder import check_settled, random_rows
from tests.reference import Row, concatenate, table_of

BOUNDS = [
    ContributionBounds(*limits) for limits in itertools.product((None, 1, 2), (None, 3), (None, 4))
]
FIELDS = (Field(0, "sum"), Field(0, "max"))


@pytest.fixture(scope="module")
def pool():
    with futures.ThreadPoolExecutor(3) as threads:
        yield threads


def through(
    bounder: Bounder,
    tables: list[Table],
    batch: int,
    held: int,
    pool: futures.Executor | None = None,
) -> tuple[Table, int]:
    """Return what settles behind an accumulator, and the most lines it held between calls."""
    accumulator, handed, most = Accumulator(bounder, batch, held, pool, 3), [], 0
    for table in tables:
        handed += accumulator.add(table)
        held = [*accumulator._raw, *accumulator._reduced, *accumulator._full]
        most = max(most, sum(map(len, held)))
    handed += accumulator.drain()
    assert not accumulator.drain()
    return bounder.settle(concatenate(handed or [table_of([])])), most


@pytest.mark.sampled(5)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_every_size_of_batch_and_store_settles_to_the_definition(bounds):
    generator = random.Random(str(bounds))
    for trial in range(10):
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
        check_settled(bounder, settled, rows)
        assert most <= held + batch


def collide(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """Make people, pairs and rows share their hashes: of every hash these first bits are left."""
    real = hashing.mix
    kept = np.uint64(2**64 - 2 ** (64 - bits)) if bits else np.uint64(0)
    monkeypatch.setattr(hashing, "mix", lambda words, constant: real(words, constant) & kept)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("bounds", "lines"),
    [
        (ContributionBounds(3), 3),
        (ContributionBounds(None, None, 5), 5 * MOST_DIFFERENT),
        (ContributionBounds(2, 3000), 2 * 3000),
    ],
)
def test_a_person_with_many_rows_takes_no_more_lines_than_are_bounded(bounds, lines):
    generator = np.random.default_rng(1)
    bounder = Bounder(bounds, (Field(0, "sum"),), b"key")
    accumulator = Accumulator(bounder, 1 << 16, 1 << 16)
    handed = []
    for _ in range(10):
        partition = generator.integers(0, 10, (1, 20_000)).astype(np.uint64)
        values = [generator.integers(0, 10**5, 20_000)]
        person = np.full_like(partition, 77)
        handed += accumulator.add(Table(person, partition, np.ones(20_000, np.int64), values))
    handed += accumulator.drain()
    assert sum(map(len, handed)) == lines


WORDS = (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
VALUES = (None, 0, -1, (1 << 62) - 1, -(1 << 62), 1 << 62, (1 << 63) - 1, -(1 << 63), 1 << 119)
ONE = Row((7, 0), (1, 0), (5,))
HOSTILE = {
    "nothing": [],
    "one row": [ONE],
    "one person": [Row((7, 0), (place % 9, 0), (place,)) for place in range(120)],
    "one pair": [ONE] * 120,
    "a row of each person": [Row((place, 0), (place % 3, 0), (1,)) for place in range(120)],
    "no values": [Row((place % 5, 0), (place % 7, 0), (None,)) for place in range(120)],
    "the ends of 64 bits": [
        Row((person, 0), (partition, 0), (value,))
        for person in WORDS for partition in WORDS for value in VALUES
    ],
    "integers and texts": [
        Row((word, second), (place, third), (place,))
        for word in WORDS for second in (0, 1, 3) for place, third in ((2, 0), (2, 5), (3, 1))
    ],
}  # fmt: skip


@pytest.mark.sampled(23)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("bits", [0, 3, 64])
@pytest.mark.parametrize("rows", HOSTILE.values(), ids=HOSTILE)
def test_hostile_rows_settle_to_the_definition_in_any_number_of_threads(
    monkeypatch, pool, rows, bits, threads
):
    """Whether all hashes are equal, or few, or none; with empty batches between."""
    if bits < 64:
        collide(monkeypatch, bits)
    monkeypatch.setattr(accumulator, "_ONE_SLICE", 0)
    shuffled = random.Random(bits).sample(rows, len(rows))
    for bounds in (ContributionBounds(2), ContributionBounds(2, 1), ContributionBounds(None)):
        bounder = Bounder(bounds, FIELDS, b"key")
        tables = [table_of(shuffled[start : start + 9]) for start in range(0, len(rows), 9)]
        tables = [each for table in tables for each in (table_of([]), table)]
        settled, _ = through(bounder, tables, 20, 40, pool if threads > 1 else None)
        check_settled(bounder, settled, rows)


def test_people_of_every_slice_stay(monkeypatch):
    monkeypatch.setattr(accumulator, "_ONE_SLICE", 0)
    rows = [Row((place % 60, 0), (0, 0), (1,)) for place in range(600)]
    tables = [table_of(rows[start : start + 120]) for start in range(0, 600, 120)]
    bounder = Bounder(ContributionBounds(2), FIELDS, b"key")
    settled, _ = through(bounder, tables, 120, 1000)
    check_settled(bounder, settled, rows)


def test_a_batch_that_fails_raises_and_no_batch_is_kept(pool):
    accumulator_ = Accumulator(Bounder(ContributionBounds(1), (), b"key"), 10, 10, pool, 5)
    table = table_of([ONE])
    kept = weakref.ref(table)

    def fail() -> Table:
        raise TypeError("no such column")

    with pytest.raises(TypeError, match="no such column"):
        for rows in (fail, table, table):
            accumulator_.add(rows)
        accumulator_.drain()
    accumulator_.forget()
    del table, rows
    list(pool.map(abs, range(9)))  # threads let go of their last task when they take another
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("words", [1, 2])
def test_a_line_is_dropped_for_pairs_of_its_own_person_alone(words):
    """Many share a slot with somebody who is noted; of two words, also all bits of the hash."""
    size, bounder = 1 << 14, Bounder(ContributionBounds(1), (), b"key")
    person = np.arange(2 * size, dtype=np.uint64)[None]
    if words == 2:
        first, second = person // np.uint64(3), person % np.uint64(3)
        first -= second * (hashing.salt(b"key", "person") | np.uint64(1))  # what `condense` adds
        person = np.concatenate([first, second])
    hashes = np.unique(bounder.person_hash(Table(person, person, person[0], [])))
    assert len(hashes) == -(-2 * size // (1 if words == 1 else 3))
    person = person[:, np.random.default_rng(1).permutation(2 * size)]
    partition, ones = np.full((1, 2 * size), 5, np.uint64), np.ones(2 * size, np.int64)
    noted = bounder.hashes(rows := Table(person, partition, ones, []))[1]
    lines = Table(person, partition + np.uint64(1), np.arange(2 * size), [])
    filter_ = accumulator._CertainToDrop(bounder)
    filter_.renew(words)
    filter_.learn(bounder.reduce(rows.take(slice(size))))
    dropped = np.setdiff1d(lines.rows, filter_.drop(lines).rows)
    assert len(dropped) > size // 16 and dropped.max() < size
    assert (bounder.hashes(lines)[1][dropped] > noted[dropped]).all()

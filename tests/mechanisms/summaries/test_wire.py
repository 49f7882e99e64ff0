"""What is packed comes back, whatever it is made of."""

import itertools
import random

import numpy as np
import pytest

from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries import wire
from beam_dp.mechanisms.summaries.histograms import Summary

NUMBERS = [
    np.array([0, -1, integers.LOWEST, integers.HIGHEST, 1 << 62]),
    np.array([0, -1, -integers.WIDEST, integers.WIDEST, (integers.WIDEST - 1) << 60], object),
]


def some_table(words: int, values: list[np.ndarray], names: dict) -> Table:
    size = 5
    ids = np.arange(words * size, dtype=np.uint64).reshape(words, size) + np.uint64(1 << 63)
    return Table(ids, ids[:, ::-1] + np.uint64(7), np.arange(size), values, names)


def names_of(identities: np.ndarray) -> dict[tuple[int, int], bytes]:
    """Return a name per identity: empty, long, of all bytes."""
    texts = [b"", b"\0\xff", "ü".encode(), bytes(range(256)) * 40, b"12345678"]
    padded = np.concatenate([identities, np.zeros_like(identities)])[:2]
    return dict(zip(map(tuple, padded.T.tolist()), texts, strict=True))


def same_table(one: Table, other: Table) -> bool:
    columns = zip(
        [one.person, one.partition, one.rows, *one.values],
        [other.person, other.partition, other.rows, *other.values],
        strict=True,
    )
    return one.names == other.names and all(
        a.dtype == b.dtype and a.shape == b.shape and (a == b).all() for a, b in columns
    )


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("values", [[], NUMBERS])
@pytest.mark.parametrize("named", [False, True])
def test_a_table_comes_back(words, values, named):
    table = some_table(words, values, {})
    if named:
        table.names.update(names_of(table.partition))
    assert same_table(wire.unpack(wire.pack(table)), table)
    empty = table.take(slice(0, 0))
    unpacked = wire.unpack(wire.pack(empty))
    assert len(unpacked) == 0 and not unpacked.names
    assert unpacked.person.shape == (words, 0)
    assert [column.dtype for column in unpacked.values] == [column.dtype for column in values]


def test_only_the_names_of_the_lines_travel():
    table = some_table(2, [], {})
    table.names.update(names_of(table.partition))
    table.names[5, 5] = b"elsewhere"
    part = table.take(np.array([1, 3]))
    pairs = {tuple(pair) for pair in part.partition.T.tolist()}
    unpacked = wire.unpack(wire.pack(part))
    assert unpacked.names == {pair: table.names[pair] for pair in pairs}
    assert b"elsewhere" not in wire.pack(table)


def test_a_slice_carries_nothing_of_its_parent():
    table = Table(*(np.zeros((1, 10**6), np.uint64),) * 2, np.ones(10**6, np.int64), [])
    assert len(wire.pack(table.take(slice(0, 10)))) < 1000


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("total", NUMBERS, ids=["narrow", "wide"])
def test_a_summary_comes_back(words, total):
    generator = random.Random(words)
    columns = [np.array([generator.randrange(-9, 9) for _ in range(5)]) for _ in range(3)]
    partition = some_table(words, [], {}).partition
    summary = Summary(partition, *columns, total, names_of(partition))
    unpacked = wire.unpack(wire.pack(summary))
    assert unpacked.names == summary.names
    for name in ("partition", "measure", "bucket", "people", "total"):
        one, other = getattr(summary, name), getattr(unpacked, name)
        assert one.dtype == other.dtype and (one == other).all() and one.shape == other.shape


def columns() -> list[np.ndarray]:
    """Return columns that runs, narrow types and numbers apart pack in different ways."""
    draw = np.random.default_rng(1)
    found = []
    for bits, runs, apart in itertools.product((3, 15, 31, 62), (1, 2, 9), (0, 1, 60, 999)):
        column = np.repeat(draw.integers(-(1 << bits), 1 << bits, 1000 // runs + 1), runs)[:1000]
        column[draw.permutation(1000)[:apart]] = draw.choice(NUMBERS[0], apart)
        found += [column, column.view(np.uint64), np.sort(column)]
    return found


def test_columns_come_back_and_equal_ones_are_packed_alike():
    for column in columns():
        packed = wire._packed(column)
        back = wire._unpacked(packed)
        assert back.dtype == column.dtype and (back == column).all()
        assert wire._packed(column.copy()) == packed


def test_people_and_most_small_numbers_take_few_bytes():
    people, values = np.repeat(np.arange(1000, dtype=np.uint64), 10), np.ones(10_000, np.int64)
    values[::2], values[::100] = 2, 1 << 40
    table = Table(people[None], people[None], np.tile([1, 2], 5000), [values])
    assert len(wire.pack(table)) < 2 * 4 * 1000 + 2 * 10_000 + 100 * (8 + 8) + 500

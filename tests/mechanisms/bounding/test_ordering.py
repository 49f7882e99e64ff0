"""The packed sort of rows gives the order of a full sort, also where packed words collide."""

import collections
import itertools
import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.bounding import ordering
from tests.reference import evenly

NOTHING_SHARED = np.uint64(0xFFFFFFFFFFFFFFFF)


def lines(size: int, values: int, mask: np.uint64, seed: int) -> tuple[np.ndarray, ...]:
    """Return (pair order, new pair, row hash, columns) of random rows of a few pairs.

    Equal rows of a pair have equal hashes; a mask makes different rows share (parts of) theirs.
    """
    generator = np.random.default_rng(seed)
    pair = generator.integers(0, 5, size)
    columns = [generator.integers(-values, values, size) for _ in range(2)]
    hashes = generator.integers(0, 1 << 64, (5, 2 * values, 2 * values), np.uint64)
    row_hash = hashes[pair, columns[0] + values, columns[1] + values] & mask
    order = np.argsort(pair, kind="stable")
    return order, ordering.changes(pair[None, order]), row_hash, columns, pair


def expected(row_hash: np.ndarray, columns: list[np.ndarray], pair: np.ndarray) -> np.ndarray:
    """Return the rows in full order: by pair, row hash, then the later column first."""
    keys = zip(pair.tolist(), row_hash.tolist(), *(c.tolist() for c in columns[::-1]), strict=True)
    return np.array(sorted(keys), object)


MASKS = {
    "no collision": NOTHING_SHARED,
    "first bits alike": np.uint64(0xFF),
    "few hashes": np.uint64(0x3) << np.uint64(62),
    "one hash": np.uint64(0),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("size", [1, 2, 7, 400])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_in_the_order_of_a_full_sort(mask: np.uint64, size: int, seed: int) -> None:
    order, new_pair, row_hash, columns, pair = lines(size, 4, mask, seed)
    found, new_row = ordering.order_rows(order, new_pair, row_hash, columns)
    wanted = expected(row_hash, columns, pair)
    given = np.array(
        [pair[found], row_hash[found], *(column[found] for column in columns[::-1])], object
    ).T
    assert sorted(found.tolist()) == list(range(size))
    assert given.tolist() == wanted.tolist()
    different = (np.diff(wanted[:, [0, 2, 3]].astype(np.int64), axis=0) != 0).any(axis=1)
    assert new_row.tolist() == [True, *different.tolist()]
    assert ordering.changes(pair[None, found]).tolist() == new_pair.tolist()


def test_the_test_notices_rows_told_by_their_hash_alone() -> None:
    """The broken twin: one that takes equal hashes for equal rows merges different ones."""
    order, new_pair, _, columns, _ = lines(400, 4, NOTHING_SHARED, 0)
    zero = np.zeros(400, np.uint64)
    _, by_hash = ordering.order_rows(order, new_pair, zero, [])
    _, exact = ordering.order_rows(order, new_pair, zero, columns)
    assert by_hash.sum() == 5 < exact.sum()


def test_people_are_numbered_one_to_one_in_the_order_of_their_words() -> None:
    """Whether a first word has one second word, as nearly always, or several."""
    draw = random.Random(4)
    for size, words in itertools.product((0, 1, 5, 60), (1, 2)):
        column = np.array([[draw.randrange(6) for _ in range(size)] for _ in range(words)])
        people = column.astype(np.uint64).reshape(words, size)
        rows = [tuple(person) for person in people.T.tolist()]
        places = {person: place for place, person in enumerate(sorted(set(rows)))}
        assert ordering.numbered(people).tolist() == [places[person] for person in rows]
        people[-1] = people[0]
        places = {one: place for place, one in enumerate(sorted({*people[0].tolist()}))}
        assert ordering.numbered(people).tolist() == [places[one] for one in people[0].tolist()]


@pytest.mark.parametrize("few", [0, 1 << 19])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("size", [1, 2, 9, 600])
@pytest.mark.parametrize("words", [1, 2])
def test_pairs_are_in_the_order_of_a_full_sort(
    monkeypatch: pytest.MonkeyPatch, words: int, size: int, mask: np.uint64, few: int
) -> None:
    """By words with an index and by indexes, whichever bits of the hashes people and pairs share."""
    monkeypatch.setattr(ordering, "_FEW", few)
    for seed in range(5):
        generator = np.random.default_rng(seed)
        person, partition = generator.integers(0, 4, (2, words, size)).astype(np.uint64)
        random_words = generator.integers(0, 1 << 64, (2, 4, 4), np.uint64) & mask
        person_hash = random_words[0][person[0].astype(int), person[-1].astype(int)]
        priority = (
            person_hash ^ random_words[1][partition[0].astype(int), partition[-1].astype(int)]
        )
        order, new_pair = ordering.order_pairs(person, partition, person_hash, priority)
        keys = [*partition, priority, *person, person_hash]
        lines = np.array([key.tolist() for key in keys[::-1]], object).T
        assert sorted(order.tolist()) == list(range(size))
        assert lines[order].tolist() == sorted(lines.tolist())
        differs = [True, *(a != b for a, b in itertools.pairwise(lines[order].tolist()))]
        assert new_pair.tolist() == differs


def parts(total: int, lines: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to be `total` rows of so many different ones."""
    for cuts in itertools.combinations(range(1, total), lines - 1):
        yield tuple(b - a for a, b in itertools.pairwise([0, *cuts, total]))


def proportional(
    pairs: list[tuple[int, ...]], limits: list[int], turns: list[int]
) -> list[list[int]]:
    """Return the copies that stay of each line of each pair."""
    kept = ordering.in_proportion(
        np.array([count for counts in pairs for count in counts]),
        np.array(list(map(len, pairs))),
        np.array(limits),
        np.array(turns, np.uint64),
    )
    assert kept.dtype == np.int64
    return [part.tolist() for part in np.split(kept, np.cumsum(list(map(len, pairs)))[:-1])]


def test_each_value_keeps_its_share_of_every_small_multiset() -> None:
    """All of up to 8 rows of up to 4 values, with all limits and all starts."""
    cases = [
        (counts, limit, start)
        for total in range(1, 9)
        for lines in range(1, 5)
        for counts in parts(total, lines)
        for limit in range(1, total + 1)
        for start in range(total)
    ]
    found = proportional(*map(list, zip(*cases, strict=True)))
    mean: dict[tuple[tuple[int, ...], int], np.ndarray] = collections.defaultdict(lambda: 0)
    for (counts, limit, start), kept in zip(cases, found, strict=True):
        queue = [line for line, count in enumerate(counts) for _ in range(count)]
        assert kept == np.bincount(evenly(queue, limit, start), minlength=len(counts)).tolist()
        quotas = [Fraction(limit * count, sum(counts)) for count in counts]
        assert sum(kept) == limit
        assert all(abs(stay - quota) < 1 for stay, quota in zip(kept, quotas, strict=True))
        mean[counts, limit] = mean[counts, limit] + np.array(kept)
    for (
        counts,
        limit,
    ), sums in mean.items():  # over all starts, of which there are as many as rows
        assert sums.tolist() == [limit * count for count in counts]


def test_huge_numbers_of_rows_are_shared_out_exactly() -> None:
    """Products pass 2^64 there."""
    counts, limit, turn = ((1 << 60) + 3, 1, (1 << 59) - 7), (1 << 60) - 1, (1 << 64) - 5
    total = sum(counts)
    sums = [0, *itertools.accumulate(counts)]
    stay = [(before * limit + turn % total) // total for before in sums]
    expected = [b - a for a, b in itertools.pairwise(stay)]
    assert proportional([(3, 5), counts, (9,)], [4, limit, 2], [1, turn, 3])[1] == expected
    assert sum(expected) == limit

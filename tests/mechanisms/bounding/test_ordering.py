"""The packed sort of rows gives the order of a full sort, also where packed words collide."""

import collections
import itertools
import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.bounding import ordering
from tests.reference import evenly


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

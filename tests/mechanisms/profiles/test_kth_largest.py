"""The k-th largest row: exact removals by brute force, neighbours and its edges."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.profiles import kth_largest as kth_profiles
from tests.sizes import tries as sized


def kth_largest(buckets, counts, k: int) -> float:
    rows = np.sort(np.repeat(buckets, counts))[::-1]
    return int(rows[k - 1]) if len(rows) >= k else -math.inf


def brute(people, buckets, counts, k: int, removals: int) -> list[int]:
    """Return the least k-th largest row over every set of at most r people."""
    everybody, found = range(int(people.max()) + 1), []
    for r in range(removals + 1):
        left = [~np.isin(people, gone) for gone in itertools.combinations(everybody, r)]
        found += [
            min([kth_largest(buckets[m], counts[m], k) for m in left] + found[-1:] or [-math.inf])
        ]
    return found


def lines(random, people: int, most: int = 14, buckets: int = 8):
    size = int(random.integers(1, most))
    return (
        random.integers(0, people, size),
        random.integers(0, buckets, size) * int(random.choice([1, 10**9])),
        random.integers(1, 4, size),
    )


def test_every_profile_is_that_of_the_best_removals():
    random = np.random.default_rng(1)
    for _ in range(100):
        people, buckets, counts = lines(random, 6)
        k, removals = int(random.integers(1, counts.sum() + 3)), int(random.integers(0, 8))
        expected = brute(people, buckets, counts, k, removals)
        assert kth_profiles.profile(people[None], buckets, counts, k, removals) == expected


@sized(250, 3_000)
def test_one_person_more_interlaces(tries):
    # Of neighbours: B'[r + 1] <= B[r] <= B'[r].
    random = np.random.default_rng(2)
    for _ in range(tries):
        people, buckets, counts = lines(random, 6, 20)
        k = int(random.integers(1, 12))
        with_person = kth_profiles.profile(people[None], buckets, counts, k, 5)
        kept = people != people.max()
        without = kth_profiles.profile(people[None, kept], buckets[kept], counts[kept], k, 5)
        assert all(a <= b for a, b in zip(without, with_person, strict=True))
        assert all(a <= b for a, b in zip(with_person[1:], without[:-1], strict=True))


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("skew", "k"), [(1.2, 1), (2.0, 50), (1.2, 100_000), (2.0, 199_999), (1.2, 200_001)]
)
def test_large_partitions_meet_the_definition_of_the_loss(skew, k):
    # B[r] is the first y where what is above, without the r largest people, is below k.
    random = np.random.default_rng(3)
    people = np.minimum(random.zipf(skew, 200_000), 30_000)
    buckets = np.round(random.normal(5_000, 800, 200_000)).astype(np.int64)
    found = kth_profiles.profile(people[None], buckets, np.ones_like(people), k, 100)
    for r, place in list(enumerate(found))[::9]:
        above = np.sort(np.bincount(people[buckets > place]))[::-1]
        assert above[r:].sum() <= k - 1
        if place > -1:
            reached = np.sort(np.bincount(people[buckets >= place]))[::-1]
            assert reached[r:].sum() > k - 1
    assert found == sorted(found, reverse=True)


def test_huge_counts_are_added_exactly():
    # Above 2^53 floats would lose the last row.
    people, buckets = np.array([0, 1, 1]), np.array([3, 2, 1])
    counts = np.array([2**54 + 1, 1, 2**55])
    assert kth_profiles.profile(people[None], buckets, counts, 2**54 + 1, 1) == [3, 1]
    assert kth_profiles.profile(people[None], buckets, counts, 2**54 + 2, 1) == [2, -math.inf]
    assert kth_profiles.profile(people[None], buckets, counts, 2**54 + 3, 2) == [
        1,
        -math.inf,
        -math.inf,
    ]


def test_edges():
    empty = np.empty(0, np.int64)
    assert kth_profiles.profile(empty[None], empty, empty, 3, 2) == [-math.inf] * 3
    one = np.array([[0]]), np.array([2**61]), np.array([1])
    assert kth_profiles.profile(*one, 1, 2) == [2**61, -math.inf, -math.inf]
    assert kth_profiles.profile(*one, 2**70, 0) == [-math.inf]


def of_shared(owners, items, k, removals, counts=None):
    ones = np.ones(len(items), np.int64) if counts is None else counts
    return kth_profiles.profile(owners, items, ones, k, removals)


@pytest.mark.audit
def test_it_is_the_cover_of_the_rows_above_by_an_independent_solver():
    generator = np.random.default_rng(1)
    for _ in range(20):
        owners, items = generator.integers(0, 8, (3, 20)), generator.integers(0, 9, 20)
        for k, level in enumerate(of_shared(owners, items, 1, 4)):
            losses = {}
            for y in [-math.inf, *range(9)]:
                above = owners[:, items > y]
                rows = np.array([[-float(p in row) for p in range(8)] for row in above.T])
                cover = linprog(np.ones(8), rows, -np.ones(len(rows))).fun if len(rows) else 0
                losses[y] = math.ceil(float(cover) - 1 / 32)
            assert level == min(y for y, loss in losses.items() if loss <= k)


def test_people_with_very_many_shared_rows_each_are_counted_whole():
    """Five people with 1,000 rows each: whoever is left has a fourth largest row."""
    owners = np.stack([np.repeat(np.arange(5), 1_000), 5 + np.arange(5_000)])
    assert of_shared(owners, np.zeros(5_000, np.int64), 4, 4) == [0] * 5

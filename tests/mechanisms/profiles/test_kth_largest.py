"""The k-th largest row: exact removals by brute force, neighbours and its edges."""

import itertools
import math

import numpy as np
import pytest

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
    wrong = 0
    for _ in range(300):
        people, buckets, counts = lines(random, 6)
        k, removals = int(random.integers(1, counts.sum() + 3)), int(random.integers(0, 8))
        expected = brute(people, buckets, counts, k, removals)
        assert kth_profiles.profile(people, buckets, counts, k, removals) == expected
        # The broken twin takes every line for a person of its own.
        wrong += (
            kth_profiles.profile(np.arange(len(people)), buckets, counts, k, removals) != expected
        )
    assert wrong > 50


@sized(2_000, 10_000)
def test_one_person_more_interlaces(tries):
    # Of neighbours: B'[r + 1] <= B[r] <= B'[r].
    random = np.random.default_rng(2)
    wrong = 0
    for _ in range(tries):
        people, buckets, counts = lines(random, 6, 20)
        k = int(random.integers(1, 12))
        with_person = kth_profiles.profile(people, buckets, counts, k, 5)
        kept = people != people.max()
        without = kth_profiles.profile(people[kept], buckets[kept], counts[kept], k, 5)
        assert all(a <= b for a, b in zip(without, with_person, strict=True))
        assert all(a <= b for a, b in zip(with_person[1:], without[:-1], strict=True))
        # The broken twin removes rows, not people.
        rows = np.repeat(np.arange(len(people)), counts)
        twin = kth_profiles.profile(np.arange(len(rows)), buckets[rows], np.ones_like(rows), k, 5)
        wrong += any(a > b for a, b in zip(twin[1:], without[:-1], strict=True))
    assert wrong > tries // 10


@pytest.mark.sampled(12)
@pytest.mark.parametrize("skew", [1.2, 2.0])
@pytest.mark.parametrize("k", [1, 50, 100_000, 199_999, 200_001])
def test_large_partitions_meet_the_definition_of_the_loss(skew, k):
    # B[r] is the first y where what is above, without the r largest people, is below k.
    random = np.random.default_rng(3)
    people = np.minimum(random.zipf(skew, 200_000), 30_000)
    buckets = np.round(random.normal(5_000, 800, 200_000)).astype(np.int64)
    found = kth_profiles.profile(people, buckets, np.ones_like(people), k, 100)
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
    assert kth_profiles.profile(people, buckets, counts, 2**54 + 1, 1) == [3, 1]
    assert kth_profiles.profile(people, buckets, counts, 2**54 + 2, 1) == [2, -math.inf]
    assert kth_profiles.profile(people, buckets, counts, 2**54 + 3, 2) == [1, -math.inf, -math.inf]


def test_edges():
    empty = np.empty(0, np.int64)
    assert kth_profiles.profile(empty, empty, empty, 3, 2) == [-math.inf] * 3
    one = np.array([0]), np.array([2**61]), np.array([1])
    assert kth_profiles.profile(*one, 1, 2) == [2**61, -math.inf, -math.inf]
    assert kth_profiles.profile(*one, 2**70, 0) == [-math.inf]
    with pytest.raises(ValueError, match=r"^ranks\.profile: k must be an int of at least 1, not 0"):
        kth_profiles.profile(*one, 0, 1)

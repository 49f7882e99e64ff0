"""Profiles of counts per item: against every set of people, linear programs and neighbours."""

import itertools

import numpy as np
import pytest

from beam_dp.mechanisms.profiles import frequency


def table(people, items, counts) -> np.ndarray:
    """Return the counts as a matrix of people and items."""
    matrix = np.zeros((7, 6), np.int64)
    np.add.at(matrix, (people, items), counts)
    return matrix


def brute(matrix: np.ndarray, statistic, removals: int) -> list[int]:
    found = [statistic(matrix)]
    for r in range(1, removals + 1):
        gone = itertools.combinations(range(len(matrix)), min(r, len(matrix)))
        found.append(min(statistic(np.delete(matrix, some, axis=0)) for some in gone))
    return found


def most(matrix: np.ndarray) -> int:
    return int(matrix.sum(axis=0).max(initial=0))


def squares(matrix: np.ndarray) -> int:
    return int((matrix.sum(axis=0) ** 2).sum())


def lines(random, size: int = 30):
    count = int(random.integers(1, size))
    return (
        random.integers(0, 7, count),
        np.minimum(random.zipf(1.7, count) - 1, 5),
        random.integers(1, 5, count),
    )


def test_one_item_is_exact():
    random = np.random.default_rng(2)
    for _ in range(100):
        people, items, counts = lines(random)
        data = people, items * 0, counts
        assert frequency.max_profile(*data, 4) == brute(table(*data), most, 4)


def interlaces(larger: list[int], smaller: list[int]) -> bool:
    """Return whether B'[k + 1] <= B[k] <= B'[k]."""
    upper = all(a <= b for a, b in zip(smaller, larger, strict=True))
    return upper and all(a <= b for a, b in zip(larger[1:], smaller[:-1], strict=True))


def marginals(matrix: np.ndarray, removals: int) -> list[int]:
    """Return f minus the largest marginals: a lower bound that does not interlace."""
    alone = [squares(matrix) - squares(np.delete(matrix, i, axis=0)) for i in range(len(matrix))]
    largest = np.append(0, np.sort(alone)[::-1].cumsum())
    return [max(0, int(squares(matrix) - cut)) for cut in largest[: removals + 1]]


def test_one_person_more_interlaces():
    # 10,000 neighbours; those of the most frequent item are in test_removal_levels.
    random, profile = np.random.default_rng(3), frequency.squares_profile
    for _ in range(10_000):
        people, items, counts = lines(random)
        kept = people != random.choice(people)
        smaller = profile(people[kept], items[kept], counts[kept], 5)
        assert interlaces(profile(people, items, counts, 5), smaller)


def test_marginals_do_not_interlace():
    # The broken twin of squares_profile.
    random = np.random.default_rng(4)
    wrong = 0
    for _ in range(1000):
        matrix = table(*lines(random))
        wrong += not interlaces(marginals(matrix, 5), marginals(matrix[1:], 5))
    assert wrong > 20


def test_squares_apart_are_below_the_exact_profile():
    random = np.random.default_rng(5)
    for _ in range(150):
        data = lines(random)
        found, exact = frequency.squares_profile(*data, 7), brute(table(*data), squares, 7)
        assert found[0] == exact[0] and all(a <= b for a, b in zip(found, exact, strict=True))
        columns = -np.sort(-table(*data), axis=0)
        assert found == [int((columns[k:].sum(axis=0) ** 2).sum()) for k in range(8)]


def test_edges_carry_the_sum_of_squares_of_every_set_of_people():
    random = np.random.default_rng(6)
    for _ in range(100):
        data = lines(random)
        first, second, weights = frequency.squares_edges(*data)
        assert np.all(first <= second) and len(set(zip(first, second, strict=True))) == len(first)
        for kept in itertools.product([False, True], repeat=7):
            there = np.array(kept)[first] & np.array(kept)[second]
            assert weights[there].sum() == squares(table(*data)[list(kept)])


def test_the_number_of_pairs_is_known_before_they_are_made():
    random = np.random.default_rng(7)
    data = lines(random, 60)
    owners = (table(*data) > 0).sum(axis=0)
    expected = int((owners * (owners + 1) // 2).sum())
    assert frequency.pairs(*data) == expected
    assert len(frequency.squares_edges(*data, limit=expected)[0]) <= expected
    with pytest.raises(ValueError, match=rf"^squares_edges: .* at most {expected - 1}\."):
        frequency.squares_edges(*data, limit=expected - 1)
    crowd = np.arange(3_000_000)  # 4.5e12 pairs are counted without being made
    assert frequency.pairs(crowd, crowd * 0, crowd * 0 + 1) == 3_000_000 * 3_000_001 // 2


def test_order_and_splitting_of_lines_do_not_matter():
    random = np.random.default_rng(8)
    for _ in range(100):
        people, items, counts = lines(random)
        order = random.permutation(len(people))
        split = np.append(counts[order] - 1, np.ones_like(counts))
        twice, there = np.append(order, order), split > 0
        data = people[twice][there], items[twice][there], split[there]
        for profile in (frequency.max_profile, frequency.squares_profile):
            assert profile(*data, 4) == profile(people, items, counts, 4)
        made = frequency.squares_edges(*data)
        assert all(map(np.array_equal, made, frequency.squares_edges(people, items, counts)))


def test_squares_beyond_int64_are_exact():
    people, items = np.array([0, 1, 2]), np.array([5, 5, 6])
    counts = np.array([2**40 + 1, 3, 2**39])
    found = frequency.squares_profile(people, items, counts, 2)
    assert found == [(2**40 + 4) ** 2 + 2**78, 9, 0]
    weights = frequency.squares_edges(people, items, counts)[2].tolist()
    assert weights == [(2**40 + 1) ** 2, 6 * (2**40 + 1), 9, 2**78]


def test_no_rows():
    empty = np.empty(0, np.int64)
    assert frequency.max_profile(empty, empty, empty, 2) == [0, 0, 0]
    assert frequency.squares_profile(empty, empty, empty, 2) == [0, 0, 0]
    assert frequency.pairs(empty, empty, empty) == 0
    assert [len(column) for column in frequency.squares_edges(empty, empty, empty)] == [0, 0, 0]

"""Profiles of counts per item: against every set of people, linear programs and neighbours."""

import itertools

import numpy as np
import pytest

from beam_dp.mechanisms.profiles import frequency
from beam_dp.mechanisms.summaries.owner_lines import Lines
from tests.mechanisms.profiles.packed.neighbours import interlace


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
    for _ in range(30):
        people, items, counts = lines(random)
        data = people, items * 0, counts
        assert frequency.max_profile(lines_of(*data), 4) == brute(table(*data), most, 4)


def lines_of(people, items, counts) -> Lines:
    return Lines(people[None], items, counts)


@pytest.mark.audit
@pytest.mark.parametrize("profile", [frequency.squares_profile, frequency.max_profile])
def test_one_person_more_interlaces(profile):
    random = np.random.default_rng(3)
    for _ in range(4_000):
        people, items, counts = lines(random)
        kept = people != random.choice(people)
        smaller = profile(lines_of(people[kept], items[kept], counts[kept]), 5)
        assert interlace(smaller, profile(lines_of(people, items, counts), 5))


@pytest.mark.parametrize(
    ("profile", "statistic"),
    [(frequency.squares_profile, squares), (frequency.max_profile, most)],
)
def test_relaxed_by_items_they_are_below_the_exact_profile(profile, statistic):
    random = np.random.default_rng(5)
    for _ in range(50):
        data = lines(random)
        found, exact = profile(lines_of(*data), 7), brute(table(*data), statistic, 7)
        assert found[0] == exact[0] and all(a <= b for a, b in zip(found, exact, strict=True))
        columns = -np.sort(-table(*data), axis=0)
        assert found == [statistic(columns[k:]) for k in range(8)]


def test_squares_beyond_int64_are_exact():
    people, items = np.array([0, 1, 2]), np.array([5, 5, 6])
    counts = np.array([2**40 + 1, 3, 2**39])
    found = frequency.squares_profile(lines_of(people, items, counts), 2)
    assert found == [(2**40 + 4) ** 2 + 2**78, 9, 0]


def test_no_rows():
    nothing = lines_of(*[np.empty(0, np.int64)] * 3)
    assert frequency.max_profile(nothing, 2) == [0, 0, 0]
    assert frequency.squares_profile(nothing, 2) == [0, 0, 0]

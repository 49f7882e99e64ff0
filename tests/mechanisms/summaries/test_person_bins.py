"""People by bins: brute force in rationals, and what one person can change."""

import random
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.summaries.histograms import Contributions, Measure, PersonBins, summarise
from beam_dp.mechanisms.summaries.partition_view import PartitionView

BUCKETS = {"mean": (0, True), "sum": (0, False), "max": (2, False), "min": (3, False)}
NOTHING = {"sum": 0, "count": 0, "max": -(1 << 63), "min": (1 << 63) - 1}
People = list[list[int]]


def measure_of(kind: str, thresholds: tuple[int, ...]) -> PersonBins:
    """Return the measure over the fields sum, count, max, min."""
    source, mean = BUCKETS[kind]
    people = Measure(1, once=True, thresholds=(1,))
    return PersonBins(source, thresholds=thresholds, count=1, mean=mean, people=people)


def view_of(people: People, measure: PersonBins) -> PartitionView:
    """Return one partition with these people's values, as the bounds leave them."""
    fields = [
        [sum(values) for values in people],
        [len(values) for values in people],
        [max(values, default=NOTHING["max"]) for values in people],
        [min(values, default=NOTHING["min"]) for values in people],
    ]
    columns = []
    for numbers in fields:
        wide = any(abs(number) >= 1 << 62 and number not in NOTHING.values() for number in numbers)
        columns.append(np.array(numbers, object if wide else np.int64))
    identities = np.arange(len(people), dtype=np.uint64)[None]
    rows = np.array([max(1, len(values)) for values in people], np.int64)
    table = Table(identities, np.zeros((1, len(people)), np.uint64), rows, columns)
    summary = summarise(Contributions(table), [measure])
    return PartitionView(summary, np.zeros(len(summary), np.int64), 1)


def counted(people: People, kind: str, thresholds: tuple[int, ...]) -> list[int]:
    """Return the number of people per bucket."""
    found, _ = view_of(people, measure_of(kind, thresholds)).histogram(0, len(thresholds) + 1)
    return found[0].tolist()


def plainly(people: People, kind: str, thresholds: tuple[int, ...]) -> list[int]:
    """Return the same by the definition, one person after the other."""
    counts = [0] * (len(thresholds) + 1)
    for values in people:
        if values:
            number = Fraction(sum(values), len(values)).__floor__()
            number = {"sum": sum(values), "max": max(values), "min": min(values)}.get(kind, number)
            counts[sum(number > threshold for threshold in thresholds)] += 1
    return counts


def drawn(seed: int, scale: int) -> tuple[People, tuple[int, ...]]:
    draw = random.Random(seed)
    people = [
        [draw.randint(-scale, scale) for _ in range(draw.choice((0, 1, 1, 2, 5)))]
        for _ in range(draw.randint(1, 12))
    ]
    edges = {draw.randint(-scale, scale) for _ in range(draw.randint(1, 6))}
    return people, tuple(sorted(edges))


@pytest.mark.parametrize("kind", BUCKETS)
@pytest.mark.parametrize("scale", [3, 1000, 1 << 60, 1 << 100])
def test_it_counts_as_the_definition_says(kind: str, scale: int) -> None:
    for seed in range(25):
        people, thresholds = drawn(seed, scale)
        assert counted(people, kind, thresholds) == plainly(people, kind, thresholds)


def test_edges_beyond_all_numbers_of_64_bits_are_edges_and_no_edge_is_one_bucket_of_all() -> None:
    thresholds = (-(1 << 90), -5, 1 << 90)
    assert counted([[-7], [-5, -5], [3]], "max", thresholds) == [0, 2, 1, 0]
    assert counted([[1], [], [5, 6]], "mean", ()) == [2]


@pytest.mark.parametrize("kind", BUCKETS)
def test_one_person_changes_one_count_by_one_at_most(kind: str) -> None:
    changed = set()
    for seed in range(20):
        people, thresholds = drawn(seed, 20)
        whole = np.array(counted(people, kind, thresholds))
        for left_out in range(len(people)):
            others = people[:left_out] + people[left_out + 1 :]
            if others:
                lost = whole - np.array(counted(others, kind, thresholds))
                assert lost.min() >= 0
                changed.add(int(lost.sum()))
    assert changed == {0, 1}

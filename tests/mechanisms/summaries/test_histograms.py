"""Summaries give the removal loss by its definition: brute force over all sets of people.

Data is seeded: the claims are about deterministic functions, there is no false alarm.
"""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.bounding import table as table_module
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.metrics import quantiles, sums
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.planning.compile import Loss, compile_loss
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.summaries import histograms, wire
from beam_dp.mechanisms.summaries.histograms import ROWS, Measure, Summary
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.reference import Row, settled

UNIT = Fraction(1)
STATISTICS = [
    sums.Count(),
    sums.Sum("x", unit=UNIT),
    quantiles.Max("x", unit=UNIT),
    quantiles.Min("x", unit=UNIT),
    sums.PeopleCount(),
]
VALUES = [None, -9, -1, 0, 0, 1, 2, 2, 5, 70]


def whole(rows: list[Row], loss: Loss, shards: int = 1) -> Summary:
    """Return the summary of the rows, merged from shards of people."""
    generator = random.Random(shards)
    people = {row.person: generator.randrange(shards) for row in rows}
    measures = [loss.profiler.measure]
    parts = [
        histograms.summarise(
            histograms.Contributions(
                settled([r for r in rows if people[r.person] == s], loss.fields)
            ),
            measures,
        )
        for s in range(shards)
    ]
    while len(parts) > 1:
        first, second = parts.pop(generator.randrange(len(parts))), parts.pop()
        if generator.random() < 0.5:
            first = wire.unpack(wire.pack(first))
        parts.append(histograms.reduce(table_module.concatenate([first, second]), measures))
    return parts[0]


def profiles(rows: list[Row], loss: Loss, shards: int = 1) -> dict[int, Profile]:
    """Return the profile of each partition with a line (partitions are integers here)."""
    summary = whole(rows, loss, shards)
    if not len(summary):
        return {}
    names = histograms.partitions(summary)[0].tolist()
    return dict(zip(names, loss.profiler.profiles(PartitionView.of_all(summary)), strict=True))


def random_rows(generator: random.Random, people: int, partitions: int = 2) -> list[Row]:
    return [
        Row((person, 0), (generator.randrange(partitions), 0), (generator.choice(VALUES),))
        for person in range(people)
        for _ in range(generator.randrange(1, 5))
    ]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: type(s).__name__)
def test_keeping_less_changes_nothing_of_what_is_kept(statistic):
    generator = random.Random(2)
    for _ in range(6):
        rows = random_rows(generator, 30, 3)
        full = profiles(rows, compile_loss(statistic, 40))
        for removals in (0, 1, 3, 10):
            loss = compile_loss(statistic, removals)
            summary = whole(rows, loss, generator.randrange(1, 6))
            kept = np.bincount(np.cumsum(histograms._new_cell(summary)) - 1)
            assert kept.max() <= removals + 2  # the largest ones and the rest
            found = profiles(rows, loss, generator.randrange(1, 6))
            assert {place: p.values for place, p in found.items()} == {
                place: p.values[: removals + 1] for place, p in full.items()
            }


@pytest.mark.parametrize("removals", [1, 3])
def test_each_of_two_measures_keeps_its_own_largest(removals):
    loss = compile_loss(STATISTICS[2], removals)
    lines, measure = (
        settled(random_rows(random.Random(6), 30, 3), loss.fields),
        loss.profiler.measure,
    )

    def lines_of(measures: list[Measure], place: int) -> list[np.ndarray]:
        found = histograms.reduce(
            histograms.summarise(histograms.Contributions(lines), measures), measures
        )
        own = found.take(found.measure == place)
        return [own.partition[0], own.bucket, own.people, own.total]

    alone = lines_of([measure], 0)
    assert len(alone[0]) > 3
    for place in (0, 1):
        np.testing.assert_equal(lines_of([measure, measure], place), alone)


def test_numbers_beyond_doubles_are_rounded_person_by_person():
    big = [(1 << 80) + 1, (1 << 80) + 3, (1 << 53) + 1, 1 << 119, 5]
    rows = [Row((place, 0), (0, 0), (value,)) for place, value in enumerate(big)]
    rounded = sorted((int(float(value)) for value in big), reverse=True)
    many = [Row((place, 0), (0, 0), (integers.WIDEST - 1,)) for place in range(300)]
    assert profiles(many, compile_loss(STATISTICS[1], 1), 3)[0].values == (300 << 120, 299 << 120)
    for shards in (1, 2, 5):
        found = profiles(rows, compile_loss(STATISTICS[1], 5), shards)[0]
        assert list(found.values) == [sum(rounded[k:]) for k in range(6)]
        found = profiles(rows, compile_loss(STATISTICS[2], 4), shards)[0]
        assert list(found.values) == rounded
    mirrored = [Row(row.person, row.partition, (-row.values[0],)) for row in rows]
    found = profiles(mirrored, compile_loss(STATISTICS[3], 4))[0]
    assert list(found.values) == rounded


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("spread", [1, 1 << 20, 1 << 45], ids=["counted", "packed", "by columns"])
@pytest.mark.parametrize("words", [1, 2])
def test_equal_lines_are_merged_in_order_however_far_apart_they_are(words, spread, wide):
    generator = np.random.default_rng(4)
    columns = generator.integers([0, 1, -2, 0, -9], [5, 3, 3, 4, 9], (300, 5)).T
    partition = np.stack([columns[0]] * words).astype(np.uint64) * np.uint64(spread)
    total = integers.product(columns[4], integers.alone(1 << 80 if wide else 1 << 50))
    lines = Summary(partition, columns[1], columns[2], columns[3], total)
    sums: dict[tuple[int, ...], list[int]] = {}
    for *line, people, each in zip(*columns[:4].tolist(), total.tolist(), strict=True):
        known = sums.setdefault((line[0] * spread, *line[1:]), [0, 0])
        known[0], known[1] = known[0] + people, known[1] + each
    found = histograms.reduce(lines, [])
    columns = [found.partition[-1], found.measure, found.bucket, found.people, found.total]
    cells = list(zip(*(column.tolist() for column in columns), strict=True))
    assert cells == [(*line, *known) for line, known in sorted(sums.items())]


GRID = tuple(1 << power for power in range(84))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_histograms_give_people_above_and_sums_of_minima(wide, sign):
    generator = random.Random(f"{wide}{sign}")
    choices = [-70, -3, 0, None, 1, 2, 3, 4, 1000, (1 << 62) - 1]
    choices += [1 << 63, (1 << 64) + 5, -(1 << 83) - 1, 1 << 100] if wide else []
    rows = [
        Row((person, 0), (generator.randrange(3), 0), (generator.choice(choices),))
        for person in range(60)
        for _ in range(2)
    ]
    table = settled(rows, (Field(0, "sum"),))
    cells = PartitionView.of_all(
        histograms.summarise(histograms.Contributions(table), [Measure(0, sign, GRID)])
    )
    people, total = cells.histogram(0, len(GRID) + 1)
    for place in range(3):
        numbers = [
            int(value) * sign
            for value, where in zip(table.values[0], table.partition[0], strict=True)
            if where == place and value * sign > 0
        ]
        for j, y in enumerate(GRID):
            above = people[place, j + 1 :].sum()
            assert above == sum(number > y for number in numbers)
            below = sum(total[place, : j + 1].tolist())
            assert below + y * int(above) == sum(min(number, y) for number in numbers)
            clipped = cells.clipped(0, np.full(3, j))
            assert (clipped[0].tolist()[place], clipped[1].tolist()[place]) == (below, above)


def shared_lines(rows: list[Row], measure: Measure) -> dict[int, int]:
    """Return people per bucket of each person's number over all partitions."""
    summary = histograms.summarise_people(
        histograms.Contributions(settled(rows, (Field(0, "sum"),))), [measure]
    )
    assert not len(summary) or histograms.partitions(summary).tolist() == [[0]]
    return dict(zip(summary.bucket.tolist(), summary.people.tolist(), strict=True))


def of_all_partitions(numbers: list[int], norm: int) -> int:
    """Return the number of largest magnitude, or the norm with the sign of the sum."""
    if not norm:
        return max(numbers, key=lambda s: (abs(s), s))
    size = sum(abs(number) ** norm for number in numbers)
    if norm == 2 and size:
        size = math.isqrt(size - 1) + 1
    return -size if sum(numbers) < 0 else size


@pytest.mark.sampled(6)
@pytest.mark.parametrize("norm", [0, 1, 2])
@pytest.mark.parametrize("source", [0, ROWS])
@pytest.mark.parametrize("sign", [0, 1])
def test_each_person_counts_once_with_their_norm_or_largest_number(norm, source, sign):
    measure = Measure(source, sign, GRID, norm=norm)
    generator = random.Random(6)
    for _ in range(10):
        rows = random_rows(generator, 12, 5)
        largest: dict = {}
        for person in range(12):
            sums: dict = {}
            for row in rows:
                if row.person[0] == person:
                    value = 1 if source == ROWS else row.values[0] or 0
                    sums[row.partition] = sums.get(row.partition, 0) + value
            numbers = [each for each in sums.values() if each > 0 or not sign]
            number = of_all_partitions(numbers or [0], norm)
            if number:
                bucket = next(j for j, y in enumerate(GRID) if abs(number) <= y)
                bucket += (len(GRID) + 1) * (number < 0)
                largest[bucket] = largest.get(bucket, 0) + 1
        whole_lines = shared_lines(rows, measure)
        assert whole_lines == largest
        for person in range(12):
            rest = shared_lines([row for row in rows if row.person[0] != person], measure)
            moves = [whole_lines.get(b, 0) - rest.get(b, 0) for b in {*whole_lines, *rest}]
            assert sorted(moves)[:-1] == [0] * (len(moves) - 1)  # at most one line moves
            assert max(moves) in (0, 1)

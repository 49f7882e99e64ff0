"""Norms and shares of people's numbers, with exact integers of any size; and how they are merged.

Numbers come from a seeded generator: the claims are about deterministic functions.
"""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.bounding.table import Field, concatenate
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries import histograms, wire
from beam_dp.mechanisms.summaries.histograms import ROWS, Measure, norms, shares
from tests.reference import Row, settled

STEPS = (1, 1 << 20)
NORMS = pytest.mark.parametrize("norm", [1, 2])
LARGE = (1 << 30, (1 << 42) + 1, (1 << 61) - 1, (1 << 62) - 1)
WIDE = (1 << 62, (1 << 63) + 1, 1 << 100, (1 << 120) - 1)


def vectors(seed: int) -> list[list[int]]:
    """Return what some people have: alone, alike, of one size and of all, of both signs."""
    draw = random.Random(seed)
    sizes = (1, 2, 3, 1000, *LARGE, *(WIDE if seed % 2 else ()))
    found = [[size] * count for size in sizes for count in (1, 2, 3) if size * count < 1 << 120]
    for _ in range(60):
        most = draw.choice(sizes)
        count = draw.choice((1, 2, 5, 40))
        found.append([draw.randint(1, max(1, most // count)) for _ in range(count)])
        found.append([draw.choice(sizes[:6]) + draw.randint(0, 9) for _ in range(count)])
    found += [[most, *[1] * 30] for most in sizes]
    return [[draw.choice((1, -1)) * number for number in each] for each in found]


def column(numbers: list[int]) -> np.ndarray:
    """Return numbers in the form that a table has."""
    return integers.narrow(np.array(numbers, object))


def together(people: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of all people one after the other, and where each begins."""
    sizes = [len(each) for each in people]
    return column(list(itertools.chain.from_iterable(people))), np.cumsum([0, *sizes[:-1]])


@NORMS
@pytest.mark.parametrize("seed", range(2))
def test_a_norm_is_at_least_the_exact_one_and_close_to_it(seed: int, norm: int) -> None:
    people = vectors(seed)
    for numbers, whole in zip(people, norms(*together(people), norm).tolist(), strict=True):
        exact = sum(map(abs, numbers))
        if norm == 1:
            assert whole == exact
            continue
        squares, count = sum(number**2 for number in numbers), len(numbers)
        assert squares <= whole**2 and whole <= exact
        # Too large by a part of 2^-28 for each number, or by less than 1.
        least = math.isqrt(squares - 1) + 1
        assert whole <= math.ceil(least * (1 + Fraction(count, 1 << 28)))
        assert exact >= 1 << 30 or whole == least
        assert count > 1 or whole == exact


def shares_of(people: list[list[int]], norm: int, steps: int) -> list[list[int]]:
    """Return the shares of all people, who are in one table."""
    numbers, starts = together(people)
    lengths = np.diff(starts, append=len(numbers))
    found = np.split(shares(numbers, norms(numbers, starts, norm), lengths, steps), starts[1:])
    return [each.tolist() for each in found]


def check_shares(seed: int, norm: int, steps: int) -> None:
    people = vectors(seed)
    for numbers, found in zip(people, shares_of(people, norm, steps), strict=True):
        assert sum(abs(share) ** norm for share in found) <= steps**norm
        [whole] = norms(column(numbers), np.zeros(1, np.int64), norm).tolist()
        for number, share in zip(numbers, found, strict=True):
            exact = Fraction(steps * abs(number), whole)
            assert (
                share * number >= 0 and exact * (1 - Fraction(1, 1 << 40)) - 1 < abs(share) <= exact
            )
            assert abs(number) < whole or abs(share) == steps


@NORMS
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("seed", range(2))
def test_shares_have_a_norm_of_all_steps_at_most_and_are_rounded_towards_0(seed, norm, steps):
    check_shares(seed, norm, steps)


@NORMS
def test_nobody_changes_the_norm_or_the_shares_of_others(norm: int) -> None:
    """Whoever has a number beyond 64 bits makes a column of Python integers of all numbers."""
    people = vectors(1)
    alone = [shares_of([each], norm, 1 << 20)[0] for each in people]
    assert shares_of(people, norm, 1 << 20) == alone
    single = [norms(*together([each]), norm).tolist()[0] for each in people]
    assert norms(*together(people), norm).tolist() == single


MEASURES = (
    Measure(0, sign=0, thresholds=(1, 8, 64, 1 << 70), norm=1, steps=1 << 20),
    Measure(0, sign=0, thresholds=(64, 512, 1 << 70), norm=2, steps=1 << 20, cap=9, fine=64),
    Measure(ROWS, thresholds=(64, 128, 1 << 50), norm=2, steps=1 << 20, fine=64),
    Measure(2, sign=-1, thresholds=(1, 2, 4), norm=1, steps=1 << 20, counted=1, centre=1),
    Measure(0, sign=0, thresholds=(1, 8, 64)),
)
FIELDS = (Field(0, "sum"), Field(0, "count"), Field(0, "max"))


def rows_of(seed: int) -> list[Row]:
    """Return the rows of 40 people in 6 partitions, and of one with numbers beyond 64 bits."""
    draw = random.Random(seed)
    values = (None, -3, 0, 1, 1, 7, 10**9, 1 << 55)
    rows = [
        Row((person, 0), (draw.randrange(6), 0), (draw.choice(values),))
        for person in range(40)
        for _ in range(draw.choice((1, 2, 9)))
    ]
    return rows + [Row((99, 0), (place, 0), ((1 << 80) + place,)) for place in range(2)]


def contributions(rows: list[Row]) -> histograms.Contributions:
    return histograms.Contributions(settled(rows, FIELDS))


@pytest.mark.parametrize("summarised", [histograms.summarise, histograms.summarise_people])
@pytest.mark.parametrize("seed", range(2))
def test_merging_people_in_any_bundles_gives_the_same(seed: int, summarised) -> None:
    rows, draw = rows_of(seed), random.Random(seed)
    whole = wire.pack(histograms.reduce(summarised(contributions(rows), MEASURES), MEASURES))
    for bundles in (2, 5, 41):
        where = {row.person: draw.randrange(bundles) for row in rows}
        parts = [
            summarised(contributions([row for row in rows if where[row.person] == each]), MEASURES)
            for each in set(where.values())
        ]
        while len(parts) > 1:
            pair = [parts.pop(draw.randrange(len(parts))) for _ in range(2)]
            parts.append(wire.unpack(wire.pack(histograms.reduce(concatenate(pair), MEASURES))))
        assert wire.pack(histograms.reduce(parts[0], MEASURES)) == whole


def test_a_person_counts_on_the_side_of_the_sum_of_their_numbers():
    numbers = [(5, -1), (-5, 1), (2, -4)]
    rows = [
        Row((person, 0), (place, 0), (number,))
        for person, own in enumerate(numbers)
        for place, number in enumerate(own)
    ]
    measure = Measure(0, 0, (1, 4, 16), norm=1)
    summary = histograms.summarise_people(contributions(rows), [measure])
    assert dict(zip(summary.bucket.tolist(), summary.people.tolist(), strict=True)) == {2: 1, 6: 2}


def test_what_does_not_add_up_has_no_total():
    summary = histograms.summarise(
        contributions(rows_of(1)), [Measure(0, thresholds=(1,), additive=False)]
    )
    assert len(summary) and not summary.total.any()

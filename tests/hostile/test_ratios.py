"""Shares of hostile rows: what one person moves before the noise, in the whole pipeline.

Each case has its own people and partitions, so that one run holds many databases, and a second one
their neighbours, under the same key.
"""

import itertools
import math
import random

import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms import ratio
from tests.hostile import support

CASES, DAYS, PEOPLE = 150, (0, 1, 2), 3
MAX_PARTITIONS, ROWS = 2, 2
MANY = 1 << 20  # more rows than there are
BOUNDS = dp.ContributionBounds(MAX_PARTITIONS, rows_per_partition=ROWS)
SECRET = "4711-secret"
FLAGS = [1, 0, True, "1", "0.0", "TRUE", "no", 1.0, 0.5, None, math.nan, math.inf, 10**30, [1]]
FLAGS += [b"1", {"1": 1}, "", "\x00", SECRET, (1,), -(2**63), complex(1), object]


def raises(value):
    if value in (0, "no"):
        raise ValueError(SECRET)
    return value in (1, "1")


WAYS = {"value": 1, "text": "no", "function": raises}


@pytest.fixture(autouse=True)
def before_the_noise(monkeypatch):
    """Release a and b in place of the ratio, as one number, under one key."""

    def exactly(self, ones, totals, noise=None, alpha=None):
        return ratio.Estimates(ones * MANY + totals.astype(float), np.zeros(len(ones)))

    monkeypatch.setattr(ratio.KuleszaSureshWang, "release", exactly)
    monkeypatch.setattr("beam_dp.transforms.columns.layout.fresh_key", lambda: bytes(32))


def case(draw, number, flags):
    """Return the rows per person of one case: several in a day, which contradict each other."""
    return [
        [
            {"person": f"{number}-{person}", "case": number, "day": day, "x": draw.choice(flags)}
            for day in draw.choices(DAYS, k=draw.randrange(8))
        ]
        for person in range(PEOPLE)
    ]


def released(cases, bounds=BOUNDS, columnar=False, **options):
    """Return a and b of each day, for every case."""
    rows = [row for people in cases for person in people for row in person]
    given = [pa.RecordBatch.from_pylist(rows)] if columnar else rows
    keys = dp.PublicPartitions(list(itertools.product(range(CASES), DAYS)))
    options = {"method": "kulesza_suresh_wang", **options}
    made = dp.PrivateRatio("x", "person", dp.Budget(1.0), ["case", "day"], bounds, keys, **options)
    found = support.released(given, made)
    column = next(name for name in found[0].as_dict() if name.startswith("ratio_x"))
    counts = {(row.case, row.day): divmod(getattr(row, column), MANY) for row in found}
    return [[counts[number, day] for day in DAYS] for number in range(CASES)]


def moved(before, after):
    """Return what changed: for each day, |a - a'| + |z - z'| of the parts a and z = b - a."""
    pairs = zip(before, after, strict=True)
    return [abs(a - c) + abs((b - a) - (d - c)) for (a, b), (c, d) in pairs]


def neighbours(flags, **options):
    """Return what changes between each case and a neighbour: without a person, or with others."""
    draw = random.Random(4711)
    cases = [case(draw, number, flags) for number in range(CASES)]
    fewer = [people[1:] for people in cases]
    others = [[case(draw, n, flags)[0], *people[1:]] for n, people in enumerate(cases)]
    whole = released(cases, **options)
    assert all(0 <= a <= b for days in whole for a, b in days)
    return [
        [moved(*pair) for pair in zip(whole, released(near, **options), strict=True)]
        for near in (fewer, others)
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("per", ["row", "person"])
@pytest.mark.parametrize("equals", WAYS.values(), ids=WAYS)
def test_one_person_moves_what_the_noise_is_scaled_to(equals, per):
    rows = ROWS if per == "row" else 1
    removed, others = neighbours(FLAGS, equals=equals, per=per)
    assert max(map(sum, removed)) == MAX_PARTITIONS * rows  # at most, and reached
    assert max(map(max, removed)) == rows
    assert max(sum(day > 0 for day in days) for days in removed) == MAX_PARTITIONS
    assert max(map(max, others)) <= 2 * rows  # both parts of a partition
    assert max(map(sum, others)) <= 2 * MAX_PARTITIONS * rows


def test_columns_move_as_little():
    removed, _ = neighbours([1, 0, None], columnar=True)
    assert max(map(sum, removed)) == MAX_PARTITIONS * ROWS and max(map(max, removed)) == ROWS


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "bounds",
    [dp.ContributionBounds(3, ROWS), dp.ContributionBounds(MAX_PARTITIONS, ROWS + 1)],
    ids=repr,
)
def test_a_looser_bound_is_noticed(bounds):
    """The broken twin: a partition, or a row, more than the noise is for."""
    removed, _ = neighbours(FLAGS, bounds=bounds)
    assert max(map(sum, removed)) > MAX_PARTITIONS * ROWS


def test_a_function_that_raises_shows_nothing(capfd, caplog):
    caplog.set_level(0)
    cases = [case(random.Random(1), number, [0, SECRET]) for number in range(CASES)]
    found = released(cases, equals=raises)
    assert all(a == 0 for days in found for a, _ in days)
    assert any(b > 0 for days in found for _, b in days)
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err + caplog.text

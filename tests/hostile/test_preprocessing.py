"""Preprocessed statistics of hostile rows: what one person moves before the noise, in the pipeline.

Each case has its own people and partitions, so that one run holds many databases, and a second one
their neighbours, under the same key.
"""

import dataclasses
import itertools
import math
import random

import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.preprocessing import groups
from tests.doubles import ZeroNoise
from tests.hostile import support
from tests.sizes import tries as sized

CASES, DAYS, PEOPLE, REACH = 10_000, (0, 1), 4, 1
DELTA, BOUNDS = 0.75, dp.ContributionBounds(REACH)
ODD = [None, math.nan, math.inf, -math.inf, "7", 10**30, -(2.0**80), b"1", [1], True]
PLAIN = [None, 0.0, -1.0, 1.0, 2.5, 2.5, -3.125, 7.0, 40.0, -1e6]
HOW = {"sensitivity": DELTA}
METRICS = {
    "mean": dp.Preprocessed("x", "mean", empty=1, person_value="sum", name="mean", **HOW),
    "median": dp.Preprocessed("x", "median", name="median", **HOW),
    "maximum": dp.Preprocessed("x", "maximum", person_value="max", name="maximum", **HOW),
    "minimum": dp.Preprocessed("x", "minimum", person_value="last", last_by="t", name="minimum", **HOW),
    "variance": dp.Preprocessed("x", "variance", name="variance", **HOW),
    "sample": dp.Preprocessed("x", "sample_variance", person_value="min", name="sample", **HOW),
    "trimmed": dp.TrimmedMean("x", trim=0.25, name="trimmed", **HOW),
}  # fmt: skip


@pytest.fixture(autouse=True)
def before_the_noise(monkeypatch):
    """Add no noise, and keep one key."""
    noisy = groups.noisy
    monkeypatch.setattr(groups, "noisy", lambda *given: noisy(*given[:-1], ZeroNoise()))
    monkeypatch.setattr("beam_dp.transforms.columns.layout.fresh_key", lambda: bytes(32))


def database(draw, number, values):
    """Return the rows per person of one case, several in a day."""
    return [
        [
            {"person": f"{number}-{person}", "case": number, "day": day, "t": place, "x": value}
            for place, (day, value) in enumerate(
                (draw.choice(DAYS), draw.choice(values)) for _ in range(draw.randint(1, 4))
            )
        ]
        for person in range(PEOPLE)
    ]


def released(databases, bounds, columnar):
    """Return g per statistic: one number for each case and day."""
    rows = [row for people in databases for person in people for row in person]
    given = [pa.RecordBatch.from_pylist(rows)] if columnar else rows
    keys = dp.PublicPartitions(list(itertools.product(range(len(databases)), DAYS)))
    made = dp.PrivateAggregate(
        "person", list(METRICS.values()), dp.Budget(1.0), ["case", "day"], bounds, keys
    )
    found = sorted(support.released(given, made), key=lambda row: (row.case, row.day))
    shape = len(databases), len(DAYS)
    return {name: np.reshape([getattr(row, name) for row in found], shape) for name in METRICS}


def moved(cases, values, bounds=BOUNDS, columnar=False):
    """Return how far g is moved where one person of each case leaves: per case and day."""
    draw = random.Random(4711)
    databases = [database(draw, number, values) for number in range(cases)]
    before = released(databases, bounds, columnar)
    after = released([people[1:] for people in databases], bounds, columnar)
    return {name: abs(before[name] - after[name]) for name in METRICS}


def check(found):
    """Hold each of them against Delta; return the cases that moved for each statistic."""
    for name, moves in found.items():
        # g of 4 people is within 4 Delta of `empty`; a difference of such floats loses 2^-49 of it.
        assert moves.max() <= DELTA * (1 + 1e-9), name
        assert (moves > 0).sum(axis=1).max() <= REACH, name
        assert moves.max() > DELTA * (1 - 1e-5), name
    return {name: int((moves > 0).any(axis=1).sum()) for name, moves in found.items()}


@sized(CASES // 15, CASES)
def test_one_person_moves_g_of_10000_neighbours_by_at_most_delta(tries):
    assert min(check(moved(tries, PLAIN, columnar=True)).values()) > tries // 10


@pytest.mark.audit
def test_neither_do_rows_with_values_that_are_no_numbers():
    assert min(check(moved(300, [*PLAIN, *ODD])).values()) > 30


@pytest.mark.audit
def test_a_looser_bound_is_noticed():
    """The broken twin: one person is in two partitions."""
    found = moved(300, PLAIN, dp.ContributionBounds(REACH + 1))
    assert all((moves > 0).sum(axis=1).max() > REACH for moves in found.values())


@pytest.mark.audit
def test_a_statistic_that_is_not_preprocessed_is_noticed(monkeypatch):
    """The broken twin: f in place of g."""
    noisy = groups.noisy

    def plain(statistic, *given):
        return noisy(dataclasses.replace(statistic, sensitivity=1 << 90), *given)

    monkeypatch.setattr(groups, "noisy", plain)
    assert all(moves.max() > 2 * DELTA for moves in moved(300, PLAIN).values())

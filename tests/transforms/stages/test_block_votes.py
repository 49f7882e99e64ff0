"""Tests of `BlackBox` in pipelines: the workers ask, blocks stay whole, nothing surfaces."""

import math
import random
import statistics
import threading

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.internal import pickler

import beam_dp as dp
from beam_dp.transforms.columns import layout
from beam_dp.transforms.stages import fresh_functions
from tests.hostile import support

MANY = dp.Budget(10_000.0)
ROWS = [
    {"person": f"p{person}", "day": person % 3, "value": float(10 + person % 7 + copy)}
    for person in range(3000)
    for copy in range(1 + person % 2)
]
DAYS = dp.PublicPartitions([0, 1, 2, 9])
GRID = dp.Candidates.linear(0, 100, 0.01)


def released(transform, rows=ROWS, keyed=False):
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        given = pipeline | beam.Create(rows)
        found = support.keep((given | beam.Reshuffle() if keyed else given) | transform)
    return {row.day: vars(row) for row in found}


def black_box(function=np.mean, budget=MANY, shards=64, **options):
    metric = dp.BlackBox("value", function, candidates=GRID, **options)
    return dp.PreprocessSensitivity(
        metric, "person", budget, ["day"], partitions=DAYS, shards=shards
    )


@pytest.mark.audit
def test_the_median_of_the_blocks_comes_out():
    """About 100 people a block: their mean strays from everybody's by less than 2 (10 deviations)."""
    found = released(black_box(np.mean, blocks=10))
    for day in range(3):
        people = [10 + n % 7 + (n % 2) / 2 for n in range(day, 3000, 3)]
        assert abs(found[day]["black_box_value"] - statistics.fmean(people)) < 2
    # Nobody votes: a candidate comes out with a chance of 1 in 129.
    nobody = [released(black_box(np.mean, blocks=10))[9]["black_box_value"] for _ in range(2)]
    assert math.isnan(found[9]["black_box_value"]) or any(map(math.isnan, nobody))


@pytest.mark.audit
def test_however_rows_are_cut_into_bundles_and_shards_the_votes_are_the_same(monkeypatch):
    """At this budget the rank moves by a vote with a chance below 1e-10."""
    monkeypatch.setattr(layout, "fresh_key", lambda: bytes(range(32)))
    shuffled = ROWS[:]
    random.Random(3).shuffle(shuffled)
    odd = {"blocks": 101, "person_value": "sum"}
    first = released(black_box(np.var, **odd))
    for rows, shards, keyed in ((shuffled, 1, False), (shuffled, 16, True), (ROWS, 2, True)):
        found = released(black_box(np.var, shards=shards, **odd), rows, keyed)
        assert all(found[day] == first[day] for day in range(3))


class Counting:
    """A function that remembers: each block must meet it as it was built."""

    def __init__(self):
        self.asked = 0

    def __call__(self, values):
        self.asked += 1
        return float(self.asked)


def test_a_function_that_remembers_starts_anew_for_each_block():
    found = released(black_box(Counting(), blocks=9))
    assert {found[day]["black_box_value"] for day in range(3)} == {1.0}


LOCK, SEEN, MORE = threading.Lock(), [], {}


def remembering(values, seen=SEEN, *, more=MORE):
    seen.append(len(values))
    more[len(more)] = 0
    return float(len(seen) + len(more))


@pytest.mark.audit
def test_default_arguments_of_a_function_of_a_module_are_new_for_each_block():
    content = pickler.dumps(remembering)
    assert [fresh_functions.made(content)(np.zeros(3)) for _ in range(3)] == [2.0] * 3
    assert (SEEN, MORE) == ([], {})  # the function of the module is never called
    found = released(black_box(remembering, blocks=9))
    assert {found[day]["black_box_value"] for day in range(3)} == {2.0}


def test_a_default_argument_that_cannot_be_copied_is_refused():
    def locked(values, lock=LOCK):
        return 0.0

    with pytest.raises(TypeError, match="BlackBox: function must be picklable"):
        black_box(locked)


def test_a_function_that_always_fails_does_not_stop_the_job(capfd):
    def leaving(values):
        raise SystemExit(f"canary {values}")

    found = released(black_box(leaving, dp.Budget(1.0)))
    assert len(found) == 4 and "canary" not in "".join(capfd.readouterr())


def test_wrong_calls_are_refused():
    open_generator = (value for value in range(3))
    with pytest.raises(TypeError, match="function must be picklable"):
        black_box(lambda values: next(open_generator))
    with pytest.raises(ValueError, match="blocks must be more than"):
        black_box(budget=dp.Budget(1.0), blocks=10)
    with pytest.raises(ValueError, match="sensitivity must be left out"):
        dp.PreprocessSensitivity(dp.BlackBox("value", len), "person", MANY, sensitivity=1)

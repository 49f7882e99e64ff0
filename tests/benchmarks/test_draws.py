"""Releases without Beam are those of the job, and without noise they are the truth."""

import dataclasses
from collections.abc import Callable

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that

import beam_dp as dp
from benchmarks import draws, suites
from benchmarks.suites import Layout, Rows

CERTAIN = dp.Budget(1e7)
ITEMS = np.array([3, 3, 4, 5, 3])


def few(partitions: int = 1) -> Rows:
    """Return 5 rows of 3 people."""
    places = np.array([0, 0, 0, 0, partitions - 1])
    columns = {"v": np.array([1.0, 2.5, np.nan, 4.0, -3.0]), "item": ITEMS}
    return Rows(np.array([0, 0, 1, 1, 2]), places, columns, partitions, partitions)


@pytest.mark.parametrize(
    ("metric", "truth"),
    [
        (dp.Count(), 5),
        (dp.Sum("v"), 4.5),
        (dp.PeopleCount(), 3),
        (dp.Mean("v"), 4.5 / 4),
        (dp.MaxFrequency("item"), 3),
        (dp.DistinctCount("item"), 3),
    ],
    ids=lambda each: getattr(each, "output", ""),
)
def test_without_noise_the_truth_comes_out(metric, truth):
    """At epsilon 10^7 noise is far below 0.01 in every statistic here."""
    [drawn] = draws.summarise(few(), [metric], CERTAIN).draws(3)
    assert drawn.value.shape == (3, 1) and abs(drawn.value - truth).max() < 0.01
    assert (drawn.low <= truth + 1e-6).all() and (drawn.high >= truth - 1e-6).all()


def near(expected: list[float]) -> Callable[[list[beam.Row]], None]:
    """Return a check of released sums, in the order of their partitions."""

    def check(released: list[beam.Row]) -> None:
        sums = [row.sum_v for row in sorted(released, key=lambda row: row.partition)]
        assert np.allclose(sums, expected, atol=0.01)

    return check


def test_the_draws_are_those_of_the_job():
    """The job with the same rows, partitions and budget releases the same numbers."""
    rows = suites.spread("uniform", 40, Layout(3, 2), 0)
    columns = rows.person.tolist(), rows.partition.tolist(), rows.columns["v"].tolist()
    lines = [beam.Row(person=a, partition=b, v=c) for a, b, c in zip(*columns, strict=True)]
    [drawn] = draws.summarise(rows, [dp.Sum("v")], CERTAIN).draw()
    place, totals = rows.per_pair("v")
    assert np.allclose(drawn.value, np.bincount(place, totals), atol=0.01)
    aggregate = dp.PrivateAggregate(
        person="person",
        partition=["partition"],
        metrics=[dp.Sum("v")],
        bounds=dp.ContributionBounds(partitions=2),
        partitions=dp.PublicPartitions([0, 1, 2]),
        budget=CERTAIN,
    )
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        released = pipeline | beam.Create(lines) | aggregate
        assert_that(released, near(drawn.value.tolist()))


def test_without_a_known_bound_one_is_chosen():
    """At epsilon 10^7 the search sees everybody: nothing is cut. What adds up needs none."""
    rows = dataclasses.replace(suites.spread("uniform", 400, Layout(8, 5), 0), max_partitions=None)
    metrics = [dp.Sum("v"), dp.Count(), dp.DistinctCount("v", clip=40)]
    summarised = draws.summarise(rows, metrics, CERTAIN)
    total, count, distinct = summarised.draws(3)
    place, totals = rows.per_pair("v")
    assert np.allclose(total.value, np.bincount(place, totals), atol=0.01)
    assert np.round(count.value).tolist() == [np.bincount(place).tolist()] * 3
    different = [len(np.unique(rows.columns["v"][rows.partition == each])) for each in range(8)]
    assert distinct.value.tolist() == [different] * 3
    assert {max_partitions for max_partitions, *_ in summarised.rehearsal.settled} <= {6, 8}


def test_selected_partitions_alone_are_released():
    """Of one person's partition nothing is said but for 10^-8; those of 200 are there."""
    person = np.append(np.arange(400), [0])
    partition = np.append(np.arange(400) % 2, [2])
    rows = Rows(person, partition, {"v": np.ones(401)}, 3, None, selected=True)
    [count] = draws.summarise(rows, [dp.Count()], dp.Budget(1000, 1e-9)).draws(10)
    assert count.absent.tolist() == [[False, False, True]] * 10
    assert np.isnan(count.value[:, 2]).sum() == 0 and count.empty[:, 2].all()
    assert (abs(count.value[:, :2] - 200) < 1).all()


def years(people: int) -> Rows:
    """Return one year of each person: 1990, give or take 15."""
    ids = np.arange(people)
    return Rows(ids, np.zeros_like(ids), {"v": 1975.0 + ids % 31}, 1, 1)


def test_a_mean_far_from_zero_errs_by_the_spread_of_its_values():
    """Noise for a clip of 2,048 would stray by 3 years. Hoeffding over 200 draws allows 1e-10 for
    0.24: of errors that are below a year with 98%, and intervals that hold with 95%. Nearly all of
    these are below a year."""
    rows = years(2000)
    truth = rows.columns["v"].mean()
    free, ends = dp.Mean("v"), dp.Mean("v", low=1900, high=2100)
    for metric in (free, ends):
        [drawn] = draws.summarise(rows, [metric], dp.Budget(1)).draws(200)
        assert (abs(drawn.value - truth) < 1).mean() > 0.98 - 0.24
        assert ((drawn.low <= truth) & (truth <= drawn.high)).mean() > 0.95 - 0.24
        assert (drawn.high - drawn.low < 1).mean() > 0.98 - 0.24

"""Releases without Beam are those of the job: right truths, and what is released when nothing is."""

import dataclasses
from collections.abc import Callable

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
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
def test_without_noise_the_truth_comes_out(metric: Metric, truth: float) -> None:
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


def test_the_draws_are_those_of_the_job() -> None:
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


def test_without_a_known_bound_one_is_chosen() -> None:
    """At epsilon 10^7 the search sees everybody: nothing is cut."""
    rows = dataclasses.replace(suites.spread("uniform", 400, Layout(8, 5), 0), reach=None)
    searched = draws.summarise(rows, [dp.Sum("v"), dp.Count()], CERTAIN)
    total, count = searched.draws(3)
    place, totals = rows.per_pair("v")
    assert np.allclose(total.value, np.bincount(place, totals), atol=0.01)
    assert np.round(count.value).tolist() == [np.bincount(place).tolist()] * 3
    assert isinstance(searched, draws.Searched) and set(searched.settled) <= {6, 8}


def test_partitions_are_selected_in_buckets() -> None:
    """Of 40 partitions those of 300 people are kept, and of one person none (but for 4e-12)."""
    place = np.repeat(np.arange(40), np.where(np.arange(40) % 2, 1, 300))
    rows = Rows(np.arange(len(place)), place, {"v": np.ones(len(place))}, 40, 1, selected=True)
    for reach in (1, None):
        [total] = draws.summarise(
            dataclasses.replace(rows, reach=reach), [dp.Sum("v")], dp.Budget(20, 1e-13)
        ).draws(5)
        assert (total.absent == np.arange(40) % 2).all() and (total.empty == total.absent).all()
        # A clip is 128 times too high with less than 1e-4: in three of five with less than 1e-11.
        assert np.median(abs(total.value[:, ::2] - 300).max(axis=1)) < 60


def test_what_a_metric_states_is_told_apart() -> None:
    nan, inf = np.array([np.nan, 2.0]), np.array([np.inf, 5.0])
    found = draws.interval({"a": nan, "a_low": -inf, "a_high": inf}, "a")
    assert found.value.tolist() == [0, 2] and found.empty.tolist() == [True, False]
    assert found.low.tolist() == [-np.inf, -5] and found.high.tolist() == [np.inf, 5]
    assert np.isinf(found.people).all() and not found.absent.any()
    ranked = draws.interval({"q": np.array([1.0]), "q_rank_error": np.array([4.0])}, "q")
    assert ranked.people.tolist() == [4] and np.isinf([ranked.low, ranked.high]).all()


def years(people: int) -> Rows:
    """Return one year of each person: 1990, give or take 15."""
    ids = np.arange(people)
    return Rows(ids, np.zeros_like(ids), {"v": 1975.0 + ids % 31}, 1, 1)


def test_a_mean_far_from_zero_errs_by_the_spread_of_its_values() -> None:
    """Noise for a clip of 2,048 would stray by 3 years. Hoeffding over 200 draws allows 1e-10 for
    0.24: of errors that are below a year with 98%, and intervals that hold with 95%."""
    rows = years(2000)
    truth = rows.columns["v"].mean()
    for metric in (dp.Mean("v"), dp.Mean("v", low=1900, high=2100)):
        [drawn] = draws.summarise(rows, [metric], dp.Budget(1)).draws(200)
        assert (abs(drawn.value - truth) < 1).mean() > 0.98 - 0.24
        assert ((drawn.low <= truth) & (truth <= drawn.high)).mean() > 0.95 - 0.24
        assert np.median(drawn.high - drawn.low) < 3

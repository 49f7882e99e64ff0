"""`Histogram`: its bins and names, and its exact privacy.

Where numbers are compared epsilon is 100 or more: noise is not 0 with a chance below e^-99.
"""

import dataclasses
import math
import pickle
from fractions import Fraction
from typing import Any

import apache_beam as beam
import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease
from beam_dp.mechanisms.metrics.base import Context, Metric
from beam_dp.mechanisms.metrics.histogram import PeoplePerBin
from beam_dp.mechanisms.metrics.released import ALPHA
from beam_dp.mechanisms.summaries.histograms import Contributions, summarise
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.doubles import Asked, ZeroNoise
from tests.hostile import support

AGES = [17, 18, 29, 30, 64, 65, -1, 0, 17.9999994, 17.9999996, None, math.nan]
ROWS: list[dict[str, Any]] = [
    *({"person": n, "day": "a", "age": age} for n, age in enumerate(AGES)),
    *({"person": n, "day": "b", "age": age} for n in range(3) for age in (10, 20, 60)),
]


def released(*asked: Metric, budget: dp.Budget | None = None) -> list[beam.Row]:
    """Return what the in-memory runner releases of both days, in their order."""
    transform = dp.PrivateAggregate(
        "person",
        asked,
        budget or dp.Budget(2000.0),
        ["day"],
        dp.ContributionBounds(2),
        dp.PublicPartitions(["a", "b"]),
    )
    return sorted(support.released(ROWS, transform), key=lambda row: row.day)


def bins(row: beam.Row, metric: Metric) -> list[int]:
    """Return the numbers of people of a histogram."""
    return [getattr(row, output.name) for output in metric.outputs[::3]]


def test_a_bin_is_from_an_edge_to_below_the_next() -> None:
    asked, edges = dp.Histogram("age", [0, 18, 30, 65]), [-math.inf, 0, 15, 25, math.inf]
    kinds = ("mean", "sum", "max", "min")
    others = [dp.Histogram("age", edges, person_value=kind, name=kind) for kind in kinds]
    first, second = released(asked, *others)
    # 17.9999994 is 17.999999 on the grid of millionths, 17.9999996 is 18.
    assert bins(first, asked) == [3, 3, 2]
    assert bins(second, asked) == [0, 0, 3]  # the mean is 30
    # The noise of a number is a part of 1, and an end may be the next whole number or the number.
    assert 2 <= first.histogram_age_0_18_low <= 3 <= first.histogram_age_0_18_high <= 4
    for metric, kind in zip(others, kinds, strict=True):
        assert bins(first, metric) == [1, 1, 4, 4]
        assert bins(second, metric) == ([0, 3, 0, 0] if kind == "min" else [0, 0, 0, 3])


def test_names_of_bins_are_plain() -> None:
    asked = dp.Histogram("t", [-math.inf, -5, Fraction(1, 2), 1.25, np.float64(10**20), math.inf])
    assert [output.name for output in asked.outputs[::3]] == [
        "histogram_t_minus_inf_minus_5",
        "histogram_t_minus_5_0_5",
        "histogram_t_0_5_1_25",
        "histogram_t_1_25_100000000000000000000",
        "histogram_t_100000000000000000000_inf",
    ]
    assert [output.whole for output in asked.outputs[:3]] == [True, False, False]
    assert dp.Histogram("t", [0, 1], name="x").outputs[0].name == "x_0_1"
    assert dp.Histogram("t", (0, 1)) == dp.Histogram("t", np.array([0.0, 1.0]))
    assert pickle.loads(pickle.dumps(asked)) == asked


# ---------------------------------------------------------------- its release, exactly

Ages = list[int]


def release_of(budget: Budget, edges: tuple = (10, 20, 30), partitions: int = 1) -> AdditiveRelease:
    asked = dp.Histogram("age", edges, unit=1)
    release = asked.build(Context(asked.columns(), partitions=partitions), budget)
    assert isinstance(release.contribution, PeoplePerBin)
    return release


WHOLE = (-math.inf, 10, 20, 30, math.inf)


def view_of(release: AdditiveRelease, *partitions: Ages, apart: bool = True) -> PartitionView:
    """Return partitions of people with one number each: others in each, or the first ones again."""
    ages = np.array([age for ages in partitions for age in ages], np.int64)
    sizes = [len(ages) for ages in partitions]
    where = np.repeat(np.arange(len(partitions)), sizes)
    people = np.arange(len(ages)) if apart else np.concatenate([np.arange(size) for size in sizes])
    ones, order = np.ones(len(ages), np.int64), np.argsort(people, kind="stable")
    fields = people.astype(np.uint64)[None], where.astype(np.uint64)[None], ones, [ones, ages]
    people = Contributions(Table(*fields).take(order))
    summary = summarise(people, release.measures)
    indexes = summary.partition[0].astype(np.int64)
    return PartitionView(summary, indexes, len(partitions))


def test_bins_are_those_that_were_asked_for() -> None:
    for edges, found in (
        ((10, 20, 30), [[2, 2], [0, 0], [1, 0]]),
        (WHOLE, [[1, 2, 2, 1], [0, 0, 0, 0], [1, 1, 0, 0]]),
    ):
        release = release_of(Budget(0.7), edges)
        view = view_of(release, [5, 10, 19, 20, 29, 30], [], [9, 15])
        assert release.draw(view, ZeroNoise()).values.tolist() == found
        assert [spent.cost for spent in release.spends] == [Budget(0.7)]


@pytest.mark.parametrize("budget", [Budget(0.7), Budget.zcdp(0.1)])
def test_every_bin_of_every_partition_has_noise_of_its_own_for_one_person(budget: Budget) -> None:
    release, noise = release_of(budget, WHOLE), Asked()
    found = release.draw(view_of(release, [10, 10, 25], [5]), noise)
    assert found.values.tolist() == [[0, 2, 1, 0], [1, 0, 0, 0]]
    amount = budget.amount
    law = ("gaussian", 1 / (2 * amount)) if budget.is_zcdp else ("laplace", amount)
    assert noise.asked == [(*law, 8)]  # independent draws, one for each bin


@pytest.mark.parametrize(("epsilon", "within"), [(1, 3), (0.1, 30)])
def test_the_truth_is_within_t_but_for_alpha(epsilon: float, within: int) -> None:
    release = release_of(Budget(epsilon))
    released = release.draw(view_of(release, [10] * 40), ZeroNoise())
    assert released.below.tolist() == released.above.tolist() == [[within, within]]
    q = math.exp(-epsilon)
    assert 2 * q ** (within + 1) / (1 + q) <= 0.05 < 2 * q**within / (1 + q)
    assert float(ALPHA) <= 0.05


@pytest.mark.parametrize("budget", [Budget(2), Budget.zcdp(0.5)], ids=["L1", "L2"])
def test_bins_of_several_partitions_are_one_vector_of_the_norm_of_the_clip(budget: Budget) -> None:
    """Who is in n partitions adds 1 to a bin of each, or their share of the clip; as a vector."""
    release = release_of(budget, WHOLE, partitions=5)
    norm, fine = release.measure.norm, release.measure.fine
    assert norm == (2 if budget.is_zcdp else 1)

    def totals(index: int, *partitions: Ages) -> list[Fraction]:
        people = np.zeros((1, 1, release.clip.choice.buckets), np.int64)
        people[0, 0, index] = 10**9
        noisy = release.clip.choice.draw(people, ZeroNoise())
        taken = release.clipped(view_of(release, *partitions, apart=False).at(0, noisy))
        assert taken.index == index
        return [Fraction(int(total), taken.grid * fine) for total in taken.totals]

    everybody: list[Ages] = [[5, 12, 35], [5, 12, 25], [11, 12], [25], [30]]
    for edge in release.clip.choice.edges:
        index = release.measure.thresholds.index(edge)
        clip, together = Fraction(edge, fine), [Fraction(0)] * 20
        for person in range(3):
            own = [ages[person : person + 1] for ages in everybody]
            alone = totals(index, *own)
            count = sum(map(len, own))
            assert sum(each**norm for each in alone) <= clip**norm
            part = min(1.0, float(clip) / count ** (1 / norm))
            bins = [sum(age >= low for low in WHOLE[1:4]) for ages in own for age in ages]
            expected = np.zeros((5, 4))
            expected[[at for at, ages in enumerate(own) if ages], bins] = part
            # An L2 norm is rounded up to the next of 64 parts of 1.
            assert np.array(alone, float) == pytest.approx(expected.ravel(), rel=0.02)
            together = [sum(pair) for pair in zip(together, alone, strict=True)]
        assert totals(index, *everybody) == together
    assert sum(spent.cost.amount for spent in release.spends if spent.once) == budget.amount


def test_a_partition_of_25_bins_counts_as_five_where_the_clip_is_chosen() -> None:
    many, one = (release_of(Budget(2), edges, 10) for edges in (tuple(range(26)), (0, 25)))
    people = np.zeros((1, 1, many.clip.choice.buckets), np.int64)
    people[0, 0, :9] = 400, 300, 200, 100, 80, 40, 20, 8, 4
    noisy = many.clip.choice.draw(people, ZeroNoise())
    chosen = [many._best(noisy, 10)[0], one._best(noisy, 50)[0], one._best(noisy, 10)[0]]
    assert chosen[0] == chosen[1] < chosen[2]
    several = many.clipped(view_of(many, *[[5, 12, 25]] * 10, apart=False).at(0, noisy))
    of_one = dataclasses.replace(several, partitions=10)
    loss = many._loss(of_one, 30.0, many.noise)
    assert loss.spread == 5 * one._loss(of_one, 30.0, one.noise).spread

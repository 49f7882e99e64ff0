"""Counts, sums and means with a clip that the user knows, and the interval of a mean."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.compile import as_released
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.testing import without_noise
from beam_dp.transforms.stages.noise_off import NotPrivate
from tests.doubles import compile_program

ENOUGH = dp.Budget(1_000_000)
"""So much that noise is below a thousandth of what is released, but for less than e^-1000."""


def drawn(metric: Metric, table: Table) -> list[float]:
    """Release one metric of one partition and return its value, low and high."""
    return together([metric], table, ENOUGH)


def together(
    metrics: Sequence[Metric],
    table: Table,
    budget: dp.Budget,
    max_rows_per_partition: int | None = None,
) -> list[float]:
    """Release metrics of one partition and return the value, low and high of each."""
    program = compile_program(
        metrics, budget, 1, partitions=1, max_rows_per_partition=max_rows_per_partition
    )
    view = PartitionView.of_all(
        histograms.summarise(histograms.Contributions(table), program.measures)
    )
    choices = ()
    if program.shared_measures:
        people = histograms.summarise_people(
            histograms.Contributions(table), program.shared_measures
        )
        choices = program.choose_clips(PartitionView.of_all(people), Noise())
    released = program.release(view, choices, Noise())
    return [float(column[0]) for column in program.combine(released, program.sums(released))]


def people(totals: list[int], rows: list[int] | None = None) -> Table:
    """Return a table of one partition: each person's total, in millionths, and rows."""
    size = len(totals)
    counts = np.array(rows if rows is not None else [1] * size, np.int64)
    ids, nowhere = np.arange(size, dtype=np.uint64)[None], np.zeros((1, size), np.uint64)
    return Table(ids, nowhere, counts, [np.array(totals, np.int64) * 10**6])


def test_whoever_has_more_than_a_known_clip_counts_for_that_much() -> None:
    assert drawn(dp.Sum("x", clip=10), people([3, 7, 50, -50]))[0] == pytest.approx(10, abs=0.01)
    assert drawn(dp.Count(clip=5), people([1, 1, 1], [2, 5, 100]))[0] == 12


def interval(values: float, low: float, high: float) -> Released:
    return Released.between(*(np.array([x], float) for x in (values, values - low, high - values)))


@pytest.mark.parametrize("total, count", [((10, 8, 14), (5, 4, 6)), ((-10, -14, -8), (5, 4, 6))])
def test_the_interval_of_a_mean_joins_what_each_interval_alone_moves_it_by(
    total: tuple[int, int, int], count: tuple[int, int, int]
) -> None:
    mean = dp.Mean("x").combine([interval(*total), interval(*count)])
    by_sum = np.linspace(total[1], total[2], 40) / count[0] - mean.values[0]
    by_count = total[0] / np.linspace(count[1], count[2], 40) - mean.values[0]
    assert mean.below[0] == pytest.approx(math.hypot(by_sum.min(), by_count.min()))
    assert mean.above[0] == pytest.approx(math.hypot(by_sum.max(), by_count.max()))


@pytest.mark.parametrize(
    "count", [(1, 0, 3), (1, -2, 3), (5, 4, math.inf)], ids=["0", "below", "open"]
)
def test_nothing_is_known_of_a_mean_whose_count_may_be_0_or_is_open(
    count: tuple[float, float, float],
) -> None:
    mean = dp.Mean("x").combine([interval(1, 0, 2), interval(*count)])
    assert math.isnan(mean.values[0]) == (count[1] <= 0)
    assert mean.low[0] == -math.inf and mean.high[0] == math.inf


SUM_AND_COUNT = [dp.Sum("x"), dp.Count()]
BESIDE = {
    "people": [dp.Sum("x"), dp.PeopleCount(), dp.Mean("x", per="person")],
    "another name": [dp.Sum("x", name="a"), dp.Count(name="b"), dp.Mean("x", name="c")],
}


@pytest.mark.parametrize("metrics", BESIDE.values(), ids=BESIDE)
def test_a_mean_beside_its_sum_and_count_is_their_quotient_and_costs_nothing(
    metrics: list[Metric],
) -> None:
    many = people([7] * 4000 + [30] * 500, rows=[2] * 4500)
    widths, errors = [], []
    for _ in range(5):
        found = together(metrics, many, dp.Budget(1))
        widths.append(found[8] - found[7])
        total, count, mean = found[::3]
        assert mean == pytest.approx(total / max(count, 1))
        truth = (7 * 4000 + 30 * 500) / (4500 if "person" in str(metrics[2]) else 9000)
        assert found[7] < mean < found[8]
        errors.append(abs(mean - truth))
    # A clip for too few people is chosen in 2 of 1,000 draws: for all five in 3 of 10^14.
    assert min(widths) < 2
    # The noise has a deviation below 1/20, but for a clip that is 1,000 times too high, with 1e-5:
    # in three of five draws with a chance below 1e-13.
    assert sorted(errors)[2] < 10
    program = compile_program(metrics, dp.Budget(1), 1)
    assert len(program.steps) == 2
    assert sum(cost.amount * times for _, cost, times in program.entries) == 1


@pytest.mark.parametrize(("centre", "most"), [(0, math.inf), (3, 40), (-3, math.inf)])
def test_a_sum_is_made_of_distances_and_of_as_many_centres(centre: int, most: float) -> None:
    total, _, _ = as_released([dp.Sum("x"), dp.Count(), dp.Mean("x")])
    distances = dataclasses.replace(interval(10, 8, 14), origin=float(centre))
    found = total.combine([distances, interval(30, 20, most)])
    assert found.values.tolist() == [10 + 30 * centre]
    ends = sorted(np.multiply((20 - 30, most - 30), centre)) if centre else (0, 0)
    assert found.below[0] == pytest.approx(math.hypot(2, ends[0]))
    assert found.above[0] == pytest.approx(math.hypot(4, ends[1]))


def test_of_a_sum_that_lacks_cut_rows_nothing_is_known_beside_a_mean_either() -> None:
    """Whatever the centre is: those that a bound on rows has cut may have had any values."""
    found = together(
        [*SUM_AND_COUNT, dp.Mean("x")], people([7] * 4000), dp.Budget(1), max_rows_per_partition=1
    )
    assert found[1:3] == [-math.inf, math.inf] and found[5] == math.inf
    own = [*SUM_AND_COUNT, dp.Mean("x", own_count=True)]
    for bound in (None, 1):
        program = compile_program(own, dp.Budget(1), 1, max_rows_per_partition=bound)
        [distances] = (s.additive for s in program.steps if s.part.word == "sum" and s.additive)
        assert distances.limits.bounded == (bound is not None)


def test_a_mean_of_values_alone_and_its_sum_are_made_of_their_number() -> None:
    """Half of 8,000 people have no value: the mean is that of the others."""
    asked = [*SUM_AND_COUNT, dp.Mean("x", own_count=True)]
    program = compile_program(asked, dp.Budget(1), 1)
    total, count, mean = program.request.metrics
    assert len(program.steps) == 3 and total.parts() == mean.parts() and count == asked[1]
    table = pa.table({"who": range(8000), "x": [10 if n % 2 else None for n in range(8000)]})
    with pytest.warns(NotPrivate), without_noise():
        found = dp.release(table, person="who", metrics=asked, budget=dp.Budget(1)).table
    [row] = found.to_pylist()
    assert (row["sum_x"], row["count"], row["mean_x"]) == (40_000, 8000, 10)


APART = {
    "no count": [dp.Sum("x"), dp.Mean("x")],
    "no sum": [dp.Count(), dp.Mean("x")],
    "another column": [dp.Sum("y"), dp.Count(), dp.Mean("x")],
    "people for rows": [dp.Sum("x"), dp.PeopleCount(), dp.Mean("x")],
    "rows for people": [dp.Sum("x"), dp.Count(), dp.Mean("x", per="person")],
    "a known clip of the sum": [dp.Sum("x", clip=50), dp.Count(), dp.Mean("x")],
    "a sum from below": [dp.Sum("x", search=dp.AboveThreshold), dp.Count(), dp.Mean("x")],
    "a count from below": [dp.Sum("x"), dp.Count(search=dp.AboveThreshold), dp.Mean("x")],
    "ends of its own": [dp.Sum("x"), dp.Count(), dp.Mean("x", low=0, high=9)],
    "one end": [dp.Sum("x"), dp.Count(), dp.Mean("x", high=9)],
}


@pytest.mark.parametrize("metrics", APART.values(), ids=APART)
def test_any_other_mean_has_numbers_of_its_own(metrics: list[Metric]) -> None:
    asked = compile_program(metrics, dp.Budget(1), 1)
    assert asked.request.metrics == tuple(metrics)
    # A mean of its own with a count of values is paid for; that is a step more than without it.
    assert len(asked.steps) > len(compile_program(metrics[:-1], dp.Budget(1), 1).steps)

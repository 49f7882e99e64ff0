"""Counts, sums and means with a clip that the user knows, and the interval of a mean."""

import math

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import Program, compile_program
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.releases.released import Released
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.partition_view import PartitionView

HUGE = dp.Budget(1_000_000)
"""So much that noise is below a thousandth of what is released, but for less than e^-1000."""


def program_of(metric: Metric, budget: dp.Budget = HUGE) -> Program:
    return compile_program((metric,), budget, 1, partitions=1)


def drawn(metric: Metric, table: Table) -> list[float]:
    """Release one metric of one partition and return its value, low and high."""
    program = program_of(metric)
    view = PartitionView.of_all(histograms.summarise(table, program.measures))
    choices = ()
    if program.shared_measures:
        people = histograms.summarise_people(table, program.shared_measures)
        choices = program.choose_clips(PartitionView.of_all(people), Noise())
    released = program.release(view, choices, Noise())
    return [float(column[0]) for column in program.combine(released, program.sums(released))]


def people(totals: list[int], rows: list[int] | None = None) -> Table:
    """Return a table of one partition: each person's total, in millionths, and rows."""
    size = len(totals)
    counts = np.array(rows if rows is not None else [1] * size, np.int64)
    ids, nowhere = np.arange(size, dtype=np.uint64)[None], np.zeros((1, size), np.uint64)
    return Table(ids, nowhere, counts, [np.array(totals, np.int64) * 10**6])


@pytest.mark.parametrize("metric", [dp.Sum("x", clip=10), dp.Count(clip=10), dp.Mean("x", clip=10)])
def test_a_known_clip_is_not_chosen_and_nothing_is_spent_on_a_choice(metric: Metric) -> None:
    first = program_of(metric).steps[0].release
    assert isinstance(first, ClippedSum) and first.looks == () and first.chooser is None
    assert [spending.purpose for spending in first.spends] == ["noise"]


def test_whoever_has_more_than_a_known_clip_counts_for_that_much() -> None:
    assert drawn(dp.Sum("x", clip=10), people([3, 7, 50, -50]))[0] == pytest.approx(10, abs=0.01)
    assert drawn(dp.Count(clip=5), people([1, 1, 1], [2, 5, 100]))[0] == 12


def test_the_noise_of_a_known_clip_is_that_of_all_the_budget() -> None:
    [step] = program_of(dp.Sum("x", clip=2.5), dp.Budget(1)).steps
    assert isinstance(step.release, ClippedSum)
    assert step.release.thresholds == (2_500_000,) and step.release.noise_costs == (dp.Budget(1),)


def test_the_rows_of_a_mean_have_a_clip_of_their_own() -> None:
    total, count = program_of(dp.Mean("x", clip=2.5)).steps
    assert isinstance(total.release, ClippedSum) and isinstance(count.release, ClippedSum)
    assert total.release.looks == () and count.release.looks != ()


@pytest.mark.parametrize("clip", [0, -1, math.inf, math.nan, "private", True, None])
def test_what_is_no_clip_is_refused(clip: object) -> None:
    with pytest.raises((TypeError, ValueError), match="clip must be"):
        dp.Sum("x", clip=clip)


@pytest.mark.parametrize(
    "options", [{"clip_share": 0.5}, {"candidates": dp.Candidates.geometric(1, 8, 2)}]
)
def test_a_known_clip_leaves_nothing_to_choose(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="be left out with a clip"):
        dp.Sum("x", clip=3, **options)


def test_a_release_from_below_has_no_clip() -> None:
    with pytest.raises(ValueError, match="clip must be left out with one_sided"):
        dp.Sum("x", clip=3, one_sided=True)


def interval(values: float, low: float, high: float) -> Released:
    return Released.between(*(np.array([x], float) for x in (values, values - low, high - values)))


@pytest.mark.parametrize(
    "total, count",
    [((10, 8, 14), (5, 4, 6)), ((-10, -14, -8), (5, 4, 6)), ((1, -2, 3), (5, 1, 9))],
)
def test_the_interval_of_a_mean_joins_what_each_interval_alone_moves_it_by(
    total: tuple[int, int, int], count: tuple[int, int, int]
) -> None:
    mean = dp.Mean("x").combine([interval(*total), interval(*count)])
    by_sum = np.linspace(total[1], total[2], 40) / count[0] - mean.values[0]
    by_count = total[0] / np.linspace(count[1], count[2], 40) - mean.values[0]
    assert mean.below[0] == pytest.approx(math.hypot(by_sum.min(), by_count.min()))
    assert mean.above[0] == pytest.approx(math.hypot(by_sum.max(), by_count.max()))


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 3.0, 100.0])
def test_two_laplace_noises_exceed_the_joint_interval_less_often_than_alpha(scale: float) -> None:
    alpha = 0.048
    one = math.log(1 / alpha)  # P(|X| > one) = alpha for scale 1
    reach = math.hypot(one, scale * one)
    if scale == 1:
        fails = math.exp(-reach) * (1 + reach / 2)
    else:
        both = math.exp(-reach) - scale**2 * math.exp(-reach / scale)
        fails = both / (1 - scale**2)
    assert fails < alpha


@pytest.mark.parametrize(
    "count", [(1, 0, 3), (1, -2, 3), (5, 4, math.inf)], ids=["0", "below", "open"]
)
def test_nothing_is_known_of_a_mean_whose_count_may_be_0_or_is_open(
    count: tuple[float, float, float],
) -> None:
    mean = dp.Mean("x").combine([interval(1, 0, 2), interval(*count)])
    assert mean.low[0] == -math.inf and mean.high[0] == math.inf


def test_an_open_side_of_a_sum_is_an_open_side_of_the_mean() -> None:
    mean = dp.Mean("x").combine([interval(10, 8, math.inf), interval(5, 4, 6)])
    assert math.isfinite(mean.low[0]) and mean.high[0] == math.inf

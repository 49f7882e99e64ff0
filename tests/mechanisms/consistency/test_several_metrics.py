"""Released numbers of several tables: intervals, what is not listed, sums beside counts."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.consistency import agreement, several_metrics
from beam_dp.mechanisms.consistency.agreement import Link
from beam_dp.mechanisms.consistency.several_metrics import DrawnTable
from beam_dp.mechanisms.consistency.tables import LAPLACE
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.planning.compile import compiled
from beam_dp.mechanisms.planning.program import Adaptive

SUMS = [dp.Count(), dp.Sum("v"), dp.Mean("v")]


def program(metrics: list[Any], epsilon: float = 1.0) -> Any:
    keys = dp.PublicPartitions(range(2))
    release = dp.PrivateAggregate("who", metrics, dp.Budget(epsilon), ["k"], partitions=keys)
    return release._program


def table(
    values: list[float], size: int = 0, epsilon: float = 1.0, below: float = 0, above: float = 0
) -> DrawnTable:
    """Return a table of counts: intervals are of noise, and of what clipping may err."""
    made = program([dp.Count()], epsilon)
    tail_bound = LAPLACE * made.steps[0].release.deviation(None)[0]
    ends = (np.full(len(values), tail_bound + more) for more in (below, above))
    drawn = [Released.between(np.array(values), *ends)]
    return DrawnTable(made, drawn, np.zeros((1, 4)), size or len(values))


def link(parents: list[int], is_open: bool = False) -> Link:
    return Link(0, 1, np.array(parents, np.int64), is_open)


def agreed(*asked: DrawnTable, parents: list[int], is_open: bool = False) -> list[Released]:
    found = several_metrics.agree(asked, [link(parents, is_open)], [0], False)
    return [numbers for [numbers] in found]


def test_intervals_are_those_of_the_table_and_hold_the_number() -> None:
    top, parts = table([100.0], epsilon=0.1), table([60.0, 70.0], epsilon=50)
    whole, cells = agreed(top, parts, parents=[0, 0])
    tail_bound = LAPLACE * top.program.steps[0].release.deviation(None)[0]
    assert whole.values.tolist() == [130] and cells.values.tolist() == [60, 70]
    assert whole.low == pytest.approx(np.floor(100 - tail_bound))
    assert whole.high == pytest.approx(np.ceil(100 + tail_bound)) and tail_bound > 30
    precise = agreed(table([100.0], epsilon=50), table([60.0, 70.0], epsilon=0.1), parents=[0, 0])
    assert precise[0].values.tolist() == [100] and precise[1].values.tolist() == [45, 55]
    assert (precise[1].low <= precise[1].values).all()


def test_an_interval_below_0_is_given_as_if_the_number_were_0() -> None:
    whole, cells = agreed(table([9.0], epsilon=50), table([-900.0, 9.0]), parents=[0, 0])
    tail_bound = np.ceil(LAPLACE * table([0.0]).program.steps[0].release.deviation(None)[0])
    assert cells.values.tolist() == [0, 9] and whole.values.tolist() == [9]
    assert cells.high[0] == pytest.approx(tail_bound, abs=1)


def test_what_is_not_listed_is_what_is_left_with_its_own_interval() -> None:
    top, parts = table([500.0], below=3, above=5), table([30.0, 20.0], below=1, above=4)
    whole, cells = agreed(top, parts, parents=[0, 0], is_open=True)
    deviation = top.program.steps[0].release.deviation(None)[0]
    noise = LAPLACE * deviation * 3**0.5 + 0.5
    assert whole.values.tolist() == [500] and cells.values.tolist() == [30, 20, 450]
    # Ends of counts are whole: each loss is up to a unit more.
    assert cells.below[2] == pytest.approx(noise + 3 + 8, abs=3)
    assert cells.above[2] == pytest.approx(noise + 5 + 2, abs=3)


def test_a_parent_that_was_not_selected_is_the_sum_of_its_parts() -> None:
    whole, cells = agreed(
        table([90.0], size=2), table([30.0, 20.0, 7.0]), parents=[0, 1, 1], is_open=True
    )
    assert whole.values.tolist() == [90, 27] and cells.values.tolist() == [30, 20, 7, 60, 0]
    assert whole.high[1] == np.inf


def sums(distances: list[float], counts: list[float], centre: int) -> DrawnTable:
    made = program(SUMS, 20)
    made = compiled(made.request, Adaptive(None, (centre,)))
    columns = {"sum": distances, "number of rows": counts}
    drawn = [Released.between(np.array(columns[step.part.word]), 3.0, 3.0) for step in made.steps]
    return DrawnTable(made, drawn, np.zeros((len(drawn), 4)), len(counts))


def test_sums_agree_about_one_centre_and_means_are_their_quotients() -> None:
    """The count is rounded and moved by 5 rows, which moves no mean of years."""
    top = sums([100.0], [1005.0], 1_990_000_000)
    parts = sums([4000.0, -3000.0], [500.0, 500.0], 2_000_000_000)
    (count, total, mean), (counts, totals, means) = several_metrics.agree(
        [top, parts], [link([0, 0])], [0, 1], False
    )
    assert counts.values.sum() == count.values[0]
    assert totals.values.sum() == pytest.approx(total.values[0], abs=1e-6)
    for value, numbers, whole in ((mean, count, total), (means, counts, totals)):
        assert value.values * numbers.values == pytest.approx(whole.values)
    assert np.abs(means.values - [2008, 1994]).max() < 11


def test_means_of_sums_beyond_64_bits_are_their_quotients() -> None:
    total = Released.between(np.array([3 * 10**30, -(10**30)], object), 5.0, 5.0)
    count = Released.between(np.array([3, 0]), 1.0, 1.0)
    mean = Released.between(np.array([1e30, np.nan]), 1.0, 1.0)
    found = several_metrics._quotient(mean, (total, count))
    assert found.values[0] == pytest.approx(1e30) and np.isnan(found.values[1])


def test_a_table_of_which_nothing_is_known_makes_no_grid() -> None:
    """It has the noise of the least clip: a sum of 10^13 was cut at 2^60 of its units."""
    made, least = program([dp.Sum("v")]), several_metrics.NoiseSize(1e-6, 1e-6, 1e-6)
    noise = several_metrics.NoiseSize(1e11, 1e11, 1e11)
    known, unknown = (
        several_metrics.ReleasedTable(Released.between(np.array([8e12]), end, end), size)
        for end, size in ((1e12, noise), (np.inf, least))
    )
    unit = made.steps[0].part.exact_unit
    assert several_metrics._unit(unit, [known, unknown]) == several_metrics._unit(unit, [known])
    assert several_metrics._unit(unit, [known]) > 100 > several_metrics._unit(unit, [unknown])


def test_where_a_number_is_missing_and_not_all_is_listed_the_metric_stays_as_drawn() -> None:
    top, parts = table([90.0]), table([30.0, 20.0])
    parts = parts._replace(drawn=[Released.between(np.full(2, np.nan), np.inf, np.inf)])
    whole, cells = agreed(top, parts, parents=[0, 0], is_open=True)
    assert whole.values.tolist() == [90] and np.isnan(cells.values).all()
    whole, cells = agreed(top, parts, parents=[0, 0])
    assert whole.values.tolist() == [90] == [cells.values.sum()]


# ---------------------------------------------------------------- mutants

ESTIMATES, NOISE = agreement.estimates, several_metrics.noise_of
OTHER = several_metrics._other


def _parents_of_variance_1(levels, links):
    return ESTIMATES([each._replace(variance=1.0) for each in levels], links)


def _half_as_far(*given):
    noise = NOISE(*given)
    return noise._replace(tail_bound=noise.tail_bound / 2, deviation=noise.deviation / 2)


def _interval_of_the_parent(link, whole, shown, unit):
    units, left = OTHER(link, whole, shown, unit)
    return units, dataclasses.replace(left, above=shown[link.coarse].numbers.above)


def _without_intervals(values, low, high):
    return Released.between(values, 0.0, 0.0)


MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a parent's variance wrong": (agreement, "estimates", _parents_of_variance_1),
    "noise half as far": (several_metrics, "noise_of", _half_as_far),
    "(other) as sure as its parent": (several_metrics, "_other", _interval_of_the_parent),
    "no interval": (Released, "to_ends", _without_intervals),
    "a grid that is too coarse": (several_metrics, "_unit", lambda unit, _: unit * 10**12),
    "parts that give way to nobody": (agreement, "_nearest", lambda values, *_: values),
}
TESTS = [
    test_intervals_are_those_of_the_table_and_hold_the_number,
    test_what_is_not_listed_is_what_is_left_with_its_own_interval,
    test_sums_agree_about_one_centre_and_means_are_their_quotients,
]


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, broken = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, broken)
    with pytest.raises(AssertionError):
        for test in TESTS:
            test()

"""Quantiles and extremes by ranks: what the releases give to their searches, and what comes out."""

import math
from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.releases.quantiles import (
    ExtremeRelease,
    LargestOfLines,
    NearKth,
    RankRelease,
)
from beam_dp.mechanisms.releases.two_phase import TwoPhase
from tests.doubles import ZeroNoise
from tests.relations import Row, as_dicts, views

SURE = dp.Budget(10**6)
GRID = dp.Candidates.linear(-10, 200, 1)
RANDOM = np.random.default_rng(8)
# Person i has from 1 to 3 rows, most of them on day 1; nobody is there on day 3.
ROWS = [
    Row(person, int(RANDOM.choice([1, 1, 2])), float(RANDOM.integers(0, 150)))
    for person in range(60)
    for _ in range(int(RANDOM.integers(1, 4)))
]


def released(metric, rows=ROWS, budget=SURE, noise=None, depth=None):
    """Return the step's release, and what it draws per day."""
    program = compile_program([metric], budget, 1, depth=depth)
    [step] = program.steps
    found = {}
    for cells, days in views(as_dicts(rows), program):
        [made] = program.release(cells, (), noise or Noise())
        columns = (made.values, made.low, made.high, made.rank)
        found |= dict(
            zip(days, zip(*(column.tolist() for column in columns), strict=True), strict=True)
        )
    return step.release, found


def largest_of(day: int, sign: int = 1) -> list[float]:
    """Return the largest value of each person on a day, in falling order."""
    people: dict[int, float] = {}
    for row in ROWS:
        if row.day == day:
            people[row.person] = max(people.get(row.person, -math.inf), sign * row.value)
    return sorted(people.values(), reverse=True)


@pytest.mark.parametrize("kind", [dp.Max, dp.Min])
def test_with_no_noise_to_speak_of_the_extreme_is_exact(kind):
    sign = 1 if kind is dp.Max else -1
    release, found = released(kind("value", candidates=GRID))
    assert isinstance(release, ExtremeRelease) and not release.ranked
    for day in (1, 2):
        truth = sign * largest_of(day, sign)[0]
        value, low, high, _ = found[day]
        assert value == truth
        assert (low, high) == ((truth - 1, math.inf) if sign > 0 else (-math.inf, truth + 1))


@pytest.mark.parametrize("k", [1, 3, 10])
def test_with_one_row_each_the_kth_largest_is_exact(k):
    rows = [Row(person, 1, float(value)) for person, value in enumerate(RANDOM.permutation(80))]
    release, found = released(dp.KthLargest("value", k, candidates=GRID), rows, depth=1)
    assert isinstance(release, ExtremeRelease) and release.ranked
    assert found[1][0] == 80 - k and found[1][3] <= 1


def test_rows_of_the_same_person_count_once_below_the_floor():
    # One person has the 30 largest rows: at epsilon 1 a 3rd largest is that of people.
    rows = [Row(0, 1, 100.0 + i) for i in range(30)]
    rows += [Row(person, 1, float(person % 50)) for person in range(1, 90)]
    drawn = [released(dp.KthLargest("value", 3), rows, dp.Budget(1)) for _ in range(30)]
    release, _ = drawn[0]
    assert isinstance(release.measure, LargestOfLines)
    # At most 2% are above all people but the first one: half of 30 draws with less than 1e-17.
    assert sum(not found[1][0] > 100 for _, found in drawn) > 15
    lines = dict(
        zip(*release.measure.tally(lines_of(release, rows), release.candidates), strict=True)
    )
    assert sum(lines.values()) == 90


def lines_of(release, rows):
    """Return the lines of the first day."""
    program = compile_program([dp.KthLargest("value", 3)], dp.Budget(1), 1)
    [(cells, _)] = views(as_dicts(rows), program)
    return cells.at(program.steps[0].first).owned(0)[0]


def test_far_from_the_top_rows_are_counted_from_below():
    release, found = released(dp.KthLargest("value", 40, candidates=GRID))
    assert isinstance(release, NearKth)
    day = sorted((row.value for row in ROWS if row.day == 1), reverse=True)
    value, low, high, rank = found[1]
    assert rank == release.shift <= 1 and (low, high) == (-math.inf, math.inf)
    assert day[40] <= value <= day[38]
    assert NearKth.centred(100, 20) == 86 and NearKth.centred(3, 20) == 1


def test_two_owners_and_too_many_candidates_are_released_in_two_phases():
    from beam_dp.mechanisms.bounding.columns import Column, Role
    from beam_dp.mechanisms.releases.request import Context

    [request] = dp.Max("value").requests()
    columns = (Column("value", Role.VALUE, Fraction(1, 10**6)), Column("to", Role.OWNER))
    assert isinstance(request.build(Context(columns), SURE), TwoPhase)
    wide = dp.Max("value", candidates=dp.Candidates.linear(0, 2**62, 1))
    assert isinstance(released(wide)[0], TwoPhase)


@pytest.mark.parametrize("metric", [dp.Quantile("value", 0.9), dp.Median("value")])
def test_quantiles_of_people_spread_one_vote_each(metric):
    p = Fraction(9, 10) if isinstance(metric, dp.Quantile) else Fraction(1, 2)
    release, found = released(metric)
    assert isinstance(release, RankRelease) and release.alone
    for day in (1, 2):
        mine = {row.person: [] for row in ROWS if row.day == day}
        for row in ROWS:
            if row.day == day:
                mine[row.person].append(row.value)
        value = found[day][0]
        below = sum(Fraction(sum(v < value for v in own), len(own)) for own in mine.values())
        until = sum(Fraction(sum(v <= value for v in own), len(own)) for own in mine.values())
        assert below <= p * len(mine) + Fraction(1, 10**3) and until >= p * len(mine) - Fraction(
            1, 10**3
        )


def test_several_quantiles_are_rows_of_numbers():
    release, found = released(dp.Quantiles("value", [0.9, 0.1, 0.5]))
    assert release.search.shares == (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
    values, _, _, ranks = found[1]
    assert len(values) == len(ranks) == 3 and values == sorted(values)
    alone = [released(dp.Quantile("value", p))[1][1][0] for p in (0.1, 0.5, 0.9)]
    assert np.abs(np.array(values) - alone).max() <= 20  # ties: any value of a gap is right


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    "metric",
    [
        *(dp.Max("value"), dp.Min("value"), dp.KthLargest("value", 3), dp.Median("value")),
        *(dp.Quantile("value", 0.1), dp.Quantile("value", 0.99), dp.KthLargest("value", 50)),
    ],
    ids=str,
)
def test_too_few_people_are_empty(metric):
    rows = [Row(person, 1, 1000.0 + person) for person in range(3)]
    empty = [released(metric, rows, dp.Budget(1))[1][1] for _ in range(40)]
    # At most 1% each come out otherwise, 3% from below: of 40 more than 15 with 1e-10 at most.
    assert sum(math.isnan(value) for value, *_ in empty) >= 25
    for value, low, high, rank in empty:
        if math.isnan(value):
            assert (low, high) == (-math.inf, math.inf) and (rank == math.inf) == metric.is_ranked


def test_without_noise_a_walk_stops_where_the_floor_says():
    rows = [Row(person, 1, float(person)) for person in range(100)]
    release, found = released(dp.Max("value", candidates=GRID), rows, dp.Budget(1), ZeroNoise())
    floor = release.search.floor(release.candidates)
    # The level is compared with a sum of weights, which those reached before are in too.
    assert 100 - floor <= found[1][0] <= 100 - floor + 2


def test_plans_say_what_is_passed_over():
    for metric, word in ((dp.Max("value"), "walk"), (dp.Median("value"), "rank search")):
        described = released(metric, budget=dp.Budget(1))[0].describe()
        assert word in described.mechanism and described.shift > 0
    several = released(dp.Quantiles("value", [0.25, 0.5, 0.75]))[0].describe()
    assert several.reason == "3 of a column for the price of 2"


def test_quantiles_of_rows_lie_around_the_rank_and_are_empty_for_few():
    metric = dp.Quantile("value", 0.5, per="row")
    rows = [Row(person, 1, float(value)) for person, value in enumerate(RANDOM.permutation(600))]
    ranks = [released(metric, rows, dp.Budget(1))[1][1] for _ in range(20)]
    # The count is off by 10 or more with a chance below e^-2, the search by 20 and more with one
    # below 5%: of 20 more than 15 with a chance below 1e-10.
    assert sum(abs(value - 300) <= 40 for value, *_ in ranks) >= 5
    # The shift: one side of it, without a smaller k. A clip of the count that is far too high shows
    # no rows, with less than 3%: of 20 more than 10 with a chance below 1e-11.
    assert sum(rank < 87 for *_, rank in ranks) >= 10
    few = [released(metric, rows[:20], dp.Budget(1))[1][1] for _ in range(20)]
    # A gate lets 3% pass: of 20 more than 10 with a chance below 1e-10.
    assert sum(math.isnan(value) for value, *_ in few) >= 10

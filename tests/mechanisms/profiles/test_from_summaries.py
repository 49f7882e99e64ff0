"""Profiles of rows, values and owners: against brute force, and for thousands of neighbours.

The data takes the whole way that it takes in a pipeline, function by function: bundles of rows,
packed shards, bounds, merged lines, cells. Every partition is a small database of its own, so that
one run holds thousands of them. No test here draws noise, so none of them can fail by chance; the
databases come from a seed.
"""

import math
import random
from typing import Any

import pytest

import beam_dp as dp
from tests.relations import (
    BOUNDS,
    ONE_OWNER,
    REMOVALS,
    STATISTICS,
    TWO_OWNERS,
    Row,
    Statistic,
    brute,
    by_day,
    data_of,
    moves,
    profiles,
    unnumbered,
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", STATISTICS)
def test_profiles_are_those_of_all_sets_of_people(name: str) -> None:
    """Exact where that is claimed; else B[0] is, and no B[k] is above the exact one."""
    statistic = STATISTICS[name]
    rows = data_of(statistic, 30 if statistic.direct is None else 4).rows
    found, data = profiles(rows, statistic), by_day(rows)
    assert set(found) == {*data} - unnumbered(name, rows)
    for day, exact in ((day, brute(data[day], statistic.f)) for day in found):
        size = len(found[day])
        assert size == REMOVALS + 1 or statistic.metric.output.startswith("custom")
        if statistic.direct is None:
            assert list(found[day]) == exact[:size] and set(exact[size:]) <= {exact[size - 1]}
            continue
        assert found[day][0] == exact[0]
        assert all(level <= bound for level, bound in zip(found[day], exact, strict=True))
        assert list(map(float, found[day])) == list(map(float, statistic.direct(data[day])))


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", STATISTICS)
def test_one_person_with_all_their_rows_moves_every_loss_by_at_most_one(name: str) -> None:
    """300 databases, 20 of packings; a new person's rows may touch anybody.

    Profiles of packings are those of `packed/test_by_threshold`, which has others of each: here
    are their ways through the summaries.
    """
    statistic = STATISTICS[name]
    made = data_of(statistic, 300 if statistic.direct is None else 20, seed=2)
    before, after = (profiles(rows, statistic) for rows in (made.before, made.rows))
    assert moves(before, after) == {True, False}


@pytest.mark.sampled(28)
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", ONE_OWNER)
def test_bounds_keep_it_so_in_every_partition(name: str, bounds: str) -> None:
    """60 databases of 4 days each, 12 of packings; the new person reaches several of them."""
    statistic, bound = ONE_OWNER[name], BOUNDS[bounds]
    made = data_of(statistic, 60 if statistic.direct is None else 12, 4, seed=3)
    before, after = (profiles(rows, statistic, bounds=bound) for rows in (made.before, made.rows))
    moves(before, after)
    reached = {day // 4: 0 for day in after}
    for day, new in after.items():
        reached[day // 4] += before.get(day) != new
    if bound.partitions is not None:
        assert max(reached.values()) == bound.partitions
    else:
        assert max(reached.values()) > 2


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", STATISTICS)
def test_how_rows_are_cut_and_ordered_changes_nothing(name: str) -> None:
    statistic = STATISTICS[name]
    rows = data_of(statistic, 5 if statistic.direct is None else 1, 2, seed=4).rows
    expected = profiles(rows, statistic)
    draw = random.Random(5)
    for bundles, shards, buckets in ((7, 16, 1), (30, 5, 8)):
        draw.shuffle(rows)
        cut = {"bundles": bundles, "shards": shards, "buckets": buckets}
        assert profiles(rows, statistic, **cut) == expected


def test_rows_of_the_same_owners_are_capped_at_two_to_the_32_units() -> None:
    rows = [Row(1, 1, 1e9, None, 2), Row(1, 1, 5.0, None, 3), Row(4, 1, -1e9, None, 3)]
    found = profiles(rows, TWO_OWNERS["sum of two"])[1]
    assert found[0] == ((1 << 32) + 5_000) / 1000 and found[1] <= 5
    huge = [Row(1, 1, 1e300, None, 2), Row(3, 1, math.inf, None, 4), Row(2, 1, 1e300, None, 1)]
    huge += [Row(1, 1, -math.inf, None, 2), Row(2, 1, math.nan, None, 1), Row(2, 1, 9e9, None, 1)]
    assert profiles(huge, TWO_OWNERS["sum of two"])[1][0] == (1 << 33) / 1000


def test_values_beyond_2_to_the_62_units_are_at_that_bound() -> None:
    rows = [Row(person, 1, value) for person, value in enumerate((1e300, 1e200, math.inf, -1e300))]
    found = profiles(rows, ONE_OWNER["1-th"])[1]
    top = (1 << 62) / 10**6
    assert found == (top, top, top, -top, -math.inf)


def test_a_user_profile_gets_each_persons_values_in_order() -> None:
    seen: list[Any] = []

    def function(people: Any) -> list[float]:
        seen.append(people)
        return [0.0]

    metric = dp.CustomProfile("value", function, candidates=dp.Candidates.of([0, 1]))
    rows = [Row(1, 1, 2.5), Row(1, 1, -1.0), Row(1, 1, 2.5), Row(2, 1, 0.5), Row(3, 1, None)]
    assert profiles(rows, Statistic(metric, len)) == {1: (0.0,)}
    assert sorted(seen[0]) == [(-1.0, 2.5, 2.5), (0.5,)]

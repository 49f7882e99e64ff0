"""Releases by search and of ranks: within their bounds, well-formed, and never beyond the truth.

With epsilon 10^4 and beta 10^-12 each assertion about a draw fails by chance with probability below
10^-12 (the bound that a release states at beta), all of a test together below 10^-10.
"""

import dataclasses
import functools
import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.candidates.candidates import Candidates, RoundedGrid
from beam_dp.mechanisms.metrics import quantiles, values
from beam_dp.mechanisms.metrics.profiled import DirectRelease
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.quantiles.node import increments
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.stages.output_names import output_type
from tests.doubles import ZeroNoise, choices, compile_program
from tests.mechanisms.metrics.test_released import empty
from tests.relations import (
    KEY,
    STATISTICS,
    Patch,
    Row,
    Rows,
    Statistic,
    as_dicts,
    brute,
    by_day,
    check_noticed,
    data_of,
    views,
)

GRID = Candidates.linear(-3, 40, 1)
SURE: dict[str, Any] = {"candidates": GRID, "beta": 1e-12}
HUGE = dp.Budget(1e4)


def program_of(statistic: Statistic, **changes: Any) -> Program:
    """Return the program of one statistic with a huge budget."""
    if "search" in vars(statistic.metric):
        changes["search"] = dp.AboveThreshold
    known = {field.name for field in dataclasses.fields(statistic.metric)}
    kept = {name: value for name, value in changes.items() if name in known}
    metric = dataclasses.replace(statistic.metric, **kept)
    return compile_program([metric], HUGE, 1, others=statistic.others)


class Drawn(NamedTuple):
    """What is released of one partition."""

    value: Any
    low: float
    high: float
    rank: float


def drawn(
    rows: Rows, program: Program, noise: Noise, several: bool = False, clip: int = 40
) -> dict[int, Drawn]:
    """Return what is released per day; shared clips are the `clip`-th threshold."""
    found = {}
    for cells, days in views(as_dicts(rows), program, several=several):
        clips = choices(program, clip)
        [made] = program.release(cells, clips, noise)
        columns = (column.tolist() for column in (made.values, made.low, made.high, made.rank))
        found |= dict(zip(days, map(Drawn, *columns), strict=True))
    return found


@pytest.mark.sampled(21)
@pytest.mark.parametrize("name", [name for name in STATISTICS if name != "people"])
def test_searched_statistics_are_within_their_shift(name: str) -> None:
    """At most f, and at least its profile at `shift` removals, which is 1 or 0 here.

    The interval holds f, and ends at the candidate before the released one: nothing less is sure.
    """
    statistic = STATISTICS[name]
    rows = data_of(statistic, 40, seed=8).rows
    program = program_of(statistic, **SURE)
    sign = -1 if name.startswith("min") else 1
    found, data = drawn(rows, program, Noise(), bool(statistic.others)), by_day(rows)
    [step] = program.steps
    grid = step.release.candidates
    shift = step.release.shift
    assert shift <= 1
    for day, (value, low, high, rank) in found.items():
        levels = statistic.direct(data[day]) if statistic.direct else brute(data[day], statistic.f)
        least, most = (grid[min(grid.index(levels[k]), grid.size - 1)] for k in (shift, 0))
        assert least <= sign * value <= most and rank == 0
        known, unknown = (low, high) if sign > 0 else (-high, -low)
        place = grid.index(sign * value)
        assert unknown == math.inf and known == (grid[place - 1] if place else -math.inf)
        assert known < statistic.f(data[day]) or known == -math.inf
        assert value < 0 or math.copysign(1, value) == 1  # never -0.0


@dataclasses.dataclass(frozen=True)
class Fixed:
    """A search that returns the same candidate again and again."""

    place: int
    beta: float = 0.05

    def choose(self, profile: Profile, candidates: Candidates, noise: Noise) -> Any:
        """Return the candidate."""
        return candidates[self.place]


@dataclasses.dataclass(frozen=True)
class Given:
    """A profiler of f, or of -f, in partitions whose statistic is known and moves for nobody."""

    numbers: tuple[int, ...]
    sign: int = 1
    measures = ()

    def profiles(self, view: PartitionView) -> list[Profile]:
        return [Profile([number] * 50) for number in self.numbers]


SMALL_GRIDS = {
    "one": Candidates.of([3]),
    "given": Candidates.of([-7, -0.5, 0, 2, 2.25, 9]),
    "whole": Candidates.linear(-3, 3, 1),
    "tenths": Candidates.linear(-0.3, 0.4, 0.1),
    "both signs": RoundedGrid(1, 9, 2).mirrored(),
    "huge": Candidates.linear(2**80, 2**80 + 2**70, 2**68),
}


def bounded(grid: Candidates, place: int, sign: int, beta: float = 0.05) -> Drawn:
    """Return what is released where the search ends at a candidate, which is that of -f for -1."""
    release = DirectRelease(Given((0,), sign), Fixed(place, beta), grid)
    made = release.draw(empty(1), Noise())
    return Drawn(*(column[0] for column in (made.values, made.low, made.high, made.rank)))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", SMALL_GRIDS)
def test_the_truth_is_beyond_the_candidate_before_the_released_one(name: str, sign: int) -> None:
    """For every f, and every candidate that is at most f rounded up: what a search may end at.

    f is each candidate, and just below and above it; of a minimum it is the profile's negative.
    """
    grid = SMALL_GRIDS[name]
    near = [Fraction(c) + step for c in grid for step in (Fraction(-1, 10**6), 0, Fraction(1, 9))]
    for f, place in itertools.product(near, range(grid.size)):
        if place > grid.index(f):
            continue  # only in the 5% of releases that fail
        value, low, high, rank = bounded(grid, place, sign)
        assert value == sign * grid[place] and rank == 0
        assert low <= sign * f <= high
        known, unknown = (low, high) if sign > 0 else (-high, -low)
        assert unknown == math.inf
        # The nearest end that holds for all of these f.
        assert known == (pytest.approx(float(grid[place - 1]), rel=1e-15) if place else -math.inf)


def test_a_search_that_fails_more_often_than_5_percent_bounds_nothing() -> None:
    grid = SMALL_GRIDS["whole"]
    for place, sign, beta in itertools.product(range(grid.size), (1, -1), (0.06, 0.999)):
        assert bounded(grid, place, sign, beta)[1:] == (-math.inf, math.inf, 0)


EDGES: dict[str, tuple[Rows, float]] = {
    "one person, one row": ([Row(1, 1, 7.0)], 7),
    "one person, mostly one value": (
        [Row(1, 1, 7.0)] * 9 + [Row(1, 1, float(value)) for value in (30, 31, 32)],
        7,
    ),
    "all equal": ([Row(person, 1, 7.0) for person in range(50)], 7),
    "above the top": ([Row(person, 1, 1e9) for person in range(50)], GRID[GRID.size - 1]),
    "infinite": ([Row(person, 1, math.inf) for person in range(50)], GRID[GRID.size - 1]),
}


@pytest.mark.parametrize("per", ["person", "row"])
@pytest.mark.parametrize("name", EDGES)
def test_quantiles_of_extreme_data(name: str, per: str) -> None:
    """At 50 people or one with certainty: epsilon is 10^6."""
    rows, expected = EDGES[name]
    metric = dp.Median("value", per=per, **SURE)
    program = compile_program([metric], dp.Budget(1e6), 1)
    assert drawn(rows, program, Noise())[1][0] == expected


EVERY = [
    dp.KthLargest("value", 3),
    dp.Median("value"),
    dp.Quantile("value", 0.9, per="row"),
    dp.DistinctCount("item"),
    dp.DistinctCount("item", search=dp.AboveThreshold),
    dp.MaxFrequency("item"),
    dp.SumOfSquares("item"),
    dp.CustomProfile("value", lambda people: [0], candidates=GRID),
]


def named(metric: Any) -> str:
    return f"{type(metric).__name__} {metric.output}"


@pytest.mark.parametrize("top", [2**63 - 1, 2**63, 2**80])
def test_whole_numbers_stay_whole_however_large(top: int) -> None:
    """numpy alone makes floats of a small integer beside one between 2^63 and 2^64."""
    release = DirectRelease(Given((5, top)), AboveThreshold(HUGE, 1e-12), Candidates.of([5, top]))
    found = release.draw(empty(2).at(0), Noise()).values.tolist()
    assert found == [5, top] and all(type(value) is int for value in found)


LAYOUT = Layout("person", (), (), None, KEY)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("metric", EVERY, ids=named)
def test_empty_partitions_are_released_like_others(metric: Any) -> None:
    """30 of them, at an ordinary budget: numbers of the right type, and of every other column."""
    program = compile_program([metric], dp.Budget(1.0), 3)
    clips = choices(program, 3)
    [made] = program.release(empty(30), clips, Noise())
    for column in (made.values, made.low, made.high, made.rank):
        assert len(column) == 30
    assert not np.isnan(np.concatenate([made.low, made.high, made.rank])).any()
    assert (made.low <= made.high).all()
    kind = output_type([], [metric], LAYOUT)._fields[0][1]
    found, *_ = program.combine([made], program.sums([made]))
    assert kind is float or (found == np.rint(found)).all()
    [nothing] = program.release(empty(0), clips, Noise())
    assert {len(column) for column in nothing.columns} == {0}


@pytest.mark.audit
def test_a_clipped_distinct_count_is_never_above_the_true_one() -> None:
    """Without noise, for clips that are given; and one person moves it by 0 to the clip."""
    statistic = Statistic(dp.DistinctCount("item"), len)
    made = data_of(statistic, 150, seed=11)
    data, tight = by_day(made.rows), 0
    for most in (1, 4, 64):
        program = compile_program([dp.DistinctCount("item", clip=most)], HUGE, 1)
        before, after = (drawn(rows, program, ZeroNoise()) for rows in (made.before, made.rows))
        for day, (value, *_) in after.items():
            truth = len({str(row.item) for row in data[day] if row.item is not None})
            moved = value - before.get(day, (0, 0))[0]
            assert value <= truth and 0 <= moved <= most
            assert most < 64 or value == truth
            tight += moved == most
    assert tight > 20


def true_count(patch: Patch) -> None:
    """Mutant: what is released is the true count, which one person moves by any number."""

    def uncut(people: Any, items: Any, cap: int) -> int:
        return len(set(items.tolist()))

    patch.setattr(values.packed_values, "covered", uncut)


def lines_count_as_one(patch: Patch) -> None:
    def single(people: Any, buckets: Any, counts: Any, clip: int) -> Any:
        return increments(people, buckets, np.ones_like(counts), clip=clip)

    patch.setattr(quantiles, "increments", single)


def test_mutants_are_noticed() -> None:
    check_noticed(test_a_clipped_distinct_count_is_never_above_the_true_one, true_count)
    one_value = functools.partial(test_quantiles_of_extreme_data, "one person, mostly one value")
    check_noticed(lambda: one_value("person"), lines_count_as_one)

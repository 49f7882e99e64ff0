"""A mean is a sum of distances from a centre: what a person moves, votes for and pays.

Variances of rows: exact squares about a centre, wide values, and what is refused.
"""

import dataclasses
import itertools
import random
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Column, Field, Role
from beam_dp.mechanisms.histogram_choice.clipping_loss import ClippingLoss
from beam_dp.mechanisms.metrics.additive import additive_release
from beam_dp.mechanisms.metrics.base import CENTRE, Context
from beam_dp.mechanisms.metrics.mean import Distances, DistancesOfSum
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning import adaptive
from beam_dp.mechanisms.planning.compile import compiled, program_at
from beam_dp.mechanisms.planning.program import Adaptive, Program
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.text.plan import record_of
from tests.doubles import choices, compile_program
from tests.mechanisms.metrics.test_clipped_sum import totals, with_measure
from tests.reference import Row, settled, table_of

ENDS = [(None, None), (-20, 30), (None, 5), (0, None)]


def rows_of(generator: random.Random, people: int) -> list[Row]:
    return [
        Row((person, 0), (0, 0), (generator.choice((None, generator.randrange(-99, 99))),))
        for person in range(people)
        for _ in range(generator.randrange(1, 5))
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("by_person", [False, True])
@pytest.mark.parametrize("of_values", [None, True, False])
def test_a_person_moves_the_clipped_distances_by_at_most_the_clip(
    of_values, by_person, ends
) -> None:
    """The centre is taken off for each row or person with a value, or for each of them all."""
    generator, reached = random.Random(7), set()
    low, high = (-(10**9) if ends[0] is None else ends[0], 10**9 if ends[1] is None else ends[1])
    given = Column("x", Role.VALUE, Fraction(1)), ends, by_person
    part = Distances(*given) if of_values is None else DistancesOfSum(*given, of_values)
    for trial in range(10):
        clip, centre = generator.choice((1, 8, 64)), generator.randrange(-150, 150) * (trial % 5)
        context = Context(part.columns(), partitions=1, centres={part.asked_centre: centre})
        made = part.build(context, dp.Budget(1))
        measure = dataclasses.replace(made.measure, thresholds=(clip,))
        distances = dataclasses.replace(with_measure(made, measure), clip=None)
        rows = rows_of(generator, 5)
        fields = tuple(context.fields)
        [whole], expected = totals(distances, rows, 1, 0, fields), 0
        for person in range(5):
            left = [row for row in rows if row.person[0] != person]
            mine = [row.values[0] for row in rows if row.person[0] == person]
            cut = [min(max(value, low), high) for value in mine if value is not None]
            counted = len(mine if of_values is False else cut)
            away = sum(cut) - centre * (min(counted, 1) if by_person else counted)
            own = max(-clip, min(away, clip))
            moved = whole - totals(distances, left, 1, 0, fields)[0]
            assert moved == own  # so at most the clip
            expected += own
            reached.add(abs(own) == clip)
        assert whole == expected
    assert reached == {False, True}


def programs_of(metrics, budget=None, edges=(1,)) -> Program:
    return compile_program(metrics, budget or dp.Budget(1), edges)


def votes_of(programs: Program, rows: list[Row]) -> list[dict[int, int]]:
    bounder = Bounder(ContributionBounds(4), programs.fields, b"key")
    reduced = bounder.reduce(bounder.prepare(table_of(rows)))
    votes = adaptive.votes_of(programs)
    counted = votes.counted(votes.merged([votes.of(reduced, bounder)]))
    return [dict(zip(*map(np.ndarray.tolist, each), strict=True)) for each in counted]


@pytest.mark.parametrize("per", ["row", "person"])
def test_everybody_has_one_vote_and_a_neighbour_one_more_in_one_bucket(per: str) -> None:
    generator = random.Random(3)
    programs = programs_of([dp.Mean("x", unit=1, per=per)], edges=(1, 2, 4))
    crowd = [
        Row((person, 0), (generator.randrange(4), 0), (generator.randrange(-999, 999),))
        for person in range(30)
        for _ in range(generator.randrange(1, 6))
    ]
    before = votes_of(programs, crowd)
    assert [sum(each.values()) for each in before] == [30, 30, 30]
    for size in (1, 3, 40):
        more = [Row((99, 0), (n % 4, 0), (10**6 + n,)) for n in range(size)]
        for mine, theirs in zip(before, votes_of(programs, crowd + more), strict=True):
            moved = {key: theirs.get(key, 0) - mine.get(key, 0) for key in {*mine, *theirs}}
            assert sorted(filter(None, moved.values())) == [1]
    without = [Row((99, 0), (0, 0), (None,))]
    assert votes_of(programs, crowd + without)[1] == before[1]


@pytest.mark.parametrize(
    ("budget", "edges"), [(dp.Budget(1), (1, 2, 4)), (dp.Budget.zcdp(Fraction(1, 2)), (1,))]
)
def test_the_choice_of_a_centre_costs_what_the_account_says(budget, edges) -> None:
    programs = programs_of([dp.Mean("x"), dp.PeopleCount()], budget, edges)
    [centre] = adaptive.votes_of(programs).centres
    program = program_at(programs.request, edges[-1])
    [entered] = [entry for entry in program.entries if entry[0] == "centre of x"]
    assert entered == ("centre of x", centre.budget, 1)
    assert centre.budget.amount == CENTRE / 2 * budget.amount
    assert sum(cost.amount * times for _, cost, times in program.entries) == budget.amount


def test_a_centre_is_between_known_ends() -> None:
    [centre] = adaptive.votes_of(programs_of([dp.Mean("x", unit=1, low=10, high=31)])).centres
    assert (centre.candidates[0], centre.candidates[-1]) == (10, 31)
    nobody = np.zeros(0, np.int64)
    drawn = [centre.choose(nobody, nobody, Noise()) for _ in range(8)]
    # With nobody a candidate is chosen in 1 of 129 draws: in all of 8 with a chance of 2e-17.
    assert 20 in drawn and all(10 <= each <= 31 for each in drawn)


@pytest.mark.parametrize(
    ("ends", "span"),
    [
        ((-20, 30), (None, None)),
        ((0, None), (0, None)),
        ((2, 5), (2, None)),
        ((-5, -2), (None, -2)),
    ],
)
def test_totals_of_people_may_be_beyond_the_ends_of_values(ends, span) -> None:
    """Three values of 4, none above 5, are a total of 12; no value below 0 is one below 0."""
    low, high = ends
    of_people = dp.Mean("x", unit=1, low=low, high=high, per="person")
    [centre] = adaptive.votes_of(programs_of([of_people])).centres
    free = programs_of([dp.Mean("x", unit=1, per="person")])
    wide = adaptive.votes_of(free).centres[0].candidates
    least, most = centre.candidates[0], centre.candidates[-1]
    assert least == (wide[0] if span[0] is None else span[0])
    assert most == (wide[-1] if span[1] is None else span[1])
    for mean in (-12.0, 12.0):
        total = Released.between(np.array([10 * mean]), 10.0, 10.0)
        number = Released.between(np.array([10.0]), 0.0, 0.0)
        [found] = of_people.combine([total, number]).values
        assert found == np.clip(mean, *span)
        [found] = dp.Mean("x", unit=1, low=low, high=high).combine([total, number]).values
        assert found == np.clip(mean, low, high)


def test_the_record_holds_the_centre_and_the_plan_shows_it() -> None:
    programs = programs_of([dp.Mean("x", unit=1)])
    program = compiled(programs.request, Adaptive(None, (1990,)))
    record = record_of(program, choices(program, 3), [[(1.0, 2.0)]] * len(program.steps))
    assert [release.get("centre") for release in record["releases"]] == [1990.0, None]
    assert record["spent"][0]["on"] == "centre of x"
    plan = dp.PrivateAggregate("p", [dp.Mean("x")], dp.Budget(1)).plan()
    assert plan.rows[0].metric == "(centre of x)" and plan.rows[0].epsilon == float(CENTRE)


WIDEST = 1 << 59
HOSTILE = [1e300, -1e300, 1e30, -1e30, 1e25, float("nan"), float("inf"), -float("inf"), 1e13, 0.0]


def test_squared_distances_are_exact_and_cut_first() -> None:
    source = random.Random(4)
    fields = (Field(0, "squares", -WIDEST, WIDEST), Field(0, "sum", -WIDEST, WIDEST))
    fields = (*fields, Field(0, "count"))
    for _ in range(60):
        centre = source.choice([0, 7, -3, 10**9, WIDEST])
        values = [
            source.choice([None, 0, 5, -(10**6), WIDEST, 1 << 100, -(1 << 119)]) for _ in "abc"
        ]
        table = settled([Row((1, 0), (0, 0), (value,)) for value in values], fields)
        measure = Measure(0, 1, (1, 2), counted=2, centre=centre, totals=1)
        cut = [max(-WIDEST, min(WIDEST, v)) for v in values if v is not None]
        exact = sum((v - centre) ** 2 for v in cut)
        _, numbers = measure.of(table)
        assert [int(number) for number in numbers] == [exact] * (exact > 0)


def test_a_spread_beside_a_mean_has_its_centre_and_its_sum_and_may_be_of_milliseconds() -> None:
    metrics = [dp.Mean("at"), dp.StandardDeviation("at")]
    plan = dp.PrivateAggregate("who", metrics, dp.Budget(1)).plan()
    assert [row.metric for row in plan.rows[:2]] == [
        "(centre of at)",
        "mean_at (sum), standard_deviation_at (sum)",
    ]
    times = 1.7e12 + 1e9 * np.random.default_rng(1).standard_normal(5_000)
    data = pd.DataFrame({"who": np.arange(len(times)), "at": np.round(times)})
    released = dp.release(data, person="who", metrics=metrics, budget=dp.Budget(50)).table
    # A false alarm in one of 10^12 runs: noise is a thousandth of this.
    assert abs(released["standard_deviation_at"][0].as_py() / times.std() - 1) < 0.1


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "ends", [{}, {"low": 0, "high": 1e30}, {"low": -1e13, "high": 1e13}], ids=str
)
def test_no_value_decides_whether_a_release_ends(ends) -> None:
    data = pd.DataFrame({"who": np.arange(60), "x": [1.7e18 + n for n in range(60)]})
    more = pd.DataFrame({"who": np.arange(60, 60 + len(HOSTILE)), "x": HOSTILE})
    metrics = [kind("x", **ends) for kind in (dp.Mean, dp.Variance, dp.StandardDeviation)]
    for rows in (pd.concat([data, more]), more):
        released = dp.release(rows, person="who", metrics=metrics, budget=dp.Budget(9))
        assert len(released.table) == 1


def test_few_rows_give_no_warning() -> None:
    """Where nobody is shown, the ends of the interval are infinite; perhaps there are no rows."""
    rows = Released.between(np.array([3.0]), 3.0, 9.0)
    for kind, unseen in itertools.product(
        (dp.Mean, dp.Variance, dp.StandardDeviation), (0, np.nan)
    ):
        sums = [Released.between(np.array([unseen]), np.inf, np.inf)] * (1 + (kind is not dp.Mean))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            columns = kind("x").output_columns(kind("x").combine([*sums, rows]))
        assert np.isnan(columns[0]) and columns[1:] == (-np.inf if kind is dp.Mean else 0, np.inf)


def moves_by_at_most_the_clips() -> bool:
    """A person moves each number by its clip at most, whatever the clips and the centre are."""
    source = random.Random(8)
    program = compile_program([dp.Variance("x", unit=1)], dp.Budget(1), 1, partitions=1)
    reached = set()
    values = [None, 0, 3, -40, 1 << 20, 1 << 70]
    for _ in range(25):
        rows = [
            Row((who, 0), (0, 0), (source.choice(values),))
            for who in range(4)
            for _ in range(source.randrange(1, 5))
        ]
        fewer = [row for row in rows if row.person != (0, 0)]
        centre, index = source.choice([0, 5, -(1 << 30), WIDEST]), source.randrange(64)
        for step in program.steps:
            release = dataclasses.replace(step.release, joint=None, place=0)
            if release.measure.source != program.fields.index(Field(0, "count")):
                measure = dataclasses.replace(release.measure, centre=centre)
                release = with_measure(release, measure)
            place = min(index, len(release.measure.thresholds) - 1)
            both = [totals(release, some, 1, place, program.fields)[0] for some in (rows, fewer)]
            move, clip = both[0] - both[1], release.measure.thresholds[place]
            if not (-clip if release.signed else 0) <= move <= clip:
                return False
            reached.add(abs(move) == clip)
    return True in reached


def test_a_person_moves_each_number_by_at_most_its_clip() -> None:
    assert moves_by_at_most_the_clips()


def test_a_share_of_more_than_the_clip_is_noticed(monkeypatch) -> None:
    whole = additive_release.clipped_totals
    monkeypatch.setattr(
        additive_release,
        "clipped_totals",
        lambda below, shares, clip, *grid: whole(below, shares, clip + 1, *grid),
    )
    assert not moves_by_at_most_the_clips()


def test_the_interval_of_distances_knows_where_the_rows_are() -> None:
    program = programs_of([dp.Mean("x")])
    nothing, side = (0.0, 0.0, 0.0), (5000.0, 0.0, 0.0)
    clipped = ClippingLoss(30.0, 8.0, 10.0, side, side, norm=1, folded=True)
    counted = ClippingLoss(30.0, 8.0, 10.0, nothing, side, norm=1)
    rows = np.array([500.0, *np.full(99, 5.0)])
    drawn = [
        dataclasses.replace(Released.between(values, 30.0, 30.0), loss=loss)
        for values, loss in ((np.zeros(100), clipped), (rows, counted))
    ]
    known = program.parts(drawn, sums := program.sums(drawn))
    distances, count = dp.Mean("x").parts()
    shares = counted.share(rows, sums[1])
    assert known[distances].above == pytest.approx(
        clipped.widths(np.zeros(100), sums[0], shares)[1]
    )
    assert known[distances].above[0] > 1500 and known[distances].above[1] < 200
    assert known[count].above.max() > 1000

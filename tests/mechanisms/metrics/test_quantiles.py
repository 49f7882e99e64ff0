"""Quantiles and extremes by ranks: what the releases give to their searches, and what comes out."""

import collections
import math
from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.table import Column, Role
from beam_dp.mechanisms.candidates.decimal_grid import FinerGrid
from beam_dp.mechanisms.metrics.base import Context
from beam_dp.mechanisms.metrics.profiled import TwoPhase
from beam_dp.mechanisms.metrics.quantiles import ExtremeRelease, KthRelease, RankRelease
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.search.quantiles.node import Answer
from beam_dp.mechanisms.search.quantiles.several_quantiles import SplitSearch
from beam_dp.mechanisms.search.quantiles.tail_quantile import TailSearch
from beam_dp.mechanisms.summaries.owner_lines import Lines
from tests.doubles import ZeroNoise, compile_program
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


def drawn(metric, times, rows=ROWS, budget=SURE, noise=None, max_rows_per_partition=None):
    """Return the step's release, and what it draws per day, so many times."""
    program = compile_program([metric], budget, 1, max_rows_per_partition=max_rows_per_partition)
    [step] = program.steps
    found = [{} for _ in range(times)]
    for cells, days in views(as_dicts(rows), program):
        for each in found:
            [made] = program.release(cells, (), noise or Noise())
            columns = (made.values, made.low, made.high, made.rank)
            lines = zip(*(column.tolist() for column in columns), strict=True)
            each |= dict(zip(days, lines, strict=True))
    return step.release, found


def released(metric, rows=ROWS, budget=SURE, noise=None, max_rows_per_partition=None):
    """Return the step's release, and what it draws per day."""
    release, [found] = drawn(metric, 1, rows, budget, noise, max_rows_per_partition)
    return release, found


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
    assert isinstance(release, ExtremeRelease)
    for day in (1, 2):
        truth = sign * largest_of(day, sign)[0]
        value, low, high, _ = found[day]
        assert value == truth
        assert (low, high) == ((truth - 1, math.inf) if sign > 0 else (-math.inf, truth + 1))


@pytest.mark.parametrize(
    "ends", [{"low": 0, "high": 120}, {"candidates": dp.Candidates.linear(0, 120, 1)}]
)
def test_the_smallest_of_numbers_from_0_on_is_no_number_below_all_people(ends):
    ages = [Row(person, 1, 18.0 + person % 48) for person in range(2_000)]
    _, found = drawn(dp.Min("value", **ends), 20, ages, dp.Budget(1))
    # Each is below 18 with a chance of at most 1%: more than 10 of 20, below 1e-16.
    assert sum(each[1][2] <= 18 for each in found) <= 10


def test_the_extreme_of_equal_numbers_is_that_number():
    stars = [Row(person, 1, 5.0) for person in range(2_000)]
    _, found = drawn(dp.Max("value"), 20, stars, dp.Budget(1))
    # Each is another number with a chance of at most 2%: more than 10 of 20, below 1e-13.
    assert sum(each[1][0] == 5 and math.isfinite(each[1][1]) for each in found) >= 10


def test_rows_of_the_same_person_count_once_below_the_floor():
    # One person has the 30 largest rows: at epsilon 1 a 3rd largest is that of people.
    rows = [Row(0, 1, 100.0 + i) for i in range(30)]
    rows += [Row(person, 1, float(person % 50)) for person in range(1, 90)]
    release, found = drawn(dp.KthLargest("value", 3), 30, rows, dp.Budget(1))
    assert isinstance(release, KthRelease) and release.near is None
    assert [spending.cost for spending in release.spends] == [dp.Budget(1)]
    # At most 2% are above all people but the first one: half of 30 draws with less than 1e-17.
    assert sum(not each[1][0] > 100 for each in found) > 15


def test_far_from_the_top_at_most_so_many_rows_of_each_person_count():
    k = 40
    release, found = released(dp.KthLargest("value", k, candidates=GRID))
    assert isinstance(release, KthRelease) and release.near is not None
    day = sorted((row.value for row in ROWS if row.day == 1), reverse=True)
    value, low, high, rank = found[1]
    assert rank <= 8 and (low, high) == (-math.inf, math.inf)
    assert day[k] <= value <= day[k - 2]


@pytest.mark.audit
def test_the_clip_of_a_kth_largest_is_of_the_rows_near_it():
    """100 rows each, of which one is large: the 300th largest is among these, and C is 1 or 2."""
    rows = [Row(person, 1, float(value)) for person in range(600) for value in range(99)]
    rows += [Row(person, 1, 1000.0 + person) for person in range(600)]
    ranks, stated = [], []
    for found in drawn(dp.KthLargest("value", 300), 15, rows, dp.Budget(1))[1]:
        value, _, _, rank = found[1]
        ranks.append(abs(sum(row.value >= value for row in rows) - 300))
        stated.append(rank)
    # With C = 128 the walk alone would err by 6 / 0.7 of it, 1,100. A median of 15 that is above
    # what 5% are above needs 8 of them: less than 1e-6 * 6435 at 5% each, and nowhere near is seen.
    assert np.median(ranks) < 60 and np.median(stated) < 200


def test_two_owners_and_too_many_candidates_are_released_in_two_phases():
    [part] = dp.Max("value").parts()
    columns = (Column("value", Role.VALUE, Fraction(1, 10**6)), Column("to", Role.OWNER))
    assert isinstance(part.build(Context(columns), SURE), TwoPhase)
    wide = dp.Max("value", candidates=dp.Candidates.linear(0, 2**62, 1))
    assert isinstance(released(wide)[0], TwoPhase)


@pytest.mark.parametrize("p", [Fraction(9, 10), Fraction(1, 2)])
def test_quantiles_of_people_spread_one_vote_each(p):
    release, found = released(dp.Quantile("value", p, per="person"))
    assert isinstance(release, RankRelease) and release.alone
    for day in (1, 2):
        mine = collections.defaultdict(list)
        for row in ROWS:
            if row.day == day:
                mine[row.person].append(row.value)
        value = found[day][0]
        below = sum(Fraction(sum(v < value for v in own), len(own)) for own in mine.values())
        until = sum(Fraction(sum(v <= value for v in own), len(own)) for own in mine.values())
        assert below - 1e-3 <= p * len(mine) <= until + 1e-3


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
    empty = [each[1] for each in drawn(metric, 20, rows, dp.Budget(1))[1]]
    # At most 1% each come out otherwise, 3% from below: of 20 more than 10 with 1e-11 at most.
    assert sum(math.isnan(value) for value, *_ in empty) >= 10
    for value, low, high, rank in empty:
        if math.isnan(value):
            assert (low, high) == (-math.inf, math.inf) and (rank == math.inf) == metric.is_ranked


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_with_no_noise_to_speak_of_a_quantile_of_rows_is_exact(p):
    release, found = released(dp.Quantile("value", p, candidates=GRID))
    assert release.rows is not None
    for day in (1, 2):
        mine = sorted(row.value for row in ROWS if row.day == day)
        value, _, _, rank = found[day]
        below, until = (sum(f(v) for v in mine) for f in (value.__gt__, value.__ge__))
        assert below <= p * len(mine) + 1e-3 and until >= p * len(mine) - 1e-3
        assert rank <= 5 or rank == math.inf  # that is more than a tenth of some


@pytest.mark.sampled(1)
def test_the_rank_error_of_a_median_of_rows_holds_beside_people_of_many_rows():
    """One in ten has 60 rows of their own values, above all others: a person's median is not it."""
    generator = np.random.default_rng(5)
    rows = []
    for person in range(600):
        many = person % 10 == 0
        size = 60 if many else 1 + person % 5
        values = generator.integers(100, 150, size) if many else generator.integers(0, 50, size)
        rows += [Row(person, 1, float(value)) for value in values]
    ordered = np.sort([row.value for row in rows])
    held, values = 0, []
    for found in drawn(dp.Median("value"), 20, rows, dp.Budget(1))[1]:
        value, _, _, rank = found[1]
        below, until = np.searchsorted(ordered, value), np.searchsorted(ordered, value, "right")
        off = max(0.0, below - len(rows) / 2, len(rows) / 2 - until)
        held += off <= rank
        values.append(value)
    # Each holds in 95%: fewer than 10 of 20 with a chance below 1e-9. Most rows are above 100.
    assert held >= 10 and np.nanmedian(values) >= 100
    people = released(dp.Median("value", per="person"), rows, dp.Budget(1))[1][1][0]
    assert people < 50


class Trial(ZeroNoise):
    """Noise that is off, as in a trial."""

    is_off = True


@pytest.mark.parametrize("per", ["row", "person"])
def test_a_trial_computes_true_quantiles_without_the_search(per, monkeypatch):
    def broken(*_given):
        raise AssertionError

    monkeypatch.setattr(SplitSearch, "answers", broken)
    shares = [0.1, 0.25, 0.5, 0.75, 1 / 3]
    _, found = released(dp.Quantiles("value", shares, per=per), noise=Trial())
    for day in (1, 2):
        mine = [row for row in ROWS if row.day == day]
        owned = collections.Counter(row.person for row in mine)
        weights = {row: Fraction(1, owned[row.person] if per == "person" else 1) for row in mine}
        values, _, _, ranks = found[day]
        assert set(ranks) == {0.0}
        total = sum(weights[row] for row in mine)
        for p, value in zip(sorted(shares), values, strict=True):
            below, until = (
                sum(weights[row] for row in mine if row.value < value + more) for more in (0, 1)
            )
            assert below < Fraction(repr(p)) * total <= until


def test_decimals_are_searched_with_more_digits_and_given_values_as_they_are():
    fine = released(dp.Median("value"))[0].candidates
    assert isinstance(fine, FinerGrid)
    bounded = released(dp.Median("value", low=0, high=200))[0].candidates
    assert isinstance(bounded, FinerGrid) and (bounded[0], bounded[bounded.size - 1]) == (0, 200)
    assert released(dp.Median("value", candidates=GRID))[0].candidates == GRID


@pytest.mark.parametrize(
    ("error", "people", "is_shown"), [(1, 0.5, True), (2, 2.0, False), (2, 4.0, True)]
)
def test_an_extreme_is_hidden_where_more_than_half_of_the_people_may_be_beyond(
    error, people, is_shown, monkeypatch
):
    """An error of one person hides nothing: it is stated at any large epsilon."""
    answer = Answer(5, error, people)
    monkeypatch.setattr(TailSearch, "choose_at", lambda *_: answer)
    _, found = released(dp.Max("value"))
    assert all(np.isnan(numbers[0]).all() != is_shown for numbers in found.values())


@pytest.mark.parametrize(("given", "known"), [({"low": 0, "high": 9}, True), ({}, False)])
def test_public_ends_are_those_of_the_node(given, known, monkeypatch):
    nodes = []
    answers = [Answer()] * 2
    monkeypatch.setattr(SplitSearch, "answers", lambda _, node, *__: nodes.append(node) or answers)
    asked = dp.Quantiles("v", [0.25, 0.5], per="person", **given)
    release = asked.build(Context(asked.columns(), partitions=1), dp.Budget(1))
    release._answers(Lines(np.zeros((1, 1), int), *np.zeros((2, 1), int)), Noise())
    assert [node.known for node in nodes] == [(known, known)]

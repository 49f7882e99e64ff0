"""The down sensitivity of metrics, against its definition over rows: all sets of people removed."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import beam_dp as dp
from beam_dp.mechanisms.metrics import extremes as extreme_metrics
from beam_dp.mechanisms.metrics import totals as total_metrics
from beam_dp.mechanisms.sensitivity import exact_metrics as of_rows


def values(rows, column="x"):
    """Return the numbers that are there."""
    return [row[column] for row in rows if type(row.get(column)) in (int, float, Fraction)]


def totals(rows):
    people = {row["id"] for row in rows}
    sums = [sum(values([r for r in rows if r["id"] == person])) for person in people]
    return sum(total for total in sums if total > 0)


def frequencies(rows):
    items = [row["x"] for row in rows if row.get("x") is not None]
    return [items.count(item) for item in set(items)]


METRICS = {
    "people": (dp.PeopleCount(), lambda rows: len({row["id"] for row in rows})),
    "count": (dp.Count(), len),
    "sum": (dp.Sum("x"), totals),
    "max": (dp.Max("x"), lambda rows: max(values(rows), default=-math.inf)),
    "min": (dp.Min("x"), lambda rows: max([-value for value in values(rows)], default=-math.inf)),
    "kth": (dp.KthLargest("x", 3), lambda rows: sorted([*values(rows), *[-math.inf] * 3])[-3]),
    "distinct": (dp.DistinctCount("x"), lambda rows: len(frequencies(rows))),
    "frequency": (dp.MaxFrequency("x"), lambda rows: max(frequencies(rows), default=0)),
    "squares": (dp.SumOfSquares("x"), lambda rows: sum(n * n for n in frequencies(rows))),
}
ROW = st.fixed_dictionaries(
    {"id": st.integers(1, 5), "x": st.one_of(st.none(), st.integers(-3, 4))}
)


def defined(f, rows, k):
    """Return max over |R| <= k of f(x) - f(x without R); two equal infinities are 0 apart."""
    people = sorted({row["id"] for row in rows})
    removals = itertools.chain.from_iterable(
        itertools.combinations(people, size) for size in range(min(k, len(people)) + 1)
    )
    whole = f(rows)
    left = [f([row for row in rows if row["id"] not in gone]) for gone in removals]
    return max(0 if whole == least else whole - least for least in left)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ROW, max_size=12), k=st.integers(0, 6))
def test_it_is_its_definition(name, rows, k):
    metric, f = METRICS[name]
    assert dp.down_sensitivity(metric, rows, k, person="id") == defined(f, rows, k)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["people", "count", "sum", "max", "min"])
def test_metrics_of_one_number_per_person_take_any_number_of_people(name):
    rows = [{"id": n % 5000, "x": n % 7} for n in range(20_000)]
    expected = {"people": 3, "count": 12, "sum": 3 * 15, "max": 0, "min": 0}
    assert dp.down_sensitivity(METRICS[name][0], rows, 3, person="id") == expected[name]


def test_the_kth_largest_takes_any_number_of_people():
    rows = [{"id": n % 400, "x": n} for n in range(4000)]
    # Each of the first five to go takes one of the ten largest, so the 10th is the 15th.
    assert dp.down_sensitivity(dp.KthLargest("x", 10), rows, 5, person="id") == 5
    assert dp.down_sensitivity(dp.KthLargest("x", 10), rows, 400, person="id") == math.inf


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(ROW, max_size=14), rank=st.integers(1, 16))
def test_the_profile_of_the_kth_largest_is_that_of_a_search(rows, rank):
    known = of_rows.monotone("test", dp.KthLargest("x", rank), rows, "id", 2**20)
    searched = dp.Monotone(known.f, known.people)
    assert known.profile(9).values == searched.profile(9).values


def test_a_kth_largest_of_rows_for_people_is_noticed(monkeypatch):
    # The mutant: every row is a person of its own.
    def of_lines(people, *others):
        return profile(np.arange(len(people)), *others)

    profile = extreme_metrics.kth_largest.profile
    monkeypatch.setattr(extreme_metrics.kth_largest, "profile", of_lines)
    rows = [{"id": n // 3, "x": n} for n in range(12)]
    assert dp.down_sensitivity(dp.KthLargest("x", 1), rows, 1, person="id") != 3


def sums_of_people(people):
    """B[k] of the sum of all values: a user's own profile."""
    ordered = sorted(map(sum, people), reverse=True)
    return [sum(ordered[k:]) for k in range(len(ordered) + 1)]


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ROW.filter(lambda row: (row["x"] or 0) >= 0)), k=st.integers(0, 6))
def test_a_profile_of_the_users_is_asked(rows, k):
    metric = dp.CustomProfile("x", sums_of_people, candidates=dp.Candidates.linear(0, 9, 1))
    assert dp.down_sensitivity(metric, rows, k, person="id") == defined(totals, rows, k)


def test_a_profile_of_the_users_is_given_numbers_in_order():
    def given_(people):
        assert people == ((0.1, 2), (5,)) and type(people[1][0]) is int
        return [3, 1]

    metric = dp.CustomProfile("x", given_, candidates=dp.Candidates.linear(0, 9, 1))
    rows = [{"id": n, "x": x} for n, x in [(1, 2), (1, 0.1), (2, 5), (3, None), (3, "7")]]
    assert dp.down_sensitivity(metric, rows, 1, person="id") == 2
    with pytest.raises(ValueError, match="k must be at most the last removal"):
        dp.down_sensitivity(metric, rows, 2, person="id")


def test_a_profile_of_rows_for_values_is_noticed(monkeypatch):
    # The mutant: people are removed by their number of rows.
    rows = [{"id": n, "x": n} for n in range(1, 6)]
    monkeypatch.setattr(total_metrics, "total", len)
    assert dp.down_sensitivity(dp.Sum("x"), rows, 2, person="id") != 9


def test_decimals_are_exact_and_what_is_no_number_is_absent():
    rows = [{"id": n, "x": 0.1} for n in range(3)]
    assert dp.down_sensitivity(dp.Sum("x"), rows, 3, person="id") == Fraction(3, 10)
    odd = [math.nan, math.inf, "7", True, None, 10**400]
    rows = [{"id": n, "x": value} for n, value in enumerate(odd)] + [{"id": None, "x": 5}, {"x": 5}]
    assert dp.down_sensitivity(dp.Sum("x"), rows, 9, person="id") == 10**400
    assert dp.down_sensitivity(dp.DistinctCount("x"), rows, 9, person="id") == 4
    assert dp.down_sensitivity(dp.Count(), rows, 9, person="id") == 6


def test_a_relaxed_loss_is_not_below_the_exact_one():
    """12 people, every two with a value of their own: k of them alone share k (k - 1) / 2."""
    pairs = list(itertools.combinations(range(12), 2))
    rows = [{"id": person, "item": pair} for pair in pairs for person in pair]
    metric = dp.DistinctCount("item")
    assert [dp.down_sensitivity(metric, rows, k, person="id") for k in range(4)] == [0, 0, 1, 3]


REFUSED = [
    *(dp.Median("x"), dp.Median("x", per="row"), dp.Quantile("x", 0.9), dp.Mean("x")),
    *(dp.Ratio("x"), dp.Variance("x"), dp.Preprocessed("x", "mean")),
]


@pytest.mark.parametrize("metric", REFUSED, ids=lambda metric: metric.output)
def test_what_is_not_monotone_is_refused_with_the_reason(metric):
    rule = rf"must be a monotone metric, not {type(metric).__name__} \(output.*larger as well as sm"
    with pytest.raises(TypeError, match=rule):
        dp.down_sensitivity(metric, [{"id": 1, "x": 2}], person="id")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: dp.down_sensitivity(dp.Count(), [{"id": 1}]), TypeError, "Write down_sensitivity"),
        (
            lambda: dp.down_sensitivity(dp.Count(), person="id"),
            TypeError,
            "people must be the rows",
        ),
        (lambda: dp.down_sensitivity(dp.Count(), [3], person="id"), TypeError, "as dicts, not int"),
        (lambda: dp.down_sensitivity(dp.Count(), [], person=3), TypeError, "the name of a column"),
        (lambda: dp.down_sensitivity(len, [1], person="id"), ValueError, "person must be left out"),
    ],
)
def test_wrong_calls_are_refused(call, error, message):
    with pytest.raises(error, match=f"^down_sensitivity: .*{message}"):
        call()

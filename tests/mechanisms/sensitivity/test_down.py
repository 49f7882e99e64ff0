"""The down sensitivity is B[0] - B[k], and what its definition says by brute force."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import beam_dp as dp
from beam_dp.mechanisms.metrics import quantiles as quantile_metrics
from beam_dp.mechanisms.metrics import totals as total_metrics
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.sensitivity import down, down_sensitivity
from beam_dp.mechanisms.sensitivity.monotone import Monotone, monotone_hull


def distinct(people):
    return len(set(itertools.chain.from_iterable(people)))


def total(people):
    return sum(map(sum, people))


def range_of(people):
    """Return max - min: not monotone from two people down to none, but its hull is."""
    found = [row for person in people for row in person]
    return max(found) - min(found)  # raises for nobody


def defined(f, people, k):
    """Return max over |R| <= k of f(x) - f(x without R), over all R."""
    n = len(people)
    kept = (itertools.combinations(people, n - gone) for gone in range(min(k, n) + 1))
    return max(f(people) - f(some) for some in itertools.chain.from_iterable(kept))


PEOPLE = st.lists(st.lists(st.integers(0, 5), max_size=3).map(tuple), max_size=7).map(tuple)


@pytest.mark.parametrize("f", [total, distinct])
@settings(max_examples=60, deadline=None)
@given(people=PEOPLE, k=st.integers(0, 9))
def test_down_sensitivity_is_its_definition(f, people, k):
    expected = defined(f, people, k)
    assert down_sensitivity(f, people, k) == expected
    assert down_sensitivity(Monotone(f, people), k=k) == expected
    profile = Monotone(f, people).profile(len(people))
    assert down_sensitivity(profile, k=min(k, len(people))) == expected


def top_profile(people):
    """Return B[0..K] of `total` for at most 3 removals."""
    sums = sorted(map(sum, people))
    return [sum(sums[: len(sums) - k]) for k in range(min(len(sums), 3) + 1)]


def test_a_profile_function_answers_as_far_as_it_goes():
    people = [(i,) for i in range(1000)]
    assert down_sensitivity(Monotone(total, people, top_profile), k=3) == 999 + 998 + 997
    with pytest.raises(
        ValueError, match="k must be at most the last removal of the profile, not 4"
    ):
        down_sensitivity(Monotone(total, people, top_profile), k=4)
    # With everyone gone there is nothing beyond.
    assert down_sensitivity(Monotone(total, people[:3], top_profile), k=50) == 3


def test_one_removal_is_the_default():
    assert down_sensitivity(Profile([9, 4, 1])) == 5
    assert down_sensitivity(total, [(3,), (8,)]) == 8


def test_a_hull_is_a_statistic_too():
    people = ((1,), (5, 7), (9,))
    hull = monotone_hull(range_of, lowest=0)
    assert [down_sensitivity(hull, people, k) for k in range(5)] == [0, 4, 8, 8, 8]
    assert [defined(hull, people, k) for k in range(5)] == [0, 4, 8, 8, 8]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5, 3], 2),
        ([0.3, 0.1], 0.3 - 0.1),
        ([2**60 + 1, 2.0**53], 2**60 + 1 - 2**53),
        ([0.5, Fraction(1, 3)], Fraction(1, 6)),
        ([math.inf, 3], math.inf),
        ([10**400, -math.inf], math.inf),
        ([math.inf, math.inf], 0),
        ([-math.inf, -math.inf], 0),
        ([10**400, 0.5], Fraction(2 * 10**400 - 1, 2)),
    ],
)
def test_differences_of_mixed_numbers_are_exact(values, expected):
    assert down_sensitivity(Profile(values), k=1) == expected


def test_a_wrong_end_of_the_profile_is_noticed(monkeypatch):
    # The mutant: the profile is read one place too late.
    late = Monotone.profile
    monkeypatch.setattr(Monotone, "profile", lambda self, k: Profile(late(self, k + 1).values[1:]))
    people = ((1,), (4,), (2,))
    assert down_sensitivity(total, people, 1) != defined(total, people, 1)


# ------------------------------------------------------------------------------ metrics of rows


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


def defined_of_rows(f, rows, k):
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
    assert down_sensitivity(metric, rows, k, person="id") == defined_of_rows(f, rows, k)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["people", "count", "sum", "max", "min"])
def test_metrics_of_one_number_per_person_take_any_number_of_people(name):
    rows = [{"id": n % 5000, "x": n % 7} for n in range(20_000)]
    expected = {"people": 3, "count": 12, "sum": 3 * 15, "max": 0, "min": 0}
    assert down_sensitivity(METRICS[name][0], rows, 3, person="id") == expected[name]


def test_the_kth_largest_takes_any_number_of_people():
    rows = [{"id": n % 400, "x": n} for n in range(4000)]
    # Each of the first five to go takes one of the ten largest, so the 10th is the 15th.
    assert down_sensitivity(dp.KthLargest("x", 10), rows, 5, person="id") == 5
    assert down_sensitivity(dp.KthLargest("x", 10), rows, 400, person="id") == math.inf


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(ROW, max_size=14), rank=st.integers(1, 16))
def test_the_profile_of_the_kth_largest_is_that_of_a_search(rows, rank):
    known = down.monotone(dp.KthLargest("x", rank), rows, "id", 2**20)
    searched = dp.Monotone(known.f, known.people)
    assert known.profile(9).values == searched.profile(9).values


def test_a_kth_largest_of_rows_for_people_is_noticed(monkeypatch):
    # The mutant: every row is a person of its own.
    def of_lines(people, *others):
        return profile(np.arange(len(people)), *others)

    profile = quantile_metrics.kth_largest.profile
    monkeypatch.setattr(quantile_metrics.kth_largest, "profile", of_lines)
    rows = [{"id": n // 3, "x": n} for n in range(12)]
    assert down_sensitivity(dp.KthLargest("x", 1), rows, 1, person="id") != 3


def sums_of_people(people):
    """B[k] of the sum of all values: a user's own profile."""
    ordered = sorted(map(sum, people), reverse=True)
    return [sum(ordered[k:]) for k in range(len(ordered) + 1)]


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ROW.filter(lambda row: (row["x"] or 0) >= 0)), k=st.integers(0, 6))
def test_a_profile_of_the_users_is_asked(rows, k):
    metric = dp.CustomProfile("x", sums_of_people, candidates=dp.Candidates.linear(0, 9, 1))
    assert down_sensitivity(metric, rows, k, person="id") == defined_of_rows(totals, rows, k)


def test_a_profile_of_the_users_is_given_numbers_in_order():
    def given_(people):
        assert people == ((0.1, 2), (5,)) and type(people[1][0]) is int
        return [3, 1]

    metric = dp.CustomProfile("x", given_, candidates=dp.Candidates.linear(0, 9, 1))
    rows = [{"id": n, "x": x} for n, x in [(1, 2), (1, 0.1), (2, 5), (3, None), (3, "7")]]
    assert down_sensitivity(metric, rows, 1, person="id") == 2
    with pytest.raises(ValueError, match="k must be at most the last removal"):
        down_sensitivity(metric, rows, 2, person="id")


def test_a_profile_of_rows_for_values_is_noticed(monkeypatch):
    # The mutant: people are removed by their number of rows.
    rows = [{"id": n, "x": n} for n in range(1, 6)]
    monkeypatch.setattr(total_metrics, "total", len)
    assert down_sensitivity(dp.Sum("x"), rows, 2, person="id") != 9


def test_decimals_are_exact_and_what_is_no_number_is_absent():
    rows = [{"id": n, "x": 0.1} for n in range(3)]
    assert down_sensitivity(dp.Sum("x"), rows, 3, person="id") == Fraction(3, 10)
    odd = [math.nan, math.inf, "7", True, None, 10**400]
    rows = [{"id": n, "x": value} for n, value in enumerate(odd)] + [{"id": None, "x": 5}, {"x": 5}]
    assert down_sensitivity(dp.Sum("x"), rows, 9, person="id") == 10**400
    assert down_sensitivity(dp.DistinctCount("x"), rows, 9, person="id") == 4
    assert down_sensitivity(dp.Count(), rows, 9, person="id") == 6


def test_a_relaxed_loss_is_not_below_the_exact_one():
    """12 people, every two with a value of their own: k of them alone share k (k - 1) / 2."""
    pairs = list(itertools.combinations(range(12), 2))
    rows = [{"id": person, "item": pair} for pair in pairs for person in pair]
    metric = dp.DistinctCount("item")
    assert [down_sensitivity(metric, rows, k, person="id") for k in range(4)] == [0, 0, 1, 3]


REFUSED = [
    *(dp.Median("x"), dp.Median("x", per="row"), dp.Quantile("x", 0.9), dp.Mean("x")),
    *(dp.Ratio("x"), dp.Variance("x"), dp.Preprocessed("x", "mean")),
]


@pytest.mark.parametrize("metric", REFUSED, ids=lambda metric: metric.output)
def test_what_is_not_monotone_is_refused_with_the_reason(metric):
    rule = rf"must be a monotone metric, not {type(metric).__name__} \(output.*larger as well as sm"
    with pytest.raises(TypeError, match=rule):
        down_sensitivity(metric, [{"id": 1, "x": 2}], person="id")


BAD = [
    (lambda: down_sensitivity(Profile([1]), k=1), ValueError, "k must be at most the last"),
    (lambda: down_sensitivity(total, [(1,)], -1), ValueError, "k must be an int of at least 0"),
    (lambda: down_sensitivity(total, [(1,)], 1.0), TypeError, "k must be an int of at least 0"),
    (lambda: down_sensitivity(total, [(1,)], True), TypeError, "k must be an int of at least 0"),
    (lambda: down_sensitivity(total), TypeError, "people must be a list of records, not None"),
    (lambda: down_sensitivity(None, []), TypeError, "f must be a function of people, not None"),
    (lambda: down_sensitivity(Profile([1]), [()]), TypeError, "people must be None for a Profile"),
    (lambda: down_sensitivity(Monotone(total, []), []), TypeError, "must be None for a Monotone"),
    (lambda: down_sensitivity(distinct, [(i,) for i in range(9)], 9, limit=4), ValueError, "limit"),
    (lambda: down_sensitivity(dp.Count(), [{"id": 1}]), TypeError, "Write down_sensitivity"),
    (lambda: down_sensitivity(dp.Count(), person="id"), TypeError, "people must be the rows"),
    (lambda: down_sensitivity(dp.Count(), [3], person="id"), TypeError, "as dicts, not int"),
    (lambda: down_sensitivity(dp.Count(), [], person=3), TypeError, "the name of a column"),
    (lambda: down_sensitivity(len, [1], person="id"), ValueError, "person must be left out"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_wrong_calls_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()

"""Metrics refuse wrong parameters with what to write instead, and name their columns."""

import decimal
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics.base import check_metric, check_metrics
from beam_dp.mechanisms.metrics.extremes import Max, Min
from beam_dp.mechanisms.metrics.quotients.mean import Mean
from beam_dp.mechanisms.metrics.totals import Count, PeopleCount, Sum
from beam_dp.mechanisms.search import AboveThreshold, ExponentialMechanism, NoisyBinarySearch
from beam_dp.mechanisms.search.choose import build_search

WITH_COLUMN = [Sum, Max, Min, Mean]
ALL = [Count(), PeopleCount(), *(kind("x") for kind in WITH_COLUMN)]


def test_names_are_made_of_kind_and_column():
    assert [metric.output for metric in ALL] == [
        "count",
        "people_count",
        "sum_x",
        "max_x",
        "min_x",
        "mean_x",
    ]
    assert Sum("x", name="total").output == "total"
    unit = Fraction(1, 10**6)
    assert [metric.columns() for metric in ALL] == [(), (), *[(Column("x", Role.VALUE, unit),)] * 4]


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: type(metric).__name__)
def test_metrics_are_values(metric):
    assert pickle.loads(pickle.dumps(metric)) == metric
    assert hash(metric) == hash(pickle.loads(pickle.dumps(metric)))
    with pytest.raises(AttributeError):
        metric.weight = 2


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: type(metric).__name__)
@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf, True, "1", None, decimal.Decimal(1)])
def test_wrong_weights_are_refused(metric, weight):
    owner = type(metric).__name__
    with pytest.raises((TypeError, ValueError), match=rf"^{owner}: weight must be"):
        type(metric)(*(column.name for column in metric.columns()), weight=weight)


@pytest.mark.parametrize("kind", WITH_COLUMN)
@pytest.mark.parametrize("column", ["", None, 3, b"x", ["x"]])
def test_wrong_columns_are_refused(kind, column):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}: column must be the name of a column"):
        kind(column)


@pytest.mark.parametrize("kind", WITH_COLUMN)
@pytest.mark.parametrize("unit", [0, -0.5, math.nan, math.inf, True, "1"])
def test_wrong_units_are_refused(kind, unit):
    with pytest.raises((TypeError, ValueError), match=rf"^{kind.__name__}: unit must be"):
        kind("x", unit=unit)


@pytest.mark.parametrize("make", [Count, lambda **options: Sum("x", **options)])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clip", "all"),
        ("clip", None),
        ("clip", True),
        ("clip_share", 0),
        ("clip_share", 1),
        ("clip_share", math.nan),
    ],
)
def test_wrong_ways_to_clip_are_refused(make, name, value):
    with pytest.raises((TypeError, ValueError), match=rf"^(Count|Sum): {name} must be"):
        make(**{name: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"one_sided": 1}, "one_sided must be True or False, not 1"),
        ({"search": "above"}, 'search must be "auto", "two_phase"(, "walk")? or one of the '),
        ({"search": AboveThreshold(Budget(1.0))}, 'search must be "auto", "two_phase"'),
        (
            {"candidates": [1, 2]},
            r"candidates must be Candidates, not \[1, 2\]\. Write Candidates\.",
        ),
        ({"beta": 0}, "beta must be above 0 and below 1"),
        ({"beta": math.nan}, "beta must be"),
        ({"name": 7}, "name must be the name of a column"),
    ],
)
def test_wrong_options_are_refused(options, message):
    for make in (Count, lambda **given: Sum("x", **given)):
        with pytest.raises((TypeError, ValueError), match=rf"^(Count|Sum): {message}"):
            make(**options)
    if "one_sided" not in options:
        with pytest.raises((TypeError, ValueError), match=rf"^Max: {message}"):
            Max("x", **options)


def test_a_mean_is_per_row_or_per_person():
    assert Mean("x").per == "row"
    with pytest.raises(ValueError, match="^Mean: per must be one of row, person, not 'day'"):
        Mean("x", per="day")


@pytest.mark.parametrize("unit", [1, 0.25, Fraction(1, 3), np.float64(0.5), np.int64(2)])
def test_units_of_every_kind_of_number_are_taken(unit):
    assert Sum("x", unit=unit).unit == unit


def test_lists_of_metrics_are_checked():
    assert check_metrics("Owner", [Count(), Sum("x")]) == (Count(), Sum("x"))
    for wrong in ([], (), None, Count(), "count", {Count()}):
        with pytest.raises(
            TypeError, match=r"^Owner: metrics must be a list of metrics.*Write metrics="
        ):
            check_metrics("Owner", wrong)
    for wrong in (Count, "count", None, 3):
        with pytest.raises(
            TypeError, match=r"^Owner: a metric must be one like dp\.Count\(\), not"
        ):
            check_metrics("Owner", [wrong])
        with pytest.raises(TypeError, match="^Owner: a metric must be"):
            check_metric("Owner", wrong)


def test_equal_names_are_refused():
    with pytest.raises(
        ValueError, match=r"^Owner: metrics must have different names, not \['sum_x', 'sum_x'\]"
    ):
        check_metrics("Owner", [Sum("x"), Sum("x", weight=2)])
    with pytest.raises(ValueError, match="must have different names"):
        check_metrics("Owner", [Count(), Sum("x", name="count")])
    assert len(check_metrics("Owner", [Sum("x"), Sum("x", name="again")])) == 2


def test_searches_are_built_with_their_budget():
    grid = Candidates.linear(0, 9, 1)
    for kind in (AboveThreshold, ExponentialMechanism, NoisyBinarySearch):
        for budget in (Budget(1.0), Budget.zcdp(0.5)):
            search = build_search(kind, budget, 0.1, 1000)
            assert type(search) is kind and search.cost == budget and search.shift(grid.size) > 0
    assert build_search("auto", Budget(1.0), 0.1, 1000) == AboveThreshold(Budget(1.0), 0.1)


LARGE = Candidates.of(range(10_000))
WHOLE = "people are many " * 1000
MESSAGES = {
    "owners": lambda: dp.PrivateAggregate(["a", "b"], [dp.SumOfSquares("x")], Budget(1.0)),
    "shifted inverse": lambda: dp.ShiftedInverse(
        dp.Median("x", candidates=LARGE), "p", Budget(1.0)
    ),
    "preprocess": lambda: dp.PreprocessSensitivity(dp.KthLargest("x", 2), "p", Budget(1.0)),
    "loss": lambda: dp.RemovalLoss(dp.Mean("x", name="mean"), "p"),
    "metrics": lambda: dp.PrivateAggregate("p", Max("x", candidates=LARGE), Budget(1.0)),
    "no metric": lambda: dp.PrivateAggregate("p", [list(range(10_000))], Budget(1.0)),
    "candidates": lambda: dp.Max("x", candidates=list(range(10_000))),
    "points": lambda: dp.Candidates(list(range(10_000))),
    "values": lambda: dp.Candidates.of(WHOLE),
    "budget": lambda: dp.PrivateAggregate("p", [dp.Count()], WHOLE),
    "bounds": lambda: dp.PrivateAggregate("p", [dp.Count()], Budget(1.0), bounds=WHOLE),
    "equals": lambda: dp.Ratio("x", equals=list(range(10_000))),
    "person": lambda: dp.PrivateAggregate(dict.fromkeys(range(1000)), [dp.Count()], Budget(1.0)),
}


@pytest.mark.parametrize("call", MESSAGES.values(), ids=MESSAGES)
def test_messages_name_a_metric_and_do_not_quote_it(call):
    with pytest.raises(TypeError) as refused:
        call()
    assert len(str(refused.value)) < 350
    assert "unit=" not in str(refused.value) and "=None" not in str(refused.value)


def test_a_metric_is_shown_by_class_and_output():
    with pytest.raises(TypeError, match=r"not SumOfSquares \(output column sum_of_squares_x\)"):
        dp.PrivateAggregate(["a", "b"], [dp.SumOfSquares("x")], Budget(1.0))


@pytest.mark.parametrize("values", [[0, 10**400], [-(10**309), 5], [0, 10**308 * 18]])
def test_candidates_beyond_floats_are_refused(values: list[int]) -> None:
    with pytest.raises(ValueError, match="candidates must be numbers that floats can hold"):
        dp.Max("x", candidates=dp.Candidates.of(values))
    assert dp.Max("x", candidates=dp.Candidates.of([0, 10**308])).candidates is not None

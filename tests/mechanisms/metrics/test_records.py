"""What every metric is called, reads and refuses."""

import dataclasses
import functools
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.table import Column, Role
from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.metrics.base import Metric, check_metrics, takes
from tests.doubles import compile_program

GRID = dp.Candidates.linear(0, 10, 1)


def nothing(people: Any) -> list[int]:
    return [0]


class Unhashable:
    """A callable object that is equal by value, so it has no hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable)

    __call__ = staticmethod(nothing)


MADE: dict[str, Metric] = {
    "count": dp.Count(),
    "people_count": dp.PeopleCount(),
    "sum_x": dp.Sum("x"),
    "max_x": dp.Max("x"),
    "min_x": dp.Min("x"),
    "mean_x": dp.Mean("x"),
    "mean_x_per_person": dp.Mean("x", per="person"),
    "largest_3_x": dp.KthLargest("x", 3),
    "quantile_0_25_x": dp.Quantile("x", 0.25),
    "quantiles_x": dp.Quantiles("x", [0.5, 0.25]),
    "median_x": dp.Median("x"),
    "histogram_x": dp.Histogram("x", [0, 1]),
    "distinct_x": dp.DistinctCount("x"),
    "max_frequency_x": dp.MaxFrequency("x"),
    "sum_of_squares_x": dp.SumOfSquares("x"),
    "custom_x": dp.CustomProfile("x", nothing, candidates=GRID),
    "ratio_x": dp.Ratio("x"),
    "variance_x": dp.Variance("x"),
    "standard_deviation_x": dp.StandardDeviation("x"),
    "trimmed_mean_x": dp.TrimmedMean("x"),
    "preprocessed_mean_x": dp.Preprocessed("x", "mean"),
    "black_box_x": dp.BlackBox("x", len),
}
COMPARED = (dp.DistinctCount, dp.MaxFrequency, dp.SumOfSquares)


def test_all_are_here() -> None:
    assert {type(metric) for metric in MADE.values()} == {*REGISTRY.values()}


@pytest.mark.parametrize("name", MADE)
def test_names_columns_and_pickles(name: str) -> None:
    metric = MADE[name]
    assert metric.output == name
    assert dataclasses.replace(metric, name="other", weight=3).parts() == metric.parts()
    assert dataclasses.replace(metric, name="total").output == "total"
    again = pickle.loads(pickle.dumps(metric))
    assert again == metric and hash(again) == hash(metric)
    with pytest.raises(AttributeError):
        metric.weight = 2
    column = Column("x", Role.VALUE, Fraction(1, 10**6))
    if isinstance(metric, (dp.Ratio, *COMPARED)):
        is_flag = isinstance(metric, dp.Ratio)
        column = Column("x", Role.FLAG, 1) if is_flag else Column("x", Role.ITEM)
    assert metric.columns() == ((column,) if takes(metric, "column") else ())


OF_ALL: dict[str, list[Any]] = {
    "weight": [0, -1, math.nan, math.inf, True, "1", None],
    "name": [3],
    "column": ["", None, 3, b"x", ["x"]],
    "unit": [0, -0.5, math.nan, math.inf, True, "1"],
    "candidates": [[1, 2]],
    "beta": [0, 1, math.nan],
    "search": ["best", "above", dp.AboveThreshold(dp.Budget(1.0))],
    "per": ["day", None],
    "low": ["5", math.nan, True],
    "high": ["5", math.nan, math.inf, True, 10**201],
}


@pytest.mark.parametrize("metric", MADE.values(), ids=MADE)
def test_wrong_options_are_refused_by_all_that_have_them(metric: Metric) -> None:
    for option in filter(functools.partial(takes, metric), OF_ALL):
        message = rf"^{type(metric).__name__}: {option} "
        for wrong in OF_ALL[option]:
            with pytest.raises((TypeError, ValueError), match=message):
                dataclasses.replace(metric, **{option: wrong})


WRONG: dict[Callable[..., Metric], list[tuple[dict[str, Any], str]]] = {
    dp.Count: [
        (
            {"candidates": [1]},
            r"candidates must be of type Candidates, not \[1\]\. Write Candidates\.",
        ),
        ({"search": "no"}, 'search must be "auto", "clip", "two_phase" or one of the classes'),
        ({"clip": 3, "search": "auto"}, "clip must be left out with a search"),
        ({"beta": 0.1}, "beta must be left out without a search"),
        *(({"clip": c}, "clip must") for c in (0, math.inf, math.nan, "all", True)),
    ],
    functools.partial(dp.Max, "x"): [
        ({"search": "no"}, 'search must be "auto", "sparse_vector", "two_phase" or one of the'),
        ({"low": 5, "high": 5}, r"high must be above low=5, not 5\. Write low=0, high=100\."),
        ({"low": 0, "candidates": GRID}, "low must be left out with candidates"),
        *(
            ({"candidates": dp.Candidates.of(values)}, "candidates must be numbers that floats")
            for values in ([0, 10**400], [-(10**309), 5], [0, 10**308 * 18])
        ),
    ],
    functools.partial(dp.KthLargest, "x"): [
        *(({"k": k}, "k must be an int of at least 1") for k in (0, 1.5, True, "1")),
    ],
    functools.partial(dp.Quantile, "x"): [
        *(({"p": p}, "p must") for p in (0, 1, math.nan, True, "0.5")),
    ],
    functools.partial(dp.Quantiles, "x"): [
        *(({"shares": shares}, "shares must") for shares in ("0.5", 0.5, [], {0.5})),
        *(({"shares": shares}, "every p must") for shares in ([0], [1], [0.5, None])),
    ],
    functools.partial(dp.CustomProfile, "x"): [
        ({"profile": nothing}, "candidates must be given"),
        ({"profile": 3, "candidates": GRID}, "profile must be"),
        ({"profile": Unhashable(), "candidates": GRID}, "profile must be hashable"),
    ],
    functools.partial(dp.BlackBox, "x"): [
        ({"function": Unhashable()}, "function must be hashable, as functions are"),
        ({"function": 3}, "function must be a function"),
        *(({"function": len, "blocks": wrong}, "blocks must be") for wrong in (0, 2.0)),
        ({"function": len, "person_value": "mode"}, "person_value must be"),
    ],
    functools.partial(dp.Histogram, "x"): [
        ({"edges": [1]}, "edges must be 2 to 1001 numbers, not 1"),
        ({"edges": range(2000)}, "edges must be 2 to 1001 numbers"),
        *(({"edges": edges}, "edges must rise") for edges in ([0, 5, 5], [5, 0])),
        *(({"edges": edges}, "edges must be a list of numbers") for edges in ("0:5", 5)),
        ({"edges": [0, "5"]}, "every edge must be a real number"),
        ({"edges": [0, math.nan]}, "every edge must be finite"),
        ({"edges": [0, 10**400]}, "every edge must be a number that"),
        ({"edges": [0, 1], "person_value": "last"}, "person_value must"),
    ],
    functools.partial(dp.Mean, "x"): [
        ({"per": "day"}, "per must be one of row, person, not 'day'"),
        ({"own_count": 1}, "own_count must be True or False, not 1"),
        ({"low": 5, "high": 3}, "high must be above low=5, not 3"),
        ({"unit": 1, "low": 0.5, "high": 0.75}, "high must be above low=0.5 by the unit"),
    ],
    functools.partial(dp.Variance, "x"): [
        ({"unit": 1, "low": 0.5, "high": 0.75}, "high must be above low=0.5 by the unit"),
    ],
}
CALLS = [(make, *wrong) for make, listed in WRONG.items() for wrong in listed]


@pytest.mark.parametrize(("make", "given", "message"), CALLS)
def test_what_means_nothing_is_refused(
    make: Callable[..., Metric], given: dict[str, Any], message: str
) -> None:
    owner = make.func if isinstance(make, functools.partial) else make
    with pytest.raises((TypeError, ValueError), match=f"^{owner.__name__}: {message}"):
        make(**given)


def test_quantiles_are_sorted_and_named_by_their_shares() -> None:
    metric = dp.Quantiles("ms", [0.99, 0.5, Fraction(9, 10), 0.5])
    assert metric.shares == (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))
    names = [
        f"quantiles_ms_{p}{end}" for p in ("0_5", "0_9", "0_99") for end in ("", "_rank_error")
    ]
    assert [output.name for output in metric.outputs] == names
    named = dp.Quantiles("ms", [0.5], name="q")
    assert [output.name for output in named.outputs] == ["q_0_5", "q_0_5_rank_error"]


def test_lists_of_metrics_are_checked() -> None:
    assert check_metrics("Owner", [dp.Count(), dp.Sum("x")]) == (dp.Count(), dp.Sum("x"))
    assert len(check_metrics("Owner", [dp.Sum("x"), dp.Sum("x", name="again")])) == 2
    for wrong in ([], (), None, dp.Count(), "count", {dp.Count()}):
        message = r"^Owner: metrics must be a list of metrics.*Write metrics="
        with pytest.raises(TypeError, match=message):
            check_metrics("Owner", wrong)
    for wrong in (dp.Count, "count", None, 3):
        message = r"^Owner: a metric must be one like dp\.Count\(\), not"
        with pytest.raises(TypeError, match=message):
            check_metrics("Owner", [wrong])
    for equal in ([dp.Sum("x"), dp.Sum("x", weight=2)], [dp.Count(), dp.Sum("x", name="count")]):
        with pytest.raises(ValueError, match=r"^Owner: metrics must have different names, not \["):
            check_metrics("Owner", equal)


# ---------------------------------------------------------------- parts, and their releases


def test_equal_parts_are_released_once_whatever_their_names() -> None:
    for per in ("person", "row"):
        median, half = dp.Median("x", per=per), dp.Quantile("x", Fraction(1, 2), per=per)
        assert median.parts() == half.parts()
    twice = [dp.Median("x"), dp.Quantile("x", 0.5, name="half"), dp.Max("x"), dp.Max("x", name="y")]
    assert len(compile_program(twice, dp.Budget(1.0), 1).steps) == 2
    apart = [dp.KthLargest("x", 1), dp.KthLargest("x", 2)]
    assert len(compile_program(apart, dp.Budget(1.0), 1).steps) == 2


BOUNDED = [
    *(dp.Max("x", low=0, high=120), dp.Min("x", low=-5, high=5), dp.KthLargest("x", 3, high=9.5)),
    *(dp.Median("x", low=0.25), dp.Quantiles("x", [0.5, 0.9], low=0, high=120)),
    dp.Max("x", low=0, high=120, search="two_phase"),
    dp.Min("x", low=0, high=120, search=dp.AboveThreshold),
]


@pytest.mark.parametrize("metric", BOUNDED)
def test_known_bounds_are_the_first_and_the_last_candidate(metric: Any) -> None:
    [step] = compile_program([metric], dp.Budget(1), 1).steps
    grid = step.release.candidates
    low, high = metric.low, metric.high
    if isinstance(metric, dp.Min):
        low, high = -high, -low
    ends = [-1e18 if low is None else low, 1e18 if high is None else high]
    assert [grid[0], grid[grid.size - 1]] == ends

"""Metrics of rows, values and owners: what they read, what they are called, what they refuse."""

import functools
import math
import pickle
from fractions import Fraction
from typing import Any

import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.profiles.user_profile import GuardedProfile
from beam_dp.mechanisms.search import ExponentialMechanism

GRID = dp.Candidates.linear(0, 10, 1)


def nothing(people: Any) -> list[int]:
    return [0]


class Unhashable:
    """A callable object that is equal by value, so it has no hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable)

    def __call__(self, people: Any) -> list[int]:
        return [0]


OUTPUTS = {
    "largest_3_x": dp.KthLargest("x", 3),
    "quantile_0.25_x": dp.Quantile("x", 0.25),
    "median_x": dp.Median("x"),
    "distinct_x": dp.DistinctCount("x"),
    "max_frequency_x": dp.MaxFrequency("x"),
    "sum_of_squares_x": dp.SumOfSquares("x"),
    "custom_x": dp.CustomProfile("x", nothing, candidates=GRID),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_names_columns_and_pickles(name: str) -> None:
    metric = OUTPUTS[name]
    assert metric.output == name and [column.name for column in metric.columns()] == ["x"]
    assert pickle.loads(pickle.dumps(metric)) == metric
    with pytest.raises(AttributeError):
        metric.column = "y"
    only_compared = isinstance(metric, (dp.DistinctCount, dp.MaxFrequency, dp.SumOfSquares))
    [column] = metric.columns()
    assert column.role is (Role.ITEM if only_compared else Role.VALUE)
    assert column.detail == (None if only_compared else Fraction(1, 10**6))


@pytest.mark.parametrize("name", OUTPUTS)
def test_columns_are_read_as_items_or_as_values(name: str) -> None:
    metric = OUTPUTS[name]
    program = compile_program([metric], dp.Budget(1.0), 1)
    assert program.columns == metric.columns()
    assert program.keep_rows
    both = compile_program([metric, dp.Sum("x"), dp.MaxFrequency("x", name="m")], dp.Budget(1.0), 1)
    assert both.columns == (Column("x", Role.VALUE, Fraction(1, 10**6)), Column("x", Role.ITEM))


BAD: list[tuple[Any, dict[str, Any], str]] = [
    *((dp.KthLargest, {"column": "x", "k": k}, "KthLargest: k must be")
      for k in (0, -1, 1.5, True, None, "1")),
    *((dp.Quantile, {"column": "x", "p": p}, "Quantile: p must be")
      for p in (0, 1, -0.1, 1.1, math.nan, math.inf, True, None, "0.5")),
    (dp.Quantile, {"column": "x", "p": 0.5, "per": "rows"}, "Quantile: per must be"),
    (dp.Median, {"column": "x", "per": None}, "Median: per must be"),
    (dp.DistinctCount, {"column": "x", "one_sided": 1}, "one_sided must be True or False"),
    (dp.DistinctCount, {"column": "x", "clip": "none"}, "clip must be"),
    (dp.DistinctCount, {"column": "x", "clip_share": 1}, "clip_share must be"),
    (dp.CustomProfile, {"column": "x", "profile": nothing}, "candidates must be given"),
    (dp.CustomProfile, {"column": "x", "profile": 3, "candidates": GRID}, "profile must be"),
    *((kind, {"column": "x", **changes}, message)
      for kind in (dp.Median, dp.DistinctCount, dp.MaxFrequency, dp.SumOfSquares)
      for changes, message in (
          ({"beta": 0}, "beta must be"), ({"beta": 1}, "beta must be"),
          ({"beta": math.nan}, "beta must be"), ({"candidates": [1, 2]}, "candidates must be"),
          ({"weight": 0}, "weight must be"), ({"name": 3}, "name must be"))),
    *((kind, {**given, "search": "best"}, "search must be")
      for kind, given in ((dp.KthLargest, {"column": "x", "k": 1}),
                          (dp.DistinctCount, {"column": "x"}), (dp.MaxFrequency, {"column": "x"}))),
    *((kind, {"column": column}, "column must be")
      for kind in (dp.Median, dp.DistinctCount) for column in ("", None, 3, ["x"])),
    (dp.KthLargest, {"column": "x", "k": 1, "unit": 0}, "unit must be"),
    (dp.Median, {"column": "x", "unit": math.inf}, "unit must be"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "given", "message"), BAD, ids=lambda one: one if isinstance(one, str) else None
)
def test_wrong_parameters_are_refused(kind: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        kind(**given)


def test_a_median_is_the_quantile_of_one_half() -> None:
    for per in ("person", "row"):
        median, half = dp.Median("x", per=per), dp.Quantile("x", Fraction(1, 2), per=per)
        assert median.parts() == half.parts()


def test_equal_parts_are_released_once() -> None:
    twice = [dp.Median("x"), dp.Quantile("x", 0.5, name="half")]
    assert len(compile_program(twice, dp.Budget(1.0), 1).steps) == 1
    apart = [dp.KthLargest("x", 1), dp.KthLargest("x", 2)]
    assert len(compile_program(apart, dp.Budget(1.0), 1).steps) == 2


@pytest.mark.parametrize("search", [ExponentialMechanism, "auto"], ids=str)
def test_searches_can_be_chosen(search: Any) -> None:
    for metric in (dp.KthLargest("x", 2, search=search), dp.SumOfSquares("x", search=search)):
        [step] = compile_program([metric], dp.Budget(1.0), 1).steps
        assert step.release.shift > 0
        if search != "auto":
            assert isinstance(step.release.search, ExponentialMechanism)


FUNCTIONS = [nothing, functools.partial(nothing), lambda people: [0], len]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: type(f).__name__)
def test_any_function_can_make_a_custom_profile(function: Any) -> None:
    metric = dp.CustomProfile("x", function, candidates=GRID)
    [step] = compile_program([metric], dp.Budget(1.0), 1).steps
    assert isinstance(step.release.profiler.function, GuardedProfile)
    assert step.release.profiler.function.function is function


def test_a_function_without_a_hash_is_refused_when_built() -> None:
    """Parts that are equal are released once, so they must have one."""
    with pytest.raises(TypeError, match="unhashable|hash"):
        metric = dp.CustomProfile("x", Unhashable(), candidates=GRID)
        compile_program([metric], dp.Budget(1.0), 1)

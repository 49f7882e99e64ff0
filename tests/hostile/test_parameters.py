"""Section A of the table of bad inputs: parameters are refused where they are written."""

import dataclasses
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that, equal_to

import beam_dp as dp
from tests.hostile import support


def aggregate(**changes: Any) -> dp.PrivateAggregate:
    options: dict[str, Any] = {
        "person": "person",
        "metrics": [dp.Count()],
        "budget": dp.Budget(1.0, 1e-6),
        "partition": ["day"],
        "bounds": dp.ContributionBounds(3),
    }
    return dp.PrivateAggregate(**{**options, **changes})


def search(budget: dp.Budget) -> dp.AboveThreshold:
    return dp.AboveThreshold(budget)


NAN, INF = math.nan, math.inf
WRONG_TYPES: list[Any] = [True, "1", None, np.array([1]), Decimal(1), 1j, [1], {}, np.bool_(True)]

Call = Callable[[], object]
REFUSED: dict[str, list[Call]] = {
    "1 epsilon": [lambda v=v: dp.Budget(v) for v in (0, -1, -0.0, Fraction(0), -1e-300)],
    "1 rho": [lambda v=v: dp.Budget.zcdp(v) for v in (0, -1, -0.0)],
    "2 nan": [lambda: dp.Budget(NAN), lambda: dp.Budget.zcdp(NAN), lambda: dp.Budget(np.float32("nan"))],
    "3 infinite": [lambda: dp.Budget(INF), lambda: dp.Budget.zcdp(INF)],
    "4 tiny": [lambda v=v: dp.Budget(v) for v in (2.0**-51, 5e-324, Fraction(1, 1 << 60))],
    "5 type": [lambda v=v: dp.Budget(v) for v in WRONG_TYPES],
    "5 type of budget": [lambda v=v: aggregate(budget=v) for v in (1.0, None, "1", dp.Budget)],
    "7 delta": [lambda v=v: dp.Budget(1, v) for v in (-1e-9, 1, 1.5, NAN, INF, True, "0", None)],
    "8 private partitions": [lambda: aggregate(budget=dp.Budget(1.0))],
    "8 gaussian": [lambda: dp.NoisyBinarySearch(dp.Budget(1.0), noise="gaussian").choose(
        dp.Profile([1, 0]), dp.Candidates.linear(0, 1, 1))],
    "10 partitions": [lambda v=v: dp.ContributionBounds(v) for v in (0, -1, 1.5, True, "3", np.int64(3))],
    "10 rows per partition": [lambda v=v: dp.ContributionBounds(1, v) for v in (0, -1, 1.5, True, "3")],
    "10 rows": [lambda v=v: dp.ContributionBounds(1, None, v) for v in (0, -1, 1.5, True, "3")],
    "10 no limit": [lambda: aggregate(bounds=None), lambda: aggregate(bounds=dp.ContributionBounds(None, 3))],
    "10 type": [lambda v=v: aggregate(bounds=v) for v in (3, (3,), dp.ContributionBounds)],
    "11 candidates": [
        lambda: dp.Candidates.linear(2, 1, 1), lambda: dp.Candidates.linear(0, NAN, 1),
        lambda: dp.Candidates.linear(0, INF, 1), lambda: dp.Candidates.linear(0, 1, 0),
        lambda: dp.Candidates.of([]), lambda: dp.Candidates.of([1, NAN]),
        lambda: dp.Candidates.geometric(0, 10, 2), lambda: dp.Candidates.geometric(1, 10, 1),
        lambda: dp.Sum("v", candidates=[1, 2]), lambda: dp.Count(candidates=5)],
    "11 unit": [lambda v=v: dp.Sum("v", unit=v) for v in (0, -1, NAN, INF, True, "1", None)],
    "15 noise": [lambda v=v: dp.NoisyBinarySearch(dp.Budget(1.0), noise=v) for v in ("gauss", None, 1)],
    "15 clip": [lambda v=v: dp.Sum("v", clip=v) for v in ("SHARED", "", None, 1, True)],
    "15 per": [lambda v=v: dp.Mean("v", per=v) for v in ("rows", None, 2)],
    "15 search": [lambda v=v: dp.Max("v", search=v) for v in ("AboveThreshold", None, search, dp.Budget)],
    "15 one_sided": [lambda v=v: dp.Count(one_sided=v) for v in (1, None, "yes")],
    "16 beta": [lambda v=v: dp.Max("v", beta=v) for v in (0, 1, -1, 2, NAN, True, "0.1", None)],
    "16 clip_share": [lambda v=v: dp.Sum("v", clip_share=v) for v in (0, 1, -1, NAN, True, "0.1")],
    "17 public": [lambda v=v: dp.PublicPartitions(v) for v in ([], [None], [1, "1"], [1.0], [[1]], [{}], 1)],
    "18 public": [lambda: dp.PublicPartitions(beam.Pipeline(runner="FnApiRunner") | beam.Create([1]))],
    "18 partitions": [lambda v=v: aggregate(partitions=v) for v in (["a"], "a", {"a"}, dp.PublicPartitions)],
    "19 weight": [lambda v=v: dp.Count(weight=v) for v in (0, -1, NAN, INF, True, "1", None, Decimal(1))],
    "names person": [lambda v=v: aggregate(person=v) for v in ("", None, 1, b"person", ["person"])],
    "names partition": [lambda v=v: aggregate(partition=v) for v in ("day", [""], [1], None, ["a", "a"], {"a"})],
    "names column": [lambda v=v: dp.Sum(v) for v in ("", None, 1, b"v", ["v"])],
    "names metrics": [lambda v=v: aggregate(metrics=v) for v in (
        [], None, dp.Count(), [dp.Count], ["count"], [dp.Count(), dp.Count()], [None])],
    "names output": [
        lambda: aggregate(metrics=[dp.Count(name="day")]), lambda: aggregate(partition=["count"]),
        lambda: aggregate(metrics=[dp.Count(name="a"), dp.Sum("v", name="a_error")]),
        lambda: aggregate(metrics=[dp.Sum("a b"), dp.Max("v", name="sum_a_b")])],
    "names unit": [lambda: aggregate(metrics=[dp.Sum("v", unit=1), dp.Max("v", unit=0.5)])],
}  # fmt: skip
CALLS = [(name, number) for name, calls in REFUSED.items() for number in range(len(calls))]


@pytest.mark.parametrize(("name", "number"), CALLS)
def test_refused_at_construction_with_a_message(name: str, number: int) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        REFUSED[name][number]()
    message = str(caught.value)
    assert " must " in message and message.endswith(".") and len(message) < 500


ACCEPTED: list[Call] = [
    lambda: dp.Budget(Fraction(1, 3)), lambda: dp.Budget(1), lambda: dp.Budget(np.float64(0.5)),
    lambda: dp.Budget(2.0**-50), lambda: dp.Budget(1, 5e-324), lambda: aggregate(),
    lambda: dp.ContributionBounds(1 << 63), lambda: dp.ContributionBounds(1, 1 << 63, 1 << 70),
    lambda: aggregate(partition=["self", "day of week"]), lambda: aggregate(metrics=[dp.Sum("a b")]),
    lambda: dp.PublicPartitions([1, 1, "a"]), lambda: aggregate(metrics=(dp.Count(),)),
    lambda: dp.Candidates.linear(0, 1e300, 1e290), lambda: dp.Sum("v", unit=np.int64(1)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ACCEPTED)))
def test_the_good_neighbours_are_accepted(number: int) -> None:
    assert ACCEPTED[number]() is not None


def test_5_the_message_names_the_type() -> None:
    for value, name in ((True, "bool"), ("1", "str"), (None, "NoneType"), (Decimal(1), "Decimal")):
        with pytest.raises(TypeError, match=name):
            dp.Budget(value)


def test_6_float32_is_taken_exactly() -> None:
    assert dp.Budget(np.float32(0.1)).amount == Fraction(*float(np.float32(0.1)).as_integer_ratio())


def test_9_a_tiny_delta_gives_a_finite_threshold() -> None:
    transform = aggregate(budget=dp.Budget(1.0, 1e-300))
    assert math.isfinite(transform._program.selection.threshold)


def test_10_12_bounds_past_64_bits_bound_nothing() -> None:
    rows = [support.as_dict((row % 3, row % 5, 1.0)) for row in range(60)]
    expected = support.contents(rows)
    for huge in (1 << 63, 1 << 64, 1 << 100):
        for limits in ((huge,), (None, huge), (None, None, huge), (huge, huge, huge)):
            assert support.contents(rows, dp.ContributionBounds(*limits)) == expected


def test_12_products_of_bounds_do_not_wrap() -> None:
    bounds = dp.ContributionBounds(1 << 70, 1 << 62)
    public = dp.PublicPartitions(range(1 << 10))
    program = aggregate(bounds=bounds, budget=dp.Budget(1.0), partitions=public)._program
    costs = [cost.amount * times for _, cost, times in program.entries]
    assert program.reach == 1 << 10 and sum(costs) <= 1 and min(costs) > 0


def test_17_a_key_that_is_listed_twice_is_released_once() -> None:
    transform = aggregate(partitions=dp.PublicPartitions(["a", "a", "b"]))
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        total = (
            pipeline | beam.Create([{"person": 1, "day": "a"}]) | transform
            | beam.combiners.Count.Globally()
        )  # fmt: skip
        assert_that(total, equal_to([2]))


WEIGHTS = [[1, 1], [1, 2, 3], [0.1] * 10, [1 / 3, 2 / 3, 0.7], [Fraction(1, 7), 3]]


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize(
    "budget", [dp.Budget(0.7, 1e-6), dp.Budget.zcdp(0.3, 1e-7), dp.Budget(3, 0.1)]
)
def test_19_all_costs_together_never_exceed_the_budget(
    weights: list[Any], budget: dp.Budget
) -> None:
    metrics = [dp.Sum("v", name=f"m{place}", clip_share=0.3 if place % 2 else None, weight=weight)
               for place, weight in enumerate(weights)]  # fmt: skip
    metrics += [dp.Max("v", name="most"), dp.PeopleCount(), dp.Mean("v", name="mean")]
    program = aggregate(metrics=metrics, budget=budget)._program
    spent = sum((cost.amount * times for _, cost, times in program.entries), Fraction(0))
    delta = sum((cost.delta * times for _, cost, times in program.entries), Fraction(0))
    assert spent <= program.budget.amount and delta <= program.budget.delta
    assert spent > program.budget.amount * Fraction(99, 100)
    assert program.budget.delta <= budget.delta


FROZEN = [dp.Budget(1.0), dp.ContributionBounds(1), dp.Count(), dp.Sum("v"), dp.Max("v")]
FROZEN += [dp.PublicPartitions([1]), dp.PrivatePartitions(), dp.Candidates.of([1]), dp.Mean("v")]


@pytest.mark.parametrize("parameter", FROZEN, ids=lambda value: type(value).__name__)
def test_20_parameters_are_frozen(parameter: Any) -> None:
    for field in dataclasses.fields(parameter):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(parameter, field.name, None)
    assert pickle.loads(pickle.dumps(parameter)) == parameter


FORGED: list[tuple[Any, Any]] = [
    (dp.Budget(Fraction(11, 7)), (Fraction(11, 7), Fraction(-1))),
    (dp.ContributionBounds(1234567), (1234567, 0)),
    (dp.PublicPartitions([1]), (((None,),),)),
]


@pytest.mark.parametrize(("parameter", "fields"), FORGED, ids=lambda value: type(value).__name__)
def test_21_forged_fields_are_checked_again_by_the_unpickler(parameter: Any, fields: Any) -> None:
    make, _, *_ = parameter.__reduce__()
    with pytest.raises((TypeError, ValueError)):
        make(*fields)


def test_22_an_object_is_applied_once() -> None:
    transform = aggregate()
    rows = beam.Pipeline(runner="FnApiRunner") | beam.Create([{"person": 1, "day": "a"}])
    _ = rows | "first" >> transform
    with pytest.raises(ValueError, match="applied once, not twice"):
        _ = rows | "second" >> transform

"""Rows with several owners: who owns a row, what is refused, and what one person more can do."""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from tests.relations import TWO_OWNERS, Row, data_of, moves, profiles
from tests.transforms.test_aggregate_relations import found, run

BOTH = ["from", "to"]
GRID = dp.Candidates.linear(0, 100, 1)


def losses(given: Sequence[Any], metric: Any, person: Sequence[str] = ("from", "to")) -> Any:
    """Return the profile of the one partition."""
    [row] = run(given, dp.RemovalLoss(metric, person, removals=4))
    return list(row.profile)


def edge(one: Any, other: Any, value: Any = 1.0) -> dict[str, Any]:
    return {"from": one, "to": other, "value": value}


THREE = ["from", "to", "by"]


def call(one: Any, other: Any, third: Any, value: Any = 1.0) -> dict[str, Any]:
    return {**edge(one, other, value), "by": third}


METRICS = [
    dp.Count(), dp.Sum("value"), dp.Max("value"), dp.Min("value"),
    dp.DistinctCount("value"),
    dp.KthLargest("value", 2), dp.MaxFrequency("value"),
]  # fmt: skip


@pytest.mark.sampled(9)
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.output)
def test_a_pair_has_no_direction_and_an_owner_no_spelling(metric: Any) -> None:
    """17 and "17" are one, in either place, beside text of which identities have two words."""
    plain = [edge(1, 2, 5.0), edge(1, 2, 3.0), edge(2, "x", 1.0), edge("x", "x", 4.0)]
    other = [edge("2", 1, 5.0), edge(1, "2", 3.0), edge("x", 2, 1.0), edge("x", "x", 4.0)]
    expected = losses(plain, metric)
    assert losses(other, metric) == losses(other[::-1], metric) == expected
    text = pa.table({"to": ["1", "1", "2", "x"], "from": ["2", "2", "x", "x"],
                     "value": [5.0, 3.0, 1.0, 4.0]})  # fmt: skip
    assert losses([text], metric) == expected
    numbers = pa.table({"to": [1, 1], "from": [2, 2], "value": [5.0, 3.0]})
    assert losses([numbers, *plain[2:]], metric) == expected


def test_of_values_of_several_owners_people_remove_what_they_can() -> None:
    """The triangle needs 3 / 2 in halves, the three pairs apart 3, the star its center.

    All of them need 5 1/2 together.
    """
    triangle = [edge(1, 2, 7), edge(2, 3, 7), edge(3, 1, 7)]
    apart = [edge(10, 11, 8), edge(12, 13, 8), edge(14, 15, 8)]
    star = [edge(20, other, 9) for other in range(30, 90)]
    rows = [*triangle, *apart, *star]
    assert losses(rows, dp.DistinctCount("value")) == [3.0, 2.0, 2.0, 1.0, 1.0]


NOBODY = [None, 1.5, float("nan"), b"x", [1], {}, "\ud800", object(), datetime.time(1)]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("nobody", NOBODY, ids=lambda nobody: type(nobody).__name__)
def test_a_row_belongs_to_those_who_are_in_its_roles_and_without_any_does_not_count(
    nobody: Any,
) -> None:
    """An empty role is nobody's, not one more person whom all such rows would share."""
    of_one = [edge(1, nobody), edge(nobody, 1), {"from": 1, "value": 1.0}, {"to": 1, "value": 1.0}]
    given = [*of_one, edge(2, nobody), edge(nobody, nobody), {}, edge(2, 3)]
    assert losses(given, dp.Count())[:3] == [6.0, 2.0, 0.0]
    whole, one, two = losses(given, dp.Sum("value"))[:3]
    assert whole == 6.0 and 1.9 < one <= 2.0 and two == 0.0  # but for the grid of prices
    for metric in (dp.Count(), dp.Sum("value")):
        assert losses(given[:4], metric)[:2] == [4.0, 0.0]
        assert losses(given[5:7], metric)[0] == 0.0
    of_three = [call(1, nobody, 2), call(nobody, 2, 1), call(nobody, nobody, 1), call(2, 1, nobody)]
    assert losses(of_three, dp.Count(), THREE)[:2] == [4.0, 0.0]
    assert losses([*of_three, call(nobody, nobody, nobody)], dp.Count(), THREE)[:2] == [4.0, 0.0]


@pytest.mark.audit
def test_one_person_in_several_of_many_roles_is_one_owner() -> None:
    """A row of 1 and 2 alone is that row, whichever roles are empty or filled twice."""
    forms = [call(1, 2, 2), call(1, 1, "2"), call(2, 1, None), call(None, 2, 1), call("1", 2, 1)]
    for metric in METRICS:
        expected = losses([edge(1, 2)] * 5, metric)
        assert losses(forms, metric, THREE) == expected
    assert losses([call(1, "1", 1)] * 3, dp.Count(), THREE)[:2] == [3.0, 0.0]


def test_rows_of_eight_owners_disappear_with_each_of_them() -> None:
    names = [f"p{place}" for place in range(8)]
    rows = [dict(zip(names, range(8), strict=True)), dict.fromkeys(names, 3), {"p7": 9}]
    assert losses(rows, dp.Count(), names) == [3.0, 1.0, 0.0, 0.0, 0.0]


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"person": [*"abcdefghi"]},
        "be one column, or up to 8 of rows with several owners, not 9. Name",
    ),
    ({"person": []}, "person must be one column, or up to 8 of rows with several owners, not 0"),
    ({"person": ["from", "from"]}, "person must"),
    ({"person": ["from", 3]}, "person must"),
    ({"person": {"from"}}, "person must"),
    ({"bounds": dp.ContributionBounds(1)}, "bounds must be left out"),
    ({"bounds": dp.ContributionBounds(None, 2)}, "bounds must be left out"),
    ({"partition": ["day"], "partitions": dp.PrivatePartitions()}, "partitions must be public"),
    ({"partition": ["day"]}, "partitions must be public"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=repr)
def test_what_has_no_proof_for_several_owners_is_refused(changes: Any, message: str) -> None:
    given = {"person": BOTH, "metrics": [dp.Count()], "budget": dp.Budget(1.0, 1e-6), **changes}
    with pytest.raises((TypeError, ValueError), match=message):
        dp.PrivateAggregate(**given)


OTHERS = [
    dp.PeopleCount(), dp.Mean("value"), dp.SumOfSquares("value"), dp.Quantiles("value", [0.5]), dp.Median("value"),
    dp.Ratio("value", per="person"), dp.Histogram("value", [0, 1]), dp.Variance("value"),
    dp.CustomProfile("value", lambda people: [0], candidates=GRID),
]  # fmt: skip


@pytest.mark.parametrize("metric", OTHERS, ids=lambda metric: type(metric).__name__)
def test_other_metrics_of_several_owners_are_refused(metric: Any) -> None:
    for asked in ([metric], [dp.Count(), metric]):
        with pytest.raises(TypeError, match="a metric of rows with several owners must be Count, "):
            dp.PrivateAggregate(BOTH, asked, dp.Budget(1.0))
    if metric.monotone:
        with pytest.raises(TypeError, match="a metric of rows with several owners must be Count, "):
            dp.RemovalLoss(metric, BOTH)


@pytest.mark.audit
def test_a_person_who_is_taken_for_two_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: further owners have a hash of another kind, so that nobody is in two roles."""
    from beam_dp.mechanisms.numerics import integers
    from beam_dp.transforms.columns import compared_values

    original = compared_values.coded

    def other(identity: np.ndarray, valid: np.ndarray, key: bytes) -> np.ndarray:
        codes = original(identity, valid, key)
        return codes ^ (codes != integers.LOWEST)

    monkeypatch.setattr(compared_values, "coded", other)
    made = data_of(TWO_OWNERS["rows of two"], 300, seed=31)
    with pytest.raises(AssertionError):
        statistic = TWO_OWNERS["rows of two"]
        moves(profiles(made.before, statistic), profiles(made.rows, statistic))


def test_partitions_whose_rows_have_no_value_are_there_and_those_without_an_owner_are_not() -> None:
    rows = [Row(1, 5, None, None, None), Row(1, 6, 1.0, None, 2), Row(None, 7, 1.0)]
    assert found([row._asdict() for row in rows], TWO_OWNERS["sum of two"]) == {
        5: [0.0] * 5,
        6: [1.0, 0.0, 0.0, 0.0, 0.0],
    }

"""RemovalLoss and SelectPartitions against brute force over sets of people."""

from typing import Any

import pytest

import beam_dp as dp
from tests.hostile import support

DATA = {
    "a": {1: [3.0, 4.0], 2: [10.0], 3: [-5.0], 4: [7.0, 7.0, 1.0]},
    "b": {1: [2.0], 5: [2.0, 2.0]},
    "c": {6: [None, 4.0], 2: [None]},
}


def rows() -> list[dict[str, Any]]:
    return [
        support.as_dict((person, day, value))
        for day, people in DATA.items()
        for person, values in people.items()
        for value in values
    ]


def profiles(given: list[Any], statistic: Any, **options: Any) -> dict[str, list[float]]:
    transform = dp.RemovalLoss(statistic, "person", ["day"], **{"removals": 6, **options})
    return {row.day: list(row.profile) for row in support.released(given, transform)}


def test_public_partitions_appear_when_empty() -> None:
    public = dp.PublicPartitions(["a", "z"])
    found = profiles(rows(), dp.Count(), partitions=public)
    assert set(found) == {"a", "z"} and found["z"] == [0.0] * 7


def test_what_is_not_monotone_and_removals_without_end_are_refused() -> None:
    for statistic in (dp.Mean("value"), "max", dp.Max):
        with pytest.raises(
            TypeError, match="RemovalLoss: statistic must be one of Count, PeopleCount, Sum, Max, "
        ):
            dp.RemovalLoss(statistic, "person")
    for removals in (0, 1.5, 1 << 30):
        with pytest.raises((TypeError, ValueError), match="RemovalLoss: removals must be"):
            dp.RemovalLoss(dp.Count(), "person", removals=removals)


def selected(given: list[Any], budget: dp.Budget, **options: Any) -> list[Any]:
    bounds = options.pop("bounds", dp.ContributionBounds(1))
    transform = dp.SelectPartitions("person", ["day"], budget, bounds, **options)
    return sorted((row.day for row in support.released(given, transform)), key=str)


def people(day: object, size: int) -> list[dict[str, Any]]:
    return [support.as_dict((f"{day} {person}", day, None)) for person in range(size)]


def test_partitions_of_many_people_are_selected_and_others_are_not() -> None:
    # At delta 1e-15 three lone people are named with probability below 3e-15; 200 people are missed
    # with probability below e^-150.
    given = [*people("many", 200), *people(7, 200), *people("one", 1), *people("two", 1)]
    assert selected([*given, *people("one", 1) * 500], dp.Budget(2.0, 1e-15)) == [7, "many"]


def test_nobody_and_pre_threshold() -> None:
    assert selected([], dp.Budget(1.0, 0.1)) == []
    assert selected(people("a", 9), dp.Budget(1e3, 0.9), pre_threshold=10) == []


def test_a_person_reaches_no_more_partitions_than_allowed() -> None:
    given = [support.as_dict((person, day, None)) for person in range(30) for day in range(300)]
    # Each of 30 people reaches one of 300 partitions: those of 9 and more are absent, up to 1e-9.
    assert len(selected(given, dp.Budget(1e3, 1e-12), pre_threshold=9)) == 0


def test_bad_parameters_are_refused() -> None:
    given: dict[str, Any] = {"person": "person", "partition": ["day"]}
    given |= {"budget": dp.Budget(1.0, 1e-6), "bounds": dp.ContributionBounds(1)}
    for changes in (
        *({"partition": []}, {"budget": 1.0}, {"budget": dp.Budget(1.0)}, {"bounds": 3}),
        *({"person": ""}, {"bounds": dp.ContributionBounds(None, 3)}, {"pre_threshold": 0}),
    ):
        with pytest.raises((TypeError, ValueError), match="must "):
            dp.SelectPartitions(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partitions": dp.PrivatePartitions()}, "partitions must be PublicPartitions or left out"),
        ({"partitions": [0, 1]}, "partitions must be PublicPartitions or PrivatePartitions"),
        ({"partitions": dp.PublicPartitions([(0, 1)])}, "one part per partition column"),
        ({"bounds": 3}, "bounds must be of type ContributionBounds"),
    ],
)
def test_wrong_calls_of_the_loss_are_refused_when_built(
    changes: dict[str, Any], message: str
) -> None:
    given = {"statistic": dp.Count(), "person": "person", "partition": ["day"], **changes}
    with pytest.raises((TypeError, ValueError), match=message):
        dp.RemovalLoss(**given)

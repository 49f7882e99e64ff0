"""Unusual parameters get one line each; usual ones none."""

import pytest

from beam_dp.mechanisms.accounting.budget import Budget, cautions

USUAL = [
    (Budget(10, 1e-3), None),
    (Budget(0.01), 10**9),
    (Budget.zcdp(50, 1e-6), 1_000_000),
    (Budget(1, 0.01), 100),
]
UNUSUAL = [
    (Budget(10.01), None, ["epsilon 10.01 is above 10"]),
    (Budget.zcdp(51), None, ["rho 51.0 is above 50"]),
    (Budget(1, 0.002), None, ["delta 0.002 is above 1/1000"]),
    (Budget(1, 1e-6), 2_000_000, ["delta 1e-06 is above 1 / 2000000 people"]),
    (Budget(20, 0.5), 3, ["epsilon 20.0 is above 10", "delta 0.5 is above 1 / 3 people"]),
]


@pytest.mark.parametrize(("budget", "people"), USUAL, ids=str)
def test_usual_parameters_get_no_line(budget: Budget, people: int | None) -> None:
    assert cautions(budget, people) == ()


@pytest.mark.parametrize(("budget", "people", "said"), UNUSUAL, ids=str)
def test_unusual_parameters_get_one_line_each(
    budget: Budget, people: int | None, said: list[str]
) -> None:
    lines = cautions(budget, people)
    assert [line.startswith(start) for line, start in zip(lines, said, strict=True)] == [
        True
    ] * len(said)
    assert not any("\n" in line for line in lines)

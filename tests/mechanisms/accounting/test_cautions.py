"""Unusual parameters get one line each; usual ones none."""

import pytest

from beam_dp.mechanisms.accounting.budget import Budget, cautions

SAID = [
    (Budget(10, 1e-3), []),
    (Budget.zcdp(50, 1e-6), []),
    (Budget(10.01), ["epsilon 10.01 is above 10"]),
    (Budget.zcdp(51), ["rho 51.0 is above 50"]),
    (Budget(1, 0.002), ["delta 0.002 is above 1/1000"]),
    (Budget(20, 0.5), ["epsilon 20.0 is above 10", "delta 0.5 is above 1/1000"]),
]


@pytest.mark.parametrize(("budget", "said"), SAID, ids=str)
def test_unusual_parameters_get_one_line_each(budget: Budget, said: list[str]) -> None:
    lines = cautions(budget)
    assert [line.split(":")[0] for line in lines] == said
    assert not any("\n" in line for line in lines)

"""How a budget is shared out among parts: exactly, by weight, and a delta to who wants one."""

from fractions import Fraction

import pytest

import beam_dp as dp
from beam_dp.mechanisms.planning.allocation import (
    SelectionRequest,
    share_out,
    weights_of,
)

HALF = Fraction(1, 2)


def test_a_metric_gives_its_requests_parts_of_its_weight_and_shared_ones_add_up() -> None:
    asked = [dp.Mean("x", low=0, high=9, weight=5), dp.Sum("x"), dp.PeopleCount(weight=HALF)]
    [distances, valid] = dp.Mean("x", low=0, high=9).parts()
    [total], [people] = dp.Sum("x").parts(), dp.PeopleCount().parts()
    # What chooses a centre is paid before: 15% of the metric's part.
    parts = {distances: Fraction(17, 8), valid: Fraction(17, 8)}
    assert weights_of(asked) == {**parts, total: Fraction(1), people: HALF}
    both = weights_of([dp.Mean("x", weight=5), dp.Mean("x", name="again", weight=5)])
    assert sum(both.values()) == Fraction(17, 20) * 10 and len(both) == 2


@pytest.mark.parametrize("budget", [dp.Budget(1.0), dp.Budget.zcdp(Fraction(1, 3))], ids=str)
@pytest.mark.parametrize("reach", [1, 7])
def test_the_shares_are_the_whole_by_weight(budget: dp.Budget, reach: int) -> None:
    weights = weights_of([dp.Count(weight=2), dp.PeopleCount()])
    whole, shares = share_out(budget, weights, reach, None)
    assert whole == budget and list(shares) == list(weights)
    assert [share.amount for share in shares.values()] == [
        budget.amount * Fraction(2, 3),
        budget.amount * Fraction(1, 3),
    ]


def test_a_selection_has_all_delta_or_half_beside_requests_that_want_some() -> None:
    selection, budget = SelectionRequest(Fraction(1), 1), dp.Budget(Fraction(2), Fraction(1, 10**6))
    _, shares = share_out(budget, weights_of([dp.PeopleCount()]), 1, selection)
    assert shares[None] == dp.Budget(1, Fraction(1, 10**6))
    wanting = dp.Max("x", search=dp.ScaleThenChoose)
    whole, shares = share_out(budget, weights_of([wanting]), 4, selection)
    [part] = wanting.parts()
    assert whole == budget
    assert shares[part] == dp.Budget(1, Fraction(1, 2 * 10**6))
    # The selection's share is that of one of four partitions.
    assert shares[None] == dp.Budget(Fraction(1, 4), Fraction(1, 8 * 10**6))


def test_a_selection_needs_a_delta() -> None:
    with pytest.raises(ValueError, match="^PrivatePartitions: delta must be above 0"):
        share_out(dp.Budget(1.0), {}, 1, SelectionRequest(Fraction(1), 1))

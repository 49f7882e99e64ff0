"""The automatic search: the smallest proved shift, always the same."""

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.search import ScaleThenChoose, alternatives
from beam_dp.mechanisms.search.choose import build_search

BUDGETS = [Budget(1), Budget(0.1, 1e-9), Budget(1, 1e-6), Budget.zcdp(0.5), Budget.zcdp(1e-5)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("n", "beta"), [(1, 0.05), (5, 1e-6), (2**64, 0.05), (2**1030, 1e-6)])
def test_it_has_the_smallest_shift_within_the_budget(budget, n, beta):
    found = alternatives(budget, n, beta)
    assert build_search("auto", budget, beta, n) == found[0]
    assert [search.shift(n) for search in found] == sorted(search.shift(n) for search in found)
    assert len({type(search) for search in found}) == 3
    for search in found:
        assert search.cost == budget.without_delta()
        assert search.beta == beta


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-6), (1, 1e-12), (1, 1e-6), (10, 1e-6)])
def test_a_delta_makes_no_shift_smaller_up_to_2_256_candidates(epsilon, delta) -> None:
    spending = ScaleThenChoose(Budget(epsilon, delta))
    for bits in (1, 2, 4, 8, 14, 22, 32, 64, 128, 256):
        best = alternatives(Budget(epsilon, delta), 2**bits)[0]
        assert best.cost.delta == 0 and best.shift(2**bits) <= spending.shift(2**bits)
    assert spending.shift(2**1024) < best.shift(2**1024)

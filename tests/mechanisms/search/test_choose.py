"""The automatic search: the smallest proved shift, always the same."""

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.search.choose import BY_WORD, build_search

BUDGETS = [Budget(1), Budget(0.1, 1e-9), Budget(1, 1e-6), Budget.zcdp(0.5), Budget.zcdp(1e-5)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("n", "beta"), [(1, 0.05), (5, 1e-6), (2**64, 0.05), (2**1030, 1e-6)])
def test_it_has_the_smallest_shift_within_the_budget(budget, n, beta):
    found = build_search("auto", budget, beta, n)
    every = [kind(budget, beta) for kind in BY_WORD.values() if isinstance(kind, type)]
    assert len(every) == 3 and found in every
    assert found == min(every, key=lambda search: search.shift(n))
    assert found.cost == budget.without_delta() and found.beta == beta

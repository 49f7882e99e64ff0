"""The automatic search: the smallest proved shift, always the same."""

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics import Count, Max
from beam_dp.mechanisms.search import ScaleThenChoose, alternatives
from beam_dp.mechanisms.search.choose import BY_WORD, build_search, check_search

BUDGETS = [Budget(1), Budget(0.1, 1e-9), Budget(1, 1e-6), Budget.zcdp(0.5), Budget.zcdp(1e-5)]


@pytest.mark.sampled(23)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("n", [1, 2, 5, 2**8, 2**64, 2**1030])
@pytest.mark.parametrize("beta", [0.05, 1e-6])
def test_it_has_the_smallest_shift_within_the_budget(budget, n, beta):
    found = alternatives(budget, n, beta)
    assert build_search("auto", budget, beta, n) == found[0]
    assert [search.shift(n) for search in found] == sorted(search.shift(n) for search in found)
    assert len({type(search) for search in found}) == 3
    for search in found:
        assert search.cost == budget.without_delta()
        assert search.beta == beta


@pytest.mark.parametrize(
    ("budget", "n", "name"),
    [
        (Budget(1), 2, "NoisyBinarySearch"),
        (Budget(1), 2**16, "AboveThreshold"),
        (Budget(1, 1e-6), 2**16, "AboveThreshold"),
        (Budget(1, 1e-6), 2**370, "AboveThreshold"),
        (Budget.zcdp(0.5), 2**16, "NoisyBinarySearch"),
        (Budget.zcdp(1e-9), 2**16, "AboveThreshold"),
        (Budget(1), 1, "AboveThreshold"),  # of equal shifts the first
    ],
)
def test_which_search_is_taken(budget, n, name):
    assert type(alternatives(budget, n)[0]).__name__ == name


@pytest.mark.parametrize("word", BY_WORD)
def test_a_word_and_its_class_are_the_same_search(word):
    kind = BY_WORD[word]
    assert check_search("Max", word) == check_search("Max", kind) == kind
    assert Max("x", search=word) == Max("x", search=kind)
    assert Count(search=word) == Count(search=kind)
    budget = Budget(1, 1e-6)
    assert build_search(word, budget, 0.05, 64) == build_search(kind, budget, 0.05, 64)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 10])
@pytest.mark.parametrize("delta", [1e-12, 1e-6])
def test_a_delta_makes_no_shift_smaller_up_to_2_256_candidates(epsilon, delta) -> None:
    spending = ScaleThenChoose(Budget(epsilon, delta))
    for bits in (1, 2, 4, 8, 14, 22, 32, 64, 128, 256):
        best = alternatives(Budget(epsilon, delta), 2**bits)[0]
        assert best.cost.delta == 0 and best.shift(2**bits) <= spending.shift(2**bits)
    assert spending.shift(2**1024) < best.shift(2**1024)

"""Metrics with a removal profile: which outputs, which search, and what is refused."""

from fractions import Fraction

import pytest

import beam_dp as dp
from beam_dp.mechanisms.candidates.defaults import default_totals, default_values
from beam_dp.mechanisms.metrics.base import Context
from beam_dp.mechanisms.metrics.profiled import DirectRelease, TwoPhase
from beam_dp.mechanisms.planning.builder import columns_of
from beam_dp.mechanisms.search.choose import build_search

GRID = dp.Candidates.linear(0, 20, 1)


def test_outputs_are_the_users_or_wide_and_mirrored_for_a_smallest():
    unit = Fraction(1, 10**6)
    assert dp.Max("x").grid is default_values(unit)
    assert dp.Sum("x", one_sided=True).grid is default_totals(unit)
    assert dp.SumOfSquares("x").grid is default_totals(Fraction(1))
    assert dp.Max("x", candidates=GRID).grid is GRID
    mirrored = dp.Min("x", candidates=GRID).grid
    assert list(mirrored) == [-y for y in GRID][::-1]


def test_the_lowest_candidate_stands_for_nobody_on_the_default_grid_of_values_only():
    assert dp.Max("x").blank and dp.KthLargest("x", 3).blank
    assert not dp.Max("x", candidates=GRID).blank
    assert not dp.Count(one_sided=True).blank
    assert not dp.SumOfSquares("x").blank


def test_only_scale_then_choose_spends_a_delta():
    wants = {search: dp.Max("x", search=search).wants_delta for search in SEARCHES}
    assert [search for search, wanted in wants.items() if wanted] == [dp.ScaleThenChoose]


SEARCHES = [
    *("two_phase", "auto", dp.AboveThreshold, dp.ExponentialMechanism, dp.NoisyBinarySearch),
    dp.ScaleThenChoose,
]


@pytest.mark.parametrize("search", SEARCHES[:-1], ids=str)
@pytest.mark.parametrize("candidates", [None, GRID], ids=["any", "given"])
def test_the_release_keeps_what_its_search_looks_at(search, candidates):
    metric = dp.Max("x", search=search, candidates=candidates)
    context = Context(columns_of([metric]), reach=2)
    release = metric.build(context, dp.Budget(4.0))
    assert type(release) is (TwoPhase if search == "two_phase" else DirectRelease)
    [(cost, _, once)] = release.spends
    assert cost == dp.Budget(2.0) and not once
    if search == "two_phase":
        assert release.removals + 1 == release.profiler.measure.keep
        assert release.listed == (candidates is not None)
    else:
        size = release.candidates.size
        assert release.search.cap(size) + 1 == release.profiler.measure.keep
        assert (release.chosen_with is None) == (search != "auto")
        assert getattr(release.search, "gate", release.blank) == release.blank


def test_from_below_is_one_sided_and_refuses_what_has_no_effect():
    found = dp.Count().from_below("Owner", {"beta": 0.2, "search": "auto"})
    assert found == dp.Count(one_sided=True, beta=0.2, search="auto")
    assert dp.Max("x").from_below("Owner", {"beta": 0.2}) == dp.Max("x", beta=0.2)
    with pytest.raises(ValueError, match="^Count: clip must be left out in Owner, which searches"):
        dp.Count(clip="partition").from_below("Owner", {})
    with pytest.raises(ValueError, match='^Owner: method must not be "preprocessing"'):
        dp.Max("x", method="preprocessing").from_below("Owner", {})


def test_searches_are_built_with_their_budget():
    for kind in (dp.AboveThreshold, dp.ExponentialMechanism, dp.NoisyBinarySearch):
        for budget in (dp.Budget(1.0), dp.Budget.zcdp(0.5)):
            search = build_search(kind, budget, 0.1, 1000)
            assert type(search) is kind and search.cost == budget and search.shift(10) > 0
    budget = dp.Budget(1.0)
    assert build_search("auto", budget, 0.1, 1000) == dp.AboveThreshold(budget, 0.1)

"""Requests with a removal profile: which outputs, which search, and what is refused."""

from fractions import Fraction

import pytest

import beam_dp as dp
from beam_dp.mechanisms.candidates.defaults import default_totals, default_values
from beam_dp.mechanisms.metrics.profiled import Searching, from_below
from beam_dp.mechanisms.planning.columns import columns_of
from beam_dp.mechanisms.releases.request import Context
from beam_dp.mechanisms.releases.shifted_inverse import DirectRelease
from beam_dp.mechanisms.releases.two_phase import TwoPhase

GRID = dp.Candidates.linear(0, 20, 1)


def request_of(metric):
    """Return the one request of a metric."""
    [request] = metric.requests()
    return request


def test_outputs_are_the_users_or_wide_and_mirrored_for_a_smallest():
    unit = Fraction(1, 10**6)
    assert request_of(dp.Max("x")).candidates() is default_values(unit)
    assert request_of(dp.Sum("x", one_sided=True)).candidates() is default_totals(unit)
    assert request_of(dp.SumOfSquares("x")).candidates() is default_totals(Fraction(1))
    assert request_of(dp.Max("x", candidates=GRID)).candidates() is GRID
    mirrored = request_of(dp.Min("x", candidates=GRID)).candidates()
    assert list(mirrored) == [-y for y in GRID][::-1]


def test_the_lowest_candidate_stands_for_nobody_on_the_default_grid_of_values_only():
    assert request_of(dp.Max("x")).blank and request_of(dp.KthLargest("x", 3)).blank
    assert not request_of(dp.Max("x", candidates=GRID)).blank
    assert not request_of(dp.Count(one_sided=True)).blank
    assert not request_of(dp.SumOfSquares("x")).blank


def test_only_scale_then_choose_spends_a_delta():
    wants = {search: request_of(dp.Max("x", search=search)).wants_delta for search in SEARCHES}
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
    release = request_of(metric).build(context, dp.Budget(4.0))
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


def test_how_it_is_searched_is_read_off_the_metric():
    squares = dp.SumOfSquares("x")
    assert Searching.of(squares) == Searching() == Searching("two_phase", None, 0.05)
    assert dp.Max("x").searching == Searching("walk", None, 0.05)
    metric = dp.Min("x", search="auto", candidates=GRID, beta=0.2)
    assert metric.searching == Searching("auto", GRID, 0.2)


def test_from_below_is_one_sided_and_refuses_what_has_no_effect():
    found = from_below("Owner", dp.Count(), {"beta": 0.2, "search": "auto"})
    assert found == dp.Count(one_sided=True, beta=0.2, search="auto")
    assert from_below("Owner", dp.Max("x"), {"beta": 0.2}) == dp.Max("x", beta=0.2)
    with pytest.raises(ValueError, match="^Count: clip must be left out in Owner, which searches"):
        from_below("Owner", dp.Count(clip="partition"), {})
    with pytest.raises(ValueError, match='^Owner: method must not be "preprocessing"'):
        from_below("Owner", dp.Max("x", method="preprocessing"), {})

"""Extremes, k-th largest and quantiles: what they are called, take and refuse; known bounds."""

import pickle
from fractions import Fraction

import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import takes
from beam_dp.mechanisms.planning.program import compile_program

BOUNDED = {
    "max": dp.Max("x", low=0, high=120),
    "min": dp.Min("x", low=-5, high=5),
    "kth": dp.KthLargest("x", 3, high=9.5),
    "median": dp.Median("x", low=0.25),
    "quantile": dp.Quantile("x", 0.9, low=0, high=120),
    "row quantile": dp.Quantile("x", 0.9, per="row", low=0, high=120),
    "quantiles": dp.Quantiles("x", [0.5, 0.9], low=0, high=120),
    "two phases": dp.Max("x", low=0, high=120, search="two_phase"),
    "from below": dp.Min("x", low=0, high=120, search=dp.AboveThreshold),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_known_bounds_are_the_first_and_the_last_candidate(name):
    metric = BOUNDED[name]
    assert pickle.loads(pickle.dumps(metric)) == metric
    [step] = compile_program([metric], dp.Budget(1), 1).steps
    grid = step.release.candidates
    ends = [grid[0], grid[grid.size - 1]]
    low, high = metric.low, metric.high
    if isinstance(metric, dp.Min):
        (
            low,
            high,
        ) = -metric.high, -metric.low
    assert ends == [-1e18 if low is None else low, 1e18 if high is None else high]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"low": 5, "high": 5}, "high must be above low=5, not 5. Write low=0, high=100."),
        ({"low": "0"}, "low must be"),
        ({"high": float("inf")}, "high must be"),
        ({"low": 0, "candidates": dp.Candidates.linear(0, 9, 1)}, "low must be left out with cand"),
        ({"high": 10**201}, "high must be above"),
    ],
)
@pytest.mark.parametrize(
    "make", [dp.Max, dp.Median, lambda x, **given: dp.Quantiles(x, [0.5], **given)]
)
def test_wrong_bounds_are_refused(make, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make("x", **options)


def test_bounds_have_no_effect_on_preprocessing():
    with pytest.raises(ValueError, match="^Max: low must be left out with method"):
        dp.Max("x", low=0, method="preprocessing")


def test_quantiles_are_sorted_and_named_by_their_shares():
    metric = dp.Quantiles("ms", [0.99, 0.5, Fraction(9, 10), 0.5])
    assert metric.shares == (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))
    assert [output.name for output in metric.outputs] == [
        *("quantiles_ms_0.5", "quantiles_ms_0.5_rank_error"),
        *("quantiles_ms_0.9", "quantiles_ms_0.9_rank_error"),
        *("quantiles_ms_0.99", "quantiles_ms_0.99_rank_error"),
    ]
    named = dp.Quantiles("ms", [0.5], name="q")
    assert [output.name for output in named.outputs] == ["q_0.5", "q_0.5_rank_error"]


@pytest.mark.parametrize("shares", ["0.5", 0.5, [], [0], [1], [0.5, None], {0.5}])
def test_wrong_shares_are_refused(shares):
    with pytest.raises((TypeError, ValueError), match="^Quantiles: (shares|every p) must"):
        dp.Quantiles("x", shares)


def test_ranks_are_stated_where_they_are_searched():
    assert dp.KthLargest("x", 3).is_ranked
    assert not dp.KthLargest("x", 3, search="two_phase").is_ranked
    assert not dp.Max("x").is_ranked
    assert dp.Quantiles("x", [0.5]).is_ranked


@pytest.mark.parametrize("make", [dp.MaxFrequency, dp.SumOfSquares, dp.DistinctCount, dp.Sum])
def test_only_values_are_walked_to(make):
    with pytest.raises(TypeError, match='search must be "auto", "two_phase" or one of'):
        make("x", search="walk")


def test_what_has_bounds_says_so():
    kinds = (dp.Max, dp.Min, dp.KthLargest, dp.Quantile, dp.Quantiles, dp.Median)
    assert all(takes(kind, "low") and takes(kind, "high") for kind in kinds)
    assert not any(takes(kind, "low") for kind in (dp.Sum, dp.MaxFrequency, dp.CustomProfile))


def test_one_share_of_the_budget_pays_for_several():
    metrics = [dp.Quantiles("x", [0.25, 0.5, 0.75], per="person"), dp.Max("x")]
    program = compile_program(metrics, dp.Budget(1), 1)
    assert [entry[1] for entry in program.entries] == [dp.Budget(Fraction(1, 2))] * 2
    search = program.steps[0].release.search
    assert [search.level_cost(level) for level in (0, 1)] == [
        dp.Budget(Fraction(11, 40) * Fraction(19, 20)),
        dp.Budget(Fraction(9, 40) * Fraction(19, 20)),
    ]

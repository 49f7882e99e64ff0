"""Options that have no effect are refused with both names; defaults and useful ones are taken."""

import pytest

import beam_dp as dp

GRID = dp.Candidates.linear(0, 100, 1)
MAKERS = {
    "count": dp.Count,
    "sum": lambda **options: dp.Sum("a", **options),
    "distinct": lambda **options: dp.DistinctCount("a", **options),
}


@pytest.fixture(params=MAKERS.values(), ids=MAKERS)
def make(request):
    return request.param


@pytest.mark.parametrize("option", [{"candidates": GRID}, {"beta": 0.01}], ids=str)
def test_options_of_a_search_are_refused_without_one(make, option):
    [name] = option
    with pytest.raises(ValueError, match=f"{name} must be left out without a search, .*Write sear"):
        make(**option)
    assert vars(make(search="auto", **option))[name] == option[name]


@pytest.mark.parametrize("kind", [dp.Count, lambda **options: dp.Sum("a", **options)])
def test_several_owners_take_a_search_and_no_clip(kind):
    def built(metric):
        return dp.PrivateAggregate(["from", "to"], [metric], dp.Budget(1.0))

    for metric in (kind(), kind(search=dp.ExponentialMechanism), kind(search="two_phase")):
        assert built(metric).metrics == (metric,)
    with pytest.raises(ValueError, match="clip must be left out where rows have several owners"):
        built(kind(clip=5))


def test_the_shifted_inverse_takes_a_search_and_no_clip(make):
    budget = dp.Budget(1.0)
    assert dp.ShiftedInverse(make(), "p", budget, search="auto", beta=0.01)
    assert dp.ShiftedInverse(make(search="auto"), "p", budget)
    with pytest.raises(ValueError, match="clip must be left out with a search"):
        dp.ShiftedInverse(make(clip=5), "p", budget)

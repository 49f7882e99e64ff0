"""Options that have no effect are refused with both names; defaults and useful ones are taken."""

import dataclasses
import pickle

import pytest

import beam_dp as dp

ONE_VALUE, GRID = dp.Candidates.of([5]), dp.Candidates.linear(0, 100, 1)
MAKERS = {
    "count": dp.Count,
    "sum": lambda **options: dp.Sum("a", **options),
    "distinct": lambda **options: dp.DistinctCount("a", **options),
}
CLIP = [{"clip": "partition"}, {"clip_share": 0.5}]
SEARCH = [{"search": dp.ExponentialMechanism}, {"search": "auto"}, {"beta": 0.01}]


@pytest.fixture(params=MAKERS.values(), ids=MAKERS)
def make(request):
    return request.param


@pytest.mark.parametrize("option", CLIP, ids=str)
def test_a_clip_is_refused_where_the_output_is_searched_for(make, option):
    [name] = option
    with pytest.raises(ValueError, match=f"{name} must be left out with one_sided=True, .*Leave "):
        make(one_sided=True, **option)
    with pytest.raises(ValueError, match=f"{name} must be left out with candidates of one value"):
        make(candidates=ONE_VALUE, **option)
    for candidates in (None, GRID):
        assert vars(make(candidates=candidates, **option))[name] == option[name]


@pytest.mark.parametrize("option", SEARCH, ids=str)
def test_a_search_is_refused_where_a_clip_is_chosen(make, option):
    [name] = option
    rule = f"{name} must be left out with one_sided=False, .*Write one_sided=True"
    with pytest.raises(ValueError, match=rule):
        make(**option)
    for candidates in (None, GRID, ONE_VALUE):
        chosen = make(one_sided=True, candidates=candidates, **option)
        assert vars(chosen)[name] == option[name]
        with pytest.raises(ValueError, match=rule):
            dataclasses.replace(chosen, one_sided=False)


def test_defaults_are_taken_however_they_are_written(make):
    given = {"clip": "shared", "clip_share": None, "search": dp.AboveThreshold, "beta": 0.05}
    for side in (True, False):
        assert make(one_sided=side, **given) == make(one_sided=side)
        assert pickle.loads(pickle.dumps(make(one_sided=side))) == make(one_sided=side)
    assert make(candidates=ONE_VALUE, **given).candidates == ONE_VALUE


@pytest.mark.parametrize("kind", [dp.Count, lambda **options: dp.Sum("a", **options)])
def test_several_owners_take_a_search_and_no_clip(kind):
    def built(metric):
        return dp.PrivateAggregate(["from", "to"], [metric], dp.Budget(1.0))

    [metric] = built(kind(one_sided=True, search=dp.ExponentialMechanism)).metrics
    assert metric.one_sided and metric.search is dp.ExponentialMechanism
    # As it is released: in two phases unless it is to be from below.
    assert built(kind()).metrics == (kind(),)
    assert built(kind(one_sided=True)).metrics == (kind(one_sided=True),)
    with pytest.raises(ValueError, match='search must not be "two_phase" with one_sided=True: two'):
        kind(one_sided=True, search="two_phase")
    for option in CLIP:
        with pytest.raises(
            ValueError, match="must be left out where rows have several owners, which"
        ):
            built(kind(**option))


def test_the_shifted_inverse_takes_a_search_and_no_clip(make):
    budget = dp.Budget(1.0)
    assert dp.ShiftedInverse(make(), "p", budget, search="auto", beta=0.01)
    assert dp.ShiftedInverse(make(one_sided=True, search="auto"), "p", budget)
    for option in CLIP:
        with pytest.raises(ValueError, match="must be left out in ShiftedInverse, which searches"):
            dp.ShiftedInverse(make(**option), "p", budget)


@pytest.mark.parametrize("kind", [dp.Median, lambda column, **o: dp.Quantile(column, 0.5, **o)])
@pytest.mark.parametrize("per", ["person", "row"])
def test_quantiles_have_no_search_to_choose(kind, per):
    with pytest.raises(TypeError, match="search"):
        kind("a", per=per, search="auto")

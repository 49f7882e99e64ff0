"""The table of many partitions: its truths, its expert, and a line of it."""

import numpy as np
import pytest

import beam_dp as dp
from benchmarks import kinds, many_partitions
from benchmarks.kinds import COUNT, MEAN, SUM, Kind


def small(*asked) -> Kind:
    random = np.random.default_rng(1)
    person, part = np.arange(600) // 3, random.integers(0, 4, 600)
    value = random.normal(40, 5, 600).round(2)
    return Kind("small", person, part, value, tuple((metric,) for metric in asked))


NUMBERS = {
    COUNT: len,
    SUM: np.sum,
    MEAN: np.mean,
    dp.Variance("value"): np.var,
    dp.StandardDeviation("value"): np.std,
}


@pytest.mark.parametrize("metric", NUMBERS, ids=lambda metric: metric.output)
def test_truths_are_those_of_numpy_and_an_expert_without_noise_has_them(metric, monkeypatch):
    kind = small(metric)
    exact = [NUMBERS[metric](kind.value[kind.partition == at]) for at in range(4)]
    for centre in (0.0, 38.0):
        found = many_partitions.number(metric, many_partitions.true_sums(kind, centre), centre)
        assert found == pytest.approx(exact)
    monkeypatch.setattr(many_partitions, "noise_of", lambda *_: lambda *of: np.zeros(of[-1]))
    assert many_partitions.expert(kind, (metric,), 1.0, False) == pytest.approx([0], abs=1e-9)


def test_an_expert_keeps_the_bounds_that_err_least():
    """Noise for one partition and a clip of 1 is all that 5,000 people with one row each need."""
    kind = Kind("alike", np.arange(5000), np.arange(5000) % 5, np.ones(5000))
    drawn = many_partitions.two_bounds(kind, kind.value, many_partitions.noise_of(1.0, False))
    assert drawn.shape == (425, 5)
    assert 0.8 < np.abs(drawn - 1000).mean() < 1.2  # Laplace of scale 1, with a fixed seed


def test_a_line_says_how_far_off_we_are_and_how_often_intervals_hold():
    # At epsilon 50 noise of 30 in all has a chance below 1e-30.
    [line] = many_partitions.lines(small(COUNT), 50.0, False, 3)
    assert line.counts and line.name == "count" and 0 <= line.ours < 0.05
    assert line.cells >= 0.5 and str(line).count("|") == 8 and 1 <= line.plan < 1.5


@pytest.mark.parametrize("name", ["3 regions", "30 come on all 7 days"])
@pytest.mark.parametrize("zcdp", [False, True])
def test_intervals_of_few_partitions_hold_where_a_few_people_have_much(zcdp, name):
    """87% do and more: of 400 releases fewer than 70% would with a chance below 1e-15."""
    [kind] = (kind for kind in kinds.made() if name in kind.name)
    [line] = many_partitions.lines(kind, 1.0, zcdp, 400)
    assert line.cells > 0.7 and line.size > 0.7


def test_the_people_of_bins_are_those_of_partitions_bin_by_bin(monkeypatch):
    random = np.random.default_rng(2)
    person, bins = np.arange(600) // 3, random.integers(0, 3, 200)
    histogram = dp.Histogram("value", range(4))
    made = (person, random.integers(0, 4, 600), bins[person].astype(float), ((histogram,),))
    kind = Kind("bins", *made)
    found = np.bincount(many_partitions.people_of_bins(kind).partition, minlength=12)
    pairs = zip(kind.person.tolist(), kind.partition.tolist(), strict=True)
    cells = [bins[who] * 4 + at for who, at in set(pairs)]
    assert found.tolist() == np.bincount(cells, minlength=12).tolist()
    # At epsilon 50 noise of 30 in all has a chance below 1e-30.
    [line] = many_partitions.lines(kind, 50.0, False, 3)
    assert line.counts and 0 <= line.ours < 0.1 and line.cells >= 0.5
    monkeypatch.setattr(many_partitions, "noise_of", lambda *_: lambda *of: np.zeros(of[-1]))
    assert many_partitions.expert(kind, (histogram,), 1.0, False) == pytest.approx([0], abs=1e-9)

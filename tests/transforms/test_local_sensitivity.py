"""Tests of `LocalSensitivity`."""

import math

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.mechanisms import sensitivity
from tests.hostile import support


def audited(f, histograms, **options):
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        rows = pipeline | beam.Create(histograms) | dp.LocalSensitivity(f, **options)
        found = support.keep(rows)
    return {tuple(row.histogram): row.sensitivity for row in found}


def total(x):
    return int(x.sum())


def enormous(x):
    return 10**5000 * int(x[0])


def pair(x):
    return [int(x[0]) ** 2, 3 * int(x[-1])]


def present(x):
    return int(x[0] >= 1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("f", [total, pair, present])
@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_it_is_the_local_sensitivity_of_every_histogram(f, p):
    histograms = list(sensitivity.histograms(3, 4))
    found = audited(f, histograms, p=p)
    assert found == {x: float(sensitivity.local_sensitivity(f, x, p)) for x in histograms}


def test_it_looks_backwards_where_the_gradient_is_zero():
    assert audited(present, [(1,), (0,), (5,)]) == {(1,): 1.0, (0,): 1.0, (5,): 0.0}


def test_equal_histograms_are_one_and_nothing_is_too_large():
    assert audited(total, [(1, 2), [1, 2], ()]) == {(1, 2): 1.0}
    assert audited(enormous, [(1,)]) == {(1,): math.inf}


@pytest.mark.parametrize(
    ("options", "message"),
    [({"f": 3}, "f must be"), ({"f": total, "p": 0.5}, "p must be"), ({"f": total, "p": "x"}, "p")],
)
def test_wrong_calls_are_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        dp.LocalSensitivity(**options)

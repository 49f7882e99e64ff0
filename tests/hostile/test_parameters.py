"""Parameters at their edges are refused when the pipeline is built, or work: none fails later."""

from fractions import Fraction

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

import beam_dp as dp
from beam_dp.mechanisms.candidates.candidates import RoundedGrid

HUGE = dp.Candidates.linear(0, 2**100, 1)
LEAST, MOST = Fraction(1, 1 << 200), Fraction(1 << 200)
REFUSED = {
    "places of a median": (lambda: dp.Median("v", candidates=HUGE), "Median: candidates must be fe"),
    "places of votes": (lambda: dp.BlackBox("v", len, candidates=HUGE), "BlackBox: candidates must"),
    "a tiny p": (lambda: dp.Quantile("v", 1e-300), "p must be a fraction with a denominator of at mo"),
    "far from all": (lambda: dp.Preprocessed("v", "mean", empty=1e300), "empty must be from -2^200"),
    "too fine": (lambda: dp.Preprocessed("v", "mean", sensitivity=1e-300), "must be above 0 (from 2^-200 to 2^20"),
}  # fmt: skip
FINE = {
    "p of 30 digits": dp.Quantile("v", 1e-30),
    "nearly everything trimmed": dp.TrimmedMean("v", trim=Fraction(1, 2) - Fraction(1, 10**30)),
    "the finest grid": dp.Preprocessed("v", "median", empty=MOST, unit=LEAST, sensitivity=LEAST),
    "the coarsest grid": dp.Preprocessed("v", "mean", empty=-MOST, unit=1e50, sensitivity=LEAST),
    "a large mirror": dp.Min("v", candidates=RoundedGrid(1, 2**63, 52)),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_what_could_not_be_drawn_is_refused(make, message):
    with pytest.raises(ValueError, match="must be") as refused:
        make()
    assert message in str(refused.value)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("metric", FINE.values(), ids=FINE)
def test_what_is_taken_is_drawn(metric):
    """In seconds, whatever comes out; the data do not matter."""
    with beam.Pipeline("FnApiRunner") as pipeline:
        rows = pipeline | beam.Create([beam.Row(p=str(n), v=float(n)) for n in range(20)])
        found = rows | dp.PrivateAggregate("p", [metric], dp.Budget(1.0))
        assert_that(found | beam.combiners.Count.Globally(), equal_to([1]))

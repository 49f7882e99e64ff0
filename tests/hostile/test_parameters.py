"""Parameters at their edges are refused when the pipeline is built, or work: none fails later."""

from fractions import Fraction

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that, equal_to

import beam_dp as dp
from beam_dp.mechanisms.preprocessing.means import Windows
from beam_dp.mechanisms.profiles import from_summaries
from beam_dp.mechanisms.search.ranks.central import CentralSearch

HUGE = dp.Candidates.linear(0, 2**100, 1)
LEAST, MOST = Fraction(1, 1 << 200), Fraction(1 << 200)
REFUSED = {
    "places of a median": (lambda: dp.Median("v", candidates=HUGE), "Median: candidates must be fe"),
    "places of a quantile": (lambda: dp.Quantile("v", 0.1, candidates=HUGE), "Quantile: candidates"),
    "places of votes": (lambda: dp.BlackBox("v", len, candidates=HUGE), "BlackBox: candidates must"),
    "a tiny p": (lambda: dp.Quantile("v", 1e-300), "p must be a fraction with a denominator of at mo"),
    "a fine p": (lambda: CentralSearch(dp.Budget(1), Fraction(1, 3**99)), "CentralSearch: p must be a frac"),
    "far from all": (lambda: dp.Preprocessed("v", "mean", empty=1e300), "empty must be from -2^200"),
    "too fine": (lambda: dp.Preprocessed("v", "mean", sensitivity=1e-300), "must be above 0 (from 2^-200 to 2^20"),
    "too coarse": (lambda: dp.Preprocessed("v", "mean", sensitivity=1e300), "must be above 0 (from 2^-200 to 2^2"),
}  # fmt: skip
FINE = {
    "p of 30 digits": dp.Quantile("v", 1e-30),
    "nearly everything trimmed": dp.TrimmedMean("v", trim=Fraction(1, 2) - Fraction(1, 10**30)),
    "the finest grid": dp.Preprocessed("v", "median", empty=MOST, unit=LEAST, sensitivity=LEAST),
    "the coarsest grid": dp.Preprocessed("v", "mean", empty=-MOST, unit=1e50, sensitivity=LEAST),
    "a large mirror": dp.Min("v", candidates=dp.Candidates.rounded(2**63, 52)),
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


@pytest.mark.parametrize("trim", [0.12345678901234567, 1e-30, Fraction(10**40 - 1, 2 * 10**40)])
def test_cuts_of_windows_are_exact_for_every_trim(trim):
    """The product of a size and a numerator of 17 digits does not fit int64 from 747 people on."""
    share = Fraction(repr(trim)) if isinstance(trim, float) else trim
    windows = Windows(np.arange(2000), 1, share)
    sizes = np.arange(1, 2001)
    assert windows.cuts(sizes).tolist() == [int(size * share) for size in range(1, 2001)]
    assert windows.cuts(np.array(2000)) == int(2000 * share)


@pytest.mark.parametrize("unit", [Fraction(1), Fraction(1, 100), Fraction(7, 2)])
def test_units_are_scaled_one_by_one(unit):
    whole = 3**50
    units = [whole, whole, whole + 1, Fraction(1, 3), 0, 0, 0]
    expected = [v * unit.numerator / unit.denominator for v in units]
    assert [float(v) for v in from_summaries.scaled(units, unit)] == [float(v) for v in expected]


def test_a_long_profile_of_few_values_is_looked_up_like_any_other():
    values = [7, 7.0, Fraction(7), 6, 5, 5, *[0] * 1000, *[-np.inf] * 3]
    candidates = dp.Candidates.linear(0, 10, 2)
    profile = dp.Profile(values)
    assert profile.steps(candidates) == [candidates.index(value) for value in values]
    for wrong in ([0, 0, 1], [1, float("nan"), 0], [*[float("nan")] * 2], [0, -1, -0.5]):
        with pytest.raises(ValueError, match="do not increase"):
            dp.Profile(wrong)

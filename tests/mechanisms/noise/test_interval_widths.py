"""The error bounds are compared with sums over the probability mass functions."""

import decimal
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.noise.interval_widths import gaussian_bound, laplace_bound

TWENTIETH = Fraction(1, 20)


def smallest(mass, alpha):
    """Return the smallest t with P(|X| > t) <= alpha; mass[k] is P(|X| = k), all of it."""
    inside = np.cumsum(np.array(mass) / sum(mass))
    return int(np.flatnonzero(1 - inside <= alpha)[0])


@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("alpha", [0.9, 0.05, 1e-9])
def test_laplace_bound_is_the_smallest(rate, alpha):
    with decimal.localcontext(decimal.Context(prec=60)):
        q = (decimal.Decimal(-rate.numerator) / rate.denominator).exp()
        mass = [(1 if k == 0 else 2) * q**k for k in range(3000)]
    assert laplace_bound(rate, Fraction(alpha)) == smallest(mass, alpha)


def gaussian_mass(variance):
    return [(1 if k == 0 else 2) * np.exp(-k * k / (2 * variance)) for k in range(1000)]


@pytest.mark.parametrize("variance", [0.01, 1.0, 7.0, 2000.0])
@pytest.mark.parametrize("alpha", [0.9, 0.05, 1e-9])
def test_gaussian_bound_holds_and_is_at_most_one_too_large(variance, alpha):
    truth = smallest(gaussian_mass(variance), alpha)
    assert truth <= gaussian_bound(Fraction(variance), Fraction(alpha)) <= truth + 1


def test_bounds_at_the_ends():
    assert laplace_bound(10**30, TWENTIETH) == 0
    assert laplace_bound(Fraction(1, 2**90), TWENTIETH) > 2**91
    assert laplace_bound(1, Fraction(1, 10**300)) in (690, 691)
    assert gaussian_bound(Fraction(1, 10**30), TWENTIETH) == 1
    assert 1.9599 * 2**90 < gaussian_bound(2**180, TWENTIETH) < 1.96 * 2**90
    assert gaussian_bound(1, Fraction(1, 10**300)) == 38  # Phi(-37.04) is half of it

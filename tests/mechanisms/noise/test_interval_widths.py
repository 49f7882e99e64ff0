"""The error bounds are compared with sums over the probability mass functions."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.noise.interval_widths import gaussian_bound, laplace_bound

PI = Fraction(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803"
)


def smallest(mass, alpha):
    """Return the smallest t with P(|X| > t) <= alpha; mass[k] is P(|X| = k), all of it."""
    inside = np.cumsum(np.array(mass) / sum(mass))
    return int(np.flatnonzero(1 - inside <= alpha)[0])


@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("alpha", [0.9, 0.5, 0.05, 1e-4, 1e-9])
def test_laplace_bound_is_the_smallest(rate, alpha):
    with decimal.localcontext(decimal.Context(prec=60)):
        q = (decimal.Decimal(-rate.numerator) / rate.denominator).exp()
        mass = [(1 if k == 0 else 2) * q**k for k in range(3000)]
    assert laplace_bound(rate, alpha) == smallest(mass, alpha)


def gaussian_mass(variance):
    return [(1 if k == 0 else 2) * np.exp(-k * k / (2 * variance)) for k in range(1000)]


@pytest.mark.parametrize("variance", [0.01, 0.3, 1.0, 7.0, 400.0, 2000.0])
@pytest.mark.parametrize("alpha", [0.9, 0.5, 0.05, 1e-4, 1e-9])
def test_gaussian_bound_holds_and_is_at_most_one_too_large(variance, alpha):
    truth = smallest(gaussian_mass(variance), alpha)
    assert truth <= gaussian_bound(variance, alpha) <= truth + 1


def test_bounds_at_the_ends():
    assert laplace_bound(10**30, 0.05) == 0
    assert laplace_bound(Fraction(1, 2**90), 0.05) > 2**91
    assert laplace_bound(1, Fraction(1, 10**300)) in (690, 691)
    assert gaussian_bound(Fraction(1, 10**30), 0.05) == 1
    assert 1.9599 * 2**90 < gaussian_bound(2**180, 0.05) < 1.96 * 2**90
    assert gaussian_bound(1, Fraction(1, 10**300)) == 38  # Phi(-37.04) is half of it


@pytest.mark.parametrize("bound", [laplace_bound, gaussian_bound])
@pytest.mark.parametrize("amount, alpha", [(0, 0.5), (-1, 0.5), (1, 0), (1, 1), (1, float("nan"))])
def test_parameters_out_of_range_are_refused(bound, amount, alpha):
    with pytest.raises(ValueError, match=f"{bound.__wrapped__.__name__}: "):
        bound(amount, alpha)


def alternating_cdf(d, variance):
    """Return Phi(d / sqrt(variance)) for |z| <= 12 by the alternating series of erf.

    At 150 digits the largest term, about e^72, leaves more than 100 digits.
    """
    with decimal.localcontext(decimal.Context(prec=150)) as context:
        z = decimal.Decimal(d) / context.sqrt(
            decimal.Decimal(variance.numerator) / decimal.Decimal(variance.denominator)
        )
        term, total = z, z
        for k in range(1, 700):
            term = -term * z * z / (2 * k)
            total += term / (2 * k + 1)
        root = context.sqrt(2 * decimal.Decimal(PI.numerator) / decimal.Decimal(PI.denominator))
        return Fraction(1, 2) + Fraction(total / root)


@pytest.mark.parametrize("variance", [Fraction(1, 7), Fraction(400), Fraction(10**12, 3)])
@pytest.mark.parametrize("alpha", [1 - 1e-15, 0.7, 0.05, 1e-3, 1e-9, 1e-27])
def test_gaussian_bound_is_proved_by_the_series(variance, alpha) -> None:
    bound, near = gaussian_bound(variance, alpha), math.isqrt(math.floor(variance))
    assert alternating_cdf(-bound, variance) <= Fraction(alpha) / 2
    before = bound - 1 - math.ceil(near * 2e-9)
    assert before <= 0 or alternating_cdf(-before, variance) > Fraction(alpha) / 2

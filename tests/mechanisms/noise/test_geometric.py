"""Given one uniform to any number of bits, the floor of the exact quotient comes out."""

import decimal
import math
import secrets
from fractions import Fraction

import pytest

from beam_dp.mechanisms.noise import sampling

RATES = [
    *(Fraction(1, 1000), Fraction(7, 10), Fraction(12345, 678), Fraction(44)),
    *(Fraction(1, 2**90), Fraction(10**40 + 1, 3 * 10**41), Fraction(600)),
]


def real(fraction):
    return decimal.Decimal(fraction.numerator) / decimal.Decimal(fraction.denominator)


def fixed(value):
    """Return the uniform that is the rational `value`."""

    def uniform(bits):
        low = math.floor(value * 2**bits)
        return Fraction(low, 2**bits), Fraction(low + 1, 2**bits)

    return uniform


def expected(value, rate):
    """Return floor(ln U / -h) with 400 digits, h = -ln(1 - e^-rate)."""
    with decimal.localcontext(decimal.Context(prec=400)):
        hazard = -(1 - (-real(rate)).exp()).ln()
        return int(-real(value).ln() / hazard)


def uniforms():
    """Every leading byte, each with 500 bits behind it; ends of the float range as well."""
    tails = [Fraction(2 * secrets.randbits(500) + 1, 2**501) for _ in range(64)]
    spread = [(4 * byte + tail) / 256 for byte, tail in enumerate(tails)]
    ends = [tails[0] / 2**30, tails[1] / 2**100, 1 - tails[2] / 2**30, 1 - tails[3] / 2**100]
    return spread + ends


@pytest.mark.sampled(10)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("limit", [1, 2**64, 2**200])
def test_first_success_is_the_floor_of_the_exact_quotient_up_to_the_limit(rate, limit):
    for value in uniforms()[::6]:
        truth = min(expected(value, rate), limit)
        assert sampling.first_success(fixed(value), rate, limit) == truth


def near(rate, k, offset):
    """Return a rational within 10^-150 of (1 - e^-rate)^k (1 + offset)."""
    with decimal.localcontext(decimal.Context(prec=160)):
        return Fraction((1 - (-real(rate)).exp()) ** k) * (1 + offset)


@pytest.mark.parametrize("rate", [Fraction(1, 5), Fraction(7, 10), Fraction(2)])
@pytest.mark.parametrize("offset", [2**-20, Fraction(1, 2**60), Fraction(1, 10**100)])
def test_next_to_an_integer_the_answer_is_exact(rate, offset):
    # G >= k iff U <= e^(-h k); a sampler in floats cannot tell the two sides apart.
    offset = Fraction(offset)
    for k in (1, 3, 6):
        below, above = (fixed(near(rate, k, sign * offset)) for sign in (-1, 1))
        assert sampling.first_success(below, rate, 2**64) == k
        assert sampling.first_success(above, rate, 2**64) == k - 1


def test_enormous_rates_reach_the_limit():
    for rate in (Fraction(10**30), Fraction(10**400)):
        assert sampling.first_success(fixed(Fraction(1, 3)), rate, 2**70) == 2**70

"""The enclosures are compared with rational series and constants computed another way."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.numerics.enclosures import (
    QUICK_BITS,
    exp_interval,
    leading_bits,
    log_interval,
)

REALS = [Fraction(n, d) for n in (1, 2, 7, 99, 10**20 + 39) for d in (1, 3, 64, 10**19 + 7, 10**25)]
SMALL = [x for x in REALS if x < 40]
BITS = [30, 64, 65, 200]


def taylor_exp(x):
    """Return rationals around e^x, |x| <= 40: its power series, in steps of 2^-700."""
    one = 1 << 700
    step = math.floor(abs(x) * one), math.ceil(abs(x) * one)
    low = high = low_term = high_term = one
    for k in range(1, 400):
        low_term = low_term * step[0] // (k * one)
        high_term = -(-high_term * step[1] // (k * one))
        low, high = low + low_term, high + high_term
    high += 2 * high_term  # all later ratios are below 40 / 400
    around = Fraction(low, one), Fraction(high, one)
    return around if x >= 0 else (1 / around[1], 1 / around[0])


def holds(interval, low, high, bits):
    return (
        interval[0] <= low
        and high <= interval[1]
        and interval[1] - interval[0] <= Fraction(1, 2**bits)
    )


@pytest.mark.parametrize("bits", [QUICK_BITS, *BITS[:-1]])
def test_exp_interval_holds_the_series(bits):
    for x in SMALL:
        for signed in (x, -x):
            assert holds(exp_interval(signed, bits), *taylor_exp(signed), bits), signed


def test_exp_interval_at_the_ends():
    assert exp_interval(Fraction(0), 64) == (1, 1)
    assert exp_interval(Fraction(-(10**30)), 64) == (0, Fraction(1, 2**64))
    assert exp_interval(Fraction(-(10**5000), 3), 64) == (0, Fraction(1, 2**64))
    low, high = exp_interval(Fraction(-1, 10**5000), 64)
    assert low < high == 1
    assert exp_interval(Fraction(1, 2**65), 64) == (1, 1 + Fraction(1, 2**64))
    low, high = exp_interval(Fraction(1000), 64)
    assert low > 2**1442 and high - low <= Fraction(1, 2**64)


def test_intervals_of_all_precisions_agree():
    for x in SMALL:
        fine = exp_interval(-x, 500)
        for bits in range(1, 200, 7):
            low, high = exp_interval(-x, bits)
            assert low <= fine[1] and fine[0] <= high


@pytest.mark.parametrize("bits", BITS)
def test_log_interval_inverts_the_series(bits):
    for x in [*SMALL, Fraction(2**60 - 1, 2**60), Fraction(1, 10**15)]:
        low, high = log_interval(x, bits)
        assert high - low <= Fraction(1, 2**bits)
        assert taylor_exp(low)[0] <= x <= taylor_exp(high)[1], x


def test_log_of_huge_and_tiny_numbers():
    low, high = log_interval(Fraction(2**100_000), 64)
    two = log_interval(Fraction(2), 128)
    assert low <= 100_000 * two[1] and 100_000 * two[0] <= high
    low, high = log_interval(Fraction(1, 2**100_000), 64)
    assert low <= -100_000 * two[0] and -100_000 * two[1] <= high


def test_leading_bits_are_those_of_the_known_digits():
    # The digits of 1 / e.
    known = Fraction("0.36787944117144232159552377016146086744581113103176783450783680169746149574")
    for count in (0, 1, 16, 64, 200):
        bits = leading_bits(lambda bits: exp_interval(Fraction(-1), bits), count)
        assert bits == math.floor(known * 2**count)


def test_leading_bits_refine_until_the_floor_is_certain():
    # 1/2 - 2^-300: every interval coarser than that holds 1/2 as well.
    truth = Fraction(1, 2) - Fraction(1, 2**300)

    def bound(bits):
        return truth - Fraction(1, 4 * 2**bits), truth + Fraction(1, 4 * 2**bits)

    assert leading_bits(bound, 16) == 2**15 - 1


def test_the_users_decimal_context_neither_matters_nor_changes():
    expected = exp_interval(Fraction(-1, 3), 64), log_interval(Fraction(1, 3), 64)
    with decimal.localcontext(decimal.Context(prec=2, rounding=decimal.ROUND_UP)) as context:
        context.traps[decimal.Inexact] = True
        assert (exp_interval(Fraction(-1, 3), 64), log_interval(Fraction(1, 3), 64)) == expected
        assert not context.flags[decimal.Inexact]


def test_the_platforms_functions_are_as_right_as_the_quick_answers_assume():
    # The samplers assume 2^-21 of numpy's exp, 2^-40 of the others.
    tolerance = Fraction(1, 2**41)
    for x in (Fraction(k, 37) for k in range(1, 900, 3)):
        low, high = exp_interval(-x, 80)
        truth = (low + high) / 2
        assert abs(Fraction(math.exp(-x)) - truth) < tolerance
        assert abs(Fraction(float(np.exp(np.float64(-x)))) - truth) < tolerance
        assert abs(Fraction(math.log1p(-math.exp(-x))) / log_interval(1 - truth, 120)[0] - 1) < (
            tolerance
        )
        assert abs(Fraction(math.log(x)) - log_interval(x, 80)[0]) < tolerance

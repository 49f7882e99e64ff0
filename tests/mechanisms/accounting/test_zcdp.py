"""The conversion of zCDP is proved: never below the bound, and equal to it up to rounding."""

import decimal
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_dp.mechanisms.accounting import zcdp

PAIRS = [
    (epsilon, delta)
    for epsilon in (2.0**-50, 0.01, 1, 5, 1000)
    for delta in (1e-300, 1e-6, 0.1, 0.999)
]
EPSILONS = st.floats(2.0**-30, 100)
DELTAS = st.floats(1e-300, 0.99)


def ln(value: float) -> Decimal:
    return Decimal(value).ln(decimal.Context(prec=60))


def log_delta(rho: Fraction, epsilon: Fraction, alpha: Decimal) -> Decimal:
    """The bound as it is printed in Corollary 13, in 60 digits."""
    with decimal.localcontext(prec=60):
        exact = [Decimal(x.numerator) / Decimal(x.denominator) for x in (rho, epsilon)]
        exponent = (alpha - 1) * (alpha * exact[0] - exact[1])
        return exponent - (alpha - 1).ln() + alpha * (1 - 1 / alpha).ln()


def best_log_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """The least of `log_delta` over alpha: where (2 alpha - 1) rho - epsilon + ln(1 - 1/alpha),
    its derivative, which increases, is 0; by bisection to 25 digits, so the least to 50."""
    with decimal.localcontext(prec=60):
        exact = [Decimal(x.numerator) / Decimal(x.denominator) for x in (rho, epsilon)]
        low, high = Decimal("1e-20"), Decimal("1e39")
        for _ in range(95):
            b = (low * high).sqrt()
            rises = (1 + 2 * b) * exact[0] - exact[1] + (b / (1 + b)).ln() > 0
            low, high = (low, b) if rises else (b, high)
        return log_delta(rho, epsilon, 1 + low)


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_rho_is_proved_and_the_largest(epsilon: float, delta: float) -> None:
    rho = zcdp.zcdp_rho(Fraction(epsilon), Fraction(delta))
    target = ln(delta)
    assert best_log_delta(rho, Fraction(epsilon)) <= target
    more = Fraction(1, 2**60) if epsilon == 1 else Fraction(1, 10**12)
    assert best_log_delta(rho * (1 + more), Fraction(epsilon)) > target


@settings(max_examples=15, deadline=None)
@given(epsilon=EPSILONS, delta=DELTAS)
def test_rho_is_within_the_budget(epsilon: float, delta: float) -> None:
    rho = zcdp.zcdp_rho(Fraction(epsilon), Fraction(delta))
    assert best_log_delta(rho, Fraction(epsilon)) <= ln(delta)


@given(value=st.fractions(Fraction(1, 10**40), 10**40))
def test_rounding_goes_down_by_less_than_one_part_in_2_to_126(value: Fraction) -> None:
    rounded = zcdp._round_down(value)
    assert value * (1 - Fraction(1, 2**126)) < rounded <= value


def test_extremes_stay_inside_their_ranges() -> None:
    assert 0 < zcdp.zcdp_rho(Fraction(1e-15), Fraction(1, 10**1000)) < 1e-30
    assert 0 < zcdp.zcdp_rho(Fraction(10**400), 1 - Fraction(1, 10**50))

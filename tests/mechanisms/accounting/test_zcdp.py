"""The conversion of zCDP is proved: never below the bound, and equal to it up to rounding."""

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_dp.mechanisms.accounting import zcdp

PAIRS = [
    (epsilon, delta)
    for epsilon in (2.0**-50, 1e-6, 0.01, 0.1, 1, 5, 50, 1000)
    for delta in (1e-300, 1e-12, 1e-6, 0.1, 0.5, 0.999)
]
EPSILONS = st.floats(2.0**-30, 100)
RHOS = st.floats(1e-9, 100)
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


@settings(max_examples=40, deadline=None)
@given(rho=RHOS, delta=DELTAS)
def test_epsilon_is_proved_and_tight(rho: float, delta: float) -> None:
    epsilon = zcdp.zcdp_epsilon(rho, delta)
    assert best_log_delta(Fraction(rho), Fraction(epsilon)) <= ln(delta)
    if epsilon > 1e-9:
        less = Fraction(epsilon) - Fraction(1, 10**12) * (1 + Fraction(epsilon))
        assert less < 0 or best_log_delta(Fraction(rho), less) > ln(delta)


@pytest.mark.sampled(17)
@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_rho_is_proved_and_the_largest(epsilon: float, delta: float) -> None:
    rho = zcdp.zcdp_rho(epsilon, delta)
    target = ln(delta)
    assert best_log_delta(rho, Fraction(epsilon)) <= target
    assert best_log_delta(rho * (1 + Fraction(1, 10**12)), Fraction(epsilon)) > target


@settings(max_examples=40, deadline=None)
@given(epsilon=EPSILONS, delta=DELTAS)
def test_rho_converts_back_within_the_budget(epsilon: float, delta: float) -> None:
    rho = zcdp.zcdp_rho(epsilon, delta)
    assert best_log_delta(rho, Fraction(epsilon)) <= ln(delta)
    assert zcdp.zcdp_epsilon(rho, delta) <= epsilon + 1e-12 * (1 + epsilon)


def test_rho_rounded_up_would_break_the_bound() -> None:
    rho = zcdp.zcdp_rho(1, 1e-6)
    assert rho.denominator < 2**160
    assert best_log_delta(rho * (1 + Fraction(1, 2**60)), Fraction(1)) > ln(1e-6)


@given(value=st.fractions(Fraction(1, 10**40), 10**40))
def test_rounding_goes_down_by_less_than_one_part_in_2_to_126(value: Fraction) -> None:
    rounded = zcdp._round_down(value)
    assert value * (1 - Fraction(1, 2**126)) < rounded <= value


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.1, 0.5, 2])
def test_agrees_with_the_accountant_of_google(rho: float) -> None:
    from dp_accounting.rdp import rdp_privacy_accountant as accountant

    # At very small orders it uses another bound too (by the KL divergence), left out here.
    orders = [1.02 * 1.002**k for k in range(7000)]
    curve = [rho * order for order in orders]
    for delta in (1e-12, 1e-6, 1e-3):
        theirs, _ = accountant.compute_epsilon(orders, curve, delta)
        ours = zcdp.zcdp_epsilon(rho, delta)
        assert theirs * (1 - 1e-5) <= ours <= theirs * (1 + 1e-9)


def test_extremes_stay_inside_their_ranges() -> None:
    assert zcdp.zcdp_epsilon(1e-300, 0.5) == 0.0
    assert zcdp.zcdp_epsilon(10**400, 0.5) == math.inf
    assert zcdp.zcdp_epsilon(0.5, Fraction(1, 10**1000)) > 47
    assert 0 < zcdp.zcdp_rho(1e-15, Fraction(1, 10**1000)) < 1e-30
    assert 0 < zcdp.zcdp_rho(10**400, 1 - Fraction(1, 10**50))


@pytest.mark.parametrize("function", [zcdp.zcdp_epsilon, zcdp.zcdp_rho])
@pytest.mark.parametrize("bad", [0, -1, -0.0, math.nan, math.inf, True, "1", None, 1j])
def test_parameters_out_of_range_are_refused(function: object, bad: object) -> None:
    assert callable(function)
    for arguments in ((bad, 0.5), (0.5, bad)):
        with pytest.raises((ValueError, TypeError), match=r"^zcdp_\w+: \w+ must be"):
            function(*arguments)


@pytest.mark.parametrize("function", [zcdp.zcdp_epsilon, zcdp.zcdp_rho])
def test_delta_of_one_is_refused(function: object) -> None:
    assert callable(function)
    with pytest.raises(ValueError, match="delta must be above 0 and below 1, not 1"):
        function(0.5, 1)

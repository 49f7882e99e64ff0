"""Turn (epsilon, delta) into zero-concentrated differential privacy, by a proved bound.

A release that is rho-zCDP is (epsilon, delta)-DP for every order alpha = 1 + b, b > 0, with

    ln delta = b (alpha rho - epsilon) + b ln(b / alpha) - ln alpha

(Canonne, Kamath, Steinke 2020, arXiv 2004.00010, Proposition 12 with the Renyi bound
alpha rho of zCDP; (1 - 1/alpha)^alpha / (alpha - 1) is written as (b/alpha)^b / alpha).
The order need not be the best one for the bound to hold. So the best order is looked for in
floats, where an error costs a little tightness only; the bound itself is evaluated at that
order (a float is a rational) in exact rationals, with each logarithm replaced by the
worse end of an interval that holds it, 2^-256 wide.

The best order is the one zero of an increasing function of b:
    b^2 r(b) + ln(1 + b) + ln delta = 0,   r(b) = (epsilon + ln(1 + 1/b)) / (1 + 2b)
(the derivative in b of rho; r(b) is the rho at which the derivative of ln delta is 0, which is free
of the cancellation in the bound).
"""

import math
from fractions import Fraction

from beam_dp.mechanisms.numerics.enclosures import last_where, log_interval

# Orders from 1 + 2^-64 to 1 + 2^128. The error of a logarithm is at most 2^-128 when multiplied by
# b and 2^-192 when divided by b, which is little against a rho of 2^-120.
_LOWEST, _HIGHEST = -64.0, 128.0
_LOG_BITS = 256


def zcdp_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho whose conversion is within (epsilon, delta), rounded down.

    Every rho-zCDP release with this rho is (epsilon, delta)-DP: the bound, solved for rho,
    with the lower end for every logarithm, holds for the returned rational itself.

    Edge cases: the result is within one part in 10^12 of the largest for epsilon from
    2^-50 to 2^50 and delta from 1e-300 to 1 - 1e-15, and still proved outside of them.

    Args:
        epsilon: above 0.
        delta: above 0 and below 1.

    Source: Canonne, Kamath, Steinke 2020, arXiv 2004.00010, Proposition 12.
    """
    log_target = _ln_below(delta)
    floats = float(min(epsilon, Fraction(2**500))), float(log_target)

    def slope(b: float) -> float:
        rho = (floats[0] + math.log1p(1 / b)) / (1 + 2 * b)
        return b * rho * b + math.log1p(b) + floats[1]

    b = Fraction(2.0 ** last_where(lambda power: slope(2.0**power) < 0, _LOWEST, _HIGHEST))
    # ln delta >= b ((1 + b) rho - epsilon) - b ln(1 + 1/b) - ln(1 + b), solved for rho: a smaller
    # value of any of the three logarithms gives a smaller rho.
    slack = (log_target + _ln_below(1 + b)) / b + _ln_below(1 + 1 / b)
    return _round_down((epsilon + slack) / (1 + b))


def _ln_below(value: Fraction) -> Fraction:
    return log_interval(value, _LOG_BITS)[0]


def _round_down(value: Fraction) -> Fraction:
    """Return a rational of about 128 significant bits, not above `value` > 0."""
    bits = 128 + value.denominator.bit_length() - value.numerator.bit_length()
    scale = Fraction(2) ** bits
    return math.floor(value * scale) / scale

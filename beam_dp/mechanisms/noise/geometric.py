"""Find the first success of many independent trials from one uniform real, exactly.

floor(E / h) with E = -ln U has P(floor(E / h) >= k) = P(U <= e^(-h k)) = e^(-h k): it is the
number of failures before the first success where every trial fails with probability e^-h.
The uniform is read bit by bit until the floor is certain, so no rounding error can reach it.
"""

import math
from fractions import Fraction

from beam_dp.mechanisms.numerics.intervals import Bound, Interval, exp_interval, log_interval

# The float quotient is trusted to 2^-30 of itself, in a range where nothing under- or overflows.
# In it the 64 bits of U, and all roundings, move the quotient by less than 2^-36 of itself, as long
# as exp, log, expm1 and log1p are right to 2^-40. Elsewhere, and next to an integer, the exact
# intervals decide.
BAND = 2.0**-30
UNIFORMS = (2.0**-24, 1 - 2.0**-16)
RATES = (Fraction(1, 1 << 500), 500)


def first_success(uniform: Bound, rate: Fraction, limit: int) -> int:
    """Return min(G, limit), P(G >= n) = (1 - e^-rate)^n, for rate > 0 and limit >= 0.

    Args:
        uniform: bits -> (low, high), low <= U < high, at most 2^-bits apart; later calls
            refine the same U.
        rate: minus the logarithm of the chance of success of one trial.
        limit: as large as one likes; the time grows with its length in bits only.
    """
    quick = _quick(uniform, rate, limit)
    return _exact(uniform, rate, limit) if quick is None else quick


def leading_zeros(rate: Fraction) -> int:
    """Return some n >= 0 with 2^n rate >= 1, the smallest or one more."""
    return max(0, rate.denominator.bit_length() - rate.numerator.bit_length() + 1)


def _quick(uniform: Bound, rate: Fraction, limit: int) -> int | None:
    """Return min(floor(E / h), limit) if floats make it certain, None otherwise."""
    u = float(uniform(64)[0])
    if not (UNIFORMS[0] < u < UNIFORMS[1] and RATES[0] < rate < RATES[1]):
        return None
    quotient = -math.log(u) / _float_hazard(rate)
    fewest = min(math.floor(quotient * (1 - BAND)), limit)
    most = min(math.floor(quotient * (1 + BAND)), limit)
    return fewest if fewest == most else None


def _exact(uniform: Bound, rate: Fraction, limit: int) -> int:
    """Return min(floor(E / h), limit), refining U and h until both ends agree."""
    # G <= limit is known to less than 1 once the chance p is known to within p 2^-64 / limit.
    depth = min(limit.bit_length(), 3 * math.ceil(rate) // 2)
    bits = 64 + 2 * depth + leading_zeros(rate)
    while True:
        low, high = uniform(bits)
        slowest, fastest = _hazard(rate, bits)
        fewest, most = 0, limit
        if low > 0:
            # ln low <= ln U < ln high = ln low + ln(1 + (high - low) / low)
            #                        <= ln low + (high - low) / low
            log_low, log_high = log_interval(low, bits)
            fewest = max(0, _floor_ratio(-log_high - (high - low) / low, fastest))
            most = _floor_ratio(-log_low, slowest) if slowest > 0 else limit
        if min(fewest, limit) == min(most, limit):
            return min(most, limit)
        bits *= 2


def _floor_ratio(top: Fraction, bottom: Fraction) -> int:
    """Return floor(top / bottom), bottom > 0, without reducing the fraction."""
    return top.numerator * bottom.denominator // (top.denominator * bottom.numerator)


def _hazard(rate: Fraction, bits: int) -> Interval:
    """Enclose -ln(1 - e^-rate).

    With bits >= leading_zeros(rate) + 2 the upper end of e^-rate stays below 1.
    """
    low, high = exp_interval(-rate, bits)
    return -log_interval(1 - low, bits)[1], -log_interval(1 - high, bits)[0]


def _float_hazard(rate: Fraction) -> float:
    """Return -ln(1 - e^-rate) to a few units in the last place, on either side of ln 2."""
    x = float(rate)
    return -math.log(-math.expm1(-x)) if x < 0.7 else -math.log1p(-math.exp(-x))

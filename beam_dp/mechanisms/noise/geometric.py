"""Find the first success of many independent trials from one uniform real, exactly.

floor(E / h) with E = -ln U has P(floor(E / h) >= k) = P(U <= e^(-h k)) = e^(-h k): it is the
number of failures before the first success where every trial fails with probability e^-h.
The uniform is read bit by bit until the floor is certain, so no rounding error can reach it.
"""

import math
from fractions import Fraction

from beam_dp.mechanisms.numerics.enclosures import Bound, Interval, exp_interval, log_interval


def first_success(uniform: Bound, rate: Fraction, limit: int) -> int:
    """Return min(G, limit), P(G >= n) = (1 - e^-rate)^n, for rate > 0 and limit >= 0.

    Args:
        uniform: bits -> (low, high), low <= U < high, at most 2^-bits apart; later calls
            refine the same U.
        rate: minus the logarithm of the chance of success of one trial.
        limit: as large as one likes; the time grows with its length in bits only.
    """
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


def leading_zeros(rate: Fraction) -> int:
    """Return some n >= 0 with 2^n rate >= 1, the smallest or one more."""
    return max(0, rate.denominator.bit_length() - rate.numerator.bit_length() + 1)


def _floor_ratio(top: Fraction, bottom: Fraction) -> int:
    """Return floor(top / bottom), bottom > 0, without reducing the fraction."""
    return top.numerator * bottom.denominator // (top.denominator * bottom.numerator)


def _hazard(rate: Fraction, bits: int) -> Interval:
    """Enclose -ln(1 - e^-rate).

    With bits >= leading_zeros(rate) + 2 the upper end of e^-rate stays below 1.
    """
    low, high = exp_interval(-rate, bits)
    return -log_interval(1 - low, bits)[1], -log_interval(1 - high, bits)[0]

"""Tail bounds of noise: the intervals beside the released numbers.

They follow from parameters alone, so they cost no budget.
"""

import functools
import math
from fractions import Fraction
from statistics import NormalDist

from beam_dp.mechanisms.numerics.enclosures import (
    Interval,
    exp_interval,
    leading_bits,
    log_interval,
)

_LEAST = 1e-300  # of a normal quantile in floats
_ABOVE = 1e-9  # far above the rounding of floats


@functools.lru_cache(maxsize=1024)
def laplace_bound(rate: Fraction, alpha: Fraction) -> int:
    """Return a bound that discrete Laplace noise exceeds with probability alpha at most.

    It is the smallest t with P(|X| > t) <= alpha, where P(X = k) is proportional to
    e^(-rate |k|): exact for every rate > 0 and 0 < alpha < 1, no float is involved.
    """

    # With q = e^-rate, P(X = k) = (1 - q) / (1 + q) q^|k|, so P(|X| > t) = 2 q^(t+1) / (1 + q).
    # That is <= alpha iff t + 1 >= v = ln(2 / (alpha (1 + q))) / rate. v > 0, and v is no integer
    # (2 q^v = alpha (1 + q) would make the transcendental q algebraic), so t = floor(v).
    def threshold(bits: int) -> Interval:
        q_low, q_high = exp_interval(-rate, bits)
        low, _ = log_interval(2 / (alpha * (1 + q_high)), bits)
        _, high = log_interval(2 / (alpha * (1 + q_low)), bits)
        return low / rate, high / rate

    return leading_bits(threshold, 0)


@functools.lru_cache(maxsize=1024)
def gaussian_bound(variance: Fraction, alpha: Fraction) -> int:
    """Return a bound that discrete Gaussian noise exceeds with probability alpha at most.

    P(|X| > t) <= alpha, where P(X = k) is proportional to e^(-k^2 / (2 variance)), for every
    variance > 0 and 0 < alpha < 1. The continuous normal distribution has the bound s with
    2 Phi(-s / sqrt(variance)) = alpha. t is the first integer that is more than 10^-9 of a
    deviation above s.

    Source: Canonne, Kamath, Steinke (2004.00010), tail bound of section 2.
    """
    # For m = t + 1 >= 1: sum_{k >= m} e^(-k^2 / 2v) <= integral from m - 1 of e^(-x^2 / 2v), as the
    # density falls; the sum over all k is at least sqrt(2 pi v) by Poisson summation, whose other
    # terms are positive. The ratio says P(X >= t + 1) <= P(N(0, v) >= t) = Phi(-t / sqrt(v)).
    if alpha >= _LEAST:
        deviations = -NormalDist().inv_cdf(float(alpha / 2))  # right to 2^-50 (Wichura, AS 241)
    else:  # 2 Phi(-z) <= e^(-z^2 / 2)
        logarithm = math.log(alpha.denominator) - math.log(alpha.numerator)
        deviations = math.sqrt(2 * logarithm)
    above = Fraction(deviations + _ABOVE * (1 + deviations))
    return math.isqrt(math.floor(above**2 * variance)) + 1

"""Bound how far noise strays: the intervals beside the released numbers.

They follow from parameters alone, so they cost no budget.
"""

import functools
import math
from fractions import Fraction
from statistics import NormalDist

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.intervals import (
    QUICK_BITS,
    Interval,
    exp_interval,
    leading_bits,
    log_interval,
    normal_cdf_interval,
)

_LEAST, _TRUSTED = 1e-300, 40
"""The least chance whose quantile is asked of floats, and how many bits of that may be right."""


@functools.lru_cache(maxsize=1024)
def laplace_bound(rate: checks.Real, alpha: checks.Real) -> int:
    """Return how far discrete Laplace noise strays, except with probability alpha.

    It is the smallest t with P(|X| > t) <= alpha, where P(X = k) is proportional to
    e^(-rate |k|): exact for every rate > 0 and 0 < alpha < 1, no float is involved.

    Raises:
        ValueError: unless rate > 0 and 0 < alpha < 1.
    """
    rate = checks.fraction_between("laplace_bound", "rate", rate, 0, math.inf)
    alpha = checks.fraction_between("laplace_bound", "alpha", alpha, 0, 1)

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
def gaussian_bound(variance: checks.Real, alpha: checks.Real) -> int:
    """Return how far discrete Gaussian noise strays, except with probability alpha.

    P(|X| > t) <= alpha, where P(X = k) is proportional to e^(-k^2 / (2 variance)): proved for
    every variance > 0 and 0 < alpha < 1. It is the smallest t with
    2 Phi(-t / sqrt(variance)) <= alpha: the bound of the continuous normal distribution.

    Raises:
        ValueError: unless variance > 0 and 0 < alpha < 1.

    Source: Canonne, Kamath, Steinke (2004.00010), tail bound of section 2.
    """
    variance = checks.fraction_between("gaussian_bound", "variance", variance, 0, math.inf)
    alpha = checks.fraction_between("gaussian_bound", "alpha", alpha, 0, 1)
    # For m = t + 1 >= 1: sum_{k >= m} e^(-k^2 / 2v) <= integral from m - 1 of e^(-x^2 / 2v), as the
    # density falls; and sum over all k >= sqrt(2 pi v) by Poisson summation, whose other terms
    # are positive. The ratio says P(X >= t + 1) <= P(N(0, v) >= t) = Phi(-t / sqrt(v)).
    # Floats say where to look, and intervals decide: mostly two of them.
    deviations = Fraction(-NormalDist().inv_cdf(max(float(alpha / 2), _LEAST)))
    near = math.isqrt(math.floor(deviations**2 * variance))
    low, high = max(near - (near >> _TRUSTED) - 1, 0), near + (near >> _TRUSTED) + 1
    if low and _tail_is_at_most(low, variance, alpha / 2):
        low = 0
    while not _tail_is_at_most(high, variance, alpha / 2):
        low, high = high, 2 * high
    while high - low > 1:  # `low` fails, or is 0
        middle = (low + high) // 2
        if _tail_is_at_most(middle, variance, alpha / 2):
            high = middle
        else:
            low = middle
    return high


def _tail_is_at_most(t: int, variance: Fraction, share: Fraction) -> bool:
    """Decide Phi(-t / sqrt(variance)) <= share.

    The two sides are never equal: erf is transcendental at algebraic points but 0 (Siegel,
    Shidlovskii), and t >= 1. So some precision decides.
    """
    bits = QUICK_BITS
    while True:
        low, high = normal_cdf_interval(-t, variance, bits)
        if high <= share or share < low:
            return high <= share
        bits *= 2

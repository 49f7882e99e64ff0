"""Exact draws that the searches share, made of those in `noise.sampling`."""

import bisect
import itertools
import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.noise.sampling import LazyUniform, Noise
from beam_dp.mechanisms.numerics.intervals import exp_interval

_WORD = 64  # bits of one word of noise
_FINE = 2.0**-32  # far above the rounding of a float's logarithm and exponential


def draw_below(count: int, noise: Noise) -> int:
    """Return an exactly uniform integer from 0 to count - 1: floor(U count) for a uniform U."""
    uniform = noise.uniform()
    bits = 64 + count.bit_length()
    while count > 1:
        low, high = uniform.interval(bits)
        if math.floor(low * count) == math.ceil(high * count) - 1:
            return math.floor(low * count)
        bits *= 2
    return 0


def draw_run(sizes: np.ndarray, scores: np.ndarray, rate: Fraction, noise: Noise) -> int:
    """Return a run g with a probability exactly proportional to size_g e^(-rate score_g).

    With U uniform in [0, 1) and W_g the cumulative weights, g is the run with W_{g-1} <= U W < W_g.
    Floats decide where 64 bits of U are further from the ends of a run than they may be wrong,
    exact intervals decide the others.

    Args:
        sizes: integers above 0, of any magnitude.
        scores: integers, of any magnitude.
        rate: above 0.
        noise: the source of the uniform.
    """
    uniform = noise.uniform()
    logarithm = np.frompyfunc(math.log, 1, 1) if sizes.dtype == object else np.log
    exponents = logarithm(sizes).astype(np.float64) - float(rate) * (scores - scores.min()).astype(
        np.float64
    )
    # An exponent above -700 is right to 2^-40, smaller ones add nothing; the sum of K terms to
    # K 2^-52 of the whole.
    ends = np.cumsum(np.exp(np.maximum(exponents - exponents.max(), -800.0)))
    band = float(ends[-1]) * (_FINE + len(ends) * 2.0**-50)
    point = float(uniform.interval(_WORD)[0]) * float(ends[-1])
    run = int(np.searchsorted(ends, point, side="right"))
    start = float(ends[run - 1]) if run else -band
    if run < len(ends) and start + band < point < float(ends[run]) - band:
        return run
    return _enclosed(sizes.tolist(), scores.tolist(), rate, uniform)


def _enclosed(sizes: list[int], scores: list[int], rate: Fraction, uniform: LazyUniform) -> int:
    """Return the run of a uniform: U and all W_g are enclosed ever tighter until it is certain."""
    best = min(scores)  # its weight counts as 1
    bits = _WORD + sum(sizes).bit_length()
    while True:
        weights = [exp_interval(rate * (best - score), bits) for score in scores]
        pairs = list(zip(sizes, weights, strict=True))
        lows = list(itertools.accumulate(size * low for size, (low, _) in pairs))
        highs = list(itertools.accumulate(size * high for size, (_, high) in pairs))
        least, most = uniform.interval(bits)
        run = bisect.bisect_right(highs, least * lows[-1])
        if most * highs[-1] <= lows[run]:
            return run
        bits *= 2

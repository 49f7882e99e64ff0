"""Exact draws that the searches share, made of those in `noise.sampling`, and exact chances."""

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.noise.sampling import LazyUniform, Noise
from beam_dp.mechanisms.numerics.intervals import Interval, exp_interval

_WORD = 64  # bits of one word of noise
_FINE = 2.0**-32  # far above the rounding of a float's exponential


class Stop(NamedTuple):
    """Where a walk ended: in which run, and how many candidates of the run it passed."""

    run: int
    passed: int


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

    The same as `draw_by_score` for many runs: floats decide where a uniform of 64 bits is further
    from the ends of its run than they may be wrong, exact intervals decide the others.

    Args:
        sizes: integers above 0.
        scores: integers, of any magnitude.
        rate: above 0.
        noise: the source of the uniform.
    """
    uniform = noise.uniform()
    exponents = -float(rate) * (scores - scores.min()).astype(np.float64)
    # An exponent above -700 is right to 2^-41, smaller ones add nothing; the sum of K terms to
    # K 2^-52 of the whole.
    ends = np.cumsum(sizes.astype(np.float64) * np.exp(np.maximum(exponents, -800.0)))
    band = float(ends[-1]) * (_FINE + len(ends) * 2.0**-50)
    point = float(uniform.interval(_WORD)[0]) * float(ends[-1])
    run = int(np.searchsorted(ends, point, side="right"))
    start = float(ends[run - 1]) if run else -band
    if run < len(ends) and start + band < point < float(ends[run]) - band:
        return run
    pairs = zip(sizes.tolist(), scores.tolist(), strict=True)
    return draw_by_score(list(pairs), rate, noise, uniform)


def draw_by_score(
    groups: Sequence[tuple[int, int]],
    half_epsilon: Fraction,
    noise: Noise,
    begun: LazyUniform | None = None,
) -> int:
    """Return a group g with a probability exactly proportional to size_g e^(-half_epsilon score_g).

    With U uniform in [0, 1) and W_g the cumulative weights, g is the group with
    W_{g-1} <= U W < W_g. U and all W_g are enclosed by rationals, ever tighter until g is certain.

    Args:
        groups: pairs (size, score), of any magnitude.
        half_epsilon: above 0.
        noise: the source of the uniform.
        begun: the uniform to go on with; None: a new one.
    """
    uniform = noise.uniform() if begun is None else begun
    best = min(score for _, score in groups)  # its weight counts as 1
    bits = 64 + sum(size for size, _ in groups).bit_length()
    while True:
        weight = _weights(half_epsilon, bits)
        ends = [(size, *weight(score - best)) for size, score in groups]
        lows = list(itertools.accumulate(size * low for size, low, _ in ends))
        highs = list(itertools.accumulate(size * high for size, _, high in ends))
        least, most = uniform.interval(bits)
        group = bisect.bisect_right(highs, least * lows[-1])
        if most * highs[-1] <= lows[group]:
            return group
        bits *= 2


@lru_cache(maxsize=64)
def _weights(half_epsilon: Fraction, bits: int) -> Callable[[int], tuple[int, int]]:
    """Return a function that encloses 2^bits e^(-half_epsilon i) for i >= 0, with a cache."""

    @lru_cache(maxsize=4096)
    def weight(i: int) -> tuple[int, int]:
        low, high = exp_interval(-half_epsilon * i, bits)
        return math.floor(low * (1 << bits)), math.ceil(high * (1 << bits))

    return weight


def failures_before_success(
    unit: Fraction, multiple: int, limit: int, word: int, noise: Noise
) -> int:
    """Return a draw like `noise.first_success(rate, limit)`, from one word where success is rare.

    With rate = unit multiple, success has probability p = e^-rate per trial, so P(g) = p (1 - p)^g
    for g < limit. For some b >= limit p: with probability b propose g, uniform below limit, and
    accept it with probability (limit p / b) (1 - p)^g. That gives
    b (1 / limit) (limit p / b) (1 - p)^g = P(g), exactly.

    Args:
        unit: above 0.
        multiple: where it is 0 or below, the first trial succeeds.
        limit: at least 0; `limit` is returned if no trial below it succeeds.
        word: a uniform 64-bit word that is used nowhere else.
        noise: the source of all further randomness.
    """
    bound = _bound(float(unit) * multiple, limit)
    if bound is not None and word >= bound:
        return limit
    rate = unit * multiple
    if bound is None:
        return noise.first_success(rate, limit)
    proposed = draw_below(limit, noise)
    excess = Fraction(limit << _WORD, bound)  # limit / b
    extra = max(0, excess.numerator.bit_length() - excess.denominator.bit_length() + 1)

    def ratio(bits: int) -> Interval:
        low, high = exp_interval(-rate, bits + extra)
        return low * excess, min(high * excess, Fraction(1))

    accepted = noise.bernoulli_below(ratio) and noise.first_success(rate, proposed) == proposed
    return proposed if accepted else limit


def _bound(rate: float, limit: int) -> int | None:
    """Return 2^64 b for some b >= limit e^-rate, or None where b is not far below 1."""
    if rate <= 0 or limit == 0:
        return None
    size = math.log(limit)
    # The slack is above the rounding of the rate, of log, exp and the sum.
    exponent = size - rate + 1e-12 * (size + rate + 1)
    return math.ceil(math.exp(exponent) * 2.0**_WORD) + 1 if exponent < -1 else None

"""The public outputs of a release whose user gave none."""

import functools
import math
from fractions import Fraction

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.grids import SymmetricGrid

EXTREMES = ("max", "min", "kth", "rank", "quantile", "black_box")
"""Kinds of parts that release one of the values, which may be below 0."""
VALUE_CLIPS = 84
"""Powers of two, from one unit on, that a value may be cut at."""
_SUM_BITS, _EXTREME_BITS = 17, 13


@functools.lru_cache(maxsize=16)
def default_candidates(kind: str, unit: Fraction) -> Candidates:
    """Return the public outputs of a one-sided release that need no input.

    Counts and sums: the multiples of 1/d of at most 17 significant bits, up to 2^63, so that
    neighbours differ by 1/d at first, then by at most 2^-16 of their size. d is the least whole
    number with 1/d at most the unit: a unit of 0.01 has multiples of itself, one of 0.3 those of
    1/4, and one of 5 those of 1.

    Extremes and quantiles: the multiples of the unit of at most 13 significant bits, of both signs,
    up to 2^83 units (about 10^19 at the default unit of one millionth): neighbours differ by less
    than 2^-12, or 0.025%, of their size. One bit more costs a search ln 2 / eps2, about one person
    at epsilon 1, and halves what the grid adds: it pays where hundreds of people are within 0.025%
    of the answer. On the prices of `benchmarks.published` the grid errs 9 to 20 times as much as
    the search with 8 bits (1%), and with 13 no more than it.
    """
    if kind not in EXTREMES:
        return Candidates.rounded(1 << 63, _SUM_BITS, max(1, math.ceil(1 / unit)))
    return Candidates(SymmetricGrid(unit, _EXTREME_BITS, VALUE_CLIPS - 1))

"""The default candidates: the public outputs of a release whose user named none."""

import functools
import math
from fractions import Fraction

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.grids import SymmetricGrid

VALUE_CLIPS = 84
"""How many powers of two, from one unit on, a value may be clipped at."""
_TOTAL_BITS, _VALUE_BITS = 17, 13


@functools.lru_cache(maxsize=16)
def default_totals(unit: Fraction) -> Candidates:
    """Return the outputs of a count or a sum: multiples of 1/d of at most 17 significant bits.

    They end at 2^63; neighbours differ by 1/d at first, then by at most 2^-16 of their size. d is
    the least whole number with 1/d at most the unit: a unit of 0.01 has multiples of itself, one of
    0.3 those of 1/4, and one of 5 those of 1.
    """
    return Candidates.rounded(1 << 63, _TOTAL_BITS, max(1, math.ceil(1 / unit)))


@functools.lru_cache(maxsize=16)
def default_values(unit: Fraction) -> Candidates:
    """Return the outputs of a statistic that is one of the values: multiples of the unit, 13 bits.

    They have both signs, up to 2^83 units (about 10^19 at the default unit of one millionth), and
    neighbours differ by less than 2^-12, or 0.025%, of their size. One bit more costs a search
    ln 2 / eps2, about one person at epsilon 1, and halves the error of the grid: it pays where
    hundreds of people are within 0.025% of the answer. On the prices of `benchmarks.published` the
    grid errs 9 to 20 times as much as the search with 8 bits (1%), and no more with 13.
    """
    return Candidates(SymmetricGrid(unit, _VALUE_BITS, VALUE_CLIPS - 1))

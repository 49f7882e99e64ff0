"""The default candidates: the public outputs of a release whose user named none."""

import dataclasses
import functools
import math
from fractions import Fraction

from beam_dp.mechanisms.candidates.candidates import Candidates, RoundedGrid
from beam_dp.mechanisms.candidates.decimal_grid import DecimalGrid

VALUE_CLIPS = tuple(1 << power for power in range(84))
"""What a value, or a sum of a person's values, may be clipped at, in units: powers of two."""
_TOTAL_BITS = 17
_DIGITS, _DECADES = 4, 24


@functools.lru_cache(maxsize=16)
def default_totals(unit: Fraction) -> Candidates:
    """Return the outputs of a count or a sum: multiples of 1/d of at most 17 significant bits.

    They end at 2^63; neighbours differ by 1/d at first, then by at most 2^-16 of their size. d is
    the least whole number with 1/d at most the unit: a unit of 0.01 has multiples of itself, one of
    0.3 those of 1/4, and one of 5 those of 1.
    """
    divisor = max(1, math.ceil(1 / unit))
    return RoundedGrid(divisor, divisor << 63, _TOTAL_BITS)


@functools.lru_cache(maxsize=16)
def default_values(unit: Fraction) -> DecimalGrid:
    """Return the outputs of a statistic that is one of the values: decimals of 4 digits.

    They have both signs, and go from the largest power of ten that is at most the unit over 24
    decades: at the default unit of one millionth, from 0.000001 to 10^18. So 5, 7, 0.25 and years
    are among them, and come out as themselves; binary fractions of a decimal unit would pass over
    everybody who has such a number. Neighbours differ by 0.1% of their size at most. One digit more
    costs a search ln 10 / eps2, two people at epsilon 1; one digit less puts up to a fifth of all
    released maxima above all data.
    """
    low = 0
    while Fraction(10) ** low > unit:
        low -= 1
    while Fraction(10) ** (low + 1) <= unit:
        low += 1
    # Thirds of a unit need the digits behind it too; of 0.01, there is nothing behind.
    finer = 0 if Fraction(10) ** low == unit else _DIGITS - 1
    return DecimalGrid(low - finer, _DIGITS, _DECADES + finer)


@functools.lru_cache(maxsize=16)
def values_between(unit: Fraction, low: Fraction | None, high: Fraction | None) -> Candidates:
    """Return the outputs where bounds are known: see `DecimalGrid`.

    Args:
        unit: the grid of values.
        low: no value is below; None: none is known.
        high: no value is above, but above `low`; None: none is known.
    """
    return dataclasses.replace(default_values(unit), lower=low, upper=high)

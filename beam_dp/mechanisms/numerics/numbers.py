"""The types that a number may have, and the limits up to which floats and int64 are exact."""

import math
from fractions import Fraction

Number = int | float | Fraction
EXACT = 2**53
"""Integers up to here are floats without rounding."""
WIDE = 2**62
"""Sums of two such numbers fit int64."""


def is_nan(value: Number) -> bool:
    """Say whether `value` is NaN, whatever its type and size."""
    return isinstance(value, float) and math.isnan(value)

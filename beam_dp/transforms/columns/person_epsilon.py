"""Find each row's epsilon among the public ones."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa

from beam_dp.transforms.columns import fixed_point

_UNIT = Fraction(1, 1_000_000)


def places(column: pa.Array | list[object], epsilons: Sequence[Fraction]) -> np.ndarray:
    """Return the place of each value among the epsilons; -1 where it is none of them.

    Args:
        column: an Arrow column or Python values; numbers are compared to a millionth.
        epsilons: multiples of a millionth, in rising order.
    """
    as_units = fixed_point.values_to_units if isinstance(column, list) else fixed_point.to_units
    known = np.array([int(epsilon / _UNIT) for epsilon in epsilons], object)
    units = as_units(column, _UNIT)
    at = np.minimum(np.searchsorted(known, units), len(known) - 1)
    return np.where(np.asarray(known[at] == units, bool), at, -1)

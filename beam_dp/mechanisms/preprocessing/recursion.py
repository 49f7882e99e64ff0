"""The recursion over all windows: exact for every database-ordered function.

g(i, j) = f(x_i..x_j) cut to [g(i + 1, j) - Delta, g(i, j - 1) + Delta] (Cummings, Durfee 2020,
section 5): among all databases that lack one person of a window, the one without the largest has
the least g and the one without the smallest the greatest, because all persons have the same Delta.
It takes n^2 / 2 steps, in one vector per size of the windows.
"""

import numpy as np

from beam_dp.mechanisms.preprocessing.windows import Windows

Number = int | float


def recursed(windows: Windows, sensitivity: Number, empty: Number) -> np.ndarray:
    """Return g of each database (row of values), exact on integers.

    Args:
        windows: of one database, or of several of one size.
        sensitivity: Delta, in the steps of the windows.
        empty: f of nobody, in the same.
    """
    values = windows.values
    found = np.full((*values.shape[:-1], windows.size + 1), empty, values.dtype)
    for size in range(1, windows.size + 1):
        cut = np.minimum(windows.row(size), found[..., :-1] + sensitivity)
        found = np.maximum(cut, found[..., 1:] - sensitivity, out=cut)
    return np.asarray(found[..., 0])

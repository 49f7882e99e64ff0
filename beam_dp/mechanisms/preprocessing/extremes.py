"""The preprocessed maximum and minimum, in closed form.

With x_(k) the k-th smallest of n values and f0 = f(empty),

    g = min( f0 + n Delta, min_{t < n} max(x_(n-t), f0 - (n - t) Delta) + t Delta ),

for the removal of the largest t leaves x_(n-t), and no database of n - t people can have a g below
f0 - (n - t) Delta. The minimum is the maximum with all signs changed. (Cummings, Durfee 2020.)
Mind that g may lie far below f: of fifty -100 and one -1, with f0 = 0 and Delta = 1, it is -49.
"""

import numpy as np

Number = int | float


def maxima(
    values: np.ndarray, starts: np.ndarray, sizes: np.ndarray, sensitivity: Number, empty: Number
) -> np.ndarray:
    """Return g of the maximum of each group.

    Args:
        values: the groups one after the other, each ascending; a column in steps.
        starts: where each group starts.
        sizes: how many values each has, at least 1.
        sensitivity: Delta, in steps.
        empty: f of nobody, in steps.
    """
    offsets = np.cumsum(sizes) - sizes
    rank = np.arange(1, int(sizes.sum()) + 1) - np.repeat(offsets, sizes)
    removed = (np.repeat(sizes, sizes) - rank).astype(values.dtype)
    place = rank - 1 + np.repeat(starts, sizes)
    reachable = np.maximum(values[place], empty - rank.astype(values.dtype) * sensitivity)
    least = np.minimum.reduceat(reachable + removed * sensitivity, offsets)
    return np.minimum(least, empty + sizes.astype(values.dtype) * sensitivity)


def minima(
    values: np.ndarray, starts: np.ndarray, sizes: np.ndarray, sensitivity: Number, empty: Number
) -> np.ndarray:
    """Return g of the minimum of each group; the arguments are those of `maxima`."""
    mirrored = len(values) - starts - sizes
    return -maxima(-values[::-1], mirrored, sizes, sensitivity, -empty)

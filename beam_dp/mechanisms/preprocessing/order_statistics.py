"""g of the median, the maximum and the minimum, from sorted values.

*The median*, in one pass. With M_k the median of all but the k largest values, f0 = f(empty) and
M_0 >= f0 (else mirror all signs): f0 <= g <= f on every database with f >= f0. So the lower bound
of g never binds, and one smaller database, that without the largest value, is enough (Cummings,
Durfee 2020, section 5):

    g = min( min_k M_k + k Delta, f0 + n Delta )                   if no M_k is below f0;
    g = min( min_{k < k0 - 1} M_k + k Delta, G + (k0 - 1) Delta )  for the first M_{k0} below f0,

where G is g of the smallest n - k0 + 1 = s values: without the largest of them, their median
is below f0. For s odd, f0 is within reach: G = min(M, f0 + Delta), M = M_{k0 - 1}. For s even, M is
the mean of two values of which the lower is below f0, and after the removal of either the median is
the other: G = min(M, max(x_{s/2} + Delta, f0)).

`doubled_medians` doubles all of these numbers, so that the mean of two values is their sum.

*The maximum and the minimum*, in closed form. With x_(k) the k-th smallest of n values,

    g = min( f0 + n Delta, min_{t < n} max(x_(n-t), f0 - (n - t) Delta) + t Delta ),

for the removal of the largest t leaves x_(n-t), and no database of n - t people can have a g below
f0 - (n - t) Delta. The minimum is the maximum with all signs changed. (Cummings, Durfee 2020.)
Mind that g may lie far below f: of fifty -100 and one -1, with f0 = 0 and Delta = 1, it is -49.
"""

import numpy as np


def doubled_medians(
    values: np.ndarray, starts: np.ndarray, sizes: np.ndarray, sensitivity: int, empty: int
) -> np.ndarray:
    """Return twice g of the median of each group.

    Args:
        values: the groups one after the other, each ascending; a column.
        starts: per group the index of its first value.
        sizes: per group the number of its values, at least 1.
        sensitivity: Delta, doubled.
        empty: f of nobody, doubled.
    """
    middles = values[starts + (sizes - 1) // 2] + values[starts + sizes // 2]
    below = np.asarray(middles < empty, bool)
    doubled = np.empty_like(middles)
    mirrored = len(values) - starts - sizes
    above = starts[~below], sizes[~below]
    doubled[~below] = _doubled_medians_above(values, *above, sensitivity, empty)
    others = mirrored[below], sizes[below]
    doubled[below] = -_doubled_medians_above(-values[::-1], *others, sensitivity, -empty)
    return np.asarray(doubled)


def _doubled_medians_above(
    values: np.ndarray, starts: np.ndarray, sizes: np.ndarray, sensitivity: int, empty: int
) -> np.ndarray:
    """Return twice g of the median of each group, where that median is not below empty."""
    offsets = np.cumsum(sizes) - sizes
    if not len(offsets):
        return values[:0]
    removed = np.arange(int(sizes.sum())) - np.repeat(offsets, sizes)
    left = np.repeat(sizes, sizes) - removed
    first = np.repeat(starts, sizes)
    medians = values[first + (left - 1) // 2] + values[first + left // 2]
    crossing = np.where(medians < empty, removed, removed + left)  # n where no median is below
    crossing = np.minimum.reduceat(crossing, offsets)
    crosses = crossing < sizes
    stop = np.where(crosses, crossing - 1, sizes)
    # Out of the range M_0 stands in: it takes part anyway, in G if not by itself.
    bounds = np.where(
        removed < np.repeat(stop, sizes),
        medians + removed.astype(values.dtype) * sensitivity,
        np.repeat(medians[offsets], sizes),
    )
    size = sizes - stop
    middle = values[np.where(crosses, starts + size // 2 - 1, starts)] * 2
    last = np.where(size % 2, empty + sensitivity, np.maximum(middle + sensitivity, empty))
    last = np.minimum(medians[offsets + np.where(crosses, stop, 0)], last)
    last = np.where(crosses, last, empty) + stop.astype(values.dtype) * sensitivity
    return np.asarray(np.minimum(np.minimum.reduceat(bounds, offsets), last))


def maxima(
    values: np.ndarray, starts: np.ndarray, sizes: np.ndarray, sensitivity: int, empty: int
) -> np.ndarray:
    """Return g of the maximum of each group.

    Args:
        values: the groups one after the other, each ascending; a column in steps.
        starts: per group the index of its first value.
        sizes: per group the number of its values, at least 1.
        sensitivity: Delta, in steps.
        empty: f of nobody, in steps.
    """
    offsets = np.cumsum(sizes) - sizes
    rank = np.arange(1, int(sizes.sum()) + 1) - np.repeat(offsets, sizes)
    removed = (np.repeat(sizes, sizes) - rank).astype(values.dtype)
    index = rank - 1 + np.repeat(starts, sizes)
    reachable = np.maximum(values[index], empty - rank.astype(values.dtype) * sensitivity)
    least = np.minimum.reduceat(reachable + removed * sensitivity, offsets)
    return np.asarray(np.minimum(least, empty + sizes.astype(values.dtype) * sensitivity))


def minima(
    values: np.ndarray, starts: np.ndarray, sizes: np.ndarray, sensitivity: int, empty: int
) -> np.ndarray:
    """Return g of the minimum of each group; the arguments are those of `maxima`."""
    mirrored = len(values) - starts - sizes
    return -maxima(-values[::-1], mirrored, sizes, sensitivity, -empty)


KERNELS = {"median": doubled_medians, "maximum": maxima, "minimum": minima}

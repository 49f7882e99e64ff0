"""Compute g of many databases at once, exactly, on the integers of a grid.

The values of all databases (groups) follow each other, in whole units; group i is
`units[offsets[i]:offsets[i + 1]]`. All functions return g in whole steps of the grid, rounded
down: f times `resolution`, the number of steps per unit of f. Delta and f(empty) are whole numbers
of steps, so one person moves each result by at most Delta steps, exactly (see `means`).

Groups without values have g = f(empty).
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.preprocessing import order_statistics
from beam_dp.mechanisms.preprocessing.means import Windows, fitting, recursed, settled
from beam_dp.mechanisms.preprocessing.order_statistics import doubled_medians
from beam_dp.mechanisms.preprocessing.variances import Spread, least, least_rows

SMALL = 256
"""Groups of one size are computed together up to this size."""
_CHUNK = 1 << 21  # values that are expanded at once
_TOGETHER = 1 << 16  # values of groups of one size that are computed together, in the cache
_Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray, int, int], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Grid:
    """The public numbers of a release of g.

    Attributes:
        sensitivity: Delta, in steps; at least 0.
        empty: f of nobody, in steps.
        resolution: steps per unit of f (per squared unit for variances).
    """

    sensitivity: int
    empty: int = 0
    resolution: int = 1


class Groups:
    """Integers in groups, sorted within each group; empty groups are set aside."""

    def __init__(self, units: np.ndarray, offsets: np.ndarray) -> None:
        sizes = np.diff(offsets)
        self.count = len(sizes)
        self.values = _ascending(np.asarray(units), sizes)
        self.present = np.flatnonzero(sizes)
        self.starts = np.asarray(offsets)[:-1][self.present]
        self.sizes = sizes[self.present]

    def in_steps(self, grid: Grid) -> np.ndarray:
        """Return the values in steps, with room for all that order statistics compute."""
        room = 8 * (self.largest_size + 1) * grid.sensitivity, 8 * grid.empty
        column = fitting(self.values, 2 * grid.resolution, *room)
        return np.asarray(column * grid.resolution)

    def windows(self, grid: Grid, trim: Fraction) -> Windows:
        """Return the windows of all values, with room for their sums and all later steps."""
        size, steps = self.largest_size, grid.resolution
        room = 4 * (size + 1) * grid.sensitivity, 4 * grid.empty, size * steps
        total = math.ceil(integers.magnitude(self.values)) if self.values.dtype != object else 0
        column = fitting(self.values, steps, *room, total * steps)
        if column.dtype != object:
            return Windows(column * steps, 1, trim)
        return Windows(fitting(self.values, steps, *room, total), steps, trim)

    @property
    def largest_size(self) -> int:
        """The number of values of the largest group."""
        return int(self.sizes.max(initial=0))

    def chunks(self) -> Iterator[slice]:
        """Return ranges of groups with about `_CHUNK` values each."""
        ends = np.cumsum(self.sizes)
        start = 0
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _CHUNK, side="right")))
            yield slice(start, stop)
            start = stop

    def spread(self, numbers: np.ndarray, empty: int) -> np.ndarray:
        """Return one number per group: `numbers`, and `empty` for the groups without values."""
        of_all = np.full(self.count, empty, object)
        of_all[self.present] = numbers
        return integers.narrow(of_all)


def _ascending(units: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the values sorted within each group."""
    if len(sizes) < 2:
        return np.sort(units)
    group = np.repeat(np.arange(len(sizes)), sizes)
    if units.dtype == object:
        order = sorted(range(len(units)), key=lambda index: (group[index], units[index]))
        return np.asarray(units[order])
    low = int(units.min(initial=0))
    bits = (int(units.max(initial=0)) - low).bit_length()
    if bits + len(sizes).bit_length() > 62:
        return np.asarray(units[np.lexsort((units, group))])
    keys = (group << bits) + (units - low)  # one sort of integers is quickest
    keys.sort()
    return np.asarray((keys & ((1 << bits) - 1)) + low)


def maxima(groups: Groups, grid: Grid) -> np.ndarray:
    """Return g of the maximum of each group, in steps."""
    return _closed(groups, grid, order_statistics.maxima, 1)


def minima(groups: Groups, grid: Grid) -> np.ndarray:
    """Return g of the minimum of each group, in steps."""
    return _closed(groups, grid, order_statistics.minima, 1)


def medians(groups: Groups, grid: Grid) -> np.ndarray:
    """Return g of the median of each group, in steps, rounded down."""
    return integers.narrow(_closed(groups, grid, doubled_medians, 2) // 2)


def _closed(groups: Groups, grid: Grid, kernel: _Kernel, parts: int) -> np.ndarray:
    """Return g by a closed form, which counts in parts of a step: so many make one."""
    values, delta, empty = groups.in_steps(grid), parts * grid.sensitivity, parts * grid.empty
    results = [
        kernel(values, groups.starts[part], groups.sizes[part], delta, empty)
        for part in groups.chunks()
    ]
    return groups.spread(np.concatenate(results or [np.zeros(0, np.int64)]), empty)


def means(groups: Groups, grid: Grid, trim: Fraction = Fraction(0)) -> np.ndarray:
    """Return g of the mean, or the trimmed mean, of each group, in steps, rounded down.

    Where g = f is proved for many groups at once, that is all; the other groups are computed by
    equal size together, or one by one.
    """
    windows = groups.windows(grid, trim)
    results = windows.between(groups.starts, groups.starts + groups.sizes)
    parts = [_disputed(groups, grid, windows, results, part) for part in groups.chunks()]
    for indexes in _alike(groups.sizes, np.concatenate([*parts, np.zeros(0, np.int64)])):
        results[indexes] = _one_size(groups, grid, windows, indexes)
    return groups.spread(results, grid.empty)


def _disputed(
    groups: Groups, grid: Grid, windows: Windows, results: np.ndarray, part: slice
) -> np.ndarray:
    """Return the indexes of the groups whose saddle is not f itself: a removal from one end wins."""
    indexes = np.arange(part.start, part.stop)
    starts, sizes, own = groups.starts[part], groups.sizes[part], results[part]
    if sizes[0] > _CHUNK:  # a group for itself
        return indexes
    offsets = np.cumsum(sizes) - sizes
    gone = np.arange(int(sizes.sum())) - np.repeat(offsets, sizes)
    first, stop = np.repeat(starts, sizes), np.repeat(starts + sizes, sizes)
    price = gone.astype(results.dtype) * grid.sensitivity
    below = np.minimum.reduceat(windows.between(first, stop - gone) + price, offsets)
    above = np.maximum.reduceat(windows.between(first + gone, stop) - price, offsets)
    reach = sizes.astype(results.dtype) * grid.sensitivity
    near = (grid.empty + reach >= own) & (grid.empty - reach <= own)
    return np.asarray(indexes[~np.asarray((below >= own) & (above <= own) & near, bool)])


def _one_size(groups: Groups, grid: Grid, windows: Windows, indexes: np.ndarray) -> np.ndarray:
    """Return g of the mean of groups of one size."""
    rows = _rows(groups, windows.values, indexes)
    if rows.shape[1] <= SMALL:
        table = dataclasses.replace(windows, values=rows)
        return recursed(table, grid.sensitivity, grid.empty)
    alone = (dataclasses.replace(windows, values=row) for row in rows)
    return _column([settled(table, grid.sensitivity, grid.empty) for table in alone])


def _rows(groups: Groups, values: np.ndarray, indexes: np.ndarray) -> np.ndarray:
    size = int(groups.sizes[indexes[0]])
    return np.asarray(values[groups.starts[indexes][:, None] + np.arange(size)])


def _alike(sizes: np.ndarray, indexes: np.ndarray) -> Iterator[np.ndarray]:
    """Yield `indexes` by size, in chunks of about `_TOGETHER` values."""
    order = indexes[np.argsort(sizes[indexes], kind="stable")]
    cuts = np.flatnonzero(np.diff(sizes[order])) + 1
    for alike in np.split(order, cuts):
        most = max(1, _TOGETHER // max(1, int(sizes[alike].max(initial=1))))
        for start in range(0, len(alike), most):
            yield alike[start : start + most]


def variances(groups: Groups, grid: Grid, sample: bool = False) -> np.ndarray:
    """Return g of the variance of each group, in steps, rounded down; f(empty) is 0."""
    results = np.zeros(len(groups.sizes), object)
    for indexes in _alike(groups.sizes, np.arange(len(groups.sizes))):
        rows = _rows(groups, groups.values, indexes)
        if rows.shape[1] <= SMALL:
            results[indexes] = least_rows(Spread(rows, sample), grid.sensitivity, grid.resolution)
        else:
            price = Fraction(grid.sensitivity, grid.resolution)
            exactly = [least(Spread(row, sample), price) * grid.resolution // 1 for row in rows]
            results[indexes] = _column(exactly)
    return groups.spread(results, 0)


def _column(numbers: list[int]) -> np.ndarray:
    column = np.empty(len(numbers), object)
    column[:] = numbers
    return column

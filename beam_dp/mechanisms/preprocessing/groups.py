"""Compute g of many databases at once, exactly, on the integers of a grid.

The values of all databases (groups) follow each other, in whole units; group i is
`units[offsets[i]:offsets[i + 1]]`. All functions return g in whole steps of the grid, rounded
down: f times `resolution`, the number of steps per unit of f. Delta and f(empty) are whole numbers
of steps, so one person moves each result by at most Delta steps, exactly (see `windows`).

The common case, in which g = f, is proved for all groups together; the other groups are computed
by equal size together, or one by one. Groups without values have g = f(empty).
"""

import dataclasses
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.preprocessing import order_statistics
from beam_dp.mechanisms.preprocessing.order_statistics import doubled_medians
from beam_dp.mechanisms.preprocessing.staircase import recursed, settled
from beam_dp.mechanisms.preprocessing.variances import Spread, least, least_rows
from beam_dp.mechanisms.preprocessing.windows import Windows, divide, fitting, scaled

SMALL = 256
"""Groups of one size are computed together up to this size."""
_CHUNK = 1 << 21  # values that are expanded at once
_TOGETHER = 1 << 16  # values of groups of one size that are computed together, in the cache
Number = int | float
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
    resolution: Fraction = Fraction(1)


class Groups:
    """Integers in groups, sorted within each group; empty groups are set aside."""

    def __init__(self, units: np.ndarray, offsets: np.ndarray) -> None:
        sizes = np.diff(offsets)
        self.count = len(sizes)
        self.values = _ascending(np.asarray(units), sizes)
        self.present = np.flatnonzero(sizes)
        self.starts = np.asarray(offsets)[:-1][self.present]
        self.sizes = sizes[self.present]

    def fitting(self, grid: Grid, factor: int = 1) -> np.ndarray:
        """Return the values times the resolution's numerator, with room for all but sums."""
        room = _room(int(self.sizes.max(initial=0)), grid, factor)
        return fitting(self.values, grid.resolution.numerator, *room)

    def windows(self, grid: Grid, trim: Fraction) -> Windows:
        """Return the windows of all values, with room for all later steps."""
        room = _room(int(self.sizes.max(initial=0)), grid)
        values, factor = scaled(self.values, grid.resolution.numerator, *room)
        return Windows(values, grid.resolution.denominator, trim, factor)

    def chunks(self) -> Iterator[slice]:
        """Return ranges of groups with about `_CHUNK` values each."""
        ends = np.cumsum(self.sizes)
        start = 0
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _CHUNK, side="right")))
            yield slice(start, stop)
            start = stop

    def spread(self, numbers: np.ndarray | list[int], empty: int) -> np.ndarray:
        """Return one number per group: `numbers`, and `empty` for the groups without values."""
        of_all = np.full(self.count, empty, object)
        of_all[self.present] = numbers
        return integers.narrow(of_all)


def _room(size: int, grid: Grid, factor: int = 1) -> tuple[int, int]:
    """Return the numbers that must fit into an integer beside the values of a group."""
    return 4 * (size + 1) * grid.sensitivity * factor, 4 * grid.empty * factor


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
    return _closed(groups, grid, order_statistics.maxima, _in_steps(groups, grid), 1)


def minima(groups: Groups, grid: Grid) -> np.ndarray:
    """Return g of the minimum of each group, in steps."""
    return _closed(groups, grid, order_statistics.minima, _in_steps(groups, grid), 1)


def medians(groups: Groups, grid: Grid) -> np.ndarray:
    """Return g of the median of each group, in steps, rounded down."""
    fine = 2 * grid.resolution.denominator
    doubled = _closed(groups, grid, doubled_medians, groups.fitting(grid, fine), fine)
    return integers.narrow(divide(doubled, fine))


def _in_steps(groups: Groups, grid: Grid) -> np.ndarray:
    return divide(groups.fitting(grid), grid.resolution.denominator)


def _closed(
    groups: Groups, grid: Grid, kernel: _Kernel, values: np.ndarray, fine: int
) -> np.ndarray:
    """Return g by a closed form, in parts of a step: `fine` parts make a step."""
    delta, empty = fine * grid.sensitivity, fine * grid.empty
    results = [
        kernel(values, groups.starts[part], groups.sizes[part], delta, empty)
        for part in groups.chunks()
    ]
    return groups.spread(np.concatenate(results or [np.zeros(0, np.int64)]), empty)


def means(groups: Groups, grid: Grid, trim: Fraction = Fraction(0)) -> np.ndarray:
    """Return g of the mean, or the trimmed mean, of each group, in steps, rounded down."""
    windows = groups.windows(grid, trim)
    results = windows.between(groups.starts, groups.starts + groups.sizes)
    proved = _within_reach(groups, grid, windows, results)
    for part in groups.chunks():
        indexes = np.arange(part.start, part.stop)
        indexes = indexes[~proved[indexes] & (groups.sizes[indexes] <= _CHUNK)]
        proved[indexes] = _undisputed(groups, grid, windows, results, indexes)
    for indexes in _alike(groups.sizes, np.flatnonzero(~proved)):
        results[indexes] = _one_size(groups, grid, windows, indexes)
    return groups.spread(results, grid.empty)


def _within_reach(groups: Groups, grid: Grid, windows: Windows, results: np.ndarray) -> np.ndarray:
    """Return which groups have range <= n Delta and |mean - f(empty)| <= n Delta: there g = f.

    Without its k largest values the mean falls by at most k / n times the range (k Delta); so both
    sides of the bracket are f (`saddle`). Trimmed means have no such rule.
    """
    if windows.trim:
        return np.zeros(len(results), bool)
    reach = groups.sizes.astype(results.dtype) * grid.sensitivity
    last = groups.starts + groups.sizes - 1
    # The range is rounded up to whole steps.
    ranges = windows.values[groups.starts] - windows.values[last]
    ranges = -divide(ranges * windows.factor, windows.divisor)
    near = (results - grid.empty >= -reach) & (results - grid.empty <= reach)
    return np.asarray((ranges <= reach) & near, bool)


def _undisputed(
    groups: Groups, grid: Grid, windows: Windows, results: np.ndarray, indexes: np.ndarray
) -> np.ndarray:
    """Return which groups have their saddle at f itself: no removal from one end wins."""
    if not len(indexes):
        return np.zeros(0, bool)
    starts, sizes = groups.starts[indexes], groups.sizes[indexes]
    offsets = np.cumsum(sizes) - sizes
    gone = np.arange(int(sizes.sum())) - np.repeat(offsets, sizes)
    first, stop = np.repeat(starts, sizes), np.repeat(starts + sizes, sizes)
    price = gone.astype(results.dtype) * grid.sensitivity
    below = np.minimum.reduceat(windows.between(first, stop - gone) + price, offsets)
    above = np.maximum.reduceat(windows.between(first + gone, stop) - price, offsets)
    reach = sizes.astype(results.dtype) * grid.sensitivity
    own = results[indexes]
    near = (grid.empty + reach >= own) & (grid.empty - reach <= own)
    return np.asarray((below >= own) & (above <= own) & near, bool)


def _one_size(
    groups: Groups, grid: Grid, windows: Windows, indexes: np.ndarray
) -> np.ndarray | list[Number]:
    """Return g of the mean of groups of one size, by recursion if they are small."""
    rows = _rows(groups, windows.values, indexes)
    if rows.shape[1] <= SMALL:
        table = dataclasses.replace(windows, values=rows)
        return recursed(table, grid.sensitivity, grid.empty)
    alone = (dataclasses.replace(windows, values=row) for row in rows)
    return [settled(table, grid.sensitivity, grid.empty) for table in alone]


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
        results[indexes] = _variances_of_one_size(
            _rows(groups, groups.values, indexes), grid, sample
        )
    return groups.spread(results, 0)


def _variances_of_one_size(rows: np.ndarray, grid: Grid, sample: bool) -> np.ndarray:
    """Return g of the variances of rows of values, in steps.

    Nothing is cut if range^2 + Var <= n Delta. For each removal from m > n - d people lowers the
    variance by at most range^2 / m, which is below range^2 / (n - d); so the removal of
    d <= Var / Delta people is never worth d Delta, and neither is the removal of more.
    """
    price = grid.sensitivity / grid.resolution
    if rows.shape[1] > SMALL:
        exactly = [least(Spread(row, sample), price) * grid.resolution // 1 for row in rows]
        return _column(exactly)
    spread = Spread(rows, sample)
    size = spread.size
    results = spread.rounded_rows(0, grid.resolution)[:, 0]
    ranges = integers.add(rows[:, -1], -rows[:, 0])  # up to twice the largest possible value
    most = integers.product(ranges, ranges).astype(object) * grid.resolution
    cut = np.flatnonzero(most + results >= size * grid.sensitivity)
    if len(cut):
        results[cut] = least_rows(Spread(rows[cut], sample), grid.sensitivity, grid.resolution)
    return results


def _column(numbers: list[int]) -> np.ndarray:
    column = np.empty(len(numbers), object)
    column[:] = numbers
    return column

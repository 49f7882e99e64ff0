"""Release g of many databases at once, as integers on a public grid, with noise.

`PreprocessedStatistic` computes g in whole steps of a grid that parameters fix, without any
rounding that depends on the data; one person moves g by at most Delta steps, exactly (see `means`
for rounding down). Integer noise for that sensitivity is added. The size of a step only scales the
result.

The values of all databases (groups) follow each other, in whole units; group i is
`units[offsets[i]:offsets[i + 1]]`. Groups without values have g = f(empty).
"""

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.preprocessing import order_statistics
from beam_dp.mechanisms.preprocessing.means import Windows, fitting, recursed, settled
from beam_dp.mechanisms.preprocessing.variances import Spread, least, least_rows

STATISTICS = (
    "mean",
    "median",
    "maximum",
    "minimum",
    "trimmed_mean",
    "variance",
    "sample_variance",
)
SMALL = 256
"""Groups of one size are computed together up to this size."""
_CHUNK = 1 << 21  # values that are expanded at once
_TOGETHER = 1 << 16  # values of groups of one size that are computed together, in the cache


@dataclasses.dataclass(frozen=True)
class PreprocessedStatistic:
    """A statistic of one integer per person, preprocessed: one person moves it by Delta at most.

    For D a group and D - i the same group without one person, the two results differ by at most
    `sensitivity`, as integers, whatever the values.

    Edge cases: a group without values gives `empty`, which is 0 for `variance` and
    `sample_variance`.

    Args:
        statistic: one of `STATISTICS`.
        sensitivity: Delta, an int of at least 1, in steps.
        empty: f of nobody, in steps.
        resolution: steps per unit (per squared unit for the variances), an int of at least 1.
        trim: the share that `trimmed_mean` leaves out at each end.

    Raises:
        TypeError: for parameters of other types.
        ValueError: for parameters out of range.
    """

    statistic: str
    sensitivity: int
    empty: int = 0
    resolution: int = 1
    trim: checks.Real = Fraction(1, 10)

    def __post_init__(self) -> None:
        owner = "Preprocessed"
        checks.one_of(owner, "statistic", self.statistic, STATISTICS)
        checks.positive_integer(owner, "sensitivity", self.sensitivity)
        if type(self.empty) is not int:
            raise checks.ParameterTypeError(
                owner, "empty", f"be an int, in steps, not {self.empty!r}"
            )
        checks.require(
            self.empty == 0 or "variance" not in self.statistic,
            owner,
            "empty",
            f"be 0 for a variance, not {self.empty!r}",
        )
        checks.positive_integer(owner, "resolution", self.resolution)
        share = checks.decimal(owner, "trim", self.trim)
        rule = f"be from 0 to below 1/2, not {self.trim!r}"
        checks.require(0 <= share < Fraction(1, 2), owner, "trim", rule)
        object.__setattr__(self, "trim", share)

    def values(self, units: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return g of each group in steps, without noise: not for release.

        Args:
            units: one integer per person and group, none missing: int64, or Python integers.
            offsets: where each group starts, and the end of the last.
        """
        groups = Groups(units, offsets)
        if self.statistic == "median":  # in half steps
            return integers.narrow(self._closed(groups, 2) // 2)
        if self.statistic in ("maximum", "minimum"):
            return self._closed(groups, 1)
        if self.statistic.endswith("variance"):
            return self._variances(groups)
        return self._means(groups)

    def _closed(self, groups: "Groups", parts: int) -> np.ndarray:
        """Return g of order statistics, in parts of a step: so many make one."""
        kernel = order_statistics.KERNELS[self.statistic]
        values, delta, empty = groups.in_steps(self), parts * self.sensitivity, parts * self.empty
        results = [
            kernel(values, groups.starts[part], groups.sizes[part], delta, empty)
            for part in groups.chunks()
        ]
        return groups.spread(np.concatenate(results or [np.zeros(0, np.int64)]), empty)

    def _means(self, groups: "Groups") -> np.ndarray:
        """Return g of the means, or the trimmed means.

        Where g = f is proved for many groups at once, that is all; the other groups are computed by
        equal size together, or one by one.
        """
        windows = groups.windows(self)
        results = windows.between(groups.starts, groups.starts + groups.sizes)
        parts = [self._disputed(groups, windows, results, part) for part in groups.chunks()]
        disputed = np.concatenate([*parts, np.zeros(0, np.int64)])
        for indexes, rows in groups.of_one_size(windows.values, disputed):
            if rows.shape[1] <= SMALL:
                table = dataclasses.replace(windows, values=rows)
                results[indexes] = recursed(table, self.sensitivity, self.empty)
            else:
                alone = (dataclasses.replace(windows, values=row) for row in rows)
                found = [settled(table, self.sensitivity, self.empty) for table in alone]
                results[indexes] = np.array(found, object)
        return groups.spread(results, self.empty)

    def _disputed(
        self, groups: "Groups", windows: Windows, results: np.ndarray, part: slice
    ) -> np.ndarray:
        """Return the groups whose saddle is not f itself, as a removal from one end wins."""
        indexes = np.arange(part.start, part.stop)
        starts, sizes, own = groups.starts[part], groups.sizes[part], results[part]
        if sizes[0] > _CHUNK:  # a group for itself
            return indexes
        offsets = np.cumsum(sizes) - sizes
        gone = np.arange(int(sizes.sum())) - np.repeat(offsets, sizes)
        first, stop = np.repeat(starts, sizes), np.repeat(starts + sizes, sizes)
        price = gone.astype(results.dtype) * self.sensitivity
        below = np.minimum.reduceat(windows.between(first, stop - gone) + price, offsets)
        above = np.maximum.reduceat(windows.between(first + gone, stop) - price, offsets)
        reach = sizes.astype(results.dtype) * self.sensitivity
        near = (self.empty + reach >= own) & (self.empty - reach <= own)
        return np.asarray(indexes[~np.asarray((below >= own) & (above <= own) & near, bool)])

    def _variances(self, groups: "Groups") -> np.ndarray:
        results, sample = np.zeros(len(groups.sizes), object), self.statistic == "sample_variance"
        price = Fraction(self.sensitivity, self.resolution)
        for indexes, rows in groups.of_one_size(groups.values, np.arange(len(groups.sizes))):
            if rows.shape[1] <= SMALL:
                spread = Spread(rows, sample)
                results[indexes] = least_rows(spread, self.sensitivity, self.resolution)
            else:
                exactly = [least(Spread(row, sample), price) for row in rows]
                found = [number * self.resolution // 1 for number in exactly]
                results[indexes] = np.array(found, object)
        return groups.spread(results, 0)


def noisy(
    statistic: PreprocessedStatistic,
    units: np.ndarray,
    offsets: np.ndarray,
    budget: Budget,
    noise: Noise | None = None,
) -> np.ndarray:
    """Return g of each group plus integer noise, in steps.

    Each group costs `budget`: discrete Laplace noise of rate epsilon / Delta is epsilon-DP,
    discrete Gaussian noise of variance Delta^2 / (2 rho) is rho-zCDP, when one person is added to
    the group or removed from it.

    Args:
        statistic: what is released.
        units: as for `Preprocessed.values`.
        offsets: as for `Preprocessed.values`.
        budget: what each group costs.
        noise: the randomness; the system's by default.
    """
    exact = statistic.values(units, offsets)
    sensitivities = np.full(len(exact), statistic.sensitivity, object)
    return AdditiveNoise(budget).add(exact, sensitivities, noise or Noise())


class Groups:
    """Integers in groups, sorted within each group; empty groups are set aside."""

    def __init__(self, units: np.ndarray, offsets: np.ndarray) -> None:
        sizes = np.diff(offsets)
        self.count = len(sizes)
        self.values = _ascending(np.asarray(units), sizes)
        self.present = np.flatnonzero(sizes)
        self.starts = np.asarray(offsets)[:-1][self.present]
        self.sizes = sizes[self.present]

    def in_steps(self, grid: PreprocessedStatistic) -> np.ndarray:
        """Return the values in steps, with room for all that order statistics compute."""
        room = 8 * (self.largest_size + 1) * grid.sensitivity, 8 * grid.empty
        column = fitting(self.values, 2 * grid.resolution, *room)
        return np.asarray(column * grid.resolution)

    def windows(self, grid: PreprocessedStatistic) -> Windows:
        """Return the windows of all values, with room for their sums and all later steps."""
        size, steps = self.largest_size, grid.resolution
        trim = Fraction(grid.trim) if grid.statistic == "trimmed_mean" else Fraction(0)
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

    def of_one_size(
        self, values: np.ndarray, indexes: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield groups by size, and their values as rows, in chunks of about `_TOGETHER` values."""
        order = indexes[np.argsort(self.sizes[indexes], kind="stable")]
        cuts = np.flatnonzero(np.diff(self.sizes[order])) + 1
        for alike in np.split(order, cuts):
            size = int(self.sizes[alike].max(initial=1))
            most = max(1, _TOGETHER // size)
            for start in range(0, len(alike), most):
                chunk = alike[start : start + most]
                yield chunk, values[self.starts[chunk][:, None] + np.arange(size)]


def _ascending(units: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the values sorted within each group."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    low = int(units.min(initial=0))
    bits = (int(units.max(initial=0)) - low).bit_length()
    if units.dtype == object or bits + len(sizes).bit_length() > 62:
        return np.asarray(units[np.lexsort((units, group))])
    keys = (group << bits) + (units - low)  # one sort of integers is quickest
    keys.sort()
    return np.asarray((keys & ((1 << bits) - 1)) + low)

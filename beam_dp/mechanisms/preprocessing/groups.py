"""g of many databases at once, as integers on a public grid.

`PreprocessedStatistic` computes g in whole steps of a grid that parameters fix, without any
rounding that depends on the data; one person moves g by at most Delta steps, exactly (see `windows`
for rounding down), for which `Preprocessed` adds integer noise. The size of a step only scales the
result.

The values of all databases (groups) follow each other, in whole units; group i is
`units[offsets[i]:offsets[i + 1]]`. Groups without values have g = f(empty).
"""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.preprocessing.variances import Spread, least
from beam_dp.mechanisms.preprocessing.windows import Windows, settled


@dataclasses.dataclass(frozen=True)
class PreprocessedStatistic:
    """A statistic of one integer per person, preprocessed: one person moves it by Delta at most.

    For D a group and D - i the same group without one person, the two results differ by at most
    `sensitivity`, as integers, whatever the values.

    Edge cases: a group without values gives `empty`, which is 0 for `variance`.

    Args:
        statistic: "mean", "trimmed_mean", "median", "maximum", "minimum" or "variance".
        sensitivity: Delta, an int of at least 1, in steps.
        empty: f of nobody, in steps.
        resolution: steps per unit (per squared unit for a variance), an int of at least 1.
        trim: the share that `trimmed_mean` leaves out at each end.
    """

    statistic: str
    sensitivity: int
    empty: int = 0
    resolution: int = 1
    trim: Fraction = Fraction(1, 10)

    def values(self, units: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return g of each group in steps, without noise: not for release.

        Args:
            units: one integer per person and group, none missing: int64, or Python integers.
            offsets: where each group starts, and the end of the last.
        """
        ends = itertools.pairwise(np.asarray(offsets).tolist())
        found = [self._of_group(np.sort(units[start:stop])) for start, stop in ends]
        return integers.narrow(np.array(found, object))

    def _of_group(self, values: np.ndarray) -> int:
        """Return g of one group, whose values ascend."""
        size, delta = len(values), self.sensitivity
        if not size:
            return self.empty
        if self.statistic == "variance":
            return least(Spread(values), size, delta, self.resolution)
        room = 4 * (size + 1) * delta, 4 * self.empty
        windows = Windows.of(self.statistic, values, self.resolution, self.trim, *room)
        return settled(windows, delta, self.empty)

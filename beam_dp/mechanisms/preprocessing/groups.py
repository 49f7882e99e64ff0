"""Release g of many databases at once, as integers on a public grid, with noise.

`PreprocessedStatistic` computes g in whole steps of a grid that parameters fix, without any
rounding that depends on the data; one person moves g by at most Delta steps, exactly (see `windows`
for rounding down). Integer noise for that sensitivity is added. The size of a step only scales the
result.

The values of all databases (groups) follow each other, in whole units; group i is
`units[offsets[i]:offsets[i + 1]]`. Groups without values have g = f(empty).
"""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
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
        units: as for `PreprocessedStatistic.values`.
        offsets: as for `PreprocessedStatistic.values`.
        budget: what each group costs.
        noise: the randomness; the system's by default.
    """
    exact = statistic.values(units, offsets)
    return AdditiveNoise(budget).add(exact, statistic.sensitivity, noise or Noise())

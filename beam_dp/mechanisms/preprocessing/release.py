"""Release g with noise, as integers on a public grid, so that the proof holds to the last bit.

`groups` computes g in whole steps of a grid that parameters fix, without any rounding that depends
on the data; one person moves g by at most Delta steps, exactly. Integer noise for that sensitivity
is added. The size of a step only scales the result.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.preprocessing import groups
from beam_dp.mechanisms.preprocessing.groups import Grid, Groups

STATISTICS = (
    "mean",
    "median",
    "maximum",
    "minimum",
    "trimmed_mean",
    "variance",
    "sample_variance",
)


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
        values = Groups(units, offsets)
        grid = Grid(self.sensitivity, self.empty, self.resolution)
        if self.statistic == "trimmed_mean":
            return groups.means(values, grid, Fraction(self.trim))
        if self.statistic.endswith("variance"):
            return groups.variances(values, grid, self.statistic == "sample_variance")
        functions = {
            "mean": groups.means,
            "median": groups.medians,
            "maximum": groups.maxima,
            "minimum": groups.minima,
        }
        return functions[self.statistic](values, grid)


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

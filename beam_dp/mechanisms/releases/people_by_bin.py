"""Release a histogram: the number of people per public bin, plus noise.

*Privacy.* Each person of a partition is in one bin at most (`PersonBins`), whatever the number of
bins. So adding or removing a person changes one of the counts, by 1: in the L1 and in the L2 norm,
the whole histogram of a partition moves by at most 1. Independent discrete Laplace noise of rate
epsilon on every bin is therefore epsilon-DP for all bins together (Dwork, McSherry, Nissim, Smith,
2006, example 3), and discrete Gaussian noise of variance 1 / (2 rho) is rho-zCDP (Canonne, Kamath,
Steinke, 2020, Theorem 4). A count alone cannot be released better: at pure epsilon this noise is
optimal for every loss that grows with the error (Ghosh, Roughgarden, Sundararajan, 2009).

*Intervals.* Of each bin the true number is within t of the released one, but for a chance of alpha,
where t is the tail of the noise: of discrete Laplace noise P(|noise| > t) = 2 q^(t + 1) / (1 + q)
with q = e^-epsilon. For all B bins together, the chance is at most B alpha.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.foresight import Crowd, Foreseen
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.releases.released import Description, Release, Released, Spending
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.mechanisms.summaries.person_bins import PersonBins


@dataclasses.dataclass(frozen=True)
class HistogramRelease(Release):
    """A row of numbers per partition, one per bin; see the module.

    Attributes:
        measure: who is in which bucket.
        first: the first bucket that is a bin; those before and after the bins are not released.
        bins: how many buckets are bins.
        noise_cost: the cost of the noise on all bins, per partition.
        alpha: the chance that the noise of one bin strays further than its interval says.
    """

    measure: PersonBins
    first: int
    bins: int
    noise_cost: Budget
    alpha: Fraction

    @property
    def measures(self) -> tuple[PersonBins, ...]:
        """The people per bucket."""
        return (self.measure,)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The noise, once for all bins: they have nobody in common."""
        return (Spending(self.noise_cost, "noise"),)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one noisy number per partition and bin."""
        people, _ = view.histogram(0, len(self.measure.thresholds) + 1)
        counts = people[:, self.first : self.first + self.bins]
        adder = AdditiveNoise(self.noise_cost)
        flat = adder.add(counts.ravel(), np.ones(counts.size, np.int64), noise)
        bound = float(adder.bound(1, self.alpha))
        return Released.within(flat.reshape(counts.shape), np.full(counts.shape, bound))

    def with_lost(self, released: Released, share: float) -> Released:
        """Return the numbers with the people who were cut."""
        return released.plus_lost(share)

    def foreseen(self, crowd: Crowd) -> Foreseen | None:
        """Return the number of people of one bin, if they are spread evenly, with the noise."""
        reach, each = AdditiveNoise(self.noise_cost).bound(1, self.alpha), crowd.people / self.bins
        return Foreseen(each, max(each - reach, 0.0), each + reach)

    def describe(self) -> Description:
        """Describe the noise on each bin."""
        adder = AdditiveNoise(self.noise_cost)
        mechanism = f"{adder.name} on each of {self.bins} bins, with nobody in two"
        return Description(mechanism, f"{adder.scale:.4g}", 0, f"{adder.mean_error:.4g}")

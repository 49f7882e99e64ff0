"""A median of people with an epsilon of their own: each has a vote of a weight of their own.

Person i counts w_i = floor(D epsilon_i / epsilon) / D of a person, epsilon the largest. What
`RankSearch` sums over people is then F_i(y) w_i instead of F_i(y), so in the proof of its theorem
one person changes the queries by d_j, non-decreasing in j, from -p w_i to (1 - p) w_i: every bound
there is w_i times what it was,

    max((1 - p) w_i eps1, p w_i eps2) and p w_i eps1 + w_i eps2 <= w_i epsilon <= epsilon_i.

So the release is epsilon_i-differentially private for person i. That is the personalised search in
place of the exponential mechanism of Cummings and Durfee (2020, Proposition 7.5). What it finds is
the median of the weights: who asks for more privacy has less of a say.
"""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.integers import scale
from beam_dp.mechanisms.releases.released import Released
from beam_dp.mechanisms.search import RankProfile, RankSearch
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import Cells


@dataclasses.dataclass(frozen=True)
class WeightedMedian:
    """The median of one number per person, by weight; the error bound is in largest weights.

    Attributes:
        relation: one line per person with their number and tier.
        unit: what one unit of a number is worth.
        epsilons: of the tiers, in rising order.
        search: the search, with the budget of the last tier in one partition.
        candidates: the public outputs.
    """

    relation: Relation
    unit: Fraction
    epsilons: tuple[Fraction, ...]
    search: RankSearch
    candidates: Candidates

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The one relation."""
        return (self.relation,)

    @property
    def cost(self) -> Budget:
        """What one partition costs who allows most."""
        return self.search.cost

    @property
    def shift(self) -> int:
        """How far the rank may be off, in people of the largest weight."""
        return self.search.shift(self.candidates.size)

    @property
    def weights(self) -> np.ndarray:
        """What a person of each tier adds to a rank, in units of the search's resolution."""
        top = self.epsilons[-1]
        shares = [each / top * self.search.resolution // 1 for each in self.epsilons]
        return np.array(shares, np.int64)

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one value per partition; there is no clip."""
        lines = cells.lines(first)
        order = np.argsort(lines.places, kind="stable")
        found = self.candidates.indexes(scale(lines.items[order], self.unit).astype(float))
        places = np.minimum(found, self.candidates.size - 1)
        tiers = np.minimum(lines.counts[order], len(self.epsilons)) - 1
        edges = np.searchsorted(lines.places[order], np.arange(cells.size + 1))
        values = [
            self._chosen(places[start:end], tiers[start:end], noise)
            for start, end in itertools.pairwise(edges.tolist())
        ]
        return Released(np.array(values, float), np.full(len(values), float(self.shift)))

    def _chosen(self, places: np.ndarray, tiers: np.ndarray, noise: Noise) -> float:
        profile = RankProfile(places, self.weights[tiers], self.search.resolution)
        return float(self.search.choose_from(profile, self.candidates, noise))

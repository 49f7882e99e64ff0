"""Release a median of people with an epsilon for each: each person's vote has a weight.

Person i counts w_i = floor(D epsilon_i / epsilon) / D of a person, epsilon the largest. By the
theorem of `CentralSearch` a search that is epsilon-differentially private for a whole person is
(w_i epsilon)-differentially private for somebody who has w_i in all, and w_i epsilon <= epsilon_i.
This search takes the place of the personalised exponential mechanism of Cummings and Durfee (2020,
Proposition 7.5). The result is the median by weight: a person who asks for more privacy counts
less. NaN: people weigh too little.
"""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.integers import scale
from beam_dp.mechanisms.releases.released import (
    Description,
    Release,
    Released,
    Spending,
    people,
)
from beam_dp.mechanisms.search.ranks.central import CentralSearch
from beam_dp.mechanisms.search.ranks.node import Answer, Node
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView


@dataclasses.dataclass(frozen=True)
class WeightedMedian(Release):
    """The median of one number per person, by weight; the error bound is in largest weights.

    Attributes:
        relation: one line per person with their number and tier.
        unit: what one unit of a number is worth.
        epsilons: the epsilons of the tiers, in rising order.
        search: the search, with the budget of the last tier in one partition.
        candidates: the public outputs.
    """

    relation: Relation
    unit: Fraction
    epsilons: tuple[Fraction, ...]
    search: CentralSearch
    candidates: Candidates

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation alone."""
        return (self.relation,)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What one partition costs a person of the largest epsilon."""
        return (Spending(self.search.cost),)

    @property
    def shift(self) -> int:
        """How far the rank may be off, in people of the largest weight."""
        return self.search.usual_error

    @property
    def weights(self) -> np.ndarray:
        """How much a person of each tier adds to a rank, in units of the search's resolution."""
        top = self.epsilons[-1]
        shares = [epsilon / top * self.search.resolution // 1 for epsilon in self.epsilons]
        return np.array(shares, np.int64)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no clip."""
        lines = view.lines(0)
        order = np.argsort(lines.indexes, kind="stable")
        above = self.candidates.indexes(scale(lines.items[order], self.unit).astype(float))
        indexes = np.minimum(above, self.candidates.size - 1)
        tiers = np.minimum(lines.counts[order], len(self.epsilons)) - 1
        edges = np.searchsorted(lines.indexes[order], np.arange(view.size + 1))
        answers = [
            self._answer(indexes[start:end], tiers[start:end], noise)
            for start, end in itertools.pairwise(edges.tolist())
        ]
        values = np.array([answer.value(self.candidates) for answer in answers], float)
        return Released.ranked(values, np.array([answer.error for answer in answers], float))

    def _answer(self, indexes: np.ndarray, tiers: np.ndarray, noise: Noise) -> Answer:
        node = Node.of(indexes, self.weights[tiers], self.candidates.size)
        return self.search.choose_at(node, self.candidates, noise)

    def describe(self) -> Description:
        """Describe whose ranks are searched."""
        mechanism = "rank search, each person counts by their epsilon"
        return Description(mechanism, "-", self.shift, people(self.shift))

"""Release a statistic of people with an epsilon each: g with noise of one scale, or a median.

*Preprocessing.* With noise of scale b (steps of the grid) and Delta_i = floor(b e_i), person i pays Delta_i / b <=
e_i for a number that they move by at most Delta_i (Cummings, Durfee 2020, Proposition 7.3). Here
e_i is the rest of epsilon_i after the private choice of the bound R on people's numbers and, for
extremes, of the number n of people. These cost everybody the same, a third and a sixth of the
smallest epsilon. So each person pays epsilon_i in all, whatever the rows of the others are.

For a person of the largest epsilon, Delta is R (sums) or 2 R / n (extremes), or the user's
sensitivity. g is

* for sums, the sum of x_i cut to [-Delta_i, Delta_i];
* for the maximum, the least y + sum of Delta_i over all x_i > y, for y = empty or some x_i: the
  preprocessed max(empty, largest value). That is monotone, so the bound from below never binds,
  and to lower it to y, all people above y must go. The minimum mirrors it.

*A median* is searched, and each person's vote has a weight. Person i counts w_i =
floor(D epsilon_i / epsilon) / D of a person, epsilon the largest. By the theorem of `CentralSearch`
a search that is epsilon-differentially private for a whole person is (w_i epsilon)-differentially
private for somebody who has w_i in all, and w_i epsilon <= epsilon_i. This takes the place of the
personalised exponential mechanism of Cummings and Durfee (2020, Proposition 7.5). The result is the
median by weight: a person who asks for more privacy counts less. NaN: people weigh too little.
"""

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.noise.tails import laplace_bound
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.releases.preprocessed import FINE, PreprocessedRelease, grid
from beam_dp.mechanisms.releases.released import (
    Description,
    Release,
    Released,
    Spending,
    people,
)
from beam_dp.mechanisms.search.ranks.central import CentralSearch
from beam_dp.mechanisms.search.ranks.node import Node
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView


def lines_of(view: PartitionView, tiers: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the numbers of each partition's people, and the index of each person's tier."""
    lines = view.lines(0)
    order = np.argsort(lines.indexes, kind="stable")
    ends = np.searchsorted(lines.indexes[order], np.arange(1, view.size + 1)).tolist()
    numbers = np.split(lines.items[order], ends)[:-1]
    tier = np.split(np.minimum(lines.counts[order], tiers) - 1, ends)[:-1]
    return zip(numbers, tier, strict=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PersonEpsilonRelease(PreprocessedRelease):
    """One statistic per partition (see the module), with an epsilon for each person.

    Attributes:
        epsilons: the epsilon that each tier pays for g, per partition, in rising order.
    """

    epsilons: tuple[Fraction, ...]

    def _values(
        self, view: PartitionView, levels: np.ndarray, bound: int | None, noise: Noise
    ) -> np.ndarray:
        values = np.full(view.size, 0.0)
        of_people = lines_of(view, len(self.epsilons))
        for partition, (numbers, tiers) in enumerate(of_people):
            delta = self._largest(int(levels[partition]), bound)
            values[partition] = self._drawn(integers.widen(numbers), tiers, delta, noise)
        return values

    def _largest(self, level: int, bound: int | None) -> Fraction:
        """Return Delta in units for a person of the largest epsilon."""
        if self.statistic == "sum" and self.sensitivity is None:
            assert bound is not None
            return Fraction(bound)
        return self._delta(level, bound)

    def _drawn(
        self, numbers: np.ndarray, tiers: np.ndarray, delta: Fraction, noise: Noise
    ) -> float:
        """Return g plus noise in the user's scale."""
        coarse, resolution = grid(delta, 1)
        per_unit = Fraction(resolution, 1 << coarse)
        width = math.ceil(delta * per_unit) / self.epsilons[-1]
        steps = np.array([math.floor(width * each) for each in self.epsilons], object)
        empty = round(self.empty / self.unit * per_unit)
        exactly = cut(self.statistic, (numbers >> coarse) * resolution, steps[tiers], empty)
        drawn = int(noise.discrete_laplace(1 / width, 1)[0])
        step = self.unit / per_unit
        return float((exactly + drawn) * step)

    def describe(self) -> Description:
        """Describe it in units of Delta, the sensitivity of a person of the largest epsilon."""
        rate = self.epsilons[-1]
        scale = f"{float(1 / rate):.4g} Delta"
        parts = ", ".join(f"{float(epsilon / rate):.3g}" for epsilon in self.epsilons)
        bound = laplace_bound(rate / FINE, self.alpha) / FINE
        how = "given sensitivity" if self.sensitivity is not None else "private sensitivity"
        return Description(
            f"preprocessing for a {how} and an epsilon per person, then noise",
            scale,
            self.shift,
            f"{scale} + |f - g|",
            f"by epsilon, a person moves g by at most {parts} times Delta; noise within "
            f"{bound:.4g} Delta for 95%",
        )


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
        answers = [
            self.search.choose_at(self._node(numbers, tiers), self.candidates, noise)
            for numbers, tiers in lines_of(view, len(self.epsilons))
        ]
        values = np.array([answer.value(self.candidates) for answer in answers], float)
        return Released.ranked(values, np.array([answer.error for answer in answers], float))

    def _node(self, numbers: np.ndarray, tiers: np.ndarray) -> Node:
        above = self.candidates.indexes(integers.scale(numbers, self.unit).astype(float))
        indexes = np.minimum(above, self.candidates.size - 1)
        return Node.of(indexes, self.weights[tiers], self.candidates.size)

    def describe(self) -> Description:
        """Describe whose ranks are searched."""
        mechanism = "rank search, each person counts by their epsilon"
        return Description(mechanism, "-", self.shift, people(self.shift))


def cut(statistic: str, numbers: np.ndarray, sensitivities: np.ndarray, empty: int) -> int:
    """Return g of one partition, in steps; person i moves it by at most their sensitivity.

    Args:
        statistic: "sum", "maximum" or "minimum".
        numbers: Python integers, one per person.
        sensitivities: Delta_i, Python integers of at least 0.
        empty: f of nobody, which is 0 for sums.
    """
    if statistic == "sum":
        return int(np.sum(np.clip(numbers, -sensitivities, sensitivities), initial=0))
    if statistic == "minimum":
        return -cut("maximum", -numbers, sensitivities, -empty)
    above = numbers > empty
    order = np.argsort(-numbers[above], kind="stable")
    values, prices = numbers[above][order], sensitivities[above][order]
    paid = np.append(np.array([0], object), np.cumsum(prices))
    return int(min(np.append(values, np.array([empty], object)) + paid))

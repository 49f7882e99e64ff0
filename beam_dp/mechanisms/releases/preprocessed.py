"""Release a statistic of one number per person by sensitivity preprocessing.

With R a bound on people's numbers and n a number of people, both of which are released privately,
one person among n with numbers in [-R, R] moves a mean by at most Delta = 2 R / n, and g = f where
the range of the numbers is at most n Delta = 2 R and f(empty) is within it (`preprocessing`). So
Delta is a function of released numbers. For every Delta, |g(D) - g(D - i)| <= Delta holds for all
data, and the release is the adaptive composition of three private releases: R (the highest bucket
of a noisy histogram that shows people, `ClipChoice`), n (noise), and g plus noise of size Delta
(Dwork, Rothblum, Vadhan 2010; Bun, Steinke 2016, Lemma 2.3).

n is taken at the lower end of its noise, and rounded down to a power of 2^(1/4): all partitions
with the same power are computed together. g is an integer number of steps of a grid (`grid`).
"""

import dataclasses
import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.preprocessing import groups
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.releases.released import (
    Chooser,
    Description,
    Release,
    Released,
    Spending,
)
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.mechanisms.summaries.person_value import of_people

SHARES = Fraction(1, 3), Fraction(1, 6), Fraction(1, 2)
"""The shares of R, n and g in the budget."""
CLIPS = tuple(1 << power for power in range(84))
FINE = 1 << 20
"""Delta in steps of its grid, for plans: these state bounds to about a millionth."""
_BITS = 20  # a Delta has 2^20 steps of the grid or more
_QUARTERS = 4  # powers of 2^(1/4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessedRelease(Release):
    """One statistic per partition; see the module.

    Attributes:
        relation: who owns which values, in units.
        unit: what one unit is worth.
        statistic: its name in `preprocessing.groups`.
        trim: the share of people that a trimmed mean leaves out at each end.
        person_value: what a person's values become.
        empty: f of nobody, in the user's scale.
        root: whether the root of the result is released.
        sensitivity: Delta in the user's scale; None: from `scale` and `people`.
        scale: how R is chosen.
        people: how n is released.
        noise_cost: the cost of g, per partition.
        cost: the cost of g and n, per partition.
        alpha: the chance that the noise strays further than the plan says.
    """

    relation: Relation
    unit: Fraction
    statistic: str
    trim: Fraction
    person_value: str
    empty: Fraction
    root: bool
    sensitivity: Fraction | None
    scale: ClippedSum | None
    people: ClippedSum | None
    noise_cost: Budget
    cost: Budget
    alpha: Fraction

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation, and the measure that counts n."""
        return (self.relation, *(self.people.measures if self.people is not None else ()))

    @property
    def spends(self) -> tuple[Spending, ...]:
        """g and n in each partition, and R once."""
        own = (Spending(self.cost),)
        chosen = self.scale.spends_on_clip if self.scale is not None else ()
        return (*own, *chosen)

    @property
    def chooser(self) -> Chooser | None:
        """The chooser of R, for all partitions."""
        return self.scale

    @property
    def shift(self) -> int:
        """How many people may have numbers beyond R."""
        return self.scale.shift if self.scale is not None else 0

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one number per partition.

        Args:
            view: the partitions, with the choice of R; without where the sensitivity is given.
            noise: the randomness.
        """
        bound = self._bound(view)
        values = np.full(view.size, math.nan)  # too few people for R
        if bound is not None or self.sensitivity is not None:
            values = self._values(view, self._levels(view, noise), bound, noise)
        return Released.within(values, np.full(view.size, math.inf))

    def _values(
        self, view: PartitionView, levels: np.ndarray, bound: int | None, noise: Noise
    ) -> np.ndarray:
        numbers, offsets = self._numbers(view)
        values = np.full(view.size, 0.0)
        for level in np.unique(levels).tolist():
            alike = np.flatnonzero(levels == level)
            delta = self._delta(level, bound)
            values[alike] = self._noisy(*_groups(numbers, offsets, alike), delta, noise)
        if self._is_variance:
            values = np.maximum(values, 0.0)
        return np.sqrt(values) if self.root else values

    def _levels(self, view: PartitionView, noise: Noise) -> np.ndarray:
        """Return n of each partition as a power of 2^(1/4)."""
        if self.people is None:
            return np.zeros(view.size, np.int64)
        least = np.maximum(self.people.draw(view.after(1), noise).low, 1.0)
        return np.asarray(np.floor(_QUARTERS * np.log2(least)), np.int64)

    def _bound(self, view: PartitionView) -> int | None:
        """Return R in units; None where nobody was shown, or where the sensitivity is given."""
        if self.scale is None or view.clip is None:
            return None
        return self.scale.largest(view.clip)

    def _delta(self, level: int, bound: int | None) -> Fraction:
        """Return Delta in units (squared units for variances)."""
        power = 2 if self._is_variance else 1
        if self.sensitivity is not None:
            return self.sensitivity / self.unit**power
        assert bound is not None
        people = max(Fraction(1), Fraction(2 ** (level / _QUARTERS)))
        kept = 1 - 2 * self.trim
        return Fraction(2 * bound) ** power / (people * kept)

    @property
    def _is_variance(self) -> bool:
        return self.statistic.endswith("variance")

    def _numbers(self, view: PartitionView) -> tuple[np.ndarray, np.ndarray]:
        """Return one integer per person, and the index at which each partition begins."""
        lines = view.lines(0)
        order = np.lexsort((*lines.people, lines.indexes))
        partition, person = lines.indexes[order], ordering.pick(lines.people, order)
        starts = np.flatnonzero(ordering.changes(partition[None]) | ordering.changes(person))
        items, counts = lines.items[order], lines.counts[order]
        numbers = of_people(self.person_value, items, counts, starts)
        return numbers, np.searchsorted(partition[starts], np.arange(view.size + 1))

    def _noisy(
        self, numbers: np.ndarray, offsets: np.ndarray, delta: Fraction, noise: Noise
    ) -> np.ndarray:
        """Return g plus noise in the user's scale."""
        power = 2 if self._is_variance else 1
        coarse, resolution = grid(delta, power)
        steps_per_unit = Fraction(resolution, 1 << power * coarse)
        sensitivity = math.ceil(delta * steps_per_unit)
        empty = round(self.empty / self.unit**power * steps_per_unit)
        trim = self.trim or Fraction(1, 10)
        statistic = groups.PreprocessedStatistic(
            self.statistic, sensitivity, empty, resolution, trim
        )
        # Each person's number is rounded alone, so that one person still moves g by at most Delta.
        steps = groups.noisy(statistic, numbers >> coarse, offsets, self.noise_cost, noise)
        step = self.unit**power / steps_per_unit
        if steps.dtype == object:  # beyond the range of floats, where `empty` is far from the data
            return np.array([float(number * step) for number in steps.tolist()])
        return np.asarray(steps.astype(float) * float(step))

    def describe(self) -> Description:
        """Describe the scale of the noise, how far it strays (95%), and when g = f.

        When g = f: |f - g| is at most the greatest sum, over the orders in which people may come,
        of the amounts by which each person moves f beyond Delta (Cummings, Durfee 2020, Lemma 3.6).

        *Means*: without its k largest values a mean falls by at most k / n times the range, which
        is at most k Delta. The same holds upwards, and f(empty) is within n Delta. So the bounds
        h_- and h_+ of their section 5 are the mean itself.

        *Variances*: each removal from m people lowers the variance by at most range^2 / m and costs
        Delta. Of the d < variance / Delta removals that may be worth it, none saves more than
        range^2 / (n - d) <= Delta.
        """
        adder = AdditiveNoise(self.noise_cost)
        bound = adder.bound(FINE, self.alpha) / FINE
        unchanged = "g = f where nobody, coming to any others, moves f by more than Delta"
        if self.statistic == "mean":
            around = f"|mean - {float(self.empty):g}|"
            unchanged = f"g = f where the range and {around} are at most n Delta"
        if self._is_variance:
            unchanged = "g = f where range^2 + variance is at most n Delta"
        if self.sensitivity is not None:
            how, delta, per = "given sensitivity", float(self.sensitivity), ""
        elif self._is_variance:
            how, delta, per = "private sensitivity", 4.0, " R^2/n"
        else:
            how, delta, per = "private sensitivity", float(2 / (1 - 2 * self.trim)), " R/n"
        return Description(
            f"preprocessing for a {how}, then noise",
            f"{adder.scale * delta:.4g}{per}",
            self.shift,
            f"{adder.mean_error * delta:.4g}{per} + |f - g|",
            f"Delta = {delta:.4g}{per}; {unchanged}; noise within {bound * delta:.4g}{per} for 95%",
        )


def grid(delta: Fraction, power: int) -> tuple[int, int]:
    """Return by how many bits numbers are cut, and how many steps a unit then has.

    Delta has 2^20 steps or more. Cutting bits moves a mean by less than Delta / 2^20. It moves a
    variance of n people, where Delta = 4 R^2 / n, by at most Delta sqrt(n) / 2^17, and by about
    Delta / 2^18 where the numbers are not aligned with the cut.

    Args:
        delta: in units to the power.
        power: 2 for variances, 1 for other statistics.
    """
    bits = math.floor(math.log2(delta))
    cut = max(0, bits - _BITS) if power == 1 else max(0, (bits - 36) // 2)
    return cut, 1 << max(0, _BITS - bits + power * cut)


def _groups(
    numbers: np.ndarray, offsets: np.ndarray, indexes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of some partitions, and the index at which each partition begins."""
    sizes = np.diff(offsets)[indexes]
    ends = np.cumsum(sizes)
    inside = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    return numbers[np.repeat(offsets[indexes], sizes) + inside], np.concatenate([[0], ends])

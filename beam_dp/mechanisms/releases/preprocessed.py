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
from beam_dp.mechanisms.preprocessing import release
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
        statistic: its name in `preprocessing.release`.
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
        if bound is None and self.sensitivity is None:
            return self._unshown(view.size)
        levels = self._levels(view, noise)
        numbers, offsets = self._numbers(view)
        values = np.full(view.size, 0.0)
        for level in np.unique(levels).tolist():
            alike = np.flatnonzero(levels == level)
            delta = self._delta(level, bound)
            values[alike] = self._noisy(*_groups(numbers, offsets, alike), delta, noise)
        return Released.within(self._cleaned(values), np.full(view.size, math.inf))

    def _unshown(self, size: int) -> Released:
        """Return that there are too few people for R."""
        return Released.within(np.full(size, math.nan), np.full(size, math.inf))

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
        statistic = release.PreprocessedStatistic(
            self.statistic, sensitivity, empty, resolution, trim
        )
        # Each person's number is rounded alone, so that one person still moves g by at most Delta.
        steps = release.noisy(statistic, numbers >> coarse, offsets, self.noise_cost, noise)
        step = self.unit**power / steps_per_unit
        if steps.dtype == object:  # beyond the range of floats, where `empty` is far from the data
            return np.array([float(number * step) for number in steps.tolist()])
        return np.asarray(steps.astype(float) * float(step))

    def _cleaned(self, values: np.ndarray) -> np.ndarray:
        """Return variances of at least 0, or their roots."""
        kept = np.maximum(values, 0.0) if self._is_variance else values
        return np.sqrt(kept) if self.root else kept

    def describe(self) -> Description:
        """Describe the scale of the noise, how far it strays (95%), and when g = f.

        When g = f is proved beside `preprocessing.enough_for_mean` and `enough_for_variance`; for
        the other statistics by Lemma 3.6 of Cummings and Durfee 2020, which holds for all: |f - g|
        is at most the greatest sum, over the orders in which people may come, of the amounts by
        which each person moves f beyond Delta.
        """
        adder = AdditiveNoise(self.noise_cost)
        bound = adder.bound(FINE, self.alpha) / FINE
        how, delta, per = (
            "private sensitivity",
            self._delta_over_bound,
            f" {self._bound_per_person}",
        )
        if self.sensitivity is not None:
            how, delta, per = "given sensitivity", float(self.sensitivity), ""
        return Description(
            f"preprocessing for a {how}, then noise",
            f"{adder.scale * delta:.4g}{per}",
            self.shift,
            f"{adder.mean_error * delta:.4g}{per} + |f - g|",
            f"Delta = {delta:.4g}{per}; {self._unchanged}; noise within {bound * delta:.4g}{per} "
            "for 95%",
        )

    @property
    def _delta_over_bound(self) -> float:
        """Delta as a multiple of R / n (variances: of R^2 / n), for the R and n of the run."""
        return 4.0 if self._is_variance else float(2 / (1 - 2 * self.trim))

    @property
    def _bound_per_person(self) -> str:
        return "R^2/n" if self._is_variance else "R/n"

    @property
    def _unchanged(self) -> str:
        if self.statistic == "mean":
            around = f"|mean - {float(self.empty):g}|"
            return f"g = f where the range and {around} are at most n Delta"
        if self._is_variance:
            return "g = f where range^2 + variance is at most n Delta"
        return "g = f where nobody, coming to any others, moves f by more than Delta"


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

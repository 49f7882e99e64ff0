"""Release a statistic of one number per person by sensitivity preprocessing.

With R a bound on people's numbers and n a number of people, both private releases of their own, one
person among n with numbers in [-R, R] moves a mean by at most Delta = 2 R / n, and g = f where the
range of the numbers is at most n Delta = 2 R and f(empty) is within it (`preprocessing`). So Delta
is a function of what was released; for whatever Delta comes out, |g(D) - g(D - i)| <= Delta holds
for all data, and the release is the adaptive composition of three private ones: R (`AboveThreshold`
on the number of people above y), n (noise), and g plus noise of size Delta (Dwork, Rothblum, Vadhan
2010; Bun, Steinke 2016, Lemma 2.3).

n is taken at the lower end of its noise, and rounded down to a power of 2^(1/4): all partitions
with the same one are computed together. g is an integer number of steps of a grid (`grid`).
"""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.preprocessing import release
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.releases.released import PeopleRelease, Released
from beam_dp.mechanisms.summaries import person_value
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import Cells

SHARES = Fraction(1, 3), Fraction(1, 6), Fraction(1, 2)
"""Of the budget, for R, n and g."""
CLIPS = tuple(1 << power for power in range(84))
_BITS = 20  # a Delta has 2^20 steps of the grid or more
_QUARTERS = 4  # powers of 2^(1/4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessedRelease:
    """One statistic per partition; see the module.

    Attributes:
        relation: who owns which values, in units.
        unit: what one unit is worth.
        statistic: as `preprocessing.release` calls it.
        trim: the share that a trimmed mean leaves out at each end.
        person_value: what a person's values become.
        empty: f of nobody, in the user's scale.
        root: release the root of the result.
        sensitivity: Delta in the user's scale; None: from `scale` and `people`.
        scale: how R is chosen.
        people: how n is released.
        noise_cost: of g, per partition.
        cost: of g and n, per partition.
        alpha: the chance that the error bound fails.
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
    people: PeopleRelease | None
    noise_cost: Budget
    cost: Budget
    alpha: Fraction

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation, and what n is counted with."""
        return (self.relation, *(self.people.measures if self.people is not None else ()))

    @property
    def chooser(self) -> ClippedSum | None:
        """What chooses R, for all partitions."""
        return self.scale

    @property
    def shift(self) -> int:
        """How many people may be beyond R."""
        return self.scale.shift if self.scale is not None else 0

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one number per partition.

        Args:
            cells: the summary, seen from the partitions.
            first: the place of the relation.
            clip: the place of R in the thresholds of `scale`; None for a given sensitivity.
            noise: the randomness.
        """
        levels, shown = self._levels(cells, first, noise)
        numbers, offsets = self._numbers(cells, first)
        values, errors = np.full(cells.size, 0.0), np.full(cells.size, math.inf)
        for level in np.unique(levels).tolist():
            places = np.flatnonzero(levels == level)
            delta = self._delta(level, clip)
            found = self._noisy(*_groups(numbers, offsets, places), delta, noise)
            values[places], errors[places] = found
        return Released(*self._cleaned(values, errors), shown)

    def _levels(self, cells: Cells, first: int, noise: Noise) -> tuple[np.ndarray, float]:
        """Return per partition the power of 2^(1/4) of the number of people, and those shown."""
        if self.people is None:
            return np.zeros(cells.size, np.int64), 0.0
        counted = self.people.release(cells, first + 1, None, noise)
        least = np.maximum(counted.values.astype(float) - counted.errors, 1.0)
        return np.floor(_QUARTERS * np.log2(least)).astype(np.int64), counted.shown

    def _delta(self, level: int, clip: int | None) -> Fraction:
        """Return Delta in units (squared units for variances)."""
        power = 2 if self._is_variance else 1
        if self.sensitivity is not None:
            return self.sensitivity / self.unit**power
        assert self.scale is not None and clip is not None
        people = max(Fraction(1), Fraction(2 ** (level / _QUARTERS)))
        kept = 1 - 2 * self.trim
        return Fraction(2 * self.scale.thresholds[clip]) ** power / (people * kept)

    @property
    def _is_variance(self) -> bool:
        return self.statistic.endswith("variance")

    def _numbers(self, cells: Cells, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Return one integer per person, partition after partition, and where each begins."""
        lines = cells.lines(first)
        order = np.lexsort((*lines.people, lines.places))
        place, person = lines.places[order], ordering.pick(lines.people, order)
        starts = np.flatnonzero(ordering.changes(place[None]) | ordering.changes(person))
        items, counts = lines.items[order], lines.counts[order]
        numbers = person_value.of_people(self.person_value, items, counts, starts)
        return numbers, np.searchsorted(place[starts], np.arange(cells.size + 1))

    def _noisy(
        self, numbers: np.ndarray, offsets: np.ndarray, delta: Fraction, noise: Noise
    ) -> tuple[np.ndarray, float]:
        """Return g plus noise in the user's scale, and how far the noise strays."""
        power = 2 if self._is_variance else 1
        coarse, resolution = grid(delta, power)
        steps_per_unit = Fraction(resolution, 1 << power * coarse)
        sensitivity = math.ceil(delta * steps_per_unit)
        empty = round(self.empty / self.unit**power * steps_per_unit)
        trim = self.trim or Fraction(1, 10)
        statistic = release.PreprocessedStatistic(
            self.statistic, sensitivity, empty, resolution, trim
        )
        # A person's number is rounded on its own, so that g still moves by Delta for one person.
        steps = release.noisy(statistic, numbers >> coarse, offsets, self.noise_cost, noise)
        step = self.unit**power / steps_per_unit
        bound = AdditiveNoise(self.noise_cost).bound(sensitivity, self.alpha)
        if steps.dtype == object:  # more than a float may hold, where `empty` is far from the data
            return np.array([float(number * step) for number in steps.tolist()]), bound * float(
                step
            )
        return steps.astype(float) * float(step), bound * float(step)

    def _cleaned(self, values: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return variances of at least 0, or their roots; g is at least 0, and so no farther."""
        kept = np.maximum(values, 0.0) if self._is_variance else values
        if not self.root:
            return kept, errors
        middle, low = np.sqrt(kept), np.sqrt(np.maximum(kept - errors, 0.0))
        return middle, np.maximum(np.sqrt(kept + errors) - middle, middle - low)


def grid(delta: Fraction, power: int) -> tuple[int, int]:
    """Return by how many bits numbers are cut, and how many steps a unit has then.

    A Delta has 2^20 steps or more. Cutting moves a mean by less than Delta / 2^20. It moves a
    variance of n people, where Delta = 4 R^2 / n, by at most Delta sqrt(n) / 2^17, and by about
    Delta / 2^18 where the numbers are not aligned with the cut.

    Args:
        delta: in units to the power.
        power: 2 for variances, 1 for others.
    """
    bits = math.floor(math.log2(delta))
    cut = max(0, bits - _BITS) if power == 1 else max(0, (bits - 36) // 2)
    return cut, 1 << max(0, _BITS - bits + power * cut)


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a preprocessed statistic is asked to be; the attributes of `PreprocessedRelease`."""

    statistic: str
    trim: Fraction
    person_value: str
    last_by: str | None
    sensitivity: Fraction | None
    empty: Fraction
    root: bool


def build(
    asked: Asked,
    relation: Relation,
    unit: Fraction,
    share: Budget,
    reach: int,
    alpha: Fraction,
    field: Callable[[str], int],
) -> PreprocessedRelease:
    """Return the release for a share of the budget: a third for R, a sixth for n, the rest for g.

    Args:
        asked: what the metric says.
        relation: the lines.
        unit: the grid of values.
        share: for all partitions of a person.
        reach: how many these are.
        alpha: the chance that the error bound fails.
        field: returns the field of an operation over the column.
    """
    scale, people, noise, each = None, None, share, Fraction(1, reach)
    if asked.sensitivity is None:
        search, counting, noise = share.split(SHARES)
        scale = scale_of(asked.person_value, unit, search, noise, alpha, field)
        people = PeopleRelease(counting.scaled(each), field("count"), alpha)
    cost = share if scale is None else share.scaled(sum(SHARES[1:], Fraction(0)))
    return PreprocessedRelease(
        relation=relation,
        unit=unit,
        statistic=asked.statistic,
        trim=asked.trim,
        person_value=asked.person_value,
        empty=asked.empty,
        root=asked.root,
        sensitivity=asked.sensitivity,
        scale=scale,
        people=people,
        noise_cost=noise.scaled(each),
        cost=cost.scaled(each),
        alpha=alpha,
    )


def scale_of(
    person_value: str,
    unit: Fraction,
    search: Budget,
    noise: Budget,
    alpha: Fraction,
    field: Callable[[str], int],
) -> ClippedSum:
    """Return what chooses R for all partitions, for the cost `search`."""
    peak = field("sum" if person_value == "sum" else "peak")
    return ClippedSum(peak, True, CLIPS, unit, search, noise, True, alpha)


def _groups(
    numbers: np.ndarray, offsets: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of some partitions, and where each begins."""
    sizes = np.diff(offsets)[places]
    ends = np.cumsum(sizes)
    inside = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    return numbers[np.repeat(offsets[places], sizes) + inside], np.concatenate([[0], ends])

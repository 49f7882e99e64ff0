"""Release g with a sensitivity for each person: noise of one scale, an epsilon for each.

With noise of scale b (steps of the grid) and Delta_i = floor(b e_i), person i pays Delta_i / b <=
e_i for a number that they move by at most Delta_i (Cummings, Durfee 2020, Proposition 7.3). Here
e_i is what is left of epsilon_i when the bound R on people's numbers, and for extremes the number n
of people, were chosen privately: these cost everybody the same, a third and a sixth of the smallest
epsilon. So each person pays epsilon_i in all, however the rows of the others look.

For the person who allows most, Delta is R (sums) or 2 R / n (extremes), or what was given. g is

* for sums, the sum of x_i cut to [-Delta_i, Delta_i];
* for the maximum, the least y + sum of Delta_i over all x_i > y, for y = empty or some x_i: the
  preprocessed max(empty, largest value), see `preprocessing.largest`. The minimum mirrors it.
"""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.noise.tails import laplace_bound
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.releases import preprocessed
from beam_dp.mechanisms.releases.preprocessed import SHARES, Asked, PreprocessedRelease, scale_of
from beam_dp.mechanisms.releases.released import EVIDENCE_ALPHA, PeopleRelease, Released
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import Cells


@dataclasses.dataclass(frozen=True, kw_only=True)
class TieredRelease(PreprocessedRelease):
    """One statistic per partition; see the module.

    Attributes:
        epsilons: what each tier pays for g, per partition, in rising order.
    """

    epsilons: tuple[Fraction, ...]

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one number per partition; the arguments are those of `PreprocessedRelease`."""
        levels, shown = self._levels(cells, first, noise)
        lines = cells.lines(first)
        order = np.argsort(lines.places, kind="stable")
        numbers = integers.widen(lines.items[order])
        tiers = np.minimum(lines.counts[order], len(self.epsilons)) - 1
        offsets = np.searchsorted(lines.places[order], np.arange(cells.size + 1))
        values, errors = np.full(cells.size, 0.0), np.full(cells.size, math.inf)
        for place, level in enumerate(levels.tolist()):
            own = slice(offsets[place], offsets[place + 1])
            delta = self._largest(level, clip)
            values[place], errors[place] = self._drawn(numbers[own], tiers[own], delta, noise)
            if self.statistic == "sum":
                shown += self._evidence(values[place], delta, cells.size)
        return Released(values, errors, shown)

    def _evidence(self, value: float, delta: Fraction, partitions: int) -> float:
        """Return how many people a sum needs at least, beyond what noise can be in any of them."""
        width = 1 / self.epsilons[-1]  # of the noise, in Delta, of which a person adds one at most
        beyond = float(width) * math.log(2 * partitions / float(EVIDENCE_ALPHA))
        return max(abs(value) / float(delta * self.unit) - beyond - 1, 0.0)

    def _largest(self, level: int, clip: int | None) -> Fraction:
        """Return Delta in units for the person who allows most."""
        if self.statistic == "sum" and self.sensitivity is None:
            assert self.scale is not None and clip is not None
            return Fraction(self.scale.thresholds[clip])
        return self._delta(level, clip)

    def _drawn(
        self, numbers: np.ndarray, tiers: np.ndarray, delta: Fraction, noise: Noise
    ) -> tuple[float, float]:
        """Return g plus noise in the user's scale, and how far the noise strays."""
        coarse, resolution = preprocessed.grid(delta, 1)
        per_unit = Fraction(resolution, 1 << coarse)
        width = math.ceil(delta * per_unit) / self.epsilons[-1]
        steps = np.array([math.floor(width * each) for each in self.epsilons], object)
        empty = round(self.empty / self.unit * per_unit)
        exactly = cut(self.statistic, (numbers >> coarse) * resolution, steps[tiers], empty)
        drawn = int(noise.discrete_laplace(1 / width, 1)[0])
        step = self.unit / per_unit
        return float((exactly + drawn) * step), laplace_bound(1 / width, self.alpha) * float(step)


def cut(statistic: str, numbers: np.ndarray, sensitivities: np.ndarray, empty: int) -> int:
    """Return g of one partition, in steps; person i moves it by at most their sensitivity.

    Args:
        statistic: "sum", "maximum" or "minimum".
        numbers: Python integers, one per person.
        sensitivities: Delta_i, Python integers of at least 0.
        empty: f of nobody; 0 is that of sums.
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


def build(
    asked: Asked,
    relation: Relation,
    unit: Fraction,
    epsilons: tuple[Fraction, ...],
    share: Budget,
    reach: int,
    alpha: Fraction,
    field: Callable[[str], int],
) -> TieredRelease:
    """Return the release; who allows most pays the whole share.

    Args:
        asked: what the metric says.
        relation: the lines.
        unit: the grid of values.
        epsilons: of the tiers, in rising order, for all partitions of a person.
        share: the last of them.
        reach: how many partitions a person may have.
        alpha: the chance that the error bound fails.
        field: returns the field of an operation over the column.
    """
    scale, people, each = None, None, Fraction(1, reach)
    searched = counted = Fraction(0)
    if asked.sensitivity is None:
        searched = epsilons[0] * SHARES[0]
        scale = scale_of(asked.person_value, unit, Budget(searched), share, alpha, field)
        if asked.statistic != "sum":
            counted = epsilons[0] * SHARES[1]
            people = PeopleRelease(Budget(counted * each), field("count"), alpha)
    levels = (*epsilons[:-1], share.amount)
    paid = tuple((level - searched - counted) * each for level in levels)
    return TieredRelease(
        relation=relation,
        unit=unit,
        statistic=asked.statistic,
        trim=asked.trim,
        person_value=asked.person_value,
        empty=asked.empty,
        root=False,
        sensitivity=asked.sensitivity,
        scale=scale,
        people=people,
        noise_cost=Budget(paid[-1]),
        cost=Budget(paid[-1] + counted * each),
        alpha=alpha,
        epsilons=paid,
    )

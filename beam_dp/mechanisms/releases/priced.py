"""Release a statistic of rows with several owners by a price and noise."""

import dataclasses
import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.integers import scale
from beam_dp.mechanisms.profiles.from_summaries import PackedProfiler
from beam_dp.mechanisms.profiles.packed.packings import Packed
from beam_dp.mechanisms.releases.clipped import PoolNoise, clip_then_noise
from beam_dp.mechanisms.releases.released import ALPHA, Description, Release, Released, Spending
from beam_dp.mechanisms.releases.shifted_inverse import as_array
from beam_dp.mechanisms.search.price_search import PriceSearch, index_of_price, price_at
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_TOP = index_of_price(1 << 52)  # weights are floats up to there (`value_rows`)


@dataclasses.dataclass(frozen=True)
class Priced(Release):
    """A price D, then noise of size D: what rows pack when nobody carries more than D.

    1. `PriceSearch` chooses a price on V, which is below the statistic's packing E by less than
       D / 31 (`profiles.packed.packings`). V rises by 0 to D for a person more.
    2. V at the price D that is `before` places before the chosen one, D_j, is released with noise
       of sensitivity D, at least 0. D depends on the data by D_j alone.

    *Why a price before.* Where people are alike D_j is up to eight times what one of them has
    (`PriceSearch`). E is concave, so that the number of people whom D cuts, its slope, is at most
    (E(D) - E(D_j / 8)) / (D - D_j / 8). One place before D is at least D_j / 2, and that is at most
    1/3 of what D_j adds to its eighth, in eighths, where `PriceSearch.shift` has 1/7: 7/3 of it are
    cut at most. Two places before D is at least D_j / 3, and 21/5 of it are. The places, and the
    share of the budget for the price, were settled on the questions of `benchmarks.published`.

    But for the noise the number, V rounded, is at most f, a whole number above V, and so is the
    lower end of the interval. How far f is above is not known: `TwoPhase` has the proof that
    nothing private can say it. A price far too large is chosen only if rho is large and all prices
    between are passed: one that is 32 times too large has a chance of about 0.0003. The interval is
    as wide then.

    Attributes:
        profiler: the statistic.
        unit: what one unit is worth.
        prices: the search for the price.
        noise_cost: the cost of the noise.
        alpha: the chance that the noise strays further than the interval says.
    """

    profiler: PackedProfiler
    unit: Fraction
    prices: PriceSearch
    noise_cost: Budget
    alpha: Fraction = ALPHA

    @classmethod
    def of(
        cls, profiler: PackedProfiler, unit: Fraction, budget: Budget, alpha: Fraction
    ) -> "Priced":
        """Return the release for a budget."""
        pricing, noise = budget.split((profiler.price_share, 1 - profiler.price_share))
        return cls(profiler, unit, PriceSearch(pricing), noise, alpha)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What the profiler needs."""
        return self.profiler.measures

    @property
    def spends(self) -> tuple[Spending, ...]:
        """Both draws together."""
        amount = self.prices.cost.amount + self.noise_cost.amount
        cost = Budget.zcdp(amount) if self.noise_cost.is_zcdp else Budget(amount)
        return (Spending(cost),)

    @property
    def shift(self) -> int:
        """How many people may be cut."""
        lost = Fraction(7, 3) if self.profiler.before == 1 else Fraction(21, 5)
        return math.ceil(lost * self.prices.shift(_TOP + 1))

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one number per partition; there is no shared clip."""
        drawn = [self.draw_one(self.profiler.packed(lines), noise) for lines in view.owned(0)]
        units = np.array([value for value, _ in drawn], object)
        values = as_array(scale(units, self.unit).tolist())
        return Released.at_least(values, np.array([error for _, error in drawn], np.float64))

    def draw_one(self, packed: Packed, noise: Noise) -> tuple[int, float]:
        """Return the number in units, and how far below the truth may be in the user's scale."""
        chosen = self.prices.choose(packed, _TOP, noise=noise)
        price = price_at(max(0, (_TOP if chosen is None else chosen) - self.profiler.before))
        adder = AdditiveNoise(self.noise_cost)
        # Rounding to whole numbers keeps steps of 0 to the price, which is whole.
        exact = np.array([math.floor(packed(Fraction(price)) + Fraction(1, 2))], object)
        value = int(adder.add(exact, np.array([price], object), noise)[0])
        return max(0, value), float(adder.bound(price, self.alpha) * self.unit)

    def describe(self) -> Description:
        """Describe the noise in clips."""
        return clip_then_noise("each partition", PoolNoise(self.noise_cost, (False,)), self.shift)

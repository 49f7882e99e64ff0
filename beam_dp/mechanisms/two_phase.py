"""Release a statistic with a removal profile in two phases: what one person counts, then noise.

The shifted inverse mechanism is never above f, but below it by the worth of some people. Where both
signs of an error are alike, noise of the worth of one person errs by far less. Nobody has to say
what that worth is: it is chosen by `PriceSearch`, on a twin of the statistic (`twins`).
"""

import dataclasses
import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.additive import AdditiveNoise
from beam_dp.mechanisms.budget import Budget
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.cells import Cells
from beam_dp.mechanisms.direct import Profiler, as_array
from beam_dp.mechanisms.grids import Number
from beam_dp.mechanisms.noise import Noise
from beam_dp.mechanisms.owned import Relation
from beam_dp.mechanisms.profile import Profile
from beam_dp.mechanisms.releases import ALPHA, Released, scale
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.prices import PriceSearch, Twin
from beam_dp.mechanisms.statistics import Measure
from beam_dp.mechanisms.twins import CoverTwin, ProfileTwin

SHARES = (Fraction(1, 10), Fraction(3, 10), Fraction(6, 10))
"""The floor's, the price's and the noise's part of the budget."""
COVER_SHARES = (Fraction(1, 30), Fraction(3, 10), Fraction(2, 3))
"""The same for a number of values, where that for D = 1 is the first."""
COVER_MISSED = 0.01
FLOOR_BETA, FLOOR_OVERSHOOT = 1e-3, 1e-4
"""Chances of a floor too far below the statistic, and of one above it, which then is released."""
_COVER_TOP = 40  # the largest price is 2^40 items


def split(budget: Budget) -> tuple[Budget, PriceSearch, Budget]:
    """Return what `TwoPhase` may spend on the floor, the search for the price, and the noise's."""
    floor, pricing, noise = budget.split(SHARES)
    return floor, PriceSearch(pricing), noise


def floor_search(budget: Budget, beta: float) -> AboveThreshold:
    """Return the search for the floor, for a release that may fail that often."""
    return AboveThreshold(budget, min(FLOOR_BETA, beta / 2), min(FLOOR_OVERSHOOT, beta / 2))


@dataclasses.dataclass(frozen=True)
class TwoPhase:
    """A floor, then a price, then noise.

    1. `AboveThreshold` finds a floor L that f exceeds by the worth of at most `removals` people.
    2. `PriceSearch` chooses what one person may count, D, on the twin of the profile above L.
    3. The twin at D is released with noise of sensitivity D, cut to what the candidates span.

    Each phase is private for what was released before, and their costs add up. The error bound is
    that of the noise: with probability 95% the released number is within it of a number between f
    and f without its `shift` most important people. It is infinite where the floor is the lowest
    candidate, or no price up to |L| was good enough: then everybody may have been cut.

    Nobody is likely to count for more than the whole statistic without some hundreds of people. So
    the usual prices end at |L|, which caps the damage of a rare bad draw, unless L is 0.

    Attributes:
        profiler: the statistic.
        unit: what one unit is worth; the release is a multiple of it, or the end it is cut to.
        search: for the floor.
        prices: for the price.
        noise_cost: for the noise.
        candidates: for the floor; the release is between the first and the last.
        blank: release NaN where the floor is the lowest candidate.
        alpha: the chance that the noise exceeds the error bound.
    """

    profiler: Profiler
    unit: Fraction
    search: AboveThreshold
    prices: PriceSearch
    noise_cost: Budget
    candidates: Candidates
    blank: bool = False
    alpha: Fraction = ALPHA

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What the profiler needs."""
        return self.profiler.measures

    @property
    def cost(self) -> Budget:
        """What one partition costs: the three phases together."""
        return _sum(self.search.cost, self.prices.cost, self.noise_cost)

    @property
    def removals(self) -> int:
        """K, for the profile: the shift of the floor, which is proved for losses cut above it."""
        return max(1, self.search.shift(self.candidates.size))

    @property
    def shift(self) -> int:
        """How many people may be cut."""
        return self.prices.shift(self._top(0) + 1)

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one value per partition; there is no clip."""
        drawn = [self.draw(profile, noise) for profile in self.profiler.profiles(cells, first)]
        values = [value for value, _ in drawn]
        errors = np.array([error for _, error in drawn], np.float64)
        return Released(as_array(values), errors)

    def draw(self, profile: Profile, noise: Noise) -> tuple[Number, float]:
        """Return the value for one profile, and its error bound."""
        floor = self.search.choose(profile, self.candidates, noise)
        lowest = floor == self.candidates[0]
        twin = ProfileTwin.of(profile.values, floor, self.candidates[-1], self.unit)
        top, usual = self._top(0), self._top(floor)
        chosen = self.prices.choose(twin, top, usual, noise)
        price = 1 << (top if chosen is None else chosen)
        adder = AdditiveNoise(self.noise_cost)
        value = self._cut(_noisy(twin, price, adder, noise))
        doubtful = lowest or chosen is None or chosen > usual
        error = math.inf if doubtful else float(adder.bound(price, self.alpha) * self.unit)
        blank = self.blank and lowest
        return (math.nan if blank else value * self.profiler.sign + 0), error

    def _top(self, floor: Number) -> int:
        """Return the j of the largest usual price for this floor, or of all, for 0."""
        ends = self.candidates[0], self.candidates[-1]
        most = abs(Fraction(floor)) or max(abs(Fraction(end)) for end in ends)
        return max(0, int(most / self.unit).bit_length() - 1)

    def _cut(self, units: int) -> Number:
        """Return units in the user's scale, not outside of the candidates."""
        value: Number = scale(np.array([units], object), self.unit).tolist()[0]
        low, high = self.candidates[0], self.candidates[-1]
        return low if value < low else min(value, high)


@dataclasses.dataclass(frozen=True)
class TwoPhaseDistinct:
    """The number of different values: a number D per person, then noise of sensitivity D.

    D is chosen by `PriceSearch` on what is released, the most values that can be covered when every
    person covers at most D of their own (`CoverTwin`), and not on how many values people have: a
    value that many have needs only one who has room for it. The usual prices end at a noisy number
    of values for D = 1, which a person changes by 1: that caps the damage of a rare bad draw.

    The error bound is that of the noise: with probability 95% the released number is within it of a
    number between f and f without its `shift` most important people (f the relaxed one, see
    `removal.coverage`). It is infinite where the released number does not show that there are more
    than `shift` people, or no price was good enough.

    Attributes:
        relation: who owns which value.
        size_cost: for the number of values at D = 1.
        prices: for D.
        noise_cost: for the noise.
        alpha: the chance that the noise exceeds the error bound.
    """

    relation: Relation
    size_cost: Budget
    prices: PriceSearch
    noise_cost: Budget
    alpha: Fraction = ALPHA

    @classmethod
    def of(
        cls, relation: Relation, budget: Budget, share: Fraction | None, alpha: Fraction
    ) -> "TwoPhaseDistinct":
        """Return the release for a budget; `share` of it is for the choice of D, if given."""
        default = sum(COVER_SHARES[:2], Fraction(0))
        chosen = default if share is None else share
        first, second = (chosen * weight / default for weight in COVER_SHARES[:2])
        size, pricing, noise = budget.split((first, second, 1 - chosen))
        return cls(relation, size, PriceSearch(pricing, missed=COVER_MISSED), noise, alpha)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The one relation."""
        return (self.relation,)

    @property
    def cost(self) -> Budget:
        """What one partition costs: all that is drawn together."""
        return _sum(self.size_cost, self.prices.cost, self.noise_cost)

    @property
    def shift(self) -> int:
        """How many people may be cut."""
        return self.prices.shift(_COVER_TOP + 1)

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one number per partition; there is no shared clip."""
        drawn = [
            self.draw(CoverTwin(lines.people, lines.items), noise) for lines in cells.owned(first)
        ]
        values = as_array([value for value, _ in drawn])
        return Released(values, np.array([error for _, error in drawn], np.float64))

    def draw(self, twin: Twin, noise: Noise) -> tuple[int, float]:
        """Return the number for one twin, and its error bound."""
        adder = AdditiveNoise(self.noise_cost)
        most = _noisy(twin, 1, AdditiveNoise(self.size_cost), noise)
        usual = max(1, most).bit_length() - 1
        chosen = self.prices.choose(twin, _COVER_TOP, usual, noise)
        price = 1 << (_COVER_TOP if chosen is None else chosen)
        value = _noisy(twin, price, adder, noise)
        bound = float(adder.bound(price, self.alpha))
        shown = price <= max(1, most) and (value - bound) / price > self.shift
        return value, bound if shown else math.inf


def _sum(*costs: Budget) -> Budget:
    amount = sum((cost.amount for cost in costs), Fraction(0))
    return Budget.zcdp(amount) if costs[0].is_zcdp else Budget(amount)


def _noisy(twin: Twin, price: int, adder: AdditiveNoise, noise: Noise) -> int:
    """Return the twin at a price, in whole units (rounding down keeps its steps), with noise."""
    exact = np.array([math.floor(twin(Fraction(price)))], object)
    return int(adder.add(exact, np.array([price], object), noise)[0])

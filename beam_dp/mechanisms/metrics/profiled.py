"""Metrics that are released by their removal profile: by a search, in two phases, or by a
threshold.

`Profiled.build`, at the end, chooses among the releases, which come first:

* `DirectRelease` searches the removal profile of a statistic, which a `Profiler` computes for each
  partition. That is the shifted inverse mechanism.
* `TwoPhase` finds a floor by that search, chooses a threshold, and adds noise of its size.
* `TwoPhaseDistinct` does so for the number of different values, without a floor.
* `ByThreshold` chooses a threshold for rows with several owners, which pack under it, and adds
  noise.

*Why two phases.* The shifted inverse mechanism is never above f, but below f by the worth of some
people. Where both signs of an error are alike, noise of the worth of one person errs by far less.
The user does not have to say what that worth (the threshold) is: `ThresholdSearch` chooses it, on
an extension of the statistic (`profiles.lipschitz_extension`).
"""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, Spending, cost_of_all
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import (
    default_totals,
    default_values,
    values_between,
)
from beam_dp.mechanisms.metrics.base import Context, Metric, OfNumbersBetween, check_candidates
from beam_dp.mechanisms.metrics.released import (
    ALPHA,
    Description,
    OfLines,
    Profiler,
    Release,
    Released,
    clip_then_noise,
    people,
)
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.integers import Number, scale
from beam_dp.mechanisms.profiles.from_summaries import PackedProfiler
from beam_dp.mechanisms.profiles.lipschitz_extension import ProfileExtension
from beam_dp.mechanisms.profiles.packed.packed_rows import Packed
from beam_dp.mechanisms.profiles.packed.packed_values import PackedValues
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import AboveThreshold, Search
from beam_dp.mechanisms.search.choose import (
    NO_SEARCHES,
    TWO_PHASE,
    SearchKind,
    build_search,
    check_search,
)
from beam_dp.mechanisms.search.threshold_search import (
    Extension,
    ThresholdSearch,
    index_of_threshold,
    threshold_at,
)
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_BETA = 0.05  # an interval that fails more often than this is none
SHARES = (Fraction(1, 10), Fraction(3, 10), Fraction(6, 10))
"""The parts of the budget for the floor, the threshold and the noise."""
COVER_SHARES = (Fraction(1, 30), Fraction(3, 10), Fraction(2, 3))
"""The parts for a number of values; the first is for the number at D = 1."""
PER_VALUE = 64
"""Thresholds per value: the least threshold of a number of values is a 64th of one value."""
FLOOR_BETA, FLOOR_OVERSHOOT = 1e-3, 1e-4
"""Chances of a floor too far below the statistic, and of one above it, which is then released."""
_COVER_TOP = index_of_threshold(PER_VALUE << 40)  # the largest threshold is 2^40 items
_TOP = index_of_threshold(1 << 52)  # weights are floats up to there (`packed_rows`)


def as_array(values: list[Number]) -> np.ndarray:
    """Return numbers as an array; integers above 2^63 stay integers, which numpy alone changes."""
    large = any(isinstance(value, int) and value.bit_length() > 63 for value in values)
    return np.array(values, object if large else None)


def released_at_least(drawn: Sequence[tuple[Number, float]], sign: int = 1) -> Released:
    """Return numbers, each with how far the truth may be beyond it on the side that is known."""
    values = as_array([value for value, _ in drawn])
    errors = np.array([error for _, error in drawn], np.float64)
    return Released.between(values, *(errors, math.inf)[::sign])


def _with_noise(exact: int, threshold: int, adder: AdditiveNoise, noise: Noise) -> int:
    """Return a number that a person moves by at most the threshold, plus noise."""
    return int(adder.add(np.array([exact], object), threshold, noise)[0])


def _scaled(units: int, unit: Fraction) -> Number:
    """Return units in the user's scale."""
    value: Number = scale(np.array([units], object), unit).tolist()[0]
    return value


def floor_removals(search: AboveThreshold, candidates: Candidates) -> int:
    """Return K: more than K people are above the floor with a chance of `FLOOR_BETA` only.

    More of the profile would be of no use: cut above the floor, the rest of it is the floor.
    """
    return max(1, search.tail_bound(candidates.size, -math.log(FLOOR_BETA)))


def unit_of(unit: Fraction, given: Candidates | None) -> Fraction:
    """Return a unit for the values: where candidates are given, up to an eighth of their gap.

    The result is rounded to the candidates anyway, and thresholds far below the gap would only be
    chances to stop at a threshold where nothing but the floor is left.
    """
    gaps = 0 if given is None else int(given.gap / (8 * unit))
    return unit * (1 << max(0, gaps.bit_length() - 1))


@dataclasses.dataclass(frozen=True)
class OfProfile(Release):
    """A release of the removal profile of a statistic.

    Attributes:
        profiler: the statistic.
    """

    profiler: Profiler

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What the profiler needs."""
        return self.profiler.measures


@dataclasses.dataclass(frozen=True)
class DirectRelease(OfProfile):
    """The shifted inverse mechanism: search the removal loss for a value.

    With probability 1 - beta the released y is at most f (rounded up to the candidates) and at
    least f without its `shift` largest people. So the interval ends at the candidate before y on
    one side, and is open on the other; on both if beta is above 5%.

    Attributes:
        profiler: the statistic.
        search: the search, with its budget.
        candidates: the public outputs, in the user's scale, mirrored where the profile is.
        blank: release NaN for the lowest candidate. On the default grid of extremes that is a
            number far below any data, which is chosen where there are fewer than `shift` people.
    """

    search: Search
    candidates: Candidates
    blank: bool = False

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What the search costs."""
        return (Spending(self.search.cost),)

    @property
    def shift(self) -> int:
        """How many people the release may pass over."""
        return self.search.shift(self.candidates.size)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no clip."""
        drawn = [self.draw_one(profile, noise) for profile in self.profiler.profiles(view)]
        return released_at_least(drawn, self.profiler.sign)

    def below(self, value: Number) -> float:
        """Return how far the truth may be on the side that is known.

        It is above the candidate before the released one, which is f rounded up at most.
        """
        chosen = value * self.profiler.sign
        unknown = math.isnan(value) or self.search.beta > _BETA
        index = 0 if unknown else self.candidates.index(chosen)
        return float(chosen - self.candidates[index - 1]) if index else math.inf

    def draw_one(self, profile: Profile, noise: Noise) -> tuple[Number, float]:
        """Return the value for one profile, and how far the truth may be beyond it."""
        chosen = self.search.choose(profile, self.candidates, noise)
        blank = self.blank and chosen == self.candidates[0]
        value = math.nan if blank else chosen * self.profiler.sign + 0  # never -0.0
        return value, self.below(value)

    def describe(self) -> Description:
        """Describe the search."""
        mechanism = f"shifted inverse, {type(self.search).__name__}"
        return Description(mechanism, people(self.shift))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThresholdRelease(Release):
    """A release whose last steps are a threshold D, chosen privately, and noise of sensitivity D.

    Attributes:
        thresholds: the search for the threshold.
        noise_cost: the cost of the noise.
        alpha: the chance that the noise exceeds its tail bound.
    """

    thresholds: ThresholdSearch
    noise_cost: Budget
    alpha: Fraction = ALPHA

    @property
    def first_cost(self) -> tuple[Budget, ...]:
        """What comes before the threshold costs."""
        return ()

    @property
    def spends(self) -> tuple[Spending, ...]:
        """All draws together."""
        return (Spending(cost_of_all([*self.first_cost, self.thresholds.cost, self.noise_cost])),)

    def describe(self) -> Description:
        """Describe the noise in clips."""
        adder = AdditiveNoise(self.noise_cost)
        return clip_then_noise("for each partition", adder.name, adder.mean_error, adder.scale)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoPhase(ThresholdRelease, OfProfile):
    """A floor, then a threshold, then noise.

    1. `AboveThreshold` finds a floor L that f exceeds by the worth of at most K people
       (`floor_removals`).
    2. `ThresholdSearch` chooses what one person may count, D, on the extension of the profile above
    L.
    3. The extension at D is released with noise of sensitivity D, cut to the span of the
       candidates, or rounded to the nearest candidate.

    L is about the statistic without some hundreds of people: hardly anybody counts for more than
    that. So the usual thresholds end at |L|, unless L is 0. Where people are too few for this, the
    floor is the lowest candidate, or no usual threshold is good enough. In the second case, and in
    the first if the lowest candidate stands for nobody (it is far below any data, and the extension
    would be too), the rest of the budget goes into the one-sided search of `DirectRelease`, which
    needs fewer people.

    Each phase is private for every outcome of the phases before, which decides how it goes on, and
    their costs add up. But for the noise the released number is between f and f without its `shift`
    most important people, both cut to the span of the candidates; how much these people add is not
    known. So only the lower end of the interval is finite (`_below`), and it is -inf where the
    number shows nothing beyond the lowest candidate.

    *No upper end.* Let the noisy output H be an upper end of f, at least f with probability
    1 - alpha for every database, and one person be able to add any amount to f. Take a database x,
    q = P_x(H < inf), any c < q, and T with P_x(H < T) > c. To x' one person adds T. Then
    P_x'(H < f(x')) >= P_x'(H < T) > e^-epsilon c, so that alpha >= e^-epsilon q: H is finite with a
    chance of alpha e^epsilon at most, 14% at epsilon 1 and alpha = 5%, whatever the data are and
    however much of the budget is spent on it. Where people own their rows alone, a clip has an
    estimate instead (`Losses`): from a histogram of what each adds, of which a person moves one
    bucket, and which is assumed to go on falling. With several owners one person may move what
    everybody adds. What moves little is how many people a threshold cuts on average up to the next
    one, (E(2 D) - E(D)) / D, by -1 to 2, as E(2 D) moves by 0 to 2 D, and E(D) by 0 to D. With a
    part s of epsilon it would be known to 6 / (s epsilon) people, of D each; the noise of the
    number alone is 5 D / epsilon. So a tenth of the budget for it gives an end 12 times as far away
    as the noise, which still says nothing of people who count for more than 2 D.

    *If nobody moves f by more than D*, and so B[k] >= f - k D, no term of E(D) is below f: the last
    one is not, as B[K] <= L but for `FLOOR_BETA`. Then the truth is as near above as below.

    Attributes:
        profiler: the statistic.
        unit: what one unit is worth, which is the least threshold (`unit_of`); the release is a
            multiple of it, or a candidate.
        search: the search for the floor.
        candidates: for the floor; the release is between the first and the last candidate.
        listed: whether a candidate is released; the interval has the distance to it.
        blank: release NaN for the lowest candidate, as in `DirectRelease`.
        beta: how often the search may fail.
    """

    unit: Fraction
    search: AboveThreshold
    candidates: Candidates
    listed: bool = False
    blank: bool = False
    beta: float = 0.05

    @property
    def first_cost(self) -> tuple[Budget, ...]:
        """The cost of the floor."""
        return (self.search.cost,)

    @property
    def shift(self) -> int:
        """How many people may be cut."""
        return self.thresholds.shift(self._top(0) + 1)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no shared clip."""
        drawn = [self.draw_one(profile, noise) for profile in self.profiler.profiles(view)]
        return released_at_least(drawn, self.profiler.sign)

    def draw_one(self, profile: Profile, noise: Noise) -> tuple[Number, float]:
        """Return the value for one profile, and how far the truth may be beyond it."""
        floor = self.search.choose(profile, self.candidates, noise)
        if floor == self.candidates[0] and self.blank:
            return self._searched(
                profile, cost_of_all([self.thresholds.cost, self.noise_cost]), noise
            )
        extension = ProfileExtension.of(profile.values, floor, self.candidates[-1], self.unit)
        usual = self._top(floor)
        chosen = self.thresholds.choose(extension, self._top(0), usual, noise)
        if chosen is None or chosen > usual:
            return self._searched(profile, self.noise_cost, noise)
        value, error = self._noisy(extension, threshold_at(chosen), noise)
        return value * self.profiler.sign + 0, self._below(value, error, floor)  # never -0.0

    def _below(self, value: Number, error: float, floor: Number) -> float:
        """Return how far below a value f may be.

        Where the floor L is at most f, so is the extension, which is the value without its noise.
        Where L is above f, the extension is L. So an extension above L is at most f. But for a
        chance of `FLOOR_OVERSHOOT`, L is at most f rounded up to the candidates, so that f is
        above the candidate before L; before the lowest one there is none.
        """
        if value - error > floor:
            return error
        index = self.candidates.index(floor)
        if not index:
            return math.inf
        return max(0.0, float(Fraction(value) - Fraction(self.candidates[index - 1])))

    def _searched(self, profile: Profile, rest: Budget, noise: Noise) -> tuple[Number, float]:
        """Return the value from below, for the budget that the first phases left, as `draw_one`."""
        search = AboveThreshold(rest, self.beta, gate=self.blank)
        from_below = DirectRelease(self.profiler, search, self.candidates, self.blank)
        return from_below.draw_one(profile, noise)

    def _noisy(self, extension: Extension, most: int, noise: Noise) -> tuple[Number, float]:
        """Return the extension at a threshold with noise, within the candidates, and its error."""
        adder = AdditiveNoise(self.noise_cost)
        # Rounding down keeps the steps, as the threshold is whole.
        exact = math.floor(extension(Fraction(most)))
        value = _scaled(_with_noise(exact, most, adder, noise), self.unit)
        low, high = self.candidates[0], self.candidates[-1]
        value = low if value < low else min(value, high)
        bound = adder.bound(most, self.alpha) * self.unit
        if not self.listed:
            return value, float(bound)
        nearest = self.candidates.nearest(value)
        # Where candidates are given, the unit may be larger than that of the data: that rounds too.
        return nearest, float(bound + self.unit / 2 + abs(Fraction(nearest) - Fraction(value)))

    def _top(self, floor: Number) -> int:
        """Return the index of the largest usual threshold for a floor; for 0, of the largest
        threshold."""
        ends = self.candidates[0], self.candidates[-1]
        most = abs(Fraction(floor)) or max(abs(Fraction(end)) for end in ends)
        return index_of_threshold(most / self.unit)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoPhaseDistinct(ThresholdRelease, OfLines):
    """The number of different values: a person covers at most D, then noise of sensitivity D.

    `ThresholdSearch` chooses D on the statistic that is released, the most values that can be
    covered when every person covers at most D of their own (`profiles.packed.packed_values`), and
    not on how many values people have: of the people who have a value, only one must have room for
    it. D begins at 1 / 64: where every value has hundreds of owners, each covers a little of it,
    the noise is far below one value, and rounding takes it away. So all is counted in 64ths:
    thresholds are whole, and so are E and V, rounded up. (E is a maximum flow of whole numbers.)
    The usual thresholds end at a noisy number of values for D = 1, which a person changes by 1:
    that limits the damage of a rare bad draw.

    The lower end of the interval is the number less its noise. But for noise, the number is never
    above f, and below f without its `shift` most important people (removed by parts) by a 32nd of D
    at most. The lower end is -inf where no threshold was good enough: perhaps the number for D = 1
    was far off. The upper end is always inf (`TwoPhase`).

    Attributes:
        size_cost: the cost of the number of values at D = 1.
    """

    size_cost: Budget

    @classmethod
    def of(cls, relation: Relation, budget: Budget, alpha: Fraction) -> "TwoPhaseDistinct":
        """Return the release for a budget."""
        size, pricing, noise = budget.split(COVER_SHARES)
        return cls(
            relation=relation,
            size_cost=size,
            thresholds=ThresholdSearch(pricing),
            noise_cost=noise,
            alpha=alpha,
        )

    @property
    def first_cost(self) -> tuple[Budget, ...]:
        """The cost of the number at D = 1."""
        return (self.size_cost,)

    @property
    def shift(self) -> int:
        """How many people may be cut."""
        return self.thresholds.shift(_COVER_TOP + 1)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one number per partition; there is no shared clip."""
        packed = (PackedValues(lines.owners, lines.items, PER_VALUE) for lines in view.owned(0))
        return released_at_least([self.draw_one(each, noise) for each in packed])

    def draw_one(self, packed: Packed, noise: Noise) -> tuple[int, float]:
        """Return the number, from V of parts of values, and how far below it the truth may be."""
        size = round(packed(Fraction(PER_VALUE)) / PER_VALUE)
        most = max(1, _with_noise(size, 1, AdditiveNoise(self.size_cost), noise))
        chosen = self.thresholds.choose(
            packed, _COVER_TOP, index_of_threshold(PER_VALUE * most), noise
        )
        if chosen is None:
            return most, math.inf
        adder, threshold = AdditiveNoise(self.noise_cost), threshold_at(chosen)
        parts = _with_noise(math.ceil(packed(Fraction(threshold))), threshold, adder, noise)
        value = round(Fraction(parts, PER_VALUE))
        bound = Fraction(adder.bound(threshold, self.alpha), PER_VALUE) + Fraction(
            1, 2
        )  # and rounding
        return value, float(bound)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ByThreshold(ThresholdRelease, OfProfile):
    """A threshold D, then noise of size D: what rows pack when nobody carries more than D.

    1. `ThresholdSearch` chooses a threshold on V, which is below the statistic's packing E by less
       than D / 31 (`profiles.packed.packed_rows`). V rises by 0 to D for a person more.
    2. V at the threshold D that is `before` places before the chosen one, D_j, is released with
       noise of sensitivity D, at least 0. D depends on the data by D_j alone.

    *Why a threshold before.* Where people are alike D_j is up to eight times what one of them has
    (`ThresholdSearch`). E is concave, so that the number of people whom D cuts, its slope, is at
    most (E(D) - E(D_j / 8)) / (D - D_j / 8). One place before D is at least D_j / 2, and that is at
    most 1/3 of what D_j adds to its eighth, in eighths, where `ThresholdSearch.shift` has 1/7: 7/3
    of it are cut at most. Two places before D is at least D_j / 3, and 21/5 of it are. The places,
    and the share of the budget for the threshold, were settled on the questions of
    `benchmarks.statistics`.

    But for the noise the number, V rounded, is at most f, a whole number above V, and so is the
    lower end of the interval. How far f is above is not known: `TwoPhase` has the proof that
    nothing private can say it. A threshold far too large is chosen only if rho is large and all
    thresholds between are passed: one that is 32 times too large has a chance of about 0.0003. The
    interval is as wide then.

    Attributes:
        profiler: the statistic.
    """

    profiler: PackedProfiler

    @classmethod
    def of(cls, profiler: PackedProfiler, budget: Budget, alpha: Fraction) -> "ByThreshold":
        """Return the release for a budget."""
        pricing, noise = budget.split((profiler.threshold_share, 1 - profiler.threshold_share))
        return cls(
            profiler=profiler, thresholds=ThresholdSearch(pricing), noise_cost=noise, alpha=alpha
        )

    @property
    def shift(self) -> int:
        """How many people may be cut."""
        lost = Fraction(7, 3) if self.profiler.before == 1 else Fraction(21, 5)
        return math.ceil(lost * self.thresholds.shift(_TOP + 1))

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one number per partition; there is no shared clip."""
        packed = (self.profiler.packed(lines) for lines in view.owned(0))
        return released_at_least([self.draw_one(each, noise) for each in packed])

    def draw_one(self, packed: Packed, noise: Noise) -> tuple[Number, float]:
        """Return the number, and how far below the truth may be."""
        chosen = self.thresholds.choose(packed, _TOP, _TOP, noise)
        threshold = threshold_at(
            max(0, (_TOP if chosen is None else chosen) - self.profiler.before)
        )
        adder = AdditiveNoise(self.noise_cost)
        # Rounding to whole numbers keeps steps of 0 to the threshold, which is whole.
        exact = math.floor(packed(Fraction(threshold)) + Fraction(1, 2))
        unit, units = self.profiler.unit, max(0, _with_noise(exact, threshold, adder, noise))
        return _scaled(units, unit), float(adder.bound(threshold, self.alpha) * unit)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Searched(Metric):
    """A metric that searches public outputs: by a removal profile, or by ranks.

    Attributes:
        candidates: the public outputs; None: wide enough for anything.
        beta: how often the guarantee of a search may fail; for quantiles of people and a
            "sparse_vector" scan it is only the largest chance to stop where nobody is, if it is
            below the default.
    """

    candidates: Candidates | None = None
    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        subject = type(self).__name__
        checks.fraction_between(subject, "beta", self.beta, 0, 1)
        check_candidates(subject, self.candidates)

    @property
    def given(self) -> Candidates | None:
        """The public outputs that the user means; None: the default ones."""
        return self.candidates


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfValues(Searched, OfNumbersBetween):
    """A metric that is one of the values of a column.

    Attributes:
        low: a bound that you know without the data: values below count as that.
        high: values above count as that.
        unit: the grid of values.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates is not None:
            because = "with candidates, which have bounds of their own"
            checks.refuse(self, ("low", "high"), because, "Leave out one of the two.")

    @property
    def given(self) -> Candidates | None:
        """The public outputs that the user means; None: the default ones."""
        if self.ends == (None, None):
            return self.candidates
        return values_between(self.exact_unit, *self.ends)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Profiled(Searched):
    """A metric that has a removal profile, and is released by it if that is asked for.

    Attributes:
        search: how its loss is searched, or one of its `words`.
    """

    monotone: ClassVar[bool] = True
    of_values: ClassVar[bool] = False
    """Whether it is one of the values, which may be below 0 (else a number of 0 or more)."""
    words: ClassVar[tuple[str, ...]] = (TWO_PHASE,)
    """How it is released without a search."""

    search: SearchKind = TWO_PHASE

    def __post_init__(self) -> None:
        super().__post_init__()
        search = check_search(type(self).__name__, self.search, self.words)
        object.__setattr__(self, "search", search)

    @property
    def blank(self) -> bool:
        """Whether the lowest candidate stands for nobody: on the default grid of values."""
        return self.of_values and self.given is None

    @property
    def grid(self) -> Candidates:
        """The outputs of a search, in the order of the profile: mirrored for a minimum."""
        default = default_values if self.of_values else default_totals
        outputs = default(self.exact_unit) if self.given is None else self.given
        return outputs.mirrored() if self.sign < 0 else outputs

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release: by packings at a threshold, in two phases, or by a search from
        below."""
        each, candidates = context.each(share), self.grid
        if self.search in NO_SEARCHES:
            if context.others and self.given is None:
                packed = self.profiler(context, 1)
                if isinstance(packed, PackedProfiler):
                    return ByThreshold.of(packed, each, context.alpha)
            return self._two_phase(context, each)
        search = build_search(self.search, each, float(self.beta), candidates.size)
        if isinstance(search, AboveThreshold):
            search = dataclasses.replace(search, gate=self.blank)
        profiler = self.profiler(context, context.check_removals(search.cap(candidates.size)))
        return DirectRelease(profiler, search, candidates, self.blank)

    def _two_phase(self, context: Context, each: Budget) -> TwoPhase:
        """Return the release with a floor, a clip and noise."""
        floor, pricing, noise = each.split(SHARES)
        candidates, beta = self.grid, float(self.beta)
        low, high = min(FLOOR_BETA, beta / 2), min(FLOOR_OVERSHOOT, beta / 2)
        search = AboveThreshold(floor, low, high, gate=True)
        removals = context.check_removals(floor_removals(search, candidates))
        return TwoPhase(
            profiler=self.profiler(context, removals),
            unit=unit_of(self.exact_unit, self.given),
            search=search,
            thresholds=ThresholdSearch(pricing),
            noise_cost=noise,
            candidates=candidates,
            listed=self.given is not None,
            blank=self.blank,
            beta=beta,
            alpha=context.alpha,
        )

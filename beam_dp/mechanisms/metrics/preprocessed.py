"""Statistics of one number per person by preprocessing: trimmed means, and more.

With R a bound on people's numbers and n a number of people, both of which are released privately,
one person among n with numbers in [-R, R] moves a mean by at most Delta = 2 R / n, and g = f where
the range of the numbers is at most n Delta = 2 R and f(empty) is within it (`preprocessing`). So
Delta is a function of released numbers. For every Delta, |g(D) - g(D - i)| <= Delta holds for all
data, and the release is the adaptive composition of three private releases: R (by a noisy histogram
of people, `ClipChoice`), n (noise), and g plus noise of size Delta (Dwork, Rothblum, Vadhan 2010;
Bun, Steinke 2016, Lemma 2.3).

R is up to where the histogram shows people; for a trimmed mean, and a median, up to where it shows
all but so many as are trimmed, or a quarter, of the n people: wherever these others are, their
numbers hardly move the statistic of a partition with n people.

n is taken at the lower end of its noise, and rounded down to a power of 2^(1/4): all partitions
with the same power are computed together. g is an integer number of steps of a grid (`grid`).
"""

import dataclasses
import math
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, Spending, cost_of_all
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.candidates.decimal_grid import VALUE_CLIPS
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease, people_release
from beam_dp.mechanisms.metrics.additive.shared_clip import SharedClip
from beam_dp.mechanisms.metrics.base import Context, OfNumbers, OfPersonValues, PeopleStatistic
from beam_dp.mechanisms.metrics.released import Description, Release, Released
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.preprocessing import groups
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.mechanisms.summaries.person_value import of_people

_WIDEST = Fraction(1 << 200)
Sensitivity = checks.Real | Literal["auto"]
SHARES = Fraction(1, 3), Fraction(1, 6)
"""The shares of R and n in the budget; the rest is for g."""
FINE = 1 << 20
"""Delta in steps of its grid, for plans: these state bounds to about a millionth."""
_STATISTICS = ("mean", "median", "maximum", "minimum", "variance", "standard_deviation")
_BEYOND_MEDIAN = Fraction(1, 4)  # of the people, whose numbers beyond R move no median
_BITS = 20  # a Delta has 2^20 steps of the grid or more
_QUARTERS = 4  # powers of 2^(1/4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preprocessing(OfPersonValues):
    """A statistic of one number per person, changed so that no person moves it far.

    The statistic f is replaced by the closest g that one person moves by at most Delta (Cummings
    and Durfee 2020), and noise of that size is added. By default Delta is found privately: a third
    of the budget chooses a bound R on people's numbers (the octave up to which the histogram of
    `Sum`'s clip shows people, but for as many as a trimmed mean leaves out, or a quarter for a
    median), a sixth buys a noisy number n of people, and Delta = 2 R / n (for variances 4 R^2 / n,
    for trimmed means 2 R / n over the share that is left) is what one person among n with numbers
    from -R to R can move a mean by. It need not fit: whatever Delta is, the release is private, and
    a Delta that is too small or too large costs accuracy only. The interval is open on both sides:
    how far g is from f is a secret of the data. NaN: too few people for R.

    Attributes:
        person_value: what a person with several rows counts as: the "mean" of their values, the
            "sum", the "max" or the "min".
        sensitivity: "auto", or Delta in the scale of the statistic.
        empty: the statistic of nobody, a public number; the closer, the less is changed.
        unit: the grid of values.
    """

    word: ClassVar[str] = "preprocessed"

    sensitivity: Sensitivity = "auto"
    empty: checks.Real = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        subject = type(self).__name__
        checks.require(
            abs(checks.number(subject, "empty", self.empty)) <= _WIDEST,
            subject,
            "empty",
            f"be from -2^200 to 2^200, not {checks.shown(self.empty)}",
        )
        if self.sensitivity != "auto":
            hint = 'Write sensitivity="auto".'
            delta = checks.number(subject, "sensitivity", self.sensitivity)
            checks.require(
                1 / _WIDEST <= delta <= _WIDEST,
                subject,
                "sensitivity",
                f"be above 0 (from 2^-200 to 2^200), not {checks.shown(self.sensitivity)}",
                hint,
            )

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release: a third of the share for R, a sixth for n, the rest for g."""
        clip, people, noise = self.choices(context, share, share)
        return PreprocessedRelease(
            metric=self,
            relation=Relation(context.index(self.source)),
            clip=clip,
            people=people,
            noise_cost=context.each(noise),
            alpha=context.alpha,
        )

    def choices(
        self, context: Context, share: Budget, payer: Budget
    ) -> tuple[SharedClip | None, AdditiveRelease | None, Budget]:
        """Return what chooses R, a bound on people's numbers, for all partitions; n; and the rest.

        Args:
            context: what the pipeline fixes.
            share: what the whole release may cost.
            payer: of which R and n cost the parts `SHARES`.
        """
        if self.exact_sensitivity is not None:
            return None, None, share
        search, counting = (payer.scaled(part) for part in SHARES)
        people, spent = None, search.amount
        if self.statistic != "sum":
            counted = context.field(self.source, "count")
            people = people_release(context, counting, counted, each=True)
            spent += counting.amount
        noise = share.like(share.amount - spent)
        peak = "sum" if self.person_value == "sum" else "peak"
        field, unit = context.field(self.source, peak), self.exact_unit
        measure = Measure(field, sign=0, thresholds=VALUE_CLIPS)
        clip = SharedClip(measure, unit, ClipChoice(search, VALUE_CLIPS, sides=2))
        return clip, people, noise

    @property
    def exact_sensitivity(self) -> Fraction | None:
        """Delta in the user's scale; None: found privately."""
        given = self.sensitivity
        subject = type(self).__name__
        return None if given == "auto" else checks.decimal(subject, "sensitivity", given)

    @property
    def exact_empty(self) -> Fraction:
        """The statistic of nobody, in the user's scale."""
        return checks.decimal(type(self).__name__, "empty", self.empty)

    @property
    def statistic(self) -> str:
        """What is computed, as `preprocessing.groups` calls it."""
        return self._prefix

    @property
    def root(self) -> bool:
        """Whether the root of the statistic is released."""
        return False

    @property
    def trimmed(self) -> Fraction:
        """The share that a trimmed mean leaves out at each end."""
        return Fraction(0)

    @property
    def beyond(self) -> Fraction:
        """Which share of a partition's people may be beyond R, as it hardly moves the statistic."""
        return _BEYOND_MEDIAN if self.statistic == "median" else self.trimmed


@dataclasses.dataclass(frozen=True)
class Preprocessed(Preprocessing):
    """Release a statistic of one number per person by preprocessing.

    `Mean`, `Median`, `Max`, `Min` and `Variance` are released in other ways, which need less of the
    data's shape. A `sensitivity` of a standard deviation is that of the variance.

    Attributes:
        column: the value column.
        of: "mean", "median", "maximum", "minimum", "variance" or "standard_deviation".
    """

    own_epsilons: ClassVar[tuple[str, ...]] = ("maximum", "minimum")

    of: str

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("Preprocessed", "of", self.of, _STATISTICS)
        of_nobody = self.empty == 0 or not self.statistic.endswith("variance")
        checks.require(of_nobody, "Preprocessed", "empty", "be 0, the variance of nobody")

    @property
    def statistic(self) -> str:
        """What is computed."""
        return self.of.replace("standard_deviation", "variance")

    @property
    def root(self) -> bool:
        """Whether the root of it is released."""
        return self.statistic != self.of

    def of_people(self) -> PeopleStatistic:
        """Return what it computes."""
        return PeopleStatistic(self.of, self.person_value)

    @property
    def _prefix(self) -> str:
        return f"preprocessed_{self.of}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrimmedMean(Preprocessing):
    """Release the mean of one number per person without the largest and smallest ones.

    Attributes:
        column: the value column.
        trim: the share of people that is left out at each end.
    """

    trim: checks.Real = Fraction(1, 10)

    def __post_init__(self) -> None:
        super().__post_init__()
        hint = "Write trim=0.1."
        checks.fraction_between("TrimmedMean", "trim", self.trim, 0, Fraction(1, 2), hint)

    @property
    def trimmed(self) -> Fraction:
        """The share that is left out at each end."""
        return checks.decimal("TrimmedMean", "trim", self.trim)


def preprocessed(metric: OfNumbers) -> Preprocessed:
    """Return the preprocessed release of a metric that has another one.

    Which errs less depends on the data, and nothing private may be looked at to choose; so the user
    says.

    Args:
        metric: one that knows what it is `of_people`.
    """
    of = metric.of_people()
    assert of is not None
    return Preprocessed(
        metric.column,
        of.statistic,
        name=metric.output,
        weight=metric.weight,
        unit=metric.unit,
        person_value=of.person_value,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessedRelease(Release):
    """One statistic per partition; see the module.

    Attributes:
        metric: what is released.
        relation: who owns which values, in units.
        clip: how R is chosen; None: Delta is given.
        people: how n is released.
        noise_cost: the cost of g, per partition.
        alpha: the chance that the noise exceeds its tail bound.
    """

    metric: Preprocessing
    relation: Relation
    clip: SharedClip | None
    people: AdditiveRelease | None
    noise_cost: Budget
    alpha: Fraction

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation, and the measure that counts n."""
        return (self.relation, *(self.people.measures if self.people is not None else ()))

    @property
    def spends(self) -> tuple[Spending, ...]:
        """g and n in each partition, and R once."""
        counting = (self.people.noise_cost,) if self.people is not None else ()
        chosen = self.clip.spends if self.clip is not None else ()
        return (Spending(cost_of_all([self.noise_cost, *counting])), *chosen)

    @property
    def shift(self) -> int:
        """How many people above R may go unseen, typically."""
        return self.clip.shift if self.clip is not None else 0

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one number per partition.

        Args:
            view: the partitions, with the choice of R; without where the sensitivity is given.
            noise: the randomness.
        """
        values = np.full(view.size, math.nan)  # too few people for R
        if self._bound(view, 0) is not None or self.metric.exact_sensitivity is not None:
            values = self._values(view, self._levels(view, noise), noise)
        return Released.between(values, math.inf, math.inf)

    def _values(self, view: PartitionView, levels: np.ndarray, noise: Noise) -> np.ndarray:
        numbers, offsets = self._numbers(view)
        values = np.full(view.size, 0.0)
        for level in np.unique(levels).tolist():
            alike = np.flatnonzero(levels == level)
            delta = self._delta(level, self._bound(view, level))
            values[alike] = self._noisy(*_groups(numbers, offsets, alike), delta, noise)
        if self._power == 2:
            values = np.maximum(values, 0.0)
        return np.sqrt(values) if self.metric.root else values

    def _levels(self, view: PartitionView, noise: Noise) -> np.ndarray:
        """Return n of each partition as a power of 2^(1/4)."""
        if self.people is None:
            return np.zeros(view.size, np.int64)
        least = np.maximum(self.people.draw(view.after(1), noise).low, 1.0)
        return np.asarray(np.floor(_QUARTERS * np.log2(least)), np.int64)

    def _bound(self, view: PartitionView, level: int) -> int | None:
        """Return R in units for n = 2^(level / 4).

        None where nobody was shown, or where the sensitivity is given.
        """
        if self.clip is None or view.clip_histogram is None:
            return None
        beyond = float(self.metric.beyond) * 2.0 ** (level / _QUARTERS)
        return self.clip.largest(view.clip_histogram, beyond)

    def _delta(self, level: int, bound: int | None) -> Fraction:
        """Return Delta in units (squared units for variances)."""
        if self.metric.exact_sensitivity is not None:
            return self.metric.exact_sensitivity / self.metric.exact_unit**self._power
        assert bound is not None
        people = max(Fraction(1), Fraction(2 ** (level / _QUARTERS)))
        kept = 1 - 2 * self.metric.trimmed
        return Fraction(2 * bound) ** self._power / (people * kept)

    @property
    def known(self) -> str:
        """How Delta is known, for the plan."""
        return "given" if self.clip is None else "private"

    @property
    def _power(self) -> int:
        """Of units, in units of the statistic."""
        return 2 if self.metric.statistic.endswith("variance") else 1

    def _numbers(self, view: PartitionView) -> tuple[np.ndarray, np.ndarray]:
        """Return one integer per person, and the index at which each partition begins."""
        indexes, lines = view.lines(0)
        order = np.lexsort((*lines.person, indexes))
        partition, lines = indexes[order], lines.take(order)
        starts = np.flatnonzero(ordering.changes(partition[None]) | ordering.changes(lines.person))
        numbers = of_people(self.metric.person_value, lines.item, lines.count, starts)
        return numbers, np.searchsorted(partition[starts], np.arange(view.size + 1))

    def _noisy(
        self, numbers: np.ndarray, offsets: np.ndarray, delta: Fraction, noise: Noise
    ) -> np.ndarray:
        """Return g plus noise in the user's scale."""
        coarse, resolution = grid(delta, self._power)
        steps_per_unit = Fraction(resolution, 1 << self._power * coarse)
        sensitivity = math.ceil(delta * steps_per_unit)
        empty = round(
            self.metric.exact_empty / self.metric.exact_unit**self._power * steps_per_unit
        )
        trim = self.metric.trimmed or Fraction(1, 10)
        statistic = groups.PreprocessedStatistic(
            self.metric.statistic, sensitivity, empty, resolution, trim
        )
        # Each person's number is rounded alone, so that one person still moves g by at most Delta.
        exact = statistic.values(numbers >> coarse, offsets)
        steps = AdditiveNoise(self.noise_cost).add(exact, sensitivity, noise)
        step = self.metric.exact_unit**self._power / steps_per_unit
        if steps.dtype == object:  # beyond the range of floats, where `empty` is far from the data
            return np.array([float(number * step) for number in steps.tolist()])
        return np.asarray(steps.astype(float) * float(step))

    def describe(self) -> Description:
        """Describe the scale of the noise, and its tail bound (95%)."""
        adder = AdditiveNoise(self.noise_cost)
        bound = adder.bound(FINE, self.alpha) / FINE
        if self.metric.exact_sensitivity is not None:
            delta, per = float(self.metric.exact_sensitivity), ""
        elif self._power == 2:
            delta, per = 4.0, " R^2/n"
        else:
            delta, per = float(2 / (1 - 2 * self.metric.trimmed)), " R/n"
        return Description(
            f"preprocessing for a {self.known} sensitivity, then noise",
            f"{adder.mean_error * delta:.4g}{per} + |f - g|",
            f"{adder.scale * delta:.4g}{per}",
            f"Delta = {delta:.4g}{per}; noise within {bound * delta:.4g}{per} for 95%",
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

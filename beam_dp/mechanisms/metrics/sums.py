"""Counts and sums: of rows, people and numbers. A clip is chosen privately, then noise is added.

What a person adds is cut at the clip, and noise of that size hides it. Numbers of one partition
share one draw of noise (`Pool`). All computations are on integers (units); only the result is
turned into the user's scale.
"""

import abc
import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, cost_of_all
from beam_dp.mechanisms.candidates.decimal_grid import VALUE_CLIPS
from beam_dp.mechanisms.histogram_choice.cliff import CliffChoice, with_round_numbers
from beam_dp.mechanisms.histogram_choice.clip import ClipChoice, share_of_clip
from beam_dp.mechanisms.histogram_choice.loss import ALONE, TOGETHER, Cut
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise
from beam_dp.mechanisms.metrics.base import Context, Metric, OfNumbers, OfPeople
from beam_dp.mechanisms.metrics.profiled import Profiled
from beam_dp.mechanisms.metrics.released import (
    ALPHA,
    Description,
    Profiler,
    Release,
    Released,
    Spending,
    clip_then_noise,
)
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.noise_on_several_sums import OneDraw
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.profiles.from_summaries import OneNumberEach, RowsOfSeveralOwners
from beam_dp.mechanisms.search.choose import CLIP, TWO_PHASE, SearchKind
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_LARGE = 1 << 30  # a clip of so many units is near to one of any number
_IF_KNOWN = "the interval holds the true number if nobody counts for more than the given clip"
_ROW_CLIPS = 41
_UNKNOWN = 10
"""For how many partitions a shared clip is chosen where their number is not public."""
_LARGEST_CLIP = 1 << 200
_COARSE = Fraction(1, 1000)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clippable(Profiled):
    """A metric that is released by a privately chosen clip and noise, or searched for, one-sided.

    Attributes:
        clip: None: chosen privately, once for all partitions. Or a number, if you know without the
            data that nobody counts for more in a partition: then nothing is spent on a choice, and
            whoever has more counts for that much. The interval holds the truth if nobody has.
        search: "clip" for a clip and noise; of rows with several owners in two phases. A search
            over the removal loss is one-sided: never above the true value but for 5%, and below it
            by the contributions of about `shift` people. "two_phase": see `TwoPhase`.
        candidates: the public outputs of a search; None: a geometric grid that is wide enough for
            anything.
        beta: how often a search may be above the true value, or too far below it.

    Options that have no effect are refused: a clip beside a search, and `candidates` and `beta`
    without one.
    """

    several_owners: ClassVar[bool] = True
    words: ClassVar[tuple[str, ...]] = (CLIP, TWO_PHASE)

    clip: checks.Real | None = None
    search: SearchKind = CLIP

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.search == CLIP:
            because = "without a search, as a clip is chosen and noise is added"
            mend = "Write search=dp.AboveThreshold beside it, or leave it out."
            checks.refuse(self, ("candidates", "beta"), because, mend)
        else:
            because = "with a search for the output, which clips nobody"
            checks.refuse(self, ("clip",), because, "Leave one of the two out.")
        if self.clip is not None:
            mend = "Write clip=100, or leave it out to have it chosen privately."
            checks.fraction_between(type(self).__name__, "clip", self.clip, 0, _LARGEST_CLIP, mend)

    @property
    def pooled(self) -> bool:
        """Whether its noise is drawn together with that of others: by clip and noise."""
        return self.search == CLIP

    @property
    def given_clip(self) -> Fraction | None:
        """The clip, exactly; None: it is chosen."""
        return None if self.clip is None else checks.decimal("Clippable", "clip", self.clip)

    @abc.abstractmethod
    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise."""

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise, or by its removal profile."""
        by_profile = self.search != CLIP or context.several_owners
        return super().build(context, share) if by_profile else self.clipped(context, share)

    def for_several_owners(self) -> Metric:
        """Return it as it is released where rows have several owners: by its removal profile."""
        because = "where rows have several owners, which are released by their removal profile"
        checks.refuse(self, ("clip",), because, "Leave it out.")
        return self


class Count(Clippable):
    """Count the rows of each partition.

    No bound on rows per person is needed. With `ContributionBounds(rows_per_partition=...)` the
    clip is searched up to it only.
    """

    word: ClassVar[str] = "number of rows"
    whole: ClassVar[bool] = True

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the number of rows, each person clipped."""
        clips = row_clips(context.depth)
        return clipped_sum(context, share, ROWS, clips, given=self.given_clip)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the total without the people who have most."""
        if context.several_owners:
            return RowsOfSeveralOwners(Relation(-1, context.others), removals)
        return OneNumberEach(Measure(ROWS, keep=removals + 1), self.exact_unit)


@dataclasses.dataclass(frozen=True)
class Sum(Clippable, OfNumbers):
    """Sum a column; rows without a valid value add nothing.

    Numbers may have both signs. Every row's number is rounded to a multiple of `unit` first, then
    summed exactly. With a search, people whose total is below 0 count as 0. Where rows have
    several owners, numbers below 0 are taken as 0, sums of rows with the same owners are rounded
    down to multiples of 0.001 if the unit is a finer power of ten, and are at most 2^32 of these:
    4,294,967 by default.

    Attributes:
        column: the value column.
        unit: the grid of values; integers and decimals that are multiples of it are exact.
    """

    word: ClassVar[str] = "sum"
    own_epsilons: ClassVar[tuple[str, ...]] = ("sum",)

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the sum, each person clipped."""
        return clipped_sum(
            context,
            share,
            context.field(self.source, "sum"),
            VALUE_CLIPS,
            self.exact_unit,
            self.given_clip,
            signed=True,
            anchored=False,
        )

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the total without the people who have most."""
        unit = self.exact_unit
        if context.several_owners:
            coarse = _coarse(unit)
            relation = Relation(-1, context.others, context.index(self.source))
            return RowsOfSeveralOwners(relation, removals, unit * coarse, coarse=coarse)
        field = context.field(self.source, "sum")
        return OneNumberEach(Measure(field, keep=removals + 1), unit)

    def of_people(self) -> OfPeople:
        """Return the sum of people's totals, which only people with an epsilon of their own use."""
        return OfPeople("sum", "sum")


def _coarse(unit: Fraction) -> int:
    """Return how many units of a sum of shared rows are one: up to 0.001, a power of ten."""
    factor = 1
    while unit * factor * 10 <= _COARSE:
        factor *= 10
    return factor


class PeopleCount(Metric):
    """Count the people of each partition, by noise alone: one person changes the number by 1."""

    word: ClassVar[str] = "number of people"
    monotone: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    @property
    def pooled(self) -> bool:
        """Whether its noise is drawn together with that of others: yes."""
        return True

    def build(self, context: Context, share: Budget) -> Release:
        """Return the number plus noise."""
        return people_of(context, share)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the number without k people, for those who search it themselves."""
        return OneNumberEach(Measure(PEOPLE, keep=removals + 1), self.exact_unit)


@dataclasses.dataclass(frozen=True)
class Pool:
    """The numbers of one partition that share one draw of noise.

    Each number pays what its noise would cost alone. The sum of these costs buys one draw for all
    of them (`OneDraw`), in which each has less noise than alone. A number that is alone has the
    noise of `AdditiveNoise`.

    Attributes:
        budget: what all numbers together pay.
        signed: for each number, whether a person moves it both ways.
        partitions: how many partitions share the draw too: 1, or all of them. A person may move the
            numbers of all of them, as far as the clips say: that is the theorem of `OneDraw` for
            all these numbers, and no bound on partitions is needed.
        weight: that of the metrics of a pool; each weight has a pool of its own.
    """

    budget: Budget
    signed: tuple[bool, ...]
    partitions: int = 1
    weight: Fraction = Fraction(1)

    @property
    def _sides(self) -> tuple[bool, ...]:
        """For each number of each partition, whether a person moves it both ways."""
        return tuple(np.repeat(self.signed, self.partitions).tolist())

    @property
    def name(self) -> str:
        """The distribution, for the plan."""
        numbers = len(self._sides)
        return (
            AdditiveNoise(self.budget).name if numbers == 1 else f"one draw for {numbers} numbers"
        )

    def add(
        self, totals: Sequence[np.ndarray], clips: Sequence[int], noise: Noise
    ) -> list[np.ndarray]:
        """Return each number with its noise, in some partitions; in all that share a draw.

        Args:
            totals: for each number, that of every partition, in units.
            clips: the clip of each number.
            noise: the randomness.
        """
        size = len(totals[0])
        if len(self._sides) == 1:
            return [AdditiveNoise(self.budget).add(totals[0], clips[0], noise)]
        whole = self.partitions in (1, size)
        checks.require(whole, "Pool", "totals", "be of all partitions, which share a draw")
        if not size:
            return list(totals)
        drawn = integers.concatenate(self._law(clips).draw(noise, size // self.partitions))
        parts = np.split(drawn, len(clips))
        return [integers.add(*pair) for pair in zip(totals, parts, strict=True)]

    def _law(self, clips: Sequence[int]) -> OneDraw:
        together = tuple(clip for clip in clips for _ in range(self.partitions))
        return OneDraw(self.budget, together, self._sides)

    def bound(self, place: int, clips: Sequence[int], alpha: Fraction) -> int:
        """Return how far the noise of a number strays, except with probability alpha.

        Args:
            place: its place in the pool.
            clips: the clips of all numbers.
            alpha: the chance that the noise is further from 0.
        """
        if len(self._sides) == 1:
            return AdditiveNoise(self.budget).bound(clips[0], alpha)
        return self._law(clips).bound(place * self.partitions, alpha)

    def scale(self, place: int) -> float:
        """Return the scale of a number's noise for a clip of 1: Laplace's, or Gauss's deviation."""
        if len(self._sides) == 1:
            return AdditiveNoise(self.budget).scale
        deviation = self._large.deviation(place * self.partitions) / _LARGE
        return deviation if self.budget.is_zcdp else deviation / math.sqrt(2)

    def mean_error(self, place: int) -> float:
        """Return the mean absolute noise for a clip of 1, about."""
        if len(self._sides) == 1:
            return AdditiveNoise(self.budget).mean_error
        return self._large.mean_error(place * self.partitions) / _LARGE

    @property
    def _large(self) -> OneDraw:
        return self._law([_LARGE] * len(self.signed))


@dataclasses.dataclass(frozen=True, eq=False)
class Taken:
    """A number of some partitions before its noise, and the clip that was chosen.

    Attributes:
        totals: in units, every person clipped: private.
        index: that of the clip in the thresholds.
        shown: whether the histogram shows anybody.
        choice: the noisy histogram that chose the clip; None: none did.
        partitions: how many partitions share it.
    """

    totals: np.ndarray
    index: int
    shown: bool
    choice: np.ndarray | None = None
    partitions: int = 1


def draw_together(
    numbers: Sequence["ClippedSum"], views: Sequence[PartitionView], noise: Noise
) -> list[Released]:
    """Draw the numbers of a pool, with one draw of noise per partition.

    Args:
        numbers: all numbers of one pool, in its order; or one number that has no pool.
        views: the partitions, as each of them reads them.
        noise: the randomness.
    """
    taken = [number.taken(view) for number, view in zip(numbers, views, strict=True)]
    pool, chosen = numbers[0].in_pool, zip(numbers, taken, strict=True)
    left = [number.left(each) for number, each in chosen]
    shared = dataclasses.replace(pool, budget=cost_of_all([pool.budget, *filter(None, left)]))
    clips = [each.thresholds[own.index] for each, own in zip(numbers, taken, strict=True)]
    noisy = shared.add([each.totals for each in taken], clips, noise)
    triples = zip(numbers, taken, noisy, strict=True)
    return [number.released(each, sums, clips, shared) for number, each, sums in triples]


@dataclasses.dataclass(frozen=True)
class ClippedSum(Release):
    """A sum or a count by a privately chosen clip C, then noise of sensitivity C.

    Let s_i be what person i adds to a partition. A noisy histogram of the |s_i| over the public
    thresholds, in which each person is in one bucket, chooses C (`ClipChoice`). The s_i are cut to
    [-C, C] and summed. That is the difference of two non-negative sums, of which a person touches
    one, so it moves by at most C per person. Noise of that sensitivity is added once, not per sign.

    *Shared.* The clip is chosen once for all partitions, on the largest |s_i| that a
    person has in any partition. One person moves that histogram by 1 however many partitions they
    reach, so the choice is paid once instead of once per partition, and small partitions do not
    suffer.

    *Interval.* Let n be how far the noise strays (95%), and L what the people above C lose by the
    same histogram (`Losses`), in all: C is the only thing that cuts, so the true sum is between
    the released number - n - L of the negative side, and + n + L of the positive one. n is proved;
    L assumes that what is beyond the highest bucket that shows people goes on falling. A partition
    has its share of L (`Cut`).

    *Nobody shown.* Where no bucket shows people, there is no clip: a sum is NaN. A number of rows
    is taken with C = 1, which needs no choice: it is at least the released number - n, and nothing
    is known on the other side. C = 1 is taken too for distances from a centre other than 0, as most
    people may have none: nothing is known of these on either side.

    Attributes:
        source: the field or ROWS.
        signed: whether numbers below 0 count (else they are taken as 0).
        thresholds: the public clips, in units.
        unit: what one unit is worth.
        clip_cost: what the choice of the clip costs; None where there is one threshold only.
        noise_cost: the cost of the noise, per partition.
        anchored: whether the numbers are numbers of rows: most people are at the first threshold.
        bounded: whether a public bound cuts rows before; the interval is open where they count.
        numbers: how many partitions share the clip, or about so many.
        alpha: the chance that the noise strays further than the interval says.
        borrowed: whether the clip is chosen, and paid, by another number that has the same measure.
        sure: whether nobody can count for more than the one clip that there is.
        counted: the field that says how many values a person has, for a `centre`.
        per_person: whether the centre is taken off once for each person who has a value.
        centre: the numbers are sums of distances from it, in units; or of squared distances.
        totals: for squared distances, the field that sums the values.
        folded: whether one histogram of magnitudes serves both signs: people are about as far on
            one side as on the other, and each may lose what both lose.
        jointly: whether all partitions share one draw of noise, which costs the same for a person
            in one of them or in all.
        pool: the numbers that share its noise; None: it has noise of its own.
        place: its place among these.
        fine: whether round numbers are among the thresholds, of which two looks choose one.
    """

    source: int
    signed: bool
    thresholds: tuple[int, ...]
    unit: Fraction
    clip_cost: Budget | None
    noise_cost: Budget
    anchored: bool = False
    bounded: bool = False
    numbers: int = 1
    alpha: Fraction = ALPHA
    borrowed: bool = False
    sure: bool = False
    counted: int = PEOPLE
    per_person: bool = False
    centre: int = 0
    totals: int | None = None
    folded: bool = False
    jointly: bool = False
    pool: Pool | None = None
    place: int = 0
    fine: bool = False

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """One histogram per sign."""
        return tuple(self._measure(sign) for sign in self._signs)

    def _measure(self, sign: int) -> Measure:
        if not self.centre:
            return Measure(self.source, sign, self.thresholds)
        return Measure(
            self.source,
            sign,
            self.thresholds,
            counted=self.counted,
            once=self.per_person,
            centre=self.centre,
            totals=self.totals,
        )

    @property
    def _signs(self) -> tuple[int, ...]:
        return (1, -1) if self.signed else (1,)

    @property
    def shared_measure(self) -> Measure:
        """The measure that the shared clip is chosen on."""
        return self._measure(0 if self.signed else 1)

    @property
    def origin(self) -> float:
        """The centre, in the user's scale."""
        return float(self.centre * self.unit) if self.totals is None else 0.0

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The noise, and the choice of the clip."""
        return (Spending(self.noise_cost, "noise", self.jointly), *self.spends_on_clip)

    @property
    def spends_on_clip(self) -> tuple[Spending, ...]:
        """The choice of the clip alone."""
        if self.clip_cost is None or self.borrowed:
            return ()
        return (Spending(self.clip_cost, "clip", once=True),)

    @property
    def chooser(self) -> "ClippedSum | None":
        """This release, if it chooses a shared clip."""
        return None if self.clip_cost is None or self.borrowed else self

    @property
    def choice(self) -> ClipChoice:
        """How the clip is chosen."""
        assert self.clip_cost is not None
        sides = 1 if self.folded else len(self._signs)
        choose = CliffChoice if self.fine else ClipChoice
        return choose(self.clip_cost, self.thresholds, sides, self.anchored, self.numbers)

    def left(self, taken: Taken) -> Budget | None:
        """Return what its choice of the clip left for the noise; None: nothing."""
        if taken.choice is None or self.borrowed:
            return None
        return self.choice.left(taken.choice)

    @property
    def shift(self) -> int:
        """How many people above the clip may go unseen, typically."""
        return 0 if self.clip_cost is None else math.ceil(self.choice.evidence.unseen)

    def choose_shared(self, view: PartitionView, noise: Noise) -> np.ndarray:
        """Return the histogram for all partitions, from each person's largest number."""
        people, _ = view.histogram(0, len(self._signs) * self.choice.buckets)
        sides = people.reshape(1, len(self._signs), self.choice.buckets)
        return self.choice.draw(self._folded(sides), noise)

    def _folded(self, sides: np.ndarray) -> np.ndarray:
        """Return the histograms of both signs, as one where they are not told apart."""
        return sides.sum(axis=1, keepdims=True) if self.folded else sides

    def told(self, choice: np.ndarray, taken: Sequence[tuple[float, float]]) -> dict[str, object]:
        """Return what was drawn to choose the clip, in words and numbers, for the record.

        Args:
            choice: what was drawn.
            taken: the clips that were taken, each with the scale of its noise, in the user's scale;
                none where nobody was shown.
        """
        unit, left = float(self.unit), self.choice.left(choice)
        noise = cost_of_all([self.noise_cost, *filter(None, [left])])
        return {
            "clips": [clip for clip, _ in taken],
            "noise_scales": [scale for _, scale in taken],
            "cost_of_the_noise_per_partition": str(noise.amount),
            "histograms": [
                {
                    "cost": str(cost.amount),
                    "scale": HistogramNoise(cost).scale,
                    "people_up_to": [edge * unit for edge in edges],
                    "noisy_people": noisy[0].tolist(),
                }
                for cost, edges, noisy in self.choice.looks(choice)
            ],
        }

    def largest(self, choice: np.ndarray) -> int | None:
        """Return, in units, up to where the histogram shows people; None: nowhere."""
        index = int(self.choice.clips(choice, 0.0)[0])
        return None if index < 0 else self.thresholds[index]

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one noisy sum per partition, with noise of its own."""
        [released] = draw_together([self], [view], noise)
        return released

    def taken(self, view: PartitionView) -> Taken:
        """Return what is released but for its noise, for partitions that share the clip."""
        index, shown = 0, True
        if view.clip is not None:
            index = int(self.choice.clips(view.clip, self.price, view.total)[0])
            shown, index = index >= 0, max(index, 0)
        totals = self._clipped(view, np.full(view.size, index), self.thresholds[index])
        return Taken(totals, index, shown, view.clip, view.total)

    def released(
        self, taken: Taken, noisy: np.ndarray, clips: Sequence[int], noise: Pool
    ) -> Released:
        """Return the numbers with their noise, and how far the truth may be from them.

        Args:
            taken: what `taken` returned.
            noisy: the totals with their noise, in units.
            clips: the clips of all numbers of the pool.
            noise: the pool.
        """
        values = integers.scale(noisy, self.unit)
        reach = self._noise_bound(clips, noise)
        bound, nothing = (np.full(len(values), far) for far in (reach, math.inf))
        if not taken.shown and not self.anchored:
            known = values if self.folded and self.centre else np.full(len(values), math.nan)
            return Released.within(known, nothing)
        if not taken.shown or self.bounded:  # people, or rows, may have been cut
            below = nothing if taken.shown and self.signed else bound
            return Released.between(values, below, nothing)
        noise_only = Released.within(values, bound)
        if taken.choice is None:
            return noise_only
        cut = self._cut(taken.choice, taken.index, taken.partitions, reach, noise)
        return dataclasses.replace(noise_only, cut=cut)

    @property
    def price(self) -> float:
        """The scale of the noise for a clip of 1."""
        return self.in_pool.scale(self.place)

    @property
    def in_pool(self) -> Pool:
        """The numbers that share its noise: itself alone if there are no others."""
        return self.pool or Pool(self.noise_cost, (self.signed,))

    def _noise_bound(self, clips: Sequence[int], noise: Pool) -> float:
        """Return how far the noise strays at the clips of all numbers, in the user's scale."""
        return float(noise.bound(self.place, clips, self.alpha) * self.unit)

    def _cut(
        self, choice: np.ndarray, index: int, partitions: int, bound: float, noise: Pool
    ) -> Cut:
        """Return what people lose at a clip that partitions share, in the user's scale."""
        deviations = ALONE if partitions == 1 else TOGETHER
        squared = self.totals is not None
        losses = self.choice.losses(choice, np.array([index]), deviations, squared)
        unit, clip = float(self.unit), float(self.thresholds[index] * self.unit)
        # Distances have both signs: the few people beyond the top are not all on one side.
        alone = partitions == 1 and not self.folded
        totals = [(loss.beside(bound / unit) if alone else loss.total)[0] for loss in losses]
        roots = [math.sqrt(loss.squares[0]) for loss in losses]
        sides = [
            (float(total) * unit, root * unit) for total, root in zip(totals, roots, strict=True)
        ]
        below = sides[-1] if self.signed else (0.0, 0.0)
        return Cut(bound, clip, noise.scale(self.place) * clip, below, sides[0])

    def _clipped(self, view: PartitionView, indexes: np.ndarray, clip: int) -> np.ndarray:
        """Return the statistic per partition, each person clipped; the indexes are of the clip."""
        clipped = np.zeros(view.size, np.int64)
        for side, sign in enumerate(self._signs):
            clipped = integers.add(clipped, sign * _clip(view, side, indexes, clip))
        return clipped

    def with_lost(self, released: Released, share: float) -> Released:
        """Return the sums with what people had where they were cut."""
        return released.plus_lost(share, self.signed)

    def describe(self) -> Description:
        """Describe the noise in clips where a clip is chosen, else in the user's scale."""
        noise, place = self.in_pool, self.place
        if self.clip_cost is not None:
            sizes = noise.mean_error(place), noise.scale(place)
            return clip_then_noise("all partitions", noise.name, *sizes)
        clip = float(self.thresholds[0] * self.unit)
        note = "" if self.bounded or self.sure else f"{_IF_KNOWN} {clip:.15g}"
        sizes = noise.scale(place), noise.mean_error(place)
        scale, error = (f"{size * clip:.4g}" for size in sizes)
        return Description(noise.name, error, scale, note)


def people_of(context: Context, share: Budget, source: int = PEOPLE) -> ClippedSum:
    """Return the number of people per partition, plus noise: a person adds at most 1.

    Args:
        context: the parameters of the pipeline.
        share: what it may cost, over all partitions of a person.
        source: PEOPLE; or a field, to count the people whose number there is above 0.
    """
    noise = context.noise(share)
    number = ClippedSum(source, False, (1,), Fraction(1), None, noise, sure=True)
    return dataclasses.replace(number, alpha=context.alpha, jointly=context.jointly)


def clipped_sum(
    context: Context,
    share: Budget,
    source: int,
    clips: Sequence[int],
    unit: Fraction = Fraction(1),
    given: Fraction | None = None,
    *,
    signed: bool = False,
    anchored: bool = True,
) -> ClippedSum:
    """Return the release of a number that adds up over people, by a clip and noise.

    Args:
        context: the parameters of the pipeline.
        share: what it may cost, over all partitions of a person.
        source: the field that holds what one person adds, or ROWS.
        clips: the public clips in units.
        unit: what one unit is worth.
        given: the clip that the user gave, which is the only one; None: it is chosen.
        signed: whether numbers below 0 count.
        anchored: whether it is a number of rows or values, of which most people have few.
    """
    thresholds = tuple(clips) if given is None else (max(1, math.ceil(given / unit)),)
    fine = context.partitions == 1 and len(thresholds) > 1 and not share.is_zcdp
    thresholds = with_round_numbers(thresholds) if fine else thresholds
    clip_cost, noise_cost = _costs(context, share, len(thresholds) > 1)
    return ClippedSum(
        source=source,
        signed=signed,
        thresholds=thresholds,
        unit=unit,
        clip_cost=clip_cost,
        noise_cost=noise_cost,
        jointly=context.jointly,
        anchored=anchored,
        bounded=context.depth is not None,
        numbers=context.partitions or context.about or _UNKNOWN,
        alpha=context.alpha,
        fine=fine,
    )


def _costs(context: Context, share: Budget, chosen: bool) -> tuple[Budget | None, Budget]:
    """Return what the choice of the clip costs, if there is one, and what the noise does."""
    if not chosen:
        return None, context.noise(share)
    # One draw for P partitions has about the noise of a bound of the root of P.
    reach = math.isqrt(context.reach) if context.jointly else context.reach
    part = share_of_clip(context.partitions or context.about, reach)
    clip, noise = share.split((part, 1 - part))
    return clip, context.noise(noise)


def row_clips(depth: int | None) -> tuple[int, ...]:
    """Return the clips of a number of rows: powers of two, up to the bound on rows if there is one.

    Args:
        depth: the most rows per person and partition; None: unknown.
    """
    powers = [1 << power for power in range(_ROW_CLIPS)]
    if depth is None:
        return tuple(powers)
    return (*(power for power in powers if power < depth), depth)


def as_column(number: int) -> np.ndarray:
    """Return an integer of any size as an array of one."""
    return integers.narrow(np.array([number], object))


def _clip(view: PartitionView, measure: int, indexes: np.ndarray, clip: int) -> np.ndarray:
    """Return sum_i min(s_i, C) per partition, exactly: totals up to C, and C per person above."""
    below, above = view.cut(measure, indexes)
    return integers.add(below, integers.product(as_column(clip), above))

"""Numbers that add up over people: one clip of a person's whole vector, then noise of that size.

*The vector.* Let a_il be what person i adds to partition l, in units: rows, people, a sum of values
or of distances; signs are free. The norm T_i of person i is that of the vector of all their a_il:
the sum of the magnitudes (L1) under epsilon, the root of the sum of squares (L2) under zCDP.

*The clip C* bounds the norm. Person i adds b_il = a_il where T_i <= C, and C r_il / s else, where
r_il = s a_il / T_i, rounded towards 0, for a public s, the `steps`. So who is above the clip still
looks like themselves, smaller.

Theorem. For a C that does not depend on the person, adding or removing person i moves all
partitions together by the vector b_i, whose L1 (L2) norm is at most C. So discrete Laplace noise of
scale C / epsilon in every partition, independently, is epsilon-DP for the whole table, and discrete
Gaussian noise of variance C^2 / (2 rho) is rho-zCDP, however many partitions there are, empty ones
too.

Proof. T_i is at least the exact norm (`histograms.norms`), so that |r_il| <= s |a_il| / T_i have a
norm of s at most, and the b_il one of C. For T_i <= C the a_il have norm T_i themselves. No other
person's numbers are changed. The rest is the Laplace mechanism (Dwork, McSherry, Nissim, Smith
2006, Proposition 1) and the discrete Gaussian one (Canonne, Kamath, Steinke 2020, Theorem 14) for
one query with many coordinates. All b_il are whole multiples of the unit over some power of two, on
whose grid the noise is drawn: it follows from C and s, which are released and public.

*The choice of C* (`ClipChoice`) is made by a noisy histogram of the T_i over public thresholds, in
which each person is in one bucket, paid once. A partition's summary has the sums of the a_il and of
the r_il by bucket of T_i: all C can be taken when the lines of people are gone.

*The loss is given back.* What people above C lose together, as far as the histogram shows it, is
given to the partitions in proportion to their released numbers (`Cut`): a function of what was
released. With one partition there is nothing to share out, and nothing is given back.

*Interval.* Let n be how far the noise strays (95%), and L what the people above C lose by the
histogram: C is the only thing that cuts. Of one partition the true sum is between the released
number - n - L of the negative side, and + n + L of the positive one; the side of a person is the
sign of the sum of their a_il. One of several has its share of L (`Cut`). n is proved; L assumes
that what is beyond the highest bucket that shows people goes on falling.

*Nobody shown.* Where no bucket shows people, there is no clip: a sum is 0, and nothing is known on
either side. So few people have other than 0, if any do. A number of rows is taken with the least
clip, which needs no choice: it is at least the released number - n, and nothing is known on the
other side. Where public ends of values are known, people are taken to show up to the widest value
that these allow, whatever the histogram says.

*The box.* A number of people moves by at most 1 in each partition. Where few partitions are public,
one draw that hides the box of all such moves (`OneDraw`) can be better than the norm: the histogram
says which one errs less. Both cost the same.
"""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, cost_of_all
from beam_dp.mechanisms.histogram_choice.cliff import CliffChoice, with_round_numbers
from beam_dp.mechanisms.histogram_choice.clip import (
    NOT_GIVEN_BACK,
    SHARE_OF_NORM,
    ClipChoice,
    share_of_clip,
)
from beam_dp.mechanisms.histogram_choice.loss import ALONE, TOGETHER, Cut
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise
from beam_dp.mechanisms.metrics.base import Context
from beam_dp.mechanisms.metrics.released import (
    ALPHA,
    Description,
    Release,
    Released,
    Spending,
    clip_then_noise,
)
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.noise_on_several_sums import OneDraw
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_LARGE = 1 << 30  # a clip of so many units is near to one of any number
_IF_KNOWN = "the interval holds the true number if nobody counts for more than the given clip"
_ROW_CLIPS = 41
_MANY_BITS = 24
STEPS = 1 << 20
"""In so many steps a person above the clip has their share of it, where it is of 1 at most."""
FINE = 64
"""L2 norms of numbers of rows and people are rounded up to multiples of 1 / FINE."""
L2_SPREAD = 2.0
"""So much more is an L1 norm than an L2 norm: about as people in four to five partitions have it
(1.0 to 3.4 in twelve kinds of data)."""
GIVEN_BACK_FROM = 16
"""The loss of n people alike is given back by n / (n + this): that of few is in few partitions."""
BOX = 64
"""Up to so many partitions may share one draw that hides a box."""


@dataclasses.dataclass(frozen=True)
class Pool:
    """Numbers that share one draw of noise.

    Each number pays what its noise would cost alone. The sum of these costs buys one draw for all
    of them (`OneDraw`), in which each has less noise than alone. A number that is alone has the
    noise of `AdditiveNoise`.

    Attributes:
        budget: what all numbers together pay.
        signed: for each number, whether a person moves it both ways.
        weight: that of the metrics of a pool; each weight has a pool of its own.
        split: whether the numbers are parts of one vector of people, whose norm is clipped as one:
            independent noise of the size of the clip hides all of them. None: they are not.
        partitions: how many partitions share the draw too: 1, or all of them.
    """

    budget: Budget
    signed: tuple[bool, ...]
    weight: Fraction = Fraction(1)
    split: Measure | None = None
    partitions: int = 1

    @property
    def _sides(self) -> tuple[bool, ...]:
        """For each number of each partition, whether a person moves it both ways."""
        return tuple(np.repeat(self.signed, self.partitions).tolist())

    @property
    def _independent(self) -> bool:
        return self.split is not None or len(self._sides) == 1

    @property
    def name(self) -> str:
        """The distribution, for the plan."""
        if self._independent:
            return AdditiveNoise(self.budget).name
        return f"one draw for {len(self._sides)} numbers"

    def add(
        self, totals: Sequence[np.ndarray], clips: Sequence[int], noise: Noise
    ) -> list[np.ndarray]:
        """Return each number with its noise, in some partitions; in all that share a draw.

        Args:
            totals: for each number, that of every partition, in units.
            clips: the clip of each number.
            noise: the randomness.
        """
        if self._independent:
            adder = AdditiveNoise(self.budget)
            return [adder.add(each, clip, noise) for each, clip in zip(totals, clips, strict=True)]
        size = len(totals[0])
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
        if self._independent:
            return AdditiveNoise(self.budget).bound(clips[place], alpha)
        return self._law(clips).bound(place * self.partitions, alpha)

    def scale(self, place: int) -> float:
        """Return the scale of a number's noise for a clip of 1: Laplace's, or Gauss's deviation."""
        if self._independent:
            return AdditiveNoise(self.budget).scale
        deviation = self._large.deviation(place * self.partitions) / _LARGE
        return deviation if self.budget.is_zcdp else deviation / math.sqrt(2)

    def mean_error(self, place: int) -> float:
        """Return the mean absolute noise for a clip of 1, about."""
        if self._independent:
            return AdditiveNoise(self.budget).mean_error
        return self._large.mean_error(place * self.partitions) / _LARGE

    @property
    def _large(self) -> OneDraw:
        return self._law([_LARGE] * len(self.signed))


@dataclasses.dataclass(frozen=True, eq=False)
class ClippedTotals:
    """A number of some partitions before its noise, and the clip that was chosen.

    Attributes:
        totals: every person clipped, in units over `fine`: private.
        clip: the clip, in units.
        fine: how many steps of the grid of totals and noise a unit has.
        index: that of the clip in the thresholds.
        shown: whether the histogram shows anybody.
        choice: the noisy histogram that chose the clip; None: none did.
        partitions: how many partitions share it.
    """

    totals: np.ndarray
    clip: int
    fine: int
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
    box = numbers[0].better_box(taken[0])
    if box is not None:
        shared, taken = box, [numbers[0].unclipped(views[0])]
    clips = [each.clip * each.fine for each in taken]
    noisy = shared.add([each.totals for each in taken], clips, noise)
    triples = zip(numbers, taken, noisy, strict=True)
    return [number.released(each, sums, clips, shared) for number, each, sums in triples]


@dataclasses.dataclass(frozen=True)
class ClippedSum(Release):
    """A number that adds up over people, by one clip and noise of its size; see the module.

    Attributes:
        measure: what a person adds, with the public clips as its thresholds. Without a norm the
            clip bounds what a person adds to each single partition.
        unit: what one unit of the measure is worth.
        clip_cost: what the choice of the clip costs; None where there is one threshold only.
        noise_cost: the cost of the noise, in all partitions; without a norm in one of them.
        anchored: whether the numbers are numbers of rows: most people are at the first threshold.
        bounded: whether a public bound cuts rows before; the interval is open where they count.
        numbers: how many numbers a false alarm would ruin one by one; as in `Evidence`.
        alpha: the chance that the noise strays further than the interval says.
        borrowed: whether the clip is chosen, and paid, by another number that has the same measure.
        sure: whether nobody can count for more than the one clip that there is.
        folded: whether one histogram of magnitudes serves both signs: people are about as far on
            one side as on the other, and each may lose what both lose.
        box: whether a person moves each partition by one person at most, and partitions are few.
        pool: the numbers that share its noise; None: it has noise of its own.
        place: its place among these.
        widest: the largest single value that public ends allow, in units; None: none are known.
        unseen: what is released where the histogram shows nobody.
        round: whether round numbers are among the thresholds, of which two looks choose one.
    """

    measure: Measure
    unit: Fraction
    clip_cost: Budget | None
    noise_cost: Budget
    anchored: bool = False
    bounded: bool = False
    numbers: int = 1
    alpha: Fraction = ALPHA
    borrowed: bool = False
    sure: bool = False
    folded: bool = False
    box: bool = False
    pool: Pool | None = None
    place: int = 0
    widest: int | None = None
    unseen: float = 0.0
    round: bool = False

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What people add, by bucket."""
        return (self.measure,)

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The public clips, in units."""
        return self.measure.thresholds

    @property
    def signed(self) -> bool:
        """Whether numbers below 0 count."""
        return not self.measure.sign

    @property
    def origin(self) -> float:
        """The centre, in the user's scale."""
        measure = self.measure
        return float(measure.centre * self.unit) if measure.totals is None else 0.0

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The noise, and the choice of the clip."""
        whole = self.measure.norm > 0
        return (Spending(self.noise_cost, "noise", whole), *self.spends_on_clip)

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
        sides = 2 if self.signed and not self.folded else 1
        choose = CliffChoice if self.round else ClipChoice
        known = -1 if self.widest is None else int(np.searchsorted(self.thresholds, self.widest))
        how = sides, self.anchored, self.numbers, min(known, len(self.thresholds) - 1)
        return choose(self.clip_cost, self.thresholds, *how)

    def left(self, taken: ClippedTotals) -> Budget | None:
        """Return what its choice of the clip left for the noise; None: nothing."""
        if taken.choice is None or self.borrowed:
            return None
        return self.choice.left(taken.choice)

    @property
    def shift(self) -> int:
        """How many people above the clip may go unseen, typically."""
        return 0 if self.clip_cost is None else math.ceil(self.choice.evidence.unseen)

    def choose_shared(self, view: PartitionView, noise: Noise) -> np.ndarray:
        """Return the histogram for all partitions, from each person's norm or largest number."""
        sides = 1 + self.signed
        people, _ = view.histogram(0, sides * self.choice.buckets)
        counts = people.reshape(1, sides, self.choice.buckets)
        return self.choice.draw(counts.sum(axis=1, keepdims=True) if self.folded else counts, noise)

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
            "cost_of_the_noise": str(noise.amount),
            "norm": ("of one partition", "L1", "L2")[self.measure.norm],
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

    def taken(self, view: PartitionView) -> ClippedTotals:
        """Return what is released but for its noise, for partitions that share the clip."""
        index, shown = 0, True
        if view.clip is not None:
            index = self._chosen(view.clip, view.total)
            shown, index = index >= 0, max(index, 0)
        clip = self.thresholds[index]
        fine = grid_of(clip, self.measure.steps)
        totals = self._clipped(view, index, clip, fine)
        return ClippedTotals(totals, clip, fine, index, shown, view.clip, view.total)

    def _chosen(self, choice: np.ndarray, partitions: int) -> int:
        """Return the index of the clip that a histogram chooses; -1: nobody is shown."""
        if partitions > 1 and self.measure.norm:
            return int(self._best(choice, partitions)[0][0])
        return int(self.choice.clips(choice, self.price, partitions)[0])

    def _best(self, choice: np.ndarray, partitions: int) -> tuple[np.ndarray, np.ndarray]:
        noise = self.in_pool.mean_error(self.place) * np.array(
            [float(clip) for clip in self.thresholds]
        )
        weight = NOT_GIVEN_BACK * (L2_SPREAD if self.measure.norm == 2 else 1.0)
        return self.choice.best_clips(choice, noise, partitions, weight)

    def expected_error(self, choice: np.ndarray, partitions: int) -> float:
        """Return about how far a partition's number will be off, in the user's scale."""
        return float(self._best(choice, partitions)[1][0] * self.unit)

    def _clipped(self, view: PartitionView, index: int, clip: int, fine: int) -> np.ndarray:
        """Return the statistic per partition, each person clipped, in units over `fine`."""
        whole, shares = view.cut(0, np.full(view.size, index))
        return clipped_totals(whole, shares, clip, fine, self.measure.steps)

    def unclipped(self, view: PartitionView) -> ClippedTotals:
        """Return the number with nobody clipped, who moves it by one person in each partition."""
        whole, _ = view.cut(0, np.full(view.size, len(self.thresholds)))
        return ClippedTotals(whole, self.measure.fine, 1, -1, True, view.clip, view.total)

    def better_box(self, taken: ClippedTotals) -> Pool | None:
        """Return the draw that hides the box of all moves, where it errs less than the clip.

        Partitions that are drawn apart have no draw to share.
        """
        together = len(taken.totals) == taken.partitions
        if not self.box or taken.choice is None or not together:
            return None
        box = Pool(self.noise_cost, (False,), partitions=taken.partitions)
        lost = self.choice.losses(taken.choice, np.array([taken.index]))[0].shown[0]
        error = self.in_pool.mean_error(0) * taken.clip + lost / taken.partitions
        return box if box.mean_error(0) * self.measure.fine <= error else None

    def released(
        self, taken: ClippedTotals, noisy: np.ndarray, clips: Sequence[int], noise: Pool
    ) -> Released:
        """Return the numbers with their noise, and how far the truth may be from them.

        Args:
            taken: what `taken` returned.
            noisy: the totals with their noise, in units over `fine`.
            clips: the clips of all numbers of the pool, each in its own grid.
            noise: the pool.
        """
        unit = self.unit / taken.fine
        values = integers.scale(noisy, unit)
        strays = float(noise.bound(self.place, clips, self.alpha) * unit)
        bound, nothing = (np.full(len(values), far) for far in (strays, math.inf))
        if not taken.shown and not self.anchored:
            return Released.within(np.full(len(values), self.unseen), nothing)
        if not taken.shown or self.bounded:  # people, or rows, may have been cut
            below = nothing if taken.shown and self.signed else bound
            return Released.between(values, below, nothing)
        noise_only = Released.within(values, bound)
        if taken.choice is None:
            return noise_only
        return dataclasses.replace(noise_only, cut=self._cut(taken, strays, noise))

    @property
    def price(self) -> float:
        """The scale of the noise for a clip of 1."""
        return self.in_pool.scale(self.place)

    def deviation(self, cut: Cut | None) -> tuple[float, bool]:
        """Return the standard deviation of the noise of a number, and whether it is Gaussian.

        Args:
            cut: that of the number; None: it was drawn with the one, or least, clip.
        """
        clip = float(self.thresholds[0] * self.unit)
        scale = self.price * clip if cut is None else cut.scale
        is_normal = self.noise_cost.is_zcdp or (cut is not None and cut.norm == 2)
        return (scale if is_normal else math.sqrt(2) * scale), is_normal

    @property
    def in_pool(self) -> Pool:
        """The numbers that share its noise: itself alone if there are no others."""
        return self.pool or Pool(self.noise_cost, (self.signed,))

    def _cut(self, taken: ClippedTotals, bound: float, noise: Pool) -> Cut:
        """Return what people lose at a clip that partitions share, in the user's scale."""
        unit, clip = float(self.unit), float(taken.clip * self.unit)
        scale, several = noise.scale(self.place) * clip, taken.partitions > 1
        if taken.index < 0 or taken.choice is None:  # nobody is clipped
            return Cut(bound, clip, scale, (0.0, 0.0), (0.0, 0.0))
        at = np.array([taken.index])
        squared = self.measure.totals is not None
        losses = self.choice.losses(taken.choice, at, TOGETHER if several else ALONE, squared)
        # Distances have both signs: the few people beyond the top are not all on one side.
        alone = not several and not self.folded
        totals = [(loss.beside(bound / unit) if alone else loss.total)[0] for loss in losses]
        sides = [
            (float(total) * unit, math.sqrt(loss.squares[0]) * unit)
            for total, loss in zip(totals, losses, strict=True)
        ]
        below = sides[-1] if self.signed else (0.0, 0.0)
        cut = Cut(bound, clip, scale, below, sides[0], norm=self.measure.norm)
        if not several or not self.measure.norm or self.measure.part is not None:
            return cut
        shown, kept, squares = (
            sum(float(getattr(loss, name)[0]) for loss in losses)
            for name in ("shown", "kept", "seen_squares")
        )
        people = shown**2 / squares if squares else 0.0
        lost = shown * people / (people + GIVEN_BACK_FROM) * unit
        return dataclasses.replace(cut, lost=lost, kept=kept * unit)

    def with_lost(self, released: Released, share: float) -> Released:
        """Return the numbers: nobody's partitions were dropped where there is a norm."""
        return released if self.measure.norm else released.plus_lost(share, self.signed)

    @property
    def _clipped_in_words(self) -> str:
        if not self.measure.norm:
            return "what each person adds to each partition"
        several = self.measure.steps > 1 and self.measure.part is None
        return "what each person adds" + f" to all partitions (L{self.measure.norm} norm)" * several

    def describe(self) -> Description:
        """Describe the noise in clips where a clip is chosen, else in the user's scale."""
        noise, place = self.in_pool, self.place
        if self.clip_cost is not None:
            sizes = noise.mean_error(place), noise.scale(place)
            return clip_then_noise(self._clipped_in_words, noise.name, *sizes)
        clip = float(self.thresholds[0] * self.unit)
        given = (self.measure.cap or 0) * self.measure.fine or self.thresholds[0]
        note = "" if self.bounded or self.sure else f"{_IF_KNOWN} {float(given * self.unit):.15g}"
        sizes = noise.scale(place), noise.mean_error(place)
        scale, error = (f"{size * clip:.4g}" for size in sizes)
        return Description(noise.name, error, scale, note)


def grid_of(clip: int, steps: int) -> int:
    """Return how many steps of a grid a unit needs, so that all shares of a clip are on it."""
    zeros = (clip & -clip).bit_length() - 1
    return max(1, steps >> zeros)


def clipped_totals(
    whole: np.ndarray, shares: np.ndarray, clip: int, fine: int, steps: int
) -> np.ndarray:
    """Return totals of people up to the clip and, of others, their shares of the clip.

    Args:
        whole: totals of people up to the clip, in units.
        shares: of people above, in so many `steps`.
        clip: the clip, in units.
        fine: `grid_of` it; the totals are in units over `fine`.
        steps: those of a whole share.
    """
    below = integers.product(whole, as_column(fine))
    return integers.add(below, integers.product(shares, as_column(clip * fine // steps)))


def people_of(
    context: Context, share: Budget, source: int = PEOPLE, *, each: bool = False
) -> ClippedSum:
    """Return the number of people per partition, plus noise: a person adds at most 1 to each.

    Args:
        context: the parameters of the pipeline.
        share: what it may cost, over all partitions of a person.
        source: PEOPLE; or a field, to count the people whose number there is above 0.
        each: whether every partition of a person pays for itself.
    """
    measure = Measure(source, once=True)
    if each or context.partitions == 1:
        measure = dataclasses.replace(measure, thresholds=(1,))
        noise = context.each(share) if each else share
        return ClippedSum(measure, Fraction(1), None, noise, sure=True, alpha=context.alpha)
    few = context.partitions is not None and context.partitions <= BOX
    made = clipped_sum(context, share, measure, (1,), given=Fraction(1))
    return dataclasses.replace(made, box=few, sure=True)


def clipped_sum(
    context: Context,
    share: Budget,
    measure: Measure,
    clips: Sequence[int],
    unit: Fraction = Fraction(1),
    given: Fraction | None = None,
    *,
    anchored: bool = True,
) -> ClippedSum:
    """Return the release of a number that adds up over people, by a clip and noise.

    Args:
        context: the parameters of the pipeline.
        share: what it may cost, over all partitions of a person.
        measure: what one person adds, without clips and norm.
        clips: the public clips of one partition, in units.
        unit: what one unit is worth.
        given: the clip of one partition that the user gave; None: it is chosen.
        anchored: whether it is a number of rows or values, of which most people have few.
    """
    several = context.partitions != 1
    norm = 2 if several and share.is_zcdp else 1
    fine = FINE if anchored and norm == 2 else 1
    cap = None if given is None else max(1, math.ceil(given / unit))
    thresholds = _thresholds(context, clips, cap, norm, fine)
    two_looks = not several and len(thresholds) > 1 and not share.is_zcdp
    thresholds = with_round_numbers(thresholds) if two_looks else thresholds
    measure = dataclasses.replace(
        measure,
        thresholds=thresholds,
        cap=cap if several else None,
        fine=fine,
        norm=norm,
        steps=STEPS if several or measure.part is not None else 1,
    )
    clip_cost, noise_cost = None, share
    if len(thresholds) > 1 and context.clip is not None:
        clip_cost = context.clip
    elif len(thresholds) > 1:
        part = SHARE_OF_NORM if several else share_of_clip(1, 1)
        clip_cost, noise_cost = share.split((part, 1 - part))
    return ClippedSum(
        measure,
        unit / fine,
        clip_cost,
        noise_cost,
        anchored=anchored,
        bounded=context.depth is not None,
        alpha=context.alpha,
        round=two_looks,
    )


def _thresholds(
    context: Context, clips: Sequence[int], cap: int | None, norm: int, fine: int
) -> tuple[int, ...]:
    """Return the public clips of a norm, in units over `fine`.

    What a person has in one partition is at most `cap`, or the last of `clips`; they are in at most
    so many partitions as the user's bound says, or as there are. If the user gave a cap and there
    is one partition or a bound, the norm of that is the one clip. Else a clip is a power of two, or
    of the root of two where norms are finer than units, up to the largest norm.
    """
    most = min(filter(None, (context.bound, context.partitions)), default=None)
    if cap is not None and (context.bound or most == 1):
        return (_norm_of(cap * fine, most or 1, norm),)
    if most == 1:
        return tuple(clips)
    largest = _norm_of((cap or clips[-1]) * fine, most or 1 << _MANY_BITS, norm)
    powers = {fine << power for power in range(largest.bit_length())}
    if fine > 1:
        powers |= {math.isqrt(2 * power * power) for power in powers}
    return (*sorted(power for power in powers if power < largest), largest)


def _norm_of(each: int, partitions: int, norm: int) -> int:
    """Return the norm of so many equal numbers, rounded up."""
    return each * partitions if norm == 1 else math.isqrt(each * each * partitions - 1) + 1


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

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

*The choice of C* is made by a noisy histogram of the T_i over public thresholds, in which each
person is in one bucket, paid once (`ClipChoice`); under epsilon by two such histograms
(`CliffChoice`). A partition's summary has the sums of the a_il and of the r_il by bucket of T_i:
all C can be taken when the lines of people are gone.

*The loss is given back.* What people above C lose together, as far as the histogram shows it, is
given to the partitions in proportion to their released numbers (`ClippingLoss`): a function of what
was released. With one partition there is nothing to share out, and nothing is given back.

*Interval.* Let n be the tail bound of the noise (95%), and L what the people above C lose by the
histogram: only C clips. Of one partition the true sum is between the released
number - n - L of the negative side, and + n + L of the positive one; the side of a person is the
sign of the sum of their a_il. One of several has its share of L (`ClippingLoss`). n is proved; L
assumes that what is beyond the highest bucket that shows people goes on falling.

*Nobody shown.* Where no bucket shows people, there is no clip: a sum is 0, and nothing is known on
either side. So few people have other than 0, if any do. A number of rows is taken with the least
clip, which needs no choice: it is at least the released number - n, and nothing is known on the
other side. Where public ends of values are known, people are taken to show up to the widest value
that these allow, whatever the histogram says.

*The box.* A number of people moves by at most 1 in each partition. Where few partitions are public,
one draw that hides the box of all such moves (`JointNoise`) can be better than the norm: the histogram
says which one errs less. Both cost the same.
"""

import bisect
import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, Spending
from beam_dp.mechanisms.histogram_choice.cliff import CliffChoice, with_round_numbers
from beam_dp.mechanisms.histogram_choice.clip_choice import (
    NOT_GIVEN_BACK,
    ClipChoice,
    clip_share_of_norm,
    clip_share_of_partition,
)
from beam_dp.mechanisms.histogram_choice.clipping_loss import SPREAD, ClippingLoss
from beam_dp.mechanisms.metrics.additive.shared_clip import SharedClip, clips_of_norm
from beam_dp.mechanisms.metrics.base import Context
from beam_dp.mechanisms.metrics.released import (
    ALPHA,
    Description,
    Release,
    Released,
    clip_then_noise,
)
from beam_dp.mechanisms.noise.noise_on_a_sum import JointNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_IF_KNOWN = "the interval holds the true number if nobody adds more than the given clip"
STEPS = 1 << 20
"""A person's share of the clip is a whole number of this many steps."""
FINE = 64
"""L2 norms of numbers of rows and people are rounded up to multiples of 1 / FINE."""
L2_SPREAD = 2.0
"""An L1 norm is taken to be so many L2 norms: about as of people in four partitions (1.0 to 3.4 in
twelve kinds of data)."""
GIVEN_BACK_FROM = 16
"""The loss of n people alike is given back by n / (n + this): that of few is in few partitions."""
BOX = 64
"""Up to so many partitions may share one draw that hides a box."""
_UNKNOWN = 10
"""For how many partitions a clip is chosen where their number is not public."""


@dataclasses.dataclass(frozen=True)
class Total:
    """What people add up to, each clipped; the base of what is computed from them in other ways.

    Attributes:
        measure: what a person adds, and the clip is chosen on, with the public clips as its
            thresholds. Without a norm the clip bounds what a person adds to each partition.
        size: how many numbers a partition has.
    """

    measure: Measure
    size: int = dataclasses.field(default=1, kw_only=True)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What must be summarised per partition: what people add, by bucket."""
        return (self.measure,)

    @property
    def where(self) -> str:
        """What the noise is on, for the plan; "" for one number."""
        return ""

    def clipped(
        self, view: PartitionView, index: int, clip: int | Fraction, grid: int
    ) -> np.ndarray:
        """Return the statistic per partition, each person clipped, in units over `grid`.

        Args:
            view: the partitions.
            index: that of the clip in the thresholds.
            clip: the clip, in units.
            grid: `grid_of` it.
        """
        whole, shares = view.clipped(0, np.full(view.size, index))
        return clipped_totals(whole, shares, clip, grid, self.measure.steps)


@dataclasses.dataclass(frozen=True, eq=False)
class ClippedTotals:
    """A number of some partitions before its noise, and the clip that was chosen.

    Attributes:
        totals: every person clipped, in units over `grid`: private.
        clip: the clip, in units.
        grid: how many steps a unit of the totals, and of their noise, has.
        index: that of the clip in the thresholds.
        shown: whether the histogram shows anybody.
        histogram: the noisy one that chose the clip; None: none did.
        partitions: how many partitions share it.
    """

    totals: np.ndarray
    clip: int | Fraction
    grid: int
    index: int
    shown: bool
    histogram: np.ndarray | None = None
    partitions: int = 1


@dataclasses.dataclass(frozen=True)
class Limits:
    """What is known beside the clip, for the interval.

    Attributes:
        bounded: whether a public bound cuts rows before; the interval is open where they count.
        sure: whether nobody can count for more than the one clip that there is.
        if_nobody: what is released where the histogram shows nobody.
    """

    bounded: bool = False
    sure: bool = False
    if_nobody: float = 0.0


@dataclasses.dataclass(frozen=True)
class AdditiveRelease(Release):
    """A number that adds up over people, by one clip and noise of its size; see the module.

    Attributes:
        contribution: what a person adds.
        unit: what one unit of it is worth.
        noise_cost: the cost of the noise, in all partitions; without a norm in one of them.
        clip: how the clip is chosen; None: there is one threshold only.
        alpha: the chance that the noise exceeds its tail bound.
        limits: what else the interval depends on.
        box: whether a person moves each partition by one person at most, and partitions are few.
        joint: the draw of noise that it shares with other numbers; None: it has noise of its own.
        place: its place among these.
    """

    contribution: Total
    unit: Fraction
    noise_cost: Budget
    clip: SharedClip | None = None
    alpha: Fraction = ALPHA
    limits: Limits = Limits()
    box: bool = False
    joint: JointNoise | None = None
    place: int = 0

    @property
    def measure(self) -> Measure:
        """What a person adds, with the public clips as its thresholds."""
        return self.contribution.measure

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What must be summarised."""
        return self.contribution.measures

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
        noise = Spending(self.noise_cost, "noise", once=self.measure.norm > 0)
        return (noise, *(self.clip.spends if self.clip else ()))

    @property
    def shift(self) -> int:
        """How many people above the clip may go unseen, typically."""
        return self.clip.shift if self.clip else 0

    @property
    def noise(self) -> JointNoise:
        """Its noise, and that of the numbers that share it, if there are others."""
        return self.joint or JointNoise(self.noise_cost, (self.signed,))

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one noisy number per partition, with noise of its own."""
        [released] = draw_jointly([self], [view], noise)
        return released

    def clipped(self, view: PartitionView) -> ClippedTotals:
        """Return what is released but for its noise, for partitions that share the clip."""
        index, shown = 0, True
        if view.clip_histogram is not None:
            index = self._chosen(view.clip_histogram, view.total)
            shown, index = index >= 0, max(index, 0)
        clip = self.clip_at(index, view)
        grid = grid_of(clip, self.measure.steps)
        totals = self.contribution.clipped(view, index, clip, grid)
        return ClippedTotals(totals, clip, grid, index, shown, view.clip_histogram, view.total)

    def clip_at(self, index: int, view: PartitionView) -> int | Fraction:
        """Return the clip, in units, by its index in the thresholds."""
        return self.measure.thresholds[index]

    def unclipped(self, view: PartitionView) -> ClippedTotals:
        """Return the number with nobody clipped: a person moves each partition by at most 1."""
        whole, _ = view.clipped(0, np.full(view.size, len(self.measure.thresholds)))
        return ClippedTotals(whole, self.measure.fine, 1, -1, True, view.clip_histogram, view.total)

    def _chosen(self, histogram: np.ndarray, partitions: int) -> int:
        """Return the index of the clip that a histogram chooses; -1: nobody is shown."""
        if partitions > 1 and self.measure.norm:
            return self._best(histogram, partitions)[0]
        return int(self._choice.clips(histogram, self.noise.scale(self.place), partitions)[0])

    @property
    def _choice(self) -> ClipChoice:
        assert self.clip is not None
        return self.clip.choice

    def _best(self, histogram: np.ndarray, partitions: int) -> tuple[int, float]:
        thresholds = np.array([float(clip) for clip in self.measure.thresholds])
        noise = self.mean_error(histogram) * thresholds
        weight = NOT_GIVEN_BACK * (L2_SPREAD if self.measure.norm == 2 else 1.0)
        return self._choice.best_clip(histogram, noise, partitions * self._root, weight)

    @property
    def _root(self) -> float:
        """The root of how many numbers a partition has, its bins.

        All that a partition loses may be of one bin, or each bin may lose a part alike; the root is
        between. So a partition counts as so many where a clip is chosen, and a bin may have lost so
        many times its share. `benchmarks.many_partitions` has it, with 5 and 25 bins: 1.2 and 1.5
        times the error of an expert; 1.5 and 3.2 times with 1 in its place.
        """
        return math.sqrt(self.contribution.size)

    def expected_error(self, histogram: np.ndarray, partitions: int) -> float:
        """Return about how far a partition's number will be off, in the user's scale."""
        return self._best(histogram, partitions)[1] * float(self.unit)

    def mean_error(self, histogram: np.ndarray) -> float:
        """Return the mean absolute noise of a number for a clip of 1."""
        return self._noise_at(histogram).mean_error(self.place)

    def _noise_at(self, histogram: np.ndarray) -> JointNoise:
        """Return the noise, with what the choice of the clip left for it."""
        assert self.clip is not None
        budget = self.clip.cost_of_noise(self.noise.budget, histogram)
        return dataclasses.replace(self.noise, budget=budget)

    def better_box(self, clipped: ClippedTotals) -> JointNoise | None:
        """Return the draw that hides the box of all moves, where it errs less than the clip.

        Partitions that are drawn apart have no draw to share.
        """
        together = len(clipped.totals) == clipped.partitions
        if not self.box or clipped.histogram is None or not together:
            return None
        noise = self._noise_at(clipped.histogram)
        box = dataclasses.replace(noise, partitions=clipped.partitions)
        lost = self._choice.losses(clipped.histogram, np.array([clipped.index]))[0].shown[0]
        error = noise.mean_error(0) * clipped.clip + lost / clipped.partitions
        return box if box.mean_error(0) * self.measure.fine <= error else None

    def released(
        self, clipped: ClippedTotals, noisy: np.ndarray, clips: Sequence[int], noise: JointNoise
    ) -> Released:
        """Return the numbers with their noise, and how far the truth may be from them.

        Args:
            clipped: what `clipped` returned.
            noisy: the totals with their noise, in units over `grid`.
            clips: the clips of all numbers that share the noise, each in its own grid.
            noise: their noise.
        """
        values = integers.scale(noisy, self.unit / clipped.grid)
        bound = float(noise.bound(self.place, clips, self.alpha) * self.unit / clipped.grid)
        below, above, loss = bound, bound, None
        if not clipped.shown and not (self.clip and self.clip.choice.anchored):
            values, below, above = np.full(len(values), self.limits.if_nobody), math.inf, math.inf
        elif not clipped.shown or self.limits.bounded:  # people, or rows, may have been cut
            below, above = math.inf if clipped.shown and self.signed else bound, math.inf
        elif clipped.histogram is not None:
            loss = self._loss(clipped, bound, noise)
        size = self.contribution.size
        values = values.reshape(-1, size) if size > 1 else values
        return dataclasses.replace(Released.between(values, below, above), loss=loss)

    def deviation(self, loss: ClippingLoss | None) -> tuple[float, bool]:
        """Return the standard deviation of the noise of a number, and whether it is Gaussian.

        Args:
            loss: that of the number; None: it was drawn with the one, or least, clip.
        """
        clip = float(self.measure.thresholds[0] * self.unit)
        scale = self.noise.scale(self.place) * clip if loss is None else loss.scale
        is_normal = self.noise_cost.is_zcdp or (loss is not None and loss.norm == 2)
        return (scale if is_normal else math.sqrt(2) * scale), is_normal

    def _loss(self, clipped: ClippedTotals, bound: float, noise: JointNoise) -> ClippingLoss:
        """Return what people lose at a clip that partitions share, in the user's scale."""
        unit, clip = float(self.unit), float(clipped.clip * self.unit)
        scale, several = noise.scale(self.place) * clip, clipped.partitions > 1
        if clipped.index < 0 or clipped.histogram is None or self.clip is None:  # nobody is clipped
            return ClippingLoss(bound, math.inf, scale, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        at = np.array([clipped.index])
        squared = self.measure.totals is not None
        # Distances have both signs: of many partitions, the few beyond the top are in some of each.
        shared_by = math.inf if several and self.clip.choice.folded else clipped.partitions
        losses = self._choice.losses(clipped.histogram, at, shared_by, squared)
        sides = [
            (
                float(loss.total[0]) * unit,
                math.sqrt(loss.squares[0]) * unit,
                math.sqrt(loss.beyond[0]) * unit,
            )
            for loss in losses
        ]
        below = sides[-1] if self.signed else (0.0, 0.0, 0.0)
        made = bound, clip, scale, below, sides[0]
        loss = ClippingLoss(
            *made,
            norm=self.measure.norm,
            folded=self.clip.choice.folded,
            spread=SPREAD * self._root,
        )
        if not several or not self.measure.norm:
            return loss
        shown, kept, squares = (
            sum(float(getattr(loss, name)[0]) for loss in losses)
            for name in ("shown", "kept", "shown_squares")
        )
        people = shown**2 / squares if squares else 0.0
        lost = shown * people / (people + GIVEN_BACK_FROM) * unit
        positive = self.measure.norm == 2 and kept and not below[0]
        by_norm = losses[0].by_norm() if positive else ()
        return dataclasses.replace(loss, lost=lost, kept=kept * unit, by_norm=by_norm)

    def with_lost(self, released: Released, share: float) -> Released:
        """Return the numbers: nobody's partitions were dropped where there is a norm."""
        return released if self.measure.norm else released.plus_lost(share, self.signed)

    def describe(self) -> Description:
        """Describe the noise in clips where a clip is chosen, else in the user's scale."""
        scale, error = self.noise.scale(self.place), self.noise.mean_error(self.place)
        measure, name = self.measure, self.noise.name + self.contribution.where
        if self.clip is not None:
            where = f" to all partitions (L{measure.norm} norm)" * (measure.steps > 1)
            where = where if measure.norm else " to each partition"
            return clip_then_noise(f"what each person adds{where}", name, error, scale)
        clip = float(measure.thresholds[0] * self.unit)
        given = float(((measure.cap or 0) * measure.fine or measure.thresholds[0]) * self.unit)
        is_safe = self.limits.bounded or self.limits.sure
        note = "" if is_safe else f"{_IF_KNOWN} {given:.15g}"
        return Description(name, f"{error * clip:.4g}", f"{scale * clip:.4g}", note)


def grid_of(clip: int | Fraction, steps: int) -> int:
    """Return how many steps of a grid a unit needs, so that all shares of a clip are on it."""
    whole = clip.numerator
    zeros = (whole & -whole).bit_length() - 1
    return max(1, steps >> zeros) * clip.denominator


def clipped_totals(
    whole: np.ndarray, shares: np.ndarray, clip: int | Fraction, grid: int, steps: int
) -> np.ndarray:
    """Return totals of people up to the clip and, of others, their shares of the clip.

    Args:
        whole: totals of people up to the clip, in units.
        shares: of people above, in so many `steps`.
        clip: the clip, in units.
        grid: `grid_of` it; the totals are in units over `grid`.
        steps: those of a whole share.
    """
    below = integers.product(whole, integers.alone(grid))
    return integers.add(below, integers.product(shares, integers.alone(clip * grid // steps)))


def draw_jointly(
    numbers: Sequence[AdditiveRelease], views: Sequence[PartitionView], noise: Noise
) -> list[Released]:
    """Draw numbers that share a draw of noise per partition.

    Args:
        numbers: all of them, in its order; or one number with noise of its own.
        views: the partitions, as each of them reads them.
        noise: the randomness.
    """
    clipped = [number.clipped(view) for number, view in zip(numbers, views, strict=True)]
    shared = numbers[0].noise
    for number, each in zip(numbers, clipped, strict=True):
        if number.clip is not None and each.histogram is not None:
            budget = number.clip.cost_of_noise(shared.budget, each.histogram)
            shared = dataclasses.replace(shared, budget=budget)
    box = numbers[0].better_box(clipped[0])
    if box is not None:
        shared, clipped = box, [numbers[0].unclipped(views[0])]
    clips = [int(each.clip * each.grid) for each in clipped]
    noisy = shared.add([each.totals for each in clipped], clips, noise)
    triples = zip(numbers, clipped, noisy, strict=True)
    return [number.released(each, sums, clips, shared) for number, each, sums in triples]


def people_release(
    context: Context, share: Budget, source: int = PEOPLE, *, each: bool = False, box: bool = True
) -> AdditiveRelease:
    """Return the number of people per partition, plus noise: a person adds at most 1 to each.

    Args:
        context: the parameters of the pipeline.
        share: what it may cost, over all partitions of a person.
        source: PEOPLE; or a field, to count the people whose number there is above 0.
        each: whether every partition of a person pays for itself.
        box: whether few partitions may share a draw.
    """
    measure = Measure(source, once=True, thresholds=(1,))
    if each or context.partitions == 1:
        return each_partition(context, share, Total(measure), Limits(sure=True))
    limits = Limits(bounded=context.max_rows_per_partition is not None, sure=True)
    made = clipped_sum(context, share, measure, given=Fraction(1), limits=limits)
    few = context.partitions is not None and context.partitions <= BOX
    return dataclasses.replace(made, box=box and few)


def each_partition(
    context: Context, share: Budget, contribution: Total, limits: Limits
) -> AdditiveRelease:
    """Return the release of a number of which every partition of a person pays for its noise.

    Args:
        context: the parameters of the pipeline.
        share: what it may cost, over all partitions of a person.
        contribution: what one person adds; of several thresholds the clip is chosen.
        limits: what else the interval depends on.
    """
    measure, clip = contribution.measure, None
    if len(measure.thresholds) > 1:
        part = clip_share_of_partition(context.partitions, context.max_partitions)
        cost, share = share.split((part, 1 - part))
        numbers = context.partitions or _UNKNOWN
        choice = ClipChoice(cost, measure.thresholds, anchored=True, numbers=numbers)
        clip = SharedClip(measure, Fraction(1), choice)
    made = contribution, Fraction(1), context.each(share), clip, context.alpha
    return AdditiveRelease(*made, limits)


def clipped_sum(
    context: Context,
    share: Budget,
    measure: Measure,
    unit: Fraction = Fraction(1),
    *,
    given: Fraction | None = None,
    anchored: bool = True,
    folded: bool = False,
    widest: int | None = None,
    limits: Limits | None = None,
) -> AdditiveRelease:
    """Return the release of a number that adds up over people, by a clip and noise.

    Args:
        context: the parameters of the pipeline.
        share: what it may cost, over all partitions of a person.
        measure: what one person adds; its thresholds are the public clips of one partition.
        unit: what one unit is worth.
        given: the clip of one partition that the user gave; None: it is chosen.
        anchored: whether it is a number of rows or values, of which most people have few.
        folded: whether people are about as far on one side as on the other.
        widest: the largest single value that public ends allow, in units; None: none are known.
        limits: what else the interval depends on; None: whether there is a bound on rows.
    """
    several = context.partitions != 1
    norm = 2 if several and share.is_zcdp else 1
    fine = FINE if anchored and norm == 2 else 1
    cap = None if given is None else max(1, math.ceil(given / unit))
    octaves = clips_of_norm(
        (context.bound, context.partitions), measure.thresholds, cap, norm, fine
    )
    thresholds = octaves
    if len(octaves) > 1 and fine == 1:  # norms that are finer have half octaves
        thresholds = with_round_numbers(octaves)
    measure = dataclasses.replace(
        measure,
        thresholds=thresholds,
        cap=cap if several else None,
        fine=fine,
        norm=norm,
        steps=max(measure.steps, STEPS) if several else 1,
    )
    clip, noise_cost = None, share
    if len(octaves) > 1:
        cost = context.clip_cost
        if cost is None:
            part = clip_share_of_norm(share, context.partitions)
            cost, noise_cost = share.split((part, 1 - part))
        known = -1 if widest is None else bisect.bisect_left(octaves, widest)
        choice = (ClipChoice if share.is_zcdp else CliffChoice)(
            cost,
            measure.thresholds,
            1 if measure.sign or folded else 2,
            anchored,
            known=min(known, len(octaves) - 1),
            edges=octaves,
            folded=folded,
        )
        clip = SharedClip(measure, unit / fine, choice)
    return AdditiveRelease(
        Total(measure),
        unit / fine,
        noise_cost,
        clip,
        context.alpha,
        limits or Limits(bounded=context.max_rows_per_partition is not None),
    )

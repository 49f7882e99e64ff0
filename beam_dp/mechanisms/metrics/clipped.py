"""Release sums and counts: what a person adds is cut at a private clip, then noise of that size.

Numbers of one partition share one draw of noise (`Pool`). All computations are on integers (units);
only the result is turned into the user's scale.
"""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, cost_of_all
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.histogram_choice.clip import ClipChoice, beside_others, shares
from beam_dp.mechanisms.histogram_choice.loss import ALONE, TOGETHER, Cut
from beam_dp.mechanisms.histogram_choice.noisy_histogram import Choice, HistogramNoise
from beam_dp.mechanisms.metrics.base import Context
from beam_dp.mechanisms.metrics.released import (
    ALPHA,
    Description,
    Foreseen,
    Release,
    Released,
    Spending,
)
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.one_draw import OneDraw
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.profiles.packed import packed_values
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure, Part
from beam_dp.mechanisms.summaries.owner_lines import Lines, Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_LARGE = 1 << 30  # a clip of so many units is near to one of any number
_MOST_ROWS = 1 << 62
_IF_KNOWN = "the interval holds the true number if nobody counts for more than the given clip"
STEPS = 1024
"""A person above the clip has a share of it in so many steps."""
_ROW_CLIPS = 41
_UNKNOWN = 10
"""For how many partitions a shared clip is chosen where their number is not public."""


@dataclasses.dataclass(frozen=True)
class Pool:
    """The numbers of one partition that share one draw of noise, and what they pay for it.

    Each number pays the noise that it would have had alone; together they have the noise of the sum
    of these costs for all of them (`OneDraw`), which is smaller for each. What a number pays
    depends on the look at its histogram, which was released before: given the looks, histograms and
    noise cost together what the numbers may spend, whatever the looks were.

    Attributes:
        signed: for each number, whether a person moves it both ways.
        costs: for each number what it pays, by the look at its histogram.
        weight: that of the metrics of a pool; each weight has a pool of its own.
        partitions: how many partitions share the draw too: 1, or all of them.
    """

    signed: tuple[bool, ...]
    costs: tuple[tuple[Budget, ...], ...]
    weight: Fraction = Fraction(1)
    partitions: int = 1

    def noise(self, looks: Sequence[int] | None = None) -> "PoolNoise":
        """Return the noise.

        Args:
            looks: which look each number took; None: the last ones.
        """
        taken = looks or [-1] * len(self.costs)
        costs = [each[look] for each, look in zip(self.costs, taken, strict=True)]
        return PoolNoise(cost_of_all(costs), self.signed, self.partitions)


@dataclasses.dataclass(frozen=True)
class PoolNoise:
    """The noise of a pool, whatever its clips: of one number alone that of `AdditiveNoise`.

    Attributes:
        budget: what all numbers together cost.
        signed: for each number, whether a person moves it both ways.
        partitions: how many partitions share the draw. A person may move the numbers of all of
            them, as far as the clips say: that is the theorem of `OneDraw` for all these numbers,
            and no bound on partitions is needed.
    """

    budget: Budget
    signed: tuple[bool, ...]
    partitions: int = 1

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
            sensitivities = np.repeat(_column(clips[0]), size)
            return [AdditiveNoise(self.budget).add(totals[0], sensitivities, noise)]
        whole = self.partitions in (1, size)
        checks.require(whole, "PoolNoise", "totals", "be of all partitions, which share a draw")
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
        look: the look at the histogram that was taken.
        shown: whether the histogram shows anybody.
        choice: what was drawn to choose the clip; None: nothing.
        partitions: how many partitions share it.
    """

    totals: np.ndarray
    index: int
    look: int
    shown: bool
    choice: Choice | None = None
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
    shared = numbers[0].in_pool.noise([each.look for each in taken])
    clips = [each.thresholds[own.index] for each, own in zip(numbers, taken, strict=True)]
    noisy = shared.add([each.totals for each in taken], clips, noise)
    triples = zip(numbers, taken, noisy, strict=True)
    return [number.released(each, sums, clips, shared) for number, each, sums in triples]


@dataclasses.dataclass(frozen=True)
class ClippedSum(Release):
    """A sum or a count by a privately chosen clip C, then noise of sensitivity C.

    Let s_i be what person i adds to a partition. A noisy histogram of the |s_i| over the public
    thresholds, in which each person is in one bucket, chooses C (`ClipChoice`). The sum of the s_i
    cut to [-C, C], the difference of two non-negative sums of which a person touches one, then
    moves by at most C per person, and noise of that sensitivity is added: once, not per sign.

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
    is known on the other side. So are distances from a centre other than 0, where most people
    may have none: and nothing is known on either side.

    Attributes:
        source: the field or ROWS.
        signed: whether numbers below 0 count (else they are taken as 0).
        thresholds: the public clips, in units.
        unit: what one unit is worth.
        looks: the costs of the looks at the histogram; none where there is one threshold only.
        noise_costs: for each look the cost of the noise, per partition.
        anchored: whether the numbers are numbers of rows: most people are at the first threshold.
        bounded: whether a public bound cuts rows before; the interval is open where they count.
        numbers: how many partitions share the clip, or about so many.
        alpha: the chance that the noise strays further than the interval says.
        early: as in `ClipChoice`.
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
    """

    source: int
    signed: bool
    thresholds: tuple[int, ...]
    unit: Fraction
    looks: tuple[Budget, ...]
    noise_costs: tuple[Budget, ...]
    anchored: bool = False
    bounded: bool = False
    numbers: int = 1
    alpha: Fraction = ALPHA
    early: bool = False
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
    def shared_measure(self) -> Measure | None:
        """The measure that the shared clip is chosen on; None where no shared clip is chosen."""
        return self._measure(0 if self.signed else 1) if self.looks else None

    @property
    def origin(self) -> float:
        """The centre, in the user's scale."""
        return float(self.centre * self.unit) if self.totals is None else 0.0

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The noise, and the choice of the clip; of two looks the whole, as either may be used.

        The parts differ by look, and so do their squares, by which a ledger in rho adds up.
        """
        noise = self.noise_costs[-1]
        if len(self.looks) > 1 and not self.borrowed:
            return (Spending(cost_of_all([noise, self.looks[-1]]), "clip and noise"),)
        return (Spending(noise, "noise", self.jointly), *self.spends_on_clip)

    @property
    def spends_on_clip(self) -> tuple[Spending, ...]:
        """The choice of the clip alone."""
        if self.borrowed:
            return ()
        return tuple(Spending(look, "clip", once=True) for look in self.looks[-1:])

    @property
    def chooser(self) -> "ClippedSum | None":
        """This release, if it chooses a shared clip."""
        return self if self.shared_measure is not None and not self.borrowed else None

    @property
    def choice(self) -> ClipChoice:
        """How the clip is chosen."""
        sides = 1 if self.folded else len(self._signs)
        of = self.looks, self.thresholds, sides, self.anchored
        return ClipChoice(*of, numbers=self.numbers, early=self.early)

    @property
    def shift(self) -> int:
        """How many people above the clip may go unseen, typically."""
        return math.ceil(self.choice.evidence(len(self.looks) - 1).unseen) if self.looks else 0

    def choose_shared(self, view: PartitionView, noise: Noise) -> Choice:
        """Return the histogram for all partitions, from each person's largest number."""
        people, _ = view.histogram(0, len(self._signs) * self.choice.buckets)
        sides = people.reshape(1, len(self._signs), self.choice.buckets)
        return self.choice.draw(self._folded(sides), noise)

    def _folded(self, sides: np.ndarray) -> np.ndarray:
        """Return the histograms of both signs, as one where they are not told apart."""
        return sides.sum(axis=1, keepdims=True) if self.folded else sides

    def told(self, choice: Choice, taken: Sequence[tuple[float, float]]) -> dict[str, object]:
        """Return what was drawn to choose the clip, in words and numbers, for the record.

        Args:
            choice: what was drawn.
            taken: the clips that were taken, each with the scale of its noise, in the user's scale;
                none where nobody was shown.
        """
        unit = float(self.unit)
        histogram = HistogramNoise(self.looks[choice.look])
        return {
            "clips": [clip for clip, _ in taken],
            "noise_scales": [scale for _, scale in taken],
            "look": f"{choice.look + 1} of {len(self.looks)}",
            "cost_of_the_look": str(self.looks[choice.look].amount),
            "cost_of_the_noise_per_partition": str(self.noise_costs[choice.look].amount),
            "scale_of_the_histogram": histogram.scale,
            "people_up_to": [edge * unit for edge in self.thresholds],
            "noisy_people": choice.noisy[0].tolist(),
        }

    def largest(self, choice: Choice) -> int | None:
        """Return, in units, up to where the histogram shows people; None: nowhere."""
        index = int(self.choice.clips(choice, 0.0)[0])
        return None if index < 0 else self.thresholds[index]

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one noisy sum per partition, with noise of its own."""
        [released] = draw_together([self], [view], noise)
        return released

    def taken(self, view: PartitionView) -> Taken:
        """Return what is released but for its noise, for partitions that share the clip."""
        look, index, shown = len(self.noise_costs) - 1, 0, True
        if view.clip is not None:
            look = view.clip.look
            index = int(self.choice.clips(view.clip, self.price, view.total)[0])
            shown, index = index >= 0, max(index, 0)
        totals = self._clipped(view, np.full(view.size, index), self.thresholds[index])
        return Taken(totals, index, look, shown, view.clip, view.total)

    def released(
        self, taken: Taken, noisy: np.ndarray, clips: Sequence[int], noise: PoolNoise
    ) -> Released:
        """Return the numbers with their noise, and how far the truth may be from them.

        Args:
            taken: what `taken` returned.
            noisy: the totals with their noise, in units.
            clips: the clips of all numbers of the pool.
            noise: the distribution of the noise.
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
        """The scale of the noise for a clip of 1, as it is before any look: public."""
        return self._usual.scale(self.place)

    @property
    def _usual(self) -> PoolNoise:
        """The noise where every clip took its last look."""
        return self.in_pool.noise()

    @property
    def in_pool(self) -> Pool:
        """The numbers that share its noise: itself alone if there are no others."""
        return self.pool or Pool((self.signed,), (self.noise_costs,))

    def _noise_bound(self, clips: Sequence[int], noise: PoolNoise) -> float:
        """Return how far the noise strays at the clips of all numbers, in the user's scale."""
        return float(noise.bound(self.place, clips, self.alpha) * self.unit)

    def _cut(
        self, choice: Choice, index: int, partitions: int, bound: float, noise: PoolNoise
    ) -> Cut:
        """Return what people lose at a clip that partitions share, in the user's scale."""
        deviations = ALONE if partitions == 1 else TOGETHER
        losses = self.choice.losses(choice, np.array([index]), deviations)
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

    def foreseen(self, most: float, whole: bool) -> Foreseen | None:
        """Return half of the most for each person, and the noise of the clip that cuts nobody."""
        each, last = 1.0 if self.sure else (most + whole) / 2, self.thresholds[-1]
        clip = next((edge for edge in self.thresholds if edge * self.unit >= most), last)
        noise = self._usual
        return Foreseen(each, self._noise_bound([clip] * len(noise.signed), noise))

    def describe(self) -> Description:
        """Describe the noise in clips where a clip is chosen, else in the user's scale."""
        noise, place = self._usual, self.place
        if self.looks:
            return clip_then_noise("all partitions", noise, place)
        clip = float(self.thresholds[0] * self.unit)
        note = "" if self.bounded or self.sure else f"{_IF_KNOWN} {clip:.15g}"
        sizes = noise.scale(place), noise.mean_error(place)
        scale, error = (f"{size * clip:.4g}" for size in sizes)
        return Description(noise.name, error, scale, note)


@dataclasses.dataclass(frozen=True)
class ClippedShare(ClippedSum):
    """The rows of a kind among those that have a value, or the others, each person weighed.

    Person i with b_i rows that have a value, a_i of them of the kind, weighs w_i = min(1, C / b_i):
    they count for w_i a_i, in units of 1 / 1024 row and rounded down, which is at most C, and keep
    their own share a_i / b_i whatever C is. So a person who is added moves the number by 0 to C.
    C is chosen on the b_i, once for the rows of the kind and the others (`borrowed`).

    Attributes:
        part: the field that holds a_i.
        rest: whether the others are counted: b_i - a_i.
    """

    part: int = PEOPLE
    rest: bool = False

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """By b_i: what people have, and their share of it in steps."""
        parts = (Part(self.part, self.rest, steps) for steps in (0, STEPS))
        return tuple(dataclasses.replace(self._measure(1), part=part) for part in parts)

    def _measure(self, sign: int) -> Measure:
        rows = tuple(edge // STEPS for edge in self.thresholds)
        return Measure(self.source, sign, rows, once=self.sure)

    def _clipped(self, view: PartitionView, indexes: np.ndarray, clip: int) -> np.ndarray:
        whole, _ = view.cut(0, indexes)
        shares = view.above(1, indexes)
        weighed = integers.product(shares, _column(clip // STEPS))
        return integers.add(integers.product(whole, _column(STEPS)), weighed)


def people_of(context: Context, share: Budget, source: int = PEOPLE) -> ClippedSum:
    """Return the number of people per partition, plus noise: a person adds at most 1.

    Args:
        context: the parameters of the pipeline.
        share: what it may cost, over all partitions of a person.
        source: PEOPLE; or a field, to count the people whose number there is above 0.
    """
    noise = (context.noise(share),)
    number = ClippedSum(source, False, (1,), Fraction(1), (), noise, sure=True)
    return dataclasses.replace(number, alpha=context.alpha, jointly=context.jointly)


@dataclasses.dataclass(frozen=True)
class ClippedValues(ClippedSum):
    """A number that is computed from who has how many rows of which value, each person clipped.

    *Different values.* The clip C is chosen as in `ClippedSum`, on the number of different values
    that a person has. The statistic is the most values that can be covered when every person covers
    at most C of theirs (a maximum flow, `packed_values.covered`): one person more raises it by 0 to C,
    and it is never above the true number. Of the people who have a value, only one must have room
    for it, so the true number is above it by at most what people lose.

    *The rows of the most frequent value.* Let c_iv be the rows of person i with value v, and s_i
    the largest of them, on which the clip C is chosen as in `ClippedSum`. The statistic is M, the
    maximum over v of sum_i min(c_iv, C).

    Theorem. A person more raises M by 0 to C, and the true number f, the maximum over v of
    sum_i c_iv, is from M to M + sum_i max(s_i - C, 0).

    Proof. The person raises each sum by min(c_iv, C), from 0 to C, and so their maximum. For every
    v, sum_i c_iv - sum_i min(c_iv, C) = sum_i max(c_iv - C, 0), from 0 to sum_i max(s_i - C, 0);
    so again for their maxima. What people above C lose is thus at most what they lose in a sum of
    the s_i, which `ClippedSum` estimates by the same histogram.

    Attributes:
        relation: who has.
        distinct: whether different values are counted; else rows of the most frequent one.
    """

    relation: Relation = dataclasses.field(default_factory=Relation)
    distinct: bool = False

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The histogram that the clip is chosen on, and the rows of the values."""
        return (*super().measures, self.relation)

    def foreseen(self, most: float, whole: bool) -> Foreseen | None:
        """Return nothing: how many people have the same value is not guessed."""
        return None

    def _clipped(self, view: PartitionView, indexes: np.ndarray, clip: int) -> np.ndarray:
        count = _values if self.distinct else _most_rows
        owned = view.owned(len(super().measures))
        return np.array([count(lines, clip) for lines in owned], np.int64)


def _values(lines: Lines, cap: int) -> int:
    return packed_values.covered(lines.people, lines.items, cap)


def _most_rows(lines: Lines, cap: int) -> int:
    """Return the most rows of a value, of each person at most `cap`."""
    if not len(lines.items):
        return 0
    codes = ordering.numbered(lines.items.view(np.uint64)[None])
    rows = np.zeros(int(codes.max()) + 1, np.int64)
    np.add.at(rows, codes, np.minimum(lines.counts, min(cap, _MOST_ROWS)))
    return int(rows.max())


def clip_then_noise(where: str, noise: PoolNoise, place: int = 0) -> Description:
    """Describe a release that chooses a clip, then adds noise of that size.

    Args:
        where: the partitions that the clip is chosen for, in words.
        noise: the noise.
        place: the place of the number among those that share the noise.
    """
    mechanism = f"clip for {where}, then {noise.name}"
    error = f"{noise.mean_error(place):.4g} clips + cut"
    return Description(mechanism, error, f"{noise.scale(place):.4g} clips")


def _column(number: int) -> np.ndarray:
    """Return an integer of any size as an array of one."""
    return integers.narrow(np.array([number], object))


def _clip(view: PartitionView, measure: int, indexes: np.ndarray, clip: int) -> np.ndarray:
    """Return sum_i min(s_i, C) per partition, exactly: totals up to C, and C per person above."""
    below, above = view.cut(measure, indexes)
    return integers.add(below, integers.product(_column(clip), above))


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
    early: bool = False,
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
        early: whether a first look is enough as soon as it shows that many people are there.
    """
    thresholds = tuple(clips) if given is None else (max(1, math.ceil(given / unit)),)
    searches, noises = _costs(context, share, len(thresholds) > 1)
    return ClippedSum(
        source=source,
        signed=signed,
        thresholds=thresholds,
        unit=unit,
        looks=searches,
        noise_costs=noises,
        jointly=context.jointly,
        anchored=anchored,
        bounded=context.depth is not None,
        numbers=context.partitions or context.about or _UNKNOWN,
        alpha=context.alpha,
        early=early,
    )


def _costs(
    context: Context, share: Budget, chosen: bool
) -> tuple[tuple[Budget, ...], tuple[Budget, ...]]:
    """Return what each look at who has how much costs, and what the noise after it may cost."""
    if not chosen:
        return (), (context.noise(share),)
    # One draw for P partitions has about the noise of a bound of the root of P.
    reach = math.isqrt(context.reach) if context.jointly else context.reach
    looks = shares(context.partitions, reach, not share.is_zcdp, context.about)
    parts = [beside_others(look, context.together) for look in looks]
    pairs = [share.split((part, 1 - part)) for part in parts]
    return tuple(look for look, _ in pairs), tuple(context.noise(noise) for _, noise in pairs)


def row_clips(depth: int | None) -> tuple[int, ...]:
    """Return the clips of a number of rows: powers of two, up to the bound on rows if there is one.

    Args:
        depth: the most rows per person and partition; None: unknown.
    """
    powers = [1 << power for power in range(_ROW_CLIPS)]
    if depth is None:
        return tuple(powers)
    return (*(power for power in powers if power < depth), depth)

"""Release sums and counts by a privately chosen clip, then noise of that size.

All computations are on integers (units); only the result is turned into the user's scale.
"""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.clips.choice import Choice, ClipChoice
from beam_dp.mechanisms.clips.foresight import Crowd, Foreseen
from beam_dp.mechanisms.clips.histogram_noise import HistogramNoise
from beam_dp.mechanisms.clips.loss import ALONE, TOGETHER, Cut
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.profiles import coverage
from beam_dp.mechanisms.releases.released import (
    ALPHA,
    Chooser,
    Description,
    Release,
    Released,
    Spending,
)
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_CHUNK = 1 << 21
_IF_KNOWN = "the interval holds the true number if nobody counts for more than the given clip"


@dataclasses.dataclass(frozen=True)
class ClippedSum(Release):
    """A sum or a count by a privately chosen clip C, then noise of sensitivity C.

    Let s_i be what person i adds to a partition. A noisy histogram of the |s_i| over the public
    thresholds, in which each person is in one bucket, chooses C (`ClipChoice`). The sum of the s_i
    cut to [-C, C], the difference of two non-negative sums of which a person touches one, then
    moves by at most C per person, and noise of that sensitivity is added: once, not per sign.

    *Shared.* With `shared` the clip is chosen once for all partitions, on the largest |s_i| that a
    person has in any partition. One person moves that histogram by 1 however many partitions they
    reach, so the choice is paid once instead of once per partition, and small partitions do not
    suffer.

    *Interval.* Let n be how far the noise strays (95%), and L what the people above C lose by the
    same histogram (`clips.loss`), in all: C is the only thing that cuts, so the true sum is between
    the released number - n - L of the negative side, and + n + L of the positive one. n is proved;
    L assumes that what is beyond the highest bucket that shows people goes on falling. A partition
    has its share of L (`Cut`).

    *Nobody shown.* Where no bucket shows people, there is no clip: a sum is NaN. A number of rows
    is taken with C = 1, which needs no choice: it is at least the released number - n, and nothing
    is known on the other side.

    Attributes:
        source: the field or ROWS.
        signed: whether numbers below 0 count (else they are taken as 0).
        thresholds: the public clips, in units.
        unit: what one unit is worth.
        looks: the costs of the looks at the histogram; none where there is one threshold only.
        noise_costs: for each look the cost of the noise, per partition.
        shared: choose one clip for all partitions.
        anchored: whether the numbers are numbers of rows: most people are at the first threshold.
        bounded: whether a public bound cuts rows before; the interval is open where they count.
        numbers: how many partitions share the clip, or about so many.
        alpha: the chance that the noise strays further than the interval says.
        early: as in `ClipChoice`.
    """

    source: int
    signed: bool
    thresholds: tuple[int, ...]
    unit: Fraction
    looks: tuple[Budget, ...]
    noise_costs: tuple[Budget, ...]
    shared: bool = True
    anchored: bool = False
    bounded: bool = False
    numbers: int = 1
    alpha: Fraction = ALPHA
    early: bool = False

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """One histogram per sign."""
        return tuple(Measure(self.source, sign, self.thresholds) for sign in self._signs)

    @property
    def _signs(self) -> tuple[int, ...]:
        return (1, -1) if self.signed else (1,)

    @property
    def shared_measure(self) -> Measure | None:
        """The measure that the shared clip is chosen on; None where no shared clip is chosen."""
        if not self.shared or not self.looks:
            return None
        return Measure(self.source, 0 if self.signed else 1, self.thresholds)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The noise, and the choice of the clip; of two looks the whole, as either may be used.

        The parts differ by look, and so do their squares, by which a ledger in rho adds up.
        """
        noise = self.noise_costs[-1]
        if len(self.looks) > 1:
            both = noise.amount + self.looks[-1].amount
            whole = Budget.zcdp(both) if noise.is_zcdp else Budget(both)
            return (Spending(whole, "clip and noise"),)
        return (Spending(noise, "noise"), *self.spends_on_clip)

    @property
    def spends_on_clip(self) -> tuple[Spending, ...]:
        """The choice of the clip alone."""
        return tuple(Spending(look, "clip", self.shared) for look in self.looks[-1:])

    @property
    def chooser(self) -> Chooser | None:
        """This release, if it chooses a shared clip."""
        return self if self.shared_measure is not None else None

    @property
    def choice(self) -> ClipChoice:
        """How the clip is chosen."""
        of = self.looks, self.thresholds, len(self._signs), self.anchored
        return ClipChoice(*of, numbers=self.numbers, early=self.early)

    @property
    def shift(self) -> int:
        """How many people above the clip may go unseen, typically."""
        return math.ceil(self.choice.evidence(len(self.looks) - 1).unseen) if self.looks else 0

    def choose_shared(self, view: PartitionView, noise: Noise) -> Choice:
        """Return the histogram for all partitions, from each person's largest number."""
        people, _ = view.histogram(0, len(self._signs) * self.choice.buckets)
        return self.choice.draw(people.reshape(1, len(self._signs), self.choice.buckets), noise)

    def told(self, choice: Choice, scales: Sequence[float]) -> dict[str, object]:
        """Return the histogram, and the clips that were taken; none where nobody was shown."""
        unit, price = float(self.unit), self._price(choice.look)
        histogram = HistogramNoise(self.looks[choice.look])
        return {
            "clips": [scale / price for scale in scales],
            "noise_scales": list(scales),
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
        """Draw one noisy sum per partition.

        Args:
            view: the partitions; with the choice of a shared clip, if there is one.
            noise: the randomness.
        """
        if view.clip is not None or not self.looks:
            return self._of_shared(view, noise)
        # Where each partition has a clip, the choice reads the whole histogram.
        size = max(1, _CHUNK // (len(self._signs) * self.choice.buckets))
        starts = range(0, view.size, size)
        return Released.joined(
            [self._of_each(view.part(start, start + size), noise) for start in starts]
        )

    def _of_shared(self, view: PartitionView, noise: Noise) -> Released:
        """Draw the numbers of partitions with one clip."""
        look, index, shown = len(self.noise_costs) - 1, 0, True
        if view.clip is not None:
            look = view.clip.look
            index = int(self.choice.clips(view.clip, self._price(look), view.total)[0])
            shown, index = index >= 0, max(index, 0)
        values = self._noisy(view, np.full(view.size, index), look, noise)
        bound = self._noise_bound(index, look)
        if not shown:
            return self._unshown(values, np.full(view.size, bound))
        noise_only = Released.within(values, np.full(view.size, bound))
        if view.clip is None or self.bounded:
            return self._opened(noise_only)
        return dataclasses.replace(noise_only, cut=self._cut(view.clip, index, look, view.total))

    def _of_each(self, view: PartitionView, noise: Noise) -> Released:
        """Draw the numbers of partitions each of which has a clip."""
        sides = [view.histogram(side, self.choice.buckets)[0] for side in range(len(self._signs))]
        choice = self.choice.draw(np.stack(sides, axis=1), noise)
        clips = self.choice.clips(choice, self._price(choice.look))
        shown, clips = clips >= 0, np.maximum(clips, 0)
        values = self._noisy(view, clips, choice.look, noise)
        used = np.unique(clips).tolist()
        bounds = {index: self._noise_bound(index, choice.look) for index in used}
        bound = np.array([bounds[index] for index in clips.tolist()], np.float64)
        unit = float(self.unit)
        losses = [loss.beside(bound / unit) * unit for loss in self.choice.losses(choice, clips)]
        below = losses[1] if self.signed else np.zeros(view.size)
        seen = Released.between(values, bound + below, bound + losses[0])
        return self._opened(seen).where(shown, self._unshown(values, bound))

    def _opened(self, released: Released) -> Released:
        """Return the numbers with an open interval where a bound on rows has cut them."""
        if not self.bounded:
            return released
        above = np.full(len(released.values), math.inf)
        return Released.between(released.values, above if self.signed else released.below, above)

    def _unshown(self, values: np.ndarray, bound: np.ndarray) -> Released:
        """Return what is known where nobody was shown, and the smallest clip was taken."""
        if self.anchored:
            return Released.at_least(values, bound)
        return Released.within(np.full(len(values), math.nan), np.full(len(values), math.inf))

    def _noisy(
        self, view: PartitionView, indexes: np.ndarray, look: int, noise: Noise
    ) -> np.ndarray:
        """Return the clipped sums plus noise, in the user's scale."""
        reached = self.thresholds[: int(indexes.max(initial=0)) + 1]
        clip = integers.narrow(np.array(reached, object))[indexes]
        adder = AdditiveNoise(self.noise_costs[look])
        noisy = adder.add(self._clipped(view, indexes, clip), clip, noise)
        return integers.scale(noisy, self.unit)

    def _price(self, look: int) -> float:
        """Return the scale of the noise of one number for a clip of 1."""
        return AdditiveNoise(self.noise_costs[look]).scale

    def _noise_bound(self, index: int, look: int) -> float:
        """Return how far the noise strays at a clip, in the user's scale."""
        adder = AdditiveNoise(self.noise_costs[look])
        return float(adder.bound(self.thresholds[index], self.alpha) * self.unit)

    def _cut(self, choice: Choice, index: int, look: int, partitions: int) -> Cut:
        """Return what people lose at a clip that so many partitions share, in the user's scale."""
        deviations = ALONE if partitions == 1 else TOGETHER
        losses = self.choice.losses(choice, np.array([index]), deviations)
        least = self._price(choice.look) * float(self.thresholds[index] * self.unit)
        bound = self._noise_bound(index, look)
        return Cut.of(bound, least, losses, float(self.unit), partitions == 1)

    def _clipped(self, view: PartitionView, indexes: np.ndarray, clip: np.ndarray) -> np.ndarray:
        """Return the statistic per partition, each person clipped."""
        clipped = np.zeros(view.size, np.int64)
        for side, sign in enumerate(self._signs):
            clipped = integers.add(clipped, sign * _clip(view, side, indexes, clip))
        return clipped

    def with_lost(self, released: Released, share: float) -> Released:
        """Return the sums with what people had where they were cut."""
        return released.plus_lost(share, self.signed)

    def foreseen(self, crowd: Crowd) -> Foreseen | None:
        """Return the interval that people as they are guessed get, if bounds cut none of them."""
        value, look = crowd.total, len(self.noise_costs) - 1
        if not self.looks:
            bound = self._noise_bound(0, look)
            return Foreseen(value, value - bound, value + bound)
        people, partitions = crowd.people, 1
        if self.shared:
            people, partitions = crowd.everybody, crowd.partitions
        histogram = np.zeros((1, len(self._signs), self.choice.buckets))
        histogram[0, 0] = crowd.histogram(self.thresholds, self.unit, people)
        choice = Choice(histogram, look)
        index = int(self.choice.clips(choice, self._price(look), partitions)[0])
        if index < 0:
            return Foreseen(value, -math.inf, math.inf)
        cut = self._cut(choice, index, look, partitions)
        size = cut.sizes(np.array([value]))[0]
        sums = np.array([size, size**2]) * partitions
        [below], [above] = cut.widths(np.array([value]), sums)
        return Foreseen(value, value - below, value + above)

    def describe(self) -> Description:
        """Describe the noise in clips where a clip is chosen, else in the user's scale."""
        adder = AdditiveNoise(self.noise_costs[-1])
        if not self.looks:
            clip = float(self.thresholds[0] * self.unit)
            note = f"{_IF_KNOWN} {clip:.15g}" * (not self.bounded)
            scale, error = (f"{size * clip:.4g}" for size in (adder.scale, adder.mean_error))
            return Description(adder.name, scale, 0, error, note)
        where = ("each partition", "all partitions")[self.shared]
        return clip_then_noise(where, adder, self.shift)


@dataclasses.dataclass(frozen=True)
class ClippedDistinct(ClippedSum):
    """The number of different values: each person covers at most C of theirs, then noise.

    The clip C is chosen as in `ClippedSum`, on the number of different values that a person has.
    The statistic is the most values that can be covered when every person covers at most C of
    their own (a maximum flow, `coverage.capped`): one person more raises it by 0 to C, and it is
    never above the true number. Of the people who have a value, only one must have room for it, so
    the true number is above it by at most what people lose.

    Attributes:
        relation: who owns which value.
    """

    relation: Relation = dataclasses.field(default_factory=Relation)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The histogram that the clip is chosen on, and the owners of the values."""
        return (*super().measures, self.relation)

    def foreseen(self, crowd: Crowd) -> Foreseen | None:
        """Return nothing: how many people have the same value is not guessed."""
        return None

    def _clipped(self, view: PartitionView, indexes: np.ndarray, clip: np.ndarray) -> np.ndarray:
        lines = view.owned(len(super().measures))
        covered = [
            coverage.capped(owned.people, owned.items, int(cap))
            for owned, cap in zip(lines, clip, strict=True)
        ]
        return np.array(covered, np.int64)


def clip_then_noise(where: str, adder: AdditiveNoise, shift: int) -> Description:
    """Describe a release that chooses a clip, then adds noise of that size.

    Args:
        where: the partitions that the clip is chosen for, in words.
        adder: the noise.
        shift: how many people may be cut.
    """
    mechanism = f"clip for {where}, then {adder.name}"
    error = f"{adder.mean_error:.4g} clips + cut"
    return Description(mechanism, f"{adder.scale:.4g} clips", shift, error)


def _clip(view: PartitionView, measure: int, indexes: np.ndarray, clip: np.ndarray) -> np.ndarray:
    """Return sum_i min(s_i, C) per partition, exactly: totals up to C, and C per person above."""
    below, above = view.cut(measure, indexes)
    return integers.add(below, integers.product(clip, above))

"""Release sums and counts by a privately chosen clip, then noise of that size.

All computations are on integers (units); only the result is turned into the user's scale.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.profiles import coverage
from beam_dp.mechanisms.releases.released import (
    ALPHA,
    EVIDENCE_ALPHA,
    OVERSHOOT,
    Chooser,
    Description,
    Release,
    Released,
    Spending,
    clips_shown,
)
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

CLIP_BETA = 1e-3
"""Chance that a clip cuts more people than its shift."""
_CHUNK = 1 << 21


@dataclasses.dataclass(frozen=True)
class ClippedSum(Release):
    """A sum or a count by a privately chosen clip C, then noise of sensitivity C.

    Let s_i be what person i adds to a partition and l(y) the number of people with |s_i| > y,
    which is the removal loss of max_i |s_i|: it moves by at most 1 per person, for all candidates
    in one direction. `AboveThreshold` chooses C from the public thresholds on it. The sum of the
    s_i cut to [-C, C], the difference of two non-negative sums of which a person touches one, then
    moves by at most C per person, and noise of that sensitivity is added: once, not per sign.

    *Shared.* With `shared` the clip is chosen once for all partitions, on the largest |s_i| that a
    person has in any partition. One person moves that loss by 1 however many partitions they reach,
    so the choice is paid once instead of once per partition, and small partitions do not suffer.

    *Tail.* The chance of a clip above all numbers, whose noise would be far too large, is at most
    `OVERSHOOT`.

    *Error bound.* With probability 95% the released number is within it of the sum in which at most
    `shift` people (over all partitions, if shared) are cut at the clip. No bound on their values is
    known, so the loss from cutting them has no bound. The error bound is infinite where the
    released numbers (of all partitions together, if shared) do not show that there are more than
    `shift` people. They show s people, counted once per partition, where they exceed their noise
    (but for a chance of `EVIDENCE_ALPHA` over the partitions that are drawn together) by s clips in
    all, which needs at least s people. Else everybody may have been cut, and the number says
    nothing.

    Attributes:
        source: the field or ROWS.
        signed: whether numbers below 0 count (else they are taken as 0).
        thresholds: the public clips, in units.
        unit: what one unit is worth.
        search_cost: the cost of choosing the clip; None where there is one threshold only.
        noise_cost: the cost of the noise, per partition.
        shared: choose one clip for all partitions.
        alpha: the chance that the noise exceeds the error bound.
    """

    source: int
    signed: bool
    thresholds: tuple[int, ...]
    unit: Fraction
    search_cost: Budget | None
    noise_cost: Budget
    shared: bool = True
    alpha: Fraction = ALPHA

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
        if not self.shared or self.search_cost is None:
            return None
        return Measure(self.source, 0 if self.signed else 1, self.thresholds)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The noise, and the choice of the clip if there is more than one threshold."""
        noise = Spending(self.noise_cost, "noise")
        if self.search_cost is None:
            return (noise,)
        return (noise, Spending(self.search_cost, "clip", self.shared))

    @property
    def chooser(self) -> Chooser | None:
        """This release, if it chooses a shared clip."""
        return self if self.shared_measure is not None else None

    @property
    def search(self) -> AboveThreshold | None:
        """The search for the clip; None where there is nothing to choose."""
        if self.search_cost is None:
            return None
        return AboveThreshold(self.search_cost, CLIP_BETA, OVERSHOOT)

    @property
    def shift(self) -> int:
        """How many people may be cut at the clip."""
        return self.search.shift(len(self.thresholds)) if self.search else 0

    def choose(self, people: np.ndarray, noise: Noise) -> np.ndarray:
        """Return a clip (an index into `thresholds`) for each row of people per bucket."""
        if self.search is None:
            return np.zeros(len(people), np.int64)
        return self.search.choose_rows(people[:, ::-1].cumsum(axis=1)[:, -2::-1], noise)

    def choose_shared(self, view: PartitionView, noise: Noise) -> int:
        """Return the clip for all partitions, from the summary of each person's largest number."""
        people, _ = view.histogram(0, len(self.thresholds) + 1)
        return int(self.choose(people, noise)[0])

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one noisy sum per partition.

        Args:
            view: the partitions; its clip is an index into `thresholds`; None: a clip is chosen
                for each partition.
            noise: the randomness.
        """
        # Where each partition has a clip, the search for it reads the whole histogram.
        size = max(1, view.size if view.clip is not None else _CHUNK // (len(self.thresholds) + 1))
        parts = [
            self._drawn(view.part(start, start + size), noise)
            for start in range(0, view.size, size)
        ]
        return Released(
            np.concatenate([part.values for part in parts] or [np.empty(0)]),
            np.concatenate([part.errors for part in parts] or [np.empty(0)]),
            sum(part.shown for part in parts),
        )

    def _drawn(self, view: PartitionView, noise: Noise) -> Released:
        if view.clip is None:
            indexes = self.choose(self._people(view), noise)
        else:
            indexes = np.full(view.size, view.clip)
        reached = self.thresholds[: int(indexes.max(initial=0)) + 1]
        clip = integers.narrow(np.array(reached, object))[indexes]
        adder = AdditiveNoise(self.noise_cost)
        noisy = adder.add(self._clipped(view, indexes, clip), clip, noise)
        bound = adder.bounds(clip, self.alpha)
        if self.search is not None and view.clip is None:
            bound = np.where(clips_shown(noisy, bound, clip) > self.shift, bound, np.inf)
        beyond = adder.bounds(clip, EVIDENCE_ALPHA / max(1, view.size))
        shown = float(clips_shown(noisy, beyond, clip).sum())
        return Released(integers.scale(noisy, self.unit), bound * float(self.unit), shown)

    def _people(self, view: PartitionView) -> np.ndarray:
        """Return the people per partition and bucket, both signs together."""
        buckets, sides = len(self.thresholds) + 1, range(len(self._signs))
        return np.asarray(sum(view.histogram(side, buckets)[0] for side in sides))

    def _clipped(self, view: PartitionView, indexes: np.ndarray, clip: np.ndarray) -> np.ndarray:
        """Return the statistic per partition, each person clipped."""
        clipped = np.zeros(view.size, np.int64)
        for side, sign in enumerate(self._signs):
            clipped = integers.add(clipped, sign * _clip(view, side, indexes, clip))
        return clipped

    def describe(self) -> Description:
        """Describe the noise in clips where a clip is chosen, else in the user's scale."""
        adder = AdditiveNoise(self.noise_cost)
        if self.search is None:
            clip = float(self.thresholds[0] * self.unit)
            error = f"{adder.mean_error * clip:.4g}"
            return Description(adder.name, f"{adder.scale * clip:.4g}", 0, error)
        where = "all partitions" if self.shared else "each partition"
        return clip_then_noise(where, adder, self.shift)


@dataclasses.dataclass(frozen=True)
class ClippedDistinct(ClippedSum):
    """The number of different values: each person covers at most C of theirs, then noise.

    The clip C is chosen as in `ClippedSum`, on the number of different values that a person has.
    The statistic is the most values that can be covered when every person covers at most C of
    their own (a maximum flow, `coverage.capped`): one person more raises it by 0 to C, and it is
    never above the true number. Of the people who have a value, only one must have room for it.

    Attributes:
        relation: who owns which value.
    """

    relation: Relation = dataclasses.field(default_factory=Relation)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The histogram that the clip is chosen on, and the owners of the values."""
        return (*super().measures, self.relation)

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
    error = f"{adder.mean_error:.4g} clips, and what is cut"
    return Description(mechanism, f"{adder.scale:.4g} clips", shift, error)


def _clip(view: PartitionView, measure: int, indexes: np.ndarray, clip: np.ndarray) -> np.ndarray:
    """Return sum_i min(s_i, C) per partition, exactly: totals up to C, and C per person above."""
    below, above = view.cut(measure, indexes)
    return integers.add(below, integers.product(clip, above))

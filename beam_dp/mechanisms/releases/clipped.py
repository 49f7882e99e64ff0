"""Release sums and distinct counts with a clip that is chosen privately, and noise of that size.

Each release is a frozen record of public parameters that knows which numbers per person it needs
(`measures`) and how to draw (`release`):

* `ClippedSum`: choose a clip privately, then add noise of that size (see there).
* `ClippedDistinct`: the same for the number of different values.

Everything is computed on integers (units) and becomes a float or int of the user's scale last.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.integers import scale
from beam_dp.mechanisms.profiles import coverage
from beam_dp.mechanisms.releases.released import (
    ALPHA,
    EVIDENCE_ALPHA,
    OVERSHOOT,
    Released,
    clips_beyond,
)
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import Cells

CLIP_BETA = 1e-3
"""Chance that a clip cuts more people than its shift."""
_CHUNK = 1 << 21


@dataclasses.dataclass(frozen=True)
class ClippedSum:
    """A sum or a count by a privately chosen clip C, then noise of sensitivity C.

    Let s_i be what person i adds to a partition and l(y) the number of people with |s_i| > y,
    which is the removal loss of max_i |s_i|: it moves by at most 1 per person, for all candidates
    in one direction. `AboveThreshold` chooses C from the public thresholds on it. The sum of the
    s_i cut to [-C, C], the difference of two non-negative sums of which a person touches one, then
    moves by at most C per person, and noise of that sensitivity is added: once, not per sign.

    *Shared.* With `shared` the clip is chosen once for all partitions, on the largest |s_i| that a
    person has in any. One person moves that loss by 1 however many partitions they reach, so its
    price is paid once instead of once per partition, and small partitions do not suffer.

    *Tail.* The chance of a clip above everything there is, whose noise would explode, is at most
    `OVERSHOOT`.

    *Error bound.* With probability 95% the released number is within it of the sum in which at most
    `shift` people (over all partitions, if shared) are cut at the clip. No bound on their values is
    known, so nothing can bound what they lose. It is infinite where the released numbers (of all
    partitions together, if shared) do not show that there are more than `shift` people: what they
    have beyond their noise (but for a chance of `EVIDENCE_ALPHA` over the partitions that are drawn
    together), when it adds up to s clips, needs at least s people, counted once per partition. Then
    everybody may have been cut, and the number says nothing.

    Attributes:
        source: the field or ROWS.
        signed: whether numbers below 0 count (else they are taken as 0).
        thresholds: the public clips, in units.
        unit: what one unit is worth.
        search_cost: for the choice of the clip; None where there is one threshold only.
        noise_cost: for the noise, per partition.
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
        """What the shared clip is chosen on; None where it is not shared, or not chosen."""
        if not self.shared or self.search_cost is None:
            return None
        return Measure(self.source, 0 if self.signed else 1, self.thresholds)

    @property
    def chooser(self) -> "ClippedSum":
        """What chooses the shared clip."""
        return self

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
        """Return a clip (a place in `thresholds`) per line of people per bucket."""
        if self.search is None:
            return np.zeros(len(people), np.int64)
        return self.search.choose_rows(people[:, ::-1].cumsum(axis=1)[:, -2::-1], noise)

    def choose_shared(self, cells: Cells, measure: int, noise: Noise) -> int:
        """Return the clip for all partitions, from the summary of each person's largest."""
        people, _ = cells.histogram(measure, len(self.thresholds) + 1)
        return int(self.choose(people, noise)[0])

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one noisy sum per partition.

        Args:
            cells: the summary, seen from the partitions.
            first: the place of the first measure.
            clip: the shared clip, a place in `thresholds`; None: choose one per partition.
            noise: the randomness.
        """
        # A clip of each partition's own is searched on its whole histogram.
        size = max(1, cells.size if clip is not None else _CHUNK // (len(self.thresholds) + 1))
        parts = [
            self._release_part(cells.part(start, start + size), first, clip, noise)
            for start in range(0, cells.size, size)
        ]
        return Released(
            np.concatenate([part.values for part in parts] or [np.empty(0)]),
            np.concatenate([part.errors for part in parts] or [np.empty(0)]),
            sum(part.shown for part in parts),
        )

    def _release_part(
        self, cells: Cells, first: int, shared_clip: int | None, noise: Noise
    ) -> Released:
        if shared_clip is None:
            places = self.choose(self._people(cells, first), noise)
        else:
            places = np.full(cells.size, shared_clip)
        reached = self.thresholds[: int(places.max(initial=0)) + 1]
        clip = integers.narrow(np.array(reached, object))[places]
        adder = AdditiveNoise(self.noise_cost)
        noisy = adder.add(self._clipped(cells, first, places, clip), clip, noise)
        bound = adder.bounds(clip, self.alpha)
        if self.search is not None and shared_clip is None:
            bound = np.where(clips_beyond(noisy, bound, clip) > self.shift, bound, np.inf)
        beyond = adder.bounds(clip, EVIDENCE_ALPHA / max(1, cells.size))
        shown = float(clips_beyond(noisy, beyond, clip).sum())
        return Released(scale(noisy, self.unit), bound * float(self.unit), shown)

    def _people(self, cells: Cells, first: int) -> np.ndarray:
        """Return the people per partition and bucket, of both signs together."""
        buckets = len(self.thresholds) + 1
        sides = range(first, first + len(self._signs))
        return np.asarray(sum(cells.histogram(side, buckets)[0] for side in sides))

    def _clipped(
        self, cells: Cells, first: int, places: np.ndarray, clip: np.ndarray
    ) -> np.ndarray:
        """Return the statistic per partition when no person adds more than the clip."""
        clipped = np.zeros(cells.size, np.int64)
        for side, sign in enumerate(self._signs):
            clipped = integers.add(clipped, sign * _clip(cells, first + side, places, clip))
        return clipped


@dataclasses.dataclass(frozen=True)
class ClippedDistinct(ClippedSum):
    """The number of different values: each person pays for at most C of their own, then noise.

    The clip C is chosen as in `ClippedSum`, on the number of different values that a person has.
    What is released is the most values that can be covered when every person covers at most C of
    their own (a maximum flow, `coverage.capped`): one person more raises it by 0 to C, and it is
    never above the true number. A value that many people have needs only one who has room for it.

    Attributes:
        relation: who owns which value.
    """

    relation: Relation = dataclasses.field(default_factory=Relation)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The histogram that the clip is chosen on, and the owners of the values."""
        return (*super().measures, self.relation)

    def _clipped(
        self, cells: Cells, first: int, places: np.ndarray, clip: np.ndarray
    ) -> np.ndarray:
        lines = cells.owned(first + len(super().measures))
        covered = [
            coverage.capped(owned.people, owned.items, int(cap))
            for owned, cap in zip(lines, clip, strict=True)
        ]
        return np.array(covered, np.int64)


def _clip(cells: Cells, measure: int, places: np.ndarray, clip: np.ndarray) -> np.ndarray:
    """Return sum_i min(s_i, C) per partition, exactly: totals up to C, and C per person above."""
    below, above = cells.cut(measure, places)
    return integers.add(below, integers.product(clip, above))

"""Release numbers by noise: the last floor before they leave the house.

Each release is a frozen record of public parameters that knows which numbers per person it needs
(`measures`) and how to draw (`release`):

* `PeopleRelease`: the number of people plus noise; one person changes it by 1.
* `ClippedSum`: choose a clip privately, then add noise of that size (see there).
* `ClippedDistinct`: the same for the number of different values.

Those that search a removal loss are in `direct`.

Everything is computed on integers (units) and becomes a float or int of the user's scale last.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms import exact
from beam_dp.mechanisms.additive import AdditiveNoise
from beam_dp.mechanisms.budget import Budget
from beam_dp.mechanisms.cells import Cells
from beam_dp.mechanisms.noise import Noise
from beam_dp.mechanisms.owned import Relation
from beam_dp.mechanisms.removal import coverage
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.statistics import PEOPLE, Measure

ALPHA = Fraction(48, 1000)
"""Chance that the noise exceeds an error bound; the rest of 5% is left to the clip's search."""
EVIDENCE_ALPHA = Fraction(1, 10_000)
"""Chance that noise in any partition of a list is taken for people."""
CLIP_BETA = 1e-3
"""Chance that a clip cuts more people than its shift."""
OVERSHOOT = 1e-9
"""Chance that a clip is chosen above everything there is (a clip that nobody reaches is noise)."""
_CHUNK = 1 << 21
_FLOATS = 1 << 53  # integers up to here are floats


@dataclasses.dataclass(frozen=True)
class Released:
    """What was released for a list of partitions, with error bounds at 95%.

    Attributes:
        values: one number per partition, int64, float64 or Python integers.
        errors: how far the number strays, float64; see the release for from what.
        shown: how many people's worth the numbers show beyond their noise, over all partitions.
    """

    values: np.ndarray
    errors: np.ndarray
    shown: float = 0.0


@dataclasses.dataclass(frozen=True)
class PeopleRelease:
    """The number of people per partition plus noise; the error bound is the noise's.

    Attributes:
        noise_cost: per partition.
        source: PEOPLE, or a field: the people whose number there is above 0.
        alpha: the chance that the error bound fails.
    """

    noise_cost: Budget
    source: int = PEOPLE
    alpha: Fraction = ALPHA

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The one measure."""
        return (Measure(self.source),)

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one noisy number per partition; there is no clip."""
        adder = AdditiveNoise(self.noise_cost)
        one = np.ones(cells.size, np.int64)
        values = adder.add(cells.people(first), one, noise)
        beyond = adder.bounds(one, EVIDENCE_ALPHA / max(1, cells.size))
        shown = float(np.maximum(_shown(values, beyond, one), 0.0).sum())
        return Released(values, np.full(cells.size, float(adder.bound(1, self.alpha))), shown)


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
        clip = exact.narrow(np.array(reached, object))[places]
        adder = AdditiveNoise(self.noise_cost)
        noisy = adder.add(self._clipped(cells, first, places, clip), clip, noise)
        bound = adder.bounds(clip, self.alpha)
        if self.search is not None and shared_clip is None:
            bound = np.where(_shown(noisy, bound, clip) > self.shift, bound, np.inf)
        beyond = adder.bounds(clip, EVIDENCE_ALPHA / max(1, cells.size))
        shown = float(_shown(noisy, beyond, clip).sum())
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
            clipped = exact.add(clipped, sign * _clip(cells, first + side, places, clip))
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


def _shown(noisy: np.ndarray, noise: np.ndarray, clip: np.ndarray) -> np.ndarray:
    """Return how many clips each number has beyond that much noise."""
    return np.asarray(np.maximum(abs(noisy).astype(float) - noise, 0.0) / clip.astype(float))


def _clip(cells: Cells, measure: int, places: np.ndarray, clip: np.ndarray) -> np.ndarray:
    """Return sum_i min(s_i, C) per partition, exactly: totals up to C, and C per person above."""
    below, above = cells.cut(measure, places)
    return exact.add(below, exact.product(clip, above))


def scale(units: np.ndarray, unit: Fraction) -> np.ndarray:
    """Return units in the user's scale: integers where a unit is one, else the nearest floats."""
    if unit.denominator == 1:
        return exact.product(units, exact.narrow(np.array([unit.numerator], object)))
    if units.dtype == object:
        return np.array([float(int(value) * unit) for value in units], np.float64)
    in_floats = unit.numerator == 1 and unit.denominator <= _FLOATS
    if in_floats and np.abs(units).max(initial=0) <= _FLOATS:  # a correctly rounded quotient
        return units / float(unit.denominator)
    return np.array([float(value * unit) for value in units.tolist()], np.float64)

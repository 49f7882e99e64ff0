"""Release, the base of all releases: public parameters, what they need and cost, and how to draw.

A release turns the view of some partitions (`PartitionView`) into numbers, and how far the truth
may be below and above each. It is built when the pipeline is built, from a metric and its share of
the budget, and holds no data.
"""

import abc
import dataclasses
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, Spending
from beam_dp.mechanisms.histogram_choice.clipping_loss import ClippingLoss
from beam_dp.mechanisms.metrics.additive.shared_clip import SharedClip
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

ALPHA = Fraction(48, 1000)
"""Chance that the noise exceeds its tail bound; the rest of 5% is for what comes
before the noise (the floor of two phases)."""

WORTH = 2.0
"""A pair that is cut is worth up to so much more than one that is kept."""
_SIDES = ("below", "above", "rank")
Sides = np.ndarray | float
"""How far the truth, or a rank, may be off: one number for each partition, or for all."""


@dataclasses.dataclass(frozen=True, eq=False)
class Released:
    """The released numbers of a list of partitions, and how far the truth may be from them.

    With probability 95% the true statistic is from `values - below` to `values + above`. Both are
    computed from parameters and released numbers alone.

    Attributes:
        values: one number per partition, int64, float64 or Python integers; or one row of numbers.
        below: how far below it the truth may be; infinite where nothing is known.
        above: how far above it the truth may be.
        rank: how many people the rank of a quantile may be off; 0 for all other statistics.
        loss: what people lose at a clip that partitions share. `below` and `above` are then those
            of the noise alone; `spread` shares the loss out, once all numbers are there.
        origin: what the numbers are sums of distances from.
    """

    values: np.ndarray
    below: np.ndarray
    above: np.ndarray
    rank: np.ndarray
    loss: ClippingLoss | None = None
    origin: float = 0.0

    def __getstate__(self) -> dict[str, object]:
        """Return what is pickled: of a column that holds one number, as most do, this alone."""
        return vars(self) | {name: _shortened(vars(self)[name]) for name in _SIDES}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` returned."""
        vars(self).update(state)
        vars(self).update({n: np.full(*state[n]) for n in _SIDES if type(state[n]) is tuple})

    @classmethod
    def between(
        cls, values: np.ndarray, below: Sides, above: Sides, rank: Sides = 0.0
    ) -> "Released":
        """Return numbers with what is known on each side; nothing is, where there is no number."""
        missing = np.asarray(np.not_equal(values, values), bool)
        lower, upper = (np.where(missing, np.inf, side).astype(float) for side in (below, above))
        return cls(values, lower, upper, np.broadcast_to(rank, missing.shape).astype(float))

    @classmethod
    def to_ends(cls, values: np.ndarray, low: np.ndarray, high: np.ndarray) -> "Released":
        """Return numbers with intervals by their ends, which are moved to hold the numbers."""
        with np.errstate(invalid="ignore"):  # inf - inf: nothing is known there
            return cls.between(values, np.maximum(values - low, 0), np.maximum(high - values, 0))

    @classmethod
    def concatenated(cls, parts: Sequence["Released"]) -> "Released":
        """Return the numbers of some partitions behind those of others, of one release."""
        columns = zip(*(part.columns for part in parts), strict=True)
        values, below, above, rank = map(np.concatenate, columns)
        return cls(values, below, above, rank, parts[0].loss)

    def take(self, places: slice | Sequence[int] | np.ndarray) -> "Released":
        """Return the numbers of the partitions at these places."""
        values, below, above, rank = (column[places] for column in self.columns)
        return Released(values, below, above, rank, self.loss)

    def where(self, chosen: np.ndarray, other: "Released") -> "Released":
        """Return these numbers where they are chosen, else the other's."""
        pairs = zip(self.columns, other.columns, strict=True)
        values, below, above, rank = (np.where(chosen, mine, theirs) for mine, theirs in pairs)
        return Released(values, below, above, rank)

    def inside(self, low: Fraction | None, high: Fraction | None) -> "Released":
        """Return numbers whose truth is known to be between two ends, as far as these are given."""
        least = -np.inf if low is None else float(low)
        most = np.inf if high is None else float(high)
        values = np.clip(self.values, least, most)
        return Released.to_ends(values, *self.ends_inside(least, most))

    def ends_inside(self, least: float, most: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals, which are where the truth can be (`moved_inside`)."""
        near = self.moved_inside(least, most)
        return np.clip(near.low, least, most), np.clip(near.high, least, most)

    def moved_inside(self, least: float, most: float) -> "Released":
        """Return numbers whose intervals reach into where the truth can be.

        One that lies beyond is moved there with its number: cut only, it would be a point, [0, 0].
        """
        apart = (self.high <= least) | (self.low >= most)
        if not apart.any():
            return self
        near = np.where(apart, np.clip(self.values, least, most), self.values)
        return Released(near, self.below, self.above, self.rank)

    def spread(self, sums: np.ndarray, rows: np.ndarray | float = 0.0) -> "Released":
        """Return the numbers with their part of what people lose at a shared clip.

        Args:
            sums: `ClippingLoss.sums` of the numbers of all partitions.
            rows: of distances, the share of the rows that each partition has, where it is known.
        """
        if self.loss is None:
            return self
        below, above = self.loss.widths(self.values, sums, rows)
        if not self.loss.lost:
            return Released.between(self.values, below, above)
        back = self.loss.given_back(self.values, sums)
        sides = np.maximum(below + back, 0.0), np.maximum(above - back, 0.0)
        return Released.between(self.values + back, *sides)

    def rounded(self) -> "Released":
        """Return whole numbers, whose intervals end at whole numbers."""
        values = np.rint(self.values) if self.values.dtype.kind == "f" else self.values
        below, above = values - np.floor(self.low), np.ceil(self.high) - values
        return dataclasses.replace(self, values=values, below=below, above=above)

    def plus_lost(self, share: float, signed: bool = False) -> "Released":
        """Return numbers that add up over people, with what cut pairs would have added.

        Pairs are taken to be cut where there are many, and to be worth up to `WORTH` times as
        much as those that are kept.

        Args:
            share: cut pairs for each that was kept.
            signed: whether what they add may be below 0 too.
        """
        if not share:
            return self
        sizes = np.maximum(np.abs(self.values.astype(float)), self.above)
        more = WORTH * share * sizes
        below = self.below + more if signed else self.below  # inf * 0 is no number
        return Released.between(self.values, below, self.above + more)

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """The arrays, in the order of the attributes."""
        return self.values, self.below, self.above, self.rank

    @property
    def low(self) -> np.ndarray:
        """The lower ends of the intervals."""
        return _end(self.values, -self.below)

    @property
    def high(self) -> np.ndarray:
        """The upper ends of the intervals."""
        return _end(self.values, self.above)


def _shortened(column: np.ndarray) -> Any:
    """Return the shape and the number of a column that holds one number; else the column."""
    if column.dtype != float or not column.size or (column != column.flat[0]).any():
        return column
    return column.shape, column.flat[0]


def _end(values: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return values plus distances; infinite distances win over anything."""
    distance = distance.astype(np.float64)  # wide numbers are Python's
    ends = values.astype(np.float64) + np.where(np.isfinite(distance), distance, 0.0)
    return np.where(np.isfinite(distance), ends, distance)


class Description(NamedTuple):
    """The words of a plan about a release.

    Attributes:
        mechanism: how it is drawn.
        expected_error: the mean absolute error of a released number, or how many people its rank
            may be off (95%), in words.
        noise_scale: the scale of the noise, in words; "-" where there is none.
        reason: why the release is done so, and what else is worth knowing.
    """

    mechanism: str
    expected_error: str
    noise_scale: str = "-"
    reason: str = ""


class Profiler(Protocol):
    """Computes the removal profiles of one statistic."""

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What must be summarised."""

    @property
    def sign(self) -> int:
        """1, or -1 where the profile is that of -f."""

    def profiles(self, view: PartitionView) -> Iterable[Profile]:
        """Yield B[0..K] of each partition, in the user's scale; one at a time, to save memory."""


class Release(abc.ABC):
    """The base of all releases, which are frozen records of public parameters."""

    one_sided: ClassVar[bool] = False
    """Whether up to `shift` people may be beyond a released number, on a side that stays open."""
    clip: SharedClip | None = None
    """How a clip is chosen for all partitions before any draw."""
    noise_cost: Budget
    """What its noise costs, of a release with a clip."""

    @property
    @abc.abstractmethod
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What must be summarised per partition."""

    @property
    @abc.abstractmethod
    def spends(self) -> tuple[Spending, ...]:
        """What is spent on one partition, or once for all."""

    @property
    def shift(self) -> int:
        """How many people may be cut or passed over."""
        return 0

    @abc.abstractmethod
    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one number per partition; `view.clip_histogram` chooses a clip that they share."""

    def with_lost(self, released: Released, share: float) -> Released:
        """Return the numbers where a bound on partitions that was chosen has cut pairs.

        A number that bounds the truth on one side, or of which a rank is known, stays as it is.

        Args:
            released: what was drawn of the pairs that the bound has kept.
            share: at most so many pairs of a person and a partition were cut for each kept one.
        """
        return released

    @property
    def origin(self) -> float:
        """What its numbers are sums of distances from."""
        return 0.0

    @abc.abstractmethod
    def describe(self) -> Description:
        """Describe how it is drawn and how large its error is, without any data."""


@dataclasses.dataclass(frozen=True)
class OfLines(Release):
    """A release that needs one relation of people and values per partition, and nothing else.

    Attributes:
        relation: who owns which values, in units.
    """

    relation: Relation

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation alone."""
        return (self.relation,)


def counted(number: int, one: str, several: str) -> str:
    """Return a number of things in words: "1 person", "3 people"."""
    return f"{number} {one if number == 1 else several}"


def people(number: int) -> str:
    """Return how many people a rank may be off, or are passed over, in words."""
    return f"at most {counted(number, 'person', 'people')}"


def clip_then_noise(clip: str, noise: str, error: float, scale: float) -> Description:
    """Describe a release that chooses a clip, then adds noise of that size.

    Args:
        clip: what is clipped, in words.
        noise: its distribution, in words.
        error: the mean absolute noise for a clip of 1.
        scale: its scale for a clip of 1.
    """
    return Description(
        f"clip {clip}, then {noise}", f"{error:.4g} clips + clipping loss", f"{scale:.4g} clips"
    )

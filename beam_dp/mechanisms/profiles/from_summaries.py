"""The removal profiles of the monotone statistics, from the summaries of partitions.

Each class is one statistic: `measures` says what must be summarised, and `profiles` makes the
profile B[0..K] of each partition of a view, in the user's scale, one at a time.
"""

import abc
import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.integers import Number
from beam_dp.mechanisms.profiles import frequency, kth_largest
from beam_dp.mechanisms.profiles.packed import by_threshold
from beam_dp.mechanisms.profiles.packed.packed_rows import MostFrequent, Packed, PackedRows
from beam_dp.mechanisms.profiles.packed.packed_values import PackedValues
from beam_dp.mechanisms.profiles.profile import GuardedProfile, Profile
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Lines, Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_HEAVIEST = 1 << 32  # 2^24 different owners of rows, more than a worker holds, stay below 2^56


@dataclasses.dataclass(frozen=True)
class OneNumberEach:
    """A sum or an extreme of one number per person.

    Attributes:
        measure: the number of each person, of which the K + 1 largest are kept.
        unit: what one unit is worth.
    """

    measure: Measure
    unit: Fraction

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The measure alone."""
        return (self.measure,)

    @property
    def sign(self) -> int:
        """The sign of the measure."""
        return self.measure.sign

    def profiles(self, view: PartitionView) -> Iterator[Profile]:
        """Yield the profile B[0..K] of each partition.

        B[k] is the total without the k largest (additive), or the (k+1)-th largest; f of nobody is
        0, or below all candidates (Fang, Dong, Yi 2022, section 5). For a mirrored measure the
        profile is that of -f.
        """
        largest = view.largest(0, self.measure.keep)
        if not self.measure.additive:
            yield from (self._profile(numbers, -math.inf) for numbers in largest)
            return
        for total, numbers in zip(view.totals(0), largest, strict=True):
            left = [total - cut for cut in itertools.accumulate([0, *numbers])]
            yield self._profile(left, 0)

    def _profile(self, units: list[int], empty: float) -> Profile:
        size = self.measure.keep
        return Profile([*scaled(units[:size], self.unit), *[empty] * (size - len(units))])


@dataclasses.dataclass(frozen=True)
class OwnerProfiler(abc.ABC):
    """A statistic of who owns what.

    Attributes:
        relation: who owns what.
        removals: K.
        unit: what one unit of the result is worth.
        sign: -1 where the profile is that of -f.
    """

    relation: Relation
    removals: int
    unit: Fraction = Fraction(1)
    sign: int = 1

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation alone."""
        return (self.relation,)

    def profiles(self, view: PartitionView) -> Iterator[Profile]:
        """Yield the profile B[0..K] of each partition."""
        for lines in view.owned(0):
            yield Profile(scaled(self._levels(lines), self.unit))

    @abc.abstractmethod
    def _levels(self, lines: Lines) -> Sequence[Number]:
        """Return B[0..K] of one partition, in units."""


class DistinctItems(OwnerProfiler):
    """The number of different items, each of which is packed by its rows together.

    Programs at low thresholds are hard, so that only the profile is used, which looks at high ones.
    """

    def _levels(self, lines: Lines) -> Sequence[Number]:
        return by_threshold.profile(PackedValues(lines.owners, lines.items), self.removals)


class PackedProfiler(OwnerProfiler):
    """A statistic that is known at every threshold.

    Attributes:
        threshold_share: the part of a budget that chooses the threshold
            (`metrics.profiled.ByThreshold`).
        before: how many places before the chosen threshold the released one is.
    """

    threshold_share: ClassVar[Fraction] = Fraction(3, 10)
    before: ClassVar[int] = 1

    def _levels(self, lines: Lines) -> Sequence[Number]:
        return by_threshold.profile(self.packed(lines), self.removals)

    @abc.abstractmethod
    def packed(self, lines: Lines) -> Packed:
        """Return the statistic of one partition at every threshold, in units."""


class MostFrequentItem(PackedProfiler):
    """The number of rows of the most frequent item: by `frequency`, or by packings."""

    threshold_share: ClassVar[Fraction] = Fraction(1, 5)
    before: ClassVar[int] = 2

    def packed(self, lines: Lines) -> Packed:
        """Return the most that the rows of one item pack."""
        return MostFrequent(lines.owners, lines.items, _bounded(lines.counts))

    def _levels(self, lines: Lines) -> Sequence[Number]:
        if self.relation.others:
            return super()._levels(lines)
        return frequency.max_profile(lines, self.removals)


class SquaresByItem(OwnerProfiler):
    """The sum over items of their squared numbers of rows, relaxed for each item alone."""

    def _levels(self, lines: Lines) -> Sequence[Number]:
        return frequency.squares_profile(lines, self.removals)


@dataclasses.dataclass(frozen=True)
class RowsOfSeveralOwners(PackedProfiler):
    """The rows with several owners, or the sum of their weights, by packings.

    Rows with the same owners have at most 2^32 units together.

    Attributes:
        coarse: what the weights are divided by; the weight of each pair is rounded down.
    """

    coarse: int = 1

    def packed(self, lines: Lines) -> Packed:
        """Return how much the rows pack."""
        weights = _bounded(integers.divide(lines.counts, self.coarse))
        return PackedRows(lines.owners, None, weights)


def _bounded(weights: np.ndarray) -> np.ndarray:
    return np.asarray(np.minimum(weights, _HEAVIEST).astype(np.int64))


@dataclasses.dataclass(frozen=True)
class KthRow(OwnerProfiler):
    """The k-th largest row (`kth_largest`): exact for rows of one owner, relaxed for others.

    B[k] is -inf where fewer than k rows are left.

    Attributes:
        k: which row, 1 for the largest.
    """

    k: int = 1

    def _levels(self, lines: Lines) -> Sequence[Number]:
        items, counts = self.sign * lines.items, _bounded(lines.counts)
        return kth_largest.profile(lines.owners, items, counts, self.k, self.removals)


@dataclasses.dataclass(frozen=True, kw_only=True)
class UserProfile(OwnerProfiler):
    """A user's own profile function, on the values of each person.

    Attributes:
        of_values: what one unit of a value is worth; the function's result is in its own scale.
        function: takes a tuple of people, each the tuple of their values in increasing order;
            people come in the order of a keyed hash.
    """

    of_values: Fraction
    function: GuardedProfile

    def _levels(self, lines: Lines) -> Sequence[Number]:
        order = np.lexsort((lines.items, lines.people))
        owners = np.repeat(lines.people[order], lines.counts[order])
        values = scaled(np.repeat(lines.items[order], lines.counts[order]).tolist(), self.of_values)
        heads = np.flatnonzero(np.diff(owners, prepend=-1, append=-1)).tolist()
        people = (tuple(values[start:end]) for start, end in itertools.pairwise(heads))
        return self.function(people).values


def scaled(units: Sequence[Number], unit: Fraction) -> list[Number]:
    """Return units in the user's scale; -inf, which no unit changes, may be among them."""
    top, bottom = unit.numerator, unit.denominator
    numbers: list[Number] = []
    known: Number | None = None
    for value in units:
        if value is not known:  # a long profile ends with many copies of one object
            known = number = value
            if value > -math.inf:
                number = value * top if bottom == 1 else value * top / bottom
        numbers.append(number)
    return numbers

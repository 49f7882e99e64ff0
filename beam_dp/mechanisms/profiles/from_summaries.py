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

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.profiles import (
    coverage,
    frequency,
    kth_largest,
    owner_pairs,
    shared_rows,
    vertex_cover,
)
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.profiles.shared_values import distinct_by_price
from beam_dp.mechanisms.profiles.user_profile import GuardedProfile
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Lines, Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_ALL_PAIRS = 1 << 62
_HEAVIEST = 1 << 32  # 2^28 pairs of owners, more than a worker holds, stay below 2^61


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


@dataclasses.dataclass(frozen=True)
class DistinctItems(OwnerProfiler):
    """The number of different items, relaxed.

    It is `coverage`; of rows with several owners `distinct_by_price`, or as the relaxation says.

    Attributes:
        relaxation: "rows" for `shared_rows`, "owners" for `vertex_cover`, of two owners.
    """

    relaxation: str | None = None

    def _levels(self, lines: Lines) -> Sequence[Number]:
        if not self.relation.others:
            return coverage.profile(lines.people, lines.items, self.removals)
        if self.relaxation == "owners":
            first, second = shared_rows.pair(lines.owners)
            return vertex_cover.profile(first, second, lines.items, self.removals)
        profile = shared_rows.distinct if self.relaxation == "rows" else distinct_by_price.profile
        return profile(lines.owners, lines.items, self.removals)


class MostFrequentItem(OwnerProfiler):
    """The number of rows of the most frequent item, relaxed.

    It is `frequency.max_profile`; of rows with several owners `shared_rows`.
    """

    def _levels(self, lines: Lines) -> Sequence[Number]:
        if self.relation.others:
            counts = _bounded(lines.counts)
            return shared_rows.most_frequent(lines.owners, lines.items, counts, self.removals)
        return frequency.max_profile(lines.people, lines.items, lines.counts, self.removals)


class SquaresByItem(OwnerProfiler):
    """The sum over items of their squared numbers of rows, relaxed for each item alone."""

    def _levels(self, lines: Lines) -> Sequence[Number]:
        return frequency.squares_profile(lines.people, lines.items, lines.counts, self.removals)


class SquaresByPairs(OwnerProfiler):
    """The sum of `SquaresByItem`, relaxed by pairs of people; a pair counts for at most 2^32."""

    def _levels(self, lines: Lines) -> Sequence[Number]:
        first, second, squares = frequency.squares_edges(
            lines.people, lines.items, lines.counts, _ALL_PAIRS
        )
        return owner_pairs.profile(first, second, _bounded(squares), self.removals)


@dataclasses.dataclass(frozen=True)
class RowsOfSeveralOwners(OwnerProfiler):
    """The rows with several owners, or the sum of their weights, relaxed: `shared_rows`.

    Those of two owners have the flow of `owner_pairs` instead, which is fast.

    Rows with the same owners have at most 2^32 units together.

    Attributes:
        coarse: what the weights are divided by; the weight of each pair is rounded down.
    """

    coarse: int = 1

    def _levels(self, lines: Lines) -> Sequence[Number]:
        weights = _bounded(integers.divide(lines.counts, self.coarse))
        if len(self.relation.others) == 1:
            first, second = shared_rows.pair(lines.owners)
            return owner_pairs.profile(first, second, weights, self.removals)
        return shared_rows.total(lines.owners, weights, self.removals)


def _bounded(weights: np.ndarray) -> np.ndarray:
    return np.asarray(np.minimum(weights, _HEAVIEST).astype(np.int64))


@dataclasses.dataclass(frozen=True)
class KthRow(OwnerProfiler):
    """The k-th largest row, where one person may own many (`kth_largest`): exact.

    Of rows with several owners it is relaxed: `shared_rows`.

    Attributes:
        k: which row, 1 for the largest.
    """

    k: int = 1

    def profiles(self, view: PartitionView) -> Iterator[Profile]:
        """Yield the profile B[0..K] of each partition."""
        for lines in view.owned(0):
            yield Profile(self.levels(lines))

    def levels(self, lines: Lines) -> list[Number]:
        """Return B[0..K] in the user's scale; -inf where fewer than k rows are left."""
        levels = self._levels(lines)
        known = scaled([level for level in levels if level > -math.inf], self.unit)
        return [*known, *[-math.inf] * (len(levels) - len(known))]

    def _levels(self, lines: Lines) -> Sequence[Number]:
        if self.relation.others:
            return self._of_shared_rows(lines)
        values, ranks = np.unique(lines.items, return_inverse=True)
        levels = kth_largest.profile(lines.people, ranks, lines.counts, self.k, self.removals)
        units: list[int] = values.tolist()
        return [units[level] if level >= 0 else -math.inf for level in levels]

    def _of_shared_rows(self, lines: Lines) -> Sequence[Number]:
        items, counts = self.sign * lines.items, _bounded(lines.counts)
        return shared_rows.kth_largest(
            lines.owners, items, counts, self.k, self.removals, -math.inf
        )


@dataclasses.dataclass(frozen=True)
class UserProfile:
    """A user's own profile function, on the values of each person.

    Attributes:
        relation: who owns which values, in units.
        unit: what one unit is worth.
        function: takes a tuple of people, each the tuple of their values in increasing order;
            people come in the order of a keyed hash.
    """

    relation: Relation
    unit: Fraction
    function: GuardedProfile
    sign = 1

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation alone."""
        return (self.relation,)

    def profiles(self, view: PartitionView) -> Iterator[Profile]:
        """Yield the function's profile of each partition."""
        for lines in view.owned(0):
            yield self.function(self._people(lines))

    def _people(self, lines: Lines) -> tuple[tuple[Number, ...], ...]:
        order = np.lexsort((lines.items, lines.people))
        owners = np.repeat(lines.people[order], lines.counts[order])
        values = scaled(np.repeat(lines.items[order], lines.counts[order]).tolist(), self.unit)
        heads = np.flatnonzero(np.diff(owners, prepend=-1, append=-1)).tolist()
        return tuple(tuple(values[start:end]) for start, end in itertools.pairwise(heads))


def scaled(units: Sequence[Number], unit: Fraction) -> list[Number]:
    """Return units in the user's scale."""
    top, bottom = unit.numerator, unit.denominator
    numbers: list[Number] = []
    known: Number | None = None
    for value in units:
        if value is not known:  # a long profile ends with many copies of one object
            known, number = value, value * top if bottom == 1 else value * top / bottom
        numbers.append(number)
    return numbers

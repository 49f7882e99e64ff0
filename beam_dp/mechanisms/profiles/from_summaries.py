"""The removal profiles of the monotone statistics, from summaries and from lines of owners."""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.profiles import coverage, frequency, kth_largest, owner_pairs, vertex_cover
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.profiles.user_profile import GuardedProfile
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Lines, Relation
from beam_dp.mechanisms.summaries.partition_view import Cells


@dataclasses.dataclass(frozen=True)
class Profiled:
    """A sum or an extreme of one number per person.

    Attributes:
        measure: which number per person, and that the top K + 1 of it is kept.
        unit: what one unit is worth.
    """

    measure: Measure
    unit: Fraction

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The one measure."""
        return (self.measure,)

    @property
    def sign(self) -> int:
        """The sign of the measure."""
        return self.measure.sign

    def profiles(self, cells: Cells, first: int) -> Iterator[Profile]:
        """Yield the profile B[0..K] of each partition, in the user's scale.

        B[k] is the total without the k largest (additive), or the (k+1)-th largest; f of nobody is
        0, or below all candidates (Fang, Dong, Yi 2022, section 5). For a mirrored measure it is
        the profile of -f.
        """
        largest = cells.largest(first, self.measure.keep)
        if not self.measure.additive:
            yield from (self._profile(numbers, -math.inf) for numbers in largest)
            return
        for total, numbers in zip(cells.totals(first), largest, strict=True):
            left = [total - cut for cut in itertools.accumulate([0, *numbers])]
            yield self._profile(left, 0)

    def _profile(self, units: list[int], empty: float) -> Profile:
        size = self.measure.keep
        return Profile([*scaled(units[:size], self.unit), *[empty] * (size - len(units))])


@dataclasses.dataclass(frozen=True)
class Owners:
    """A statistic of who owns what, by its kind.

    * "distinct": the number of different items, relaxed (`coverage`, with two owners `covers`);
    * "frequency": the most rows of one item, relaxed (`frequency.max_profile`);
    * "squares" and "pairs": the sum over items of their squared numbers of rows, by item
      (`frequency.squares_profile`) or by pairs of people (`edges`, at most 2^32 a pair); relaxed;
    * "rows": the rows or the weight of rows of two owners, relaxed (`edges`); a pair of owners has
      at most 2^32 units, after `coarse`;
    * "largest": the largest item of rows of two owners, relaxed (`edges.max_profile`).

    Attributes:
        kind: one of these.
        relation: who owns what.
        removals: K.
        unit: what one unit of the result is worth.
        sign: -1 for the mirrored maximum.
        coarse: what the weights of "rows" are divided by, each pair's rounded down on its own.
    """

    kind: str
    relation: Relation
    removals: int
    unit: Fraction = Fraction(1)
    sign: int = 1
    coarse: int = 1

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The one relation."""
        return (self.relation,)

    def profiles(self, cells: Cells, first: int) -> Iterator[Profile]:
        """Yield the profile B[0..K] of each partition, in the user's scale."""
        unit = self.unit * self.coarse
        for lines in cells.owned(first):
            yield Profile(scaled(self._units(lines), unit))

    def _units(self, lines: Lines) -> Sequence[Number]:
        people, second, items, counts = lines
        match self.kind:
            case "distinct" if self.relation.second >= 0:
                return vertex_cover.profile(people, second, items, self.removals)
            case "distinct":
                return coverage.profile(people, items, self.removals)
            case "frequency":
                return frequency.max_profile(people, items, counts, self.removals)
            case "squares":
                return frequency.squares_profile(people, items, counts, self.removals)
            case "pairs":
                first, other, squares = frequency.squares_edges(people, items, counts, _ALL_PAIRS)
                return owner_pairs.profile(first, other, _bounded(squares), self.removals)
            case "rows":
                weights = _bounded(integers.divide(counts, self.coarse))
                return owner_pairs.profile(people, second, weights, self.removals)
        return owner_pairs.max_profile(people, second, self.sign * items, self.removals, -math.inf)


def _bounded(weights: np.ndarray) -> np.ndarray:
    return np.asarray(np.minimum(weights, _HEAVIEST).astype(np.int64))


_ALL_PAIRS = 1 << 62
_HEAVIEST = 1 << 32  # 2^28 pairs of owners, more than a worker holds, stay below 2^61


@dataclasses.dataclass(frozen=True)
class KthRow:
    """The k-th largest row, where one person may own many (`ranks`): exact.

    Attributes:
        relation: who owns which values, in units.
        unit: what one unit is worth.
        k: which.
        removals: K.
    """

    relation: Relation
    unit: Fraction
    k: int
    removals: int
    sign = 1

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The one relation."""
        return (self.relation,)

    def profiles(self, cells: Cells, first: int) -> Iterator[Profile]:
        """Yield the profile B[0..K] of each partition, in the user's scale."""
        for lines in cells.owned(first):
            yield Profile(self.levels(lines))

    def levels(self, lines: Lines) -> list[Number]:
        """Return B[0..K]; -inf where fewer than k rows are left."""
        values, places = np.unique(lines.items, return_inverse=True)
        found = kth_largest.profile(lines.people, places, lines.counts, self.k, self.removals)
        known = scaled(values.tolist(), self.unit)
        return [known[place] if place >= 0 else -math.inf for place in found]


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
        """The one relation."""
        return (self.relation,)

    def profiles(self, cells: Cells, first: int) -> Iterator[Profile]:
        """Yield what the function says of each partition."""
        for lines in cells.owned(first):
            yield self.function(self._people(lines))

    def _people(self, lines: Lines) -> tuple[tuple[Number, ...], ...]:
        order = np.lexsort((lines.items, lines.people))
        owners = np.repeat(lines.people[order], lines.counts[order])
        values = scaled(np.repeat(lines.items[order], lines.counts[order]).tolist(), self.unit)
        edges_ = np.flatnonzero(np.diff(owners, prepend=-1, append=-1)).tolist()
        return tuple(tuple(values[a:b]) for a, b in itertools.pairwise(edges_))


def scaled(units: Sequence[Number], unit: Fraction) -> list[Number]:
    """Return units in the user's scale."""
    top, bottom = unit.numerator, unit.denominator
    found: list[Number] = []
    known: Number | None = None
    for value in units:
        if value is not known:  # the end of a long profile is one object many times
            known, made = value, value * top if bottom == 1 else value * top / bottom
        found.append(made)
    return found

"""The largest, the smallest and the k-th largest number: `Max`, `Min` and `KthLargest`."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics.base import (
    Command,
    Context,
    Metric,
    MetricPart,
    OfPeople,
    check_indexes,
    check_not_preprocessed,
)
from beam_dp.mechanisms.metrics.clipped import row_clips
from beam_dp.mechanisms.metrics.preprocessed import preprocessed
from beam_dp.mechanisms.metrics.profiled import OfValues, Profiled, as_array
from beam_dp.mechanisms.metrics.quantiles import (
    RowClip,
    RowClips,
    places_of,
    rows_of,
    spends_of,
    stated,
    worth_of,
)
from beam_dp.mechanisms.metrics.released import (
    Description,
    OfLines,
    Profiler,
    Release,
    Released,
    Spending,
    people,
)
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.numerics.exact_statistics import Exact, extreme, present
from beam_dp.mechanisms.numerics.numbers import WIDE, Number
from beam_dp.mechanisms.numerics.user_functions import People
from beam_dp.mechanisms.profiles import kth_largest
from beam_dp.mechanisms.profiles.from_summaries import KthRow, OneNumberEach
from beam_dp.mechanisms.search.choose import TWO_PHASE, WALK, SearchKind
from beam_dp.mechanisms.search.ranks.node import RESOLUTION, Answer, Node, increments, order_of
from beam_dp.mechanisms.search.ranks.tail import STRAY, TailSearch
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Lines, Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.mechanisms.summaries.worker_limits import LINES

_HALF = 0.5
_OF_SEARCH = ("candidates", "search", "beta", "low", "high")
_STRAY = 5e-3  # of extremes: what is above all data is nothing like the largest
_KTH_SHARES = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5), Fraction(13, 20))
"""The parts of the budget for how many rows people have, the first walk, the choice of the clip,
and the second walk."""
_THINNED = 1 << 22  # rows that a k-th largest may be thinned to; sorting for more saves nothing


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Ranked(OfValues, Profiled):
    """A metric that is one of the values, found by ranks or by its removal profile."""

    several_owners: ClassVar[bool] = True
    of_values: ClassVar[bool] = True
    most_stray: ClassVar[float]

    search: SearchKind = WALK

    @property
    def _stray(self) -> float:
        """The chance that a walk stops where nobody is."""
        return min(self.most_stray, float(self.beta))

    def _buckets(self, context: Context, operation: str) -> Measure:
        """Return one number per person, in buckets of the candidates."""
        field, unit = context.field(self.source, operation), self.exact_unit
        return Measure(field, self.sign, additive=False, outputs=self.grid, unit=unit)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Extreme(_Ranked):
    """The largest or smallest number of a column, by ranks of people or by its removal profile.

    Attributes:
        candidates: the public outputs; None: anything, and 0 and decimals of 4 digits, of both
            signs, to 10^18 for a search.
        search: "walk" for the first number from the outside that enough people reach (see
            `TailSearch`); "two_phase" for a clip and noise (see `TwoPhase`), which is nearer from
            about 1,000 people on at epsilon 1, but beyond all data in a tenth of all releases; or
            a search over the removal loss, which errs to one side, and by more. Rows with
            several owners are released in two phases, or by such a search.
        beta: how often the guarantee of a search may fail.
        unit: the grid of values.
        method: "search", or "preprocessing": the extreme of one number per person, cut so that
            nobody moves it far, and noise (see `Preprocessing`; the interval is open then).
    """

    most_stray: ClassVar[float] = _STRAY
    statistic: ClassVar[str]

    method: str = "search"

    def __post_init__(self) -> None:
        super().__post_init__()
        options.check_method(self, "search", _OF_SEARCH)

    def parts(self) -> tuple[MetricPart, ...]:
        """Return the extreme, or the preprocessed one."""
        return preprocessed(self).parts() if self.is_preprocessed else super().parts()

    def build(self, context: Context, share: Budget) -> Release:
        """Return the walk from the outside; two phases where rows have several owners."""
        if self.search != WALK or context.several_owners or self.grid.size >= WIDE:
            return super().build(context, share)
        search = TailSearch(context.each(share), 0, 0, True, self._stray, 1)
        return ExtremeRelease(self._buckets(context, self.word), search, self.grid)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the extreme without the people who have most, or least."""
        if context.several_owners:
            relation = Relation(context.index(self.source), context.others)
            return KthRow(relation, removals, self.exact_unit, self.sign)
        field = context.field(self.source, self.word)
        return OneNumberEach(Measure(field, self.sign, (), removals + 1, False), self.exact_unit)

    def exactly(self) -> Exact:
        """Return it as a function of records; the smallest is mirrored."""
        return extreme(self.sign)

    def for_several_owners(self, owner: str) -> Metric:
        """Return it as it is: its profile is proved for several owners too."""
        check_not_preprocessed(owner, self)
        return self

    def of_people(self) -> OfPeople:
        """Return the extreme of people's extremes, which is that of all rows."""
        return OfPeople(self.statistic, self.word)


@dataclasses.dataclass(frozen=True)
class Max(_Extreme):
    """Release a value that only few people exceed, near the largest of a column.

    The largest values are few, and so they are protected: at epsilon 1 from 7 to 15 people, mostly
    12, are at or above what is released (as many times 1 / epsilon). In 199 of 200 releases, 198
    where it is below 0, the true maximum is at least `max_<column>_low`; nothing private says how
    far above it is. NaN where there are too few people, fewer than about 18 / epsilon. With
    `search=dp.AboveThreshold` the release is at most the maximum, rounded up to the candidates,
    with probability 1 - beta.

    Attributes:
        column: the value column.
    """

    word: ClassVar[str] = "max"
    statistic: ClassVar[str] = "maximum"
    command: ClassVar[Command] = Command("COLUMN", "largest value of a column")

    column: str

    def takes_own_epsilons(self) -> bool:
        """Return that each person may have an epsilon of their own."""
        return True


@dataclasses.dataclass(frozen=True)
class Min(_Extreme):
    """Release a value that nearly nobody is below: the mirror of `Max`.

    Attributes:
        column: the value column.
    """

    word: ClassVar[str] = "min"
    statistic: ClassVar[str] = "minimum"
    sign: ClassVar[int] = -1
    command: ClassVar[Command] = Command("COLUMN", "smallest value of a column")

    column: str


@dataclasses.dataclass(frozen=True)
class KthLargest(_Ranked):
    """Release the k-th largest of all rows, one person owning any number of them.

    By default a number C of rows is chosen privately, each person counts for at most C of their
    largest rows, and ranks are searched (`KthRelease`). In 95% of releases the rank is off by at
    most `<name>_rank_error` rows. NaN where people are too few. For a k below about 12 / epsilon C
    is 1: all such k give nearly the same value.

    Attributes:
        column: the value column.
        k: which, from 1 on.
        search: as of `Max`.
        unit: the grid of values.
    """

    word: ClassVar[str] = "kth"
    most_stray: ClassVar[float] = STRAY
    most_rows: ClassVar[int] = LINES
    command: ClassVar[Command] = Command("COLUMN:K", "K-th largest value of all rows")

    column: str
    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive_integer("KthLargest", "k", self.k, "Write k=1 for the largest.")
        if self.search == WALK:
            check_indexes("KthLargest", self.candidates)

    @property
    def _prefix(self) -> str:
        return f"largest_{self.k}"

    @property
    def is_ranked(self) -> bool:
        """Whether its error is one of ranks: by default."""
        return self.search == WALK

    def build(self, context: Context, share: Budget) -> Release:
        """Return the walk by ranks; a bound of one row per person leaves no clip to choose."""
        if self.search != WALK:
            return super().build(context, share)
        each, candidates, k, stray = context.each(share), self.grid, self.k, self._stray
        alone = TailSearch(each, 0, k, True, stray, 1)
        if context.depth == 1:
            return ExtremeRelease(self._buckets(context, "max"), alone, candidates, ranked=True)
        lines = Relation(context.index(self.source)), self.exact_unit
        whole = dataclasses.replace(alone, resolution=RESOLUTION)
        if alone.is_floored(candidates):  # no clip above 1 comes nearer to such a k
            one = RowClips(None, (1,))
            return KthRelease(*lines, one, None, one, search=whole, candidates=candidates)
        size, first, look, rest = each.split(_KTH_SHARES)
        near, search = (dataclasses.replace(whole, budget=part) for part in (first, rest))
        clips = row_clips(min(self.k, context.depth or self.k))
        sizes, rows = RowClips(size, clips), RowClips(look, clips)
        return KthRelease(*lines, sizes, near, rows, search=search, candidates=candidates)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the exact profile, of as many rows as can matter; of shared rows a relaxed one."""
        if context.several_owners:
            relation = Relation(context.index(self.source), context.others)
        else:
            most = removals + 1 if self.k * (removals + 1) <= _THINNED else 0
            relation = Relation(context.index(self.source), most=most, rank=self.k)
        return KthRow(relation, removals, self.exact_unit, k=self.k)

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return kth_of_records(self.k)

    def for_several_owners(self, owner: str) -> Metric:
        """Return it by its removal profile: the ranks of people say nothing of shared rows."""
        return dataclasses.replace(self, search=TWO_PHASE) if self.search == WALK else self


def kth_of_records(k: int) -> Exact:
    """Return the k-th largest value of some records, with the profile that needs no search."""

    def statistic(people: People) -> Number:
        ordered = sorted(present(people), reverse=True)
        return ordered[k - 1] if len(ordered) >= k else -math.inf

    def profile(people: People) -> Iterator[Number]:
        values = sorted(set(present(people)))
        ranks = {value: rank for rank, value in enumerate(values)}
        owners = [owner for owner, record in enumerate(people) for _ in present((record,))]
        rows = np.array([ranks[value] for value in present(people)], np.int64)
        ones = np.ones(len(rows), np.int64)
        levels = kth_largest.profile(np.array(owners, np.int64), rows, ones, k, len(people))
        return (values[int(level)] if level >= 0 else -math.inf for level in levels)

    return Exact(statistic, profile)


@dataclasses.dataclass(frozen=True)
class ExtremeRelease(Release):
    """The largest number of one per person, or the k-th largest, by `TailSearch`.

    With a chance of at most `stray`, or twice that where the largest is below 0 (the smallest above
    it), the released value is above all data; else the largest number is above the candidate before
    it. Of the k-th largest the error of its rank is released. Where more than a tenth of the people
    may be beyond the value, nothing is said of the largest number (`stated`); where more than half
    of them may be, or people are too few, it is NaN.

    Attributes:
        measure: one number per person, in buckets of the candidates; the sign says whether they
            are mirrored, for the smallest.
        search: the search, with its budget, in whole people.
        candidates: the public outputs, mirrored where the numbers are.
        ranked: whether the error is one of the rank.
    """

    measure: Measure
    search: TailSearch
    candidates: Candidates
    ranked: bool = False

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measure alone."""
        return (self.measure,)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What the search costs."""
        return (Spending(self.search.cost),)

    @property
    def shift(self) -> int:
        """How far the rank may be off, in people."""
        return self.search.rank_error(self.candidates)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no clip."""
        drawn = [
            self.search.choose_at(
                Node.of(occupied, numbers, self.candidates.size),
                self.candidates,
                noise,
            )
            for occupied, numbers in view.tallies(0)
        ]
        sign = self.measure.sign
        if not self.ranked:
            drawn = [each if each.error <= _HALF * each.people else Answer() for each in drawn]
        values = as_array([answer.value(self.candidates) * sign + 0 for answer in drawn])
        errors = np.array([stated(answer.error, answer.people) for answer in drawn], np.float64)
        if self.ranked:
            return Released.ranked(values, errors)
        steps = np.array([self._step(answer.candidate) for answer in drawn], np.float64)
        return Released.at_least(values, np.where(np.isfinite(errors), steps, math.inf), sign)

    def _step(self, index: int | None) -> float:
        """Return how far the candidate before is; the truth is above that one."""
        return float(self.candidates[index] - self.candidates[index - 1]) if index else math.inf

    def describe(self) -> Description:
        """Describe how many people the release passes over."""
        floor = self.search.floor(self.candidates)
        reason = f"NaN where fewer than about {floor} people are"
        mechanism = "walk from the outside, each person counts once"
        return Description(mechanism, "-", self.shift, people(self.shift), reason)


@dataclasses.dataclass(frozen=True)
class KthRelease(OfLines):
    """The k-th largest of all rows: at most C rows of each person count, and ranks are searched.

    Let c_i(y) be the rows of person i at or above y. A `TailSearch` walks from the top to where
    A(y) = sum_i min(c_i(y), C) / C reaches (k - 1/2) / C: the C largest rows of each person weigh
    1 / C, at most 1 in all, so that its theorem holds for every C that was fixed before. A(y) C is
    at most the number of rows at or above y, and less by sum_i max(0, c_i(y) - C).

    *Which C.* Few rows of a person may be near the k-th largest, however many they have in all. So
    a histogram of all rows says how many of each person are enough to have 2 k of them together,
    roughly; a first walk with so many finds a place with about k rows at or above it; and a
    histogram of the rows that each person has from there on chooses C (`RowClips`). The four parts
    are private for every outcome of those before, which they depend on, and their costs add up.

    *Rank error*: that of the walk, in C rows each, and what people above C lose by the histogram.

    Attributes:
        unit: what one unit is worth.
        whole: the histogram of all rows.
        near: the first walk; None: C is 1, which needs no choice, and the error is one of people.
        rows: how C is chosen.
        search: the second walk; `worth` is put in.
        candidates: the public outputs.
    """

    unit: Fraction
    whole: RowClips
    near: TailSearch | None
    rows: RowClips
    search: TailSearch
    candidates: Candidates

    @property
    def spends(self) -> tuple[Spending, ...]:
        """Both walks, and both histograms."""
        walks = (self.search.cost,) if self.near is None else (self.near.cost, self.search.cost)
        return spends_of((self.whole.look, self.rows.look), *walks)

    @property
    def shift(self) -> int:
        """How far the rank may be off, in people."""
        return self.search.rank_error(self.candidates)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no shared clip."""
        drawn = [self._answer(lines, noise) for lines in view.owned(0)]
        values = as_array([answer.value(self.candidates) for answer in drawn])
        return Released.ranked(values, np.array([answer.error for answer in drawn], np.float64))

    def _answer(self, lines: Lines, noise: Noise) -> Answer:
        indexes = places_of(lines.items, self.unit, self.candidates)
        order = order_of(lines.people, self.candidates.size - 1 - indexes)
        own = Lines(lines.owners[:, order], indexes[order], lines.counts[order])
        clip = self._clip(own, noise)
        search = dataclasses.replace(self.search, worth=clip.rows)
        answer = self._walked(own, search, noise)
        return answer._replace(error=stated(clip.error(answer.error), answer.people * clip.rows))

    def _clip(self, own: Lines, noise: Noise) -> RowClip:
        """Return C, by the rows from the place on where the first walk ends."""
        least = 0
        if self.near is not None:
            worth = self.whole.reaching(rows_of(own), 2 * self.near.rank, noise)
            near = dataclasses.replace(self.near, worth=worth)
            least = self._walked(own, near, noise).candidate or 0
        above = own.items >= least
        upper = Lines(own.owners[:, above], own.items[above], own.counts[above])
        return self.rows.choose(rows_of(upper), self.search.usual_error, noise)

    def _walked(self, own: Lines, search: TailSearch, noise: Noise) -> Answer:
        """Return the answer for the largest rows of each person; lines fall for each of them."""
        people, indexes, counts = _largest(own, search.worth)
        weights = increments(people, indexes, counts, clip=search.worth)
        return search.choose_at(Node.of(*weights, self.candidates.size), self.candidates, noise)

    def describe(self) -> Description:
        """Describe how many rows of a person count, and how far the rank may be off."""
        floor = self.search.floor(self.candidates)
        reason = f"NaN where fewer than about {floor} people are"
        if self.near is None:
            mechanism = "walk from the outside, each person counts once"
            return Description(mechanism, "-", self.shift, people(self.shift), reason)
        mechanism = "clip on rows for each partition, then walk from the outside"
        return Description(mechanism, "-", self.shift, worth_of(self.shift), reason)


def _largest(own: Lines, most: int) -> Sequence[np.ndarray]:
    """Return people, places and counts of the `most` largest rows of each person."""
    if not len(own.items):
        return own.people, own.items, own.counts
    starts = np.flatnonzero(ordering.changes(own.people.view(np.uint64)[None]))
    counts = ordering.first_rows(own.counts, starts, most)
    kept = counts > 0
    return own.people[kept], own.items[kept], counts[kept]

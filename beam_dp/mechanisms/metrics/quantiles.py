"""Values by ranks: quantiles of people or of rows, extremes, and the k-th largest."""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, Spending, cost_of_all
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import default_values, finer
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.histogram_choice.clipping_loss import Losses, even_spread
from beam_dp.mechanisms.metrics.additive.shared_clip import row_clips
from beam_dp.mechanisms.metrics.base import (
    Context,
    Metric,
    MetricPart,
    OfRowsOrPeople,
    PeopleStatistic,
    check_indexes,
)
from beam_dp.mechanisms.metrics.profiled import OfValues, Profiled, as_array
from beam_dp.mechanisms.metrics.released import (
    Description,
    OfLines,
    Profiler,
    Release,
    Released,
    counted,
    people,
)
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.integers import WIDE
from beam_dp.mechanisms.profiles.from_summaries import KthRow, OneNumberEach
from beam_dp.mechanisms.search.choose import SPARSE_VECTOR, TWO_PHASE, SearchKind
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import (
    RESOLUTION,
    Answer,
    Node,
    increments,
    order_of,
)
from beam_dp.mechanisms.search.quantiles.several_quantiles import SplitSearch
from beam_dp.mechanisms.search.quantiles.tail_quantile import FALSE_STOP, TailSearch
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Lines, Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_COUNT_SHARE = Fraction(1, 20)  # of the rest, to tell if people are few
_CLIP_SHARE = Fraction(1, 5)  # of a row quantile's budget, for the choice of the clip
_TENTH = 0.1
_BOUND = 3  # the 95% error of a rank beside the scale of its noise, as of a sum
_NOTHING = Losses(*np.zeros((3, 1)), *np.zeros((3, 1, 1)))
_OF_ROWS = "clip on rows for each partition, then rank search"
_HALF = 0.5
_ROUNDED = 1e-12  # of sums of shares in floats
_FINEST = 1 << 100  # of a p: no float could hold finer rates per unit; 30 digits are fine
_FALSE_STOP = 5e-3  # of extremes: what is above all data is nothing like the largest
_KTH_SHARES = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5), Fraction(13, 20))
"""The parts of the budget for how many rows people have, the first scan, the choice of the clip,
and the second scan."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfRanks(OfValues, OfRowsOrPeople):
    """A metric whose error is by how many rows, or people, the rank of its value may be off.

    Attributes:
        per: "row", as in SQL, or "person", where every person counts once.
    """

    word: ClassVar[str] = "rank"
    is_ranked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_indexes(type(self).__name__, self.candidates)

    def by_ranks(
        self, context: Context, share: Budget, shares: tuple[Fraction, ...], alone: bool = True
    ) -> Release:
        """Return the search of ranks; of rows, unless nobody can have two, with a clip on them.

        Args:
            context: the parameters of the pipeline.
            share: what it may cost, over all partitions of a person.
            shares: every share below.
            alone: whether it is one number and not a row of numbers.
        """
        each, rows = context.each(share), None
        if not self.by_person and context.max_rows_per_partition != 1:
            histogram, each = each.split((_CLIP_SHARE, 1 - _CLIP_SHARE))
            rows = RowClips(histogram, row_clips(context.max_rows_per_partition))
        count, rest = each.split((_COUNT_SHARE, 1 - _COUNT_SHARE))
        unit, given = self.exact_unit, self.given
        return RankRelease(
            relation=Relation(context.index(self.source)),
            unit=unit,
            count=count,
            search=SplitSearch(rest, shares, false_stop=min(FALSE_STOP, float(self.beta))),
            candidates=finer(default_values(unit) if given is None else given),
            alone=alone,
            rows=rows,
            are_ends=given is not None,
        )


@dataclasses.dataclass(frozen=True)
class Quantile(OfRanks):
    """Release a p-quantile of rows: the value with a share p of all rows at or below it.

    A number C of rows is chosen privately. Whoever has at most C rows with a value counts with each
    of them; whoever has more spreads C votes evenly over theirs, and so keeps their own share. In
    95% of releases the share of rows at or below the released value is within `<name>_rank_error`
    rows of p, but for rows that share the value; NaN: too few people. From 0.2 to 0.8 see
    `CentralSearch`, else `TailSearch`, which reads a lower rank where p is too far out for so few
    people, and says so by a larger error.

    With `per="person"` every person spreads one vote over their rows, however many they own:
    nothing is spent on C, and the error is a number of people. Several quantiles of one column cost
    less together: `Quantiles`.

    Attributes:
        column: the value column.
        p: the share below, above 0 and below 1.
        per: "row" or "person".
        unit: the grid of values.
    """

    p: checks.Real

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_p("Quantile", "p", self.p)

    @property
    def _exact(self) -> Fraction:
        return checks.decimal("Quantile", "p", self.p)

    @property
    def _prefix(self) -> str:
        return f"quantile_{_word(self._exact)}"

    def build(self, context: Context, share: Budget) -> Release:
        """Return the quantile of rows, or of people."""
        return self.by_ranks(context, share, (self._exact,))


@dataclasses.dataclass(frozen=True)
class Quantiles(OfRanks):
    """Release several quantiles of one column for one share of the budget: of rows, or of people.

    They cost far less together than apart, and never fall as p rises. Each is read as a `Quantile`.
    Each p, as 0.25, has the columns `quantiles_<column>_0_25` and
    `quantiles_<column>_0_25_rank_error`; with a name, `<name>_0_25`. See `SplitSearch`.

    Attributes:
        column: the value column.
        shares: every p, above 0 and below 1.
        per: "row" or "person".
        unit: the grid of values.
    """

    shares: Sequence[checks.Real]

    def __post_init__(self) -> None:
        subject = "Quantiles"
        hint = 'Write dp.Quantiles("spent", [0.25, 0.5, 0.75]).'
        checks.sequence(subject, "shares", self.shares, "numbers", hint)
        checks.require(
            len(self.shares) > 0, subject, "shares", "have at least one p", "Write shares=[0.5]."
        )
        for share in self.shares:
            _check_p(subject, "every p", share)
        exact = sorted({checks.decimal(subject, "every p", share) for share in self.shares})
        object.__setattr__(self, "shares", tuple(exact))
        super().__post_init__()

    @property
    def number_names(self) -> tuple[str, ...]:
        """The name of each p."""
        return tuple(f"{self.output}_{_word(share)}" for share in self.shares)

    def build(self, context: Context, share: Budget) -> Release:
        """Return all of them by one search."""
        return self.by_ranks(
            context, share, tuple(Fraction(share) for share in self.shares), alone=False
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Median(OfRanks):
    """Release the median: `Quantile` with p = 1/2.

    Attributes:
        column: the value column.
        per: "row" or "person".
        unit: the grid of values.
    """

    own_epsilons: ClassVar[tuple[str, ...]] = ("median",)

    def parts(self) -> tuple[MetricPart, ...]:
        """Return the quantile of rows, or of people."""
        return Quantile(**vars(self), p=Fraction(1, 2)).parts()

    def of_people(self) -> PeopleStatistic:
        """Return the median of people's means."""
        return PeopleStatistic("median", "mean")


def _word(p: checks.Real) -> str:
    """Return a share as a part of a column's name."""
    return f"{float(p):g}".replace(".", "_")


def _check_p(subject: str, name: str, p: checks.Real) -> None:
    """Refuse what is no share of rows."""
    checks.fraction_between(subject, name, p, 0, 1, "Write 0.5 for the median.")
    fine = checks.decimal(subject, "p", p).denominator <= _FINEST
    rule = f"be a fraction with a denominator of at most 2^100, not {checks.shown(p)}"
    checks.require(fine, subject, "p", rule, "Write p=0.001.")


def usable_error(error: float, people: float) -> float:
    """Return how far a rank may be off; infinite, where that is more than a tenth of the people.

    This is the rule by which ranks are marked as being of little use: tables, pages and files show
    that nothing is known of such a rank. Of intervals see `suppress_unreliable.doubtful`.

    Args:
        error: how far it may be off, in people or in rows.
        people: how many of them there are, as far as was released.
    """
    return error if error <= _TENTH * people else math.inf


class RowClip(NamedTuple):
    """How many rows of a person weigh as much as a person, in one partition; released.

    Attributes:
        rows: C.
        losses: the rows of people above C, beyond C each; None: nobody was shown.
    """

    rows: int
    losses: Losses | None

    def error(self, ranks: float, share: float = 1.0) -> float:
        """Return how far a rank may be off, in rows; infinite where nobody was shown.

        Args:
            ranks: how far it may be off in people, each of whom is worth C rows.
            share: how much the rank moves by a row that is lost, at most.
        """
        if self.losses is None or math.isinf(ranks):
            return math.inf
        noise = ranks * self.rows
        return float(math.ceil(noise + share * self.losses.beside(noise)[0]))


@dataclasses.dataclass(frozen=True)
class RowClips:
    """Chooses C for each partition by a noisy histogram of people's numbers of rows.

    Each person is in one bucket of it, and C is a function of what is released (`ClipChoice`).

    Attributes:
        histogram: what the histogram costs; None: there is one clip only, and nothing to choose.
        clips: the public ones.
    """

    histogram: Budget | None
    clips: tuple[int, ...]

    def choose(self, rows: np.ndarray, error: float, noise: Noise) -> RowClip:
        """Return the clip for people with so many rows each: a private draw.

        Args:
            rows: of each person, from 1 on.
            error: the 95% error of the rank, in people.
            noise: the randomness.
        """
        if self.histogram is None:
            return RowClip(self.clips[0], _NOTHING)
        choice, drawn = self._drawn(rows, noise)
        [index] = choice.clips(drawn, error / _BOUND).tolist()
        if index < 0:
            return RowClip(self.clips[0], None)
        return RowClip(self.clips[index], choice.losses(drawn, np.array([index]))[0])

    def reaching(self, rows: np.ndarray, wanted: int, noise: Noise) -> int:
        """Return the least clip at which people have so many rows together, or the largest shown.

        Args:
            rows: of each person, from 1 on.
            wanted: how many rows; public.
            noise: the randomness.
        """
        choice, drawn = self._drawn(rows, noise)
        shown = int(choice.highest(drawn)[0, 0]) + 1
        people = np.maximum(drawn[0, 0, :shown], 0)
        means = even_spread(self.clips).means[0, :shown]
        clips = [c for c in self.clips[:shown] if people @ np.minimum(means, c) >= wanted]
        return min([*clips, self.clips[max(0, min(shown, len(self.clips)) - 1)]])

    def _drawn(self, rows: np.ndarray, noise: Noise) -> tuple[ClipChoice, np.ndarray]:
        assert self.histogram is not None
        choice = ClipChoice(self.histogram, self.clips, anchored=True)
        buckets = np.searchsorted(np.array(self.clips), rows)
        people = np.bincount(buckets, minlength=choice.buckets).reshape(1, 1, -1)
        return choice, choice.draw(people, noise)


@dataclasses.dataclass(frozen=True)
class RankRelease(OfLines):
    """Quantiles of people or of rows, by `SplitSearch`; one or several of a column.

    *Of people* every person counts once. Each quantile comes with the number of people by which its
    rank may be off. NaN: too few people.

    *Of rows* a number C of rows is chosen for each partition (`RowClips`), on how many rows with a
    value people have. Let m_i be those of person i, and c_i(y) their rows at or below y: person i
    weighs min(1, C / m_i) / C per row, so F_i(y) = c_i(y) / max(m_i, C), at most 1 in all
    (`increments`, in integers, rounded down). The searches are proved for any F_i that depends on
    person i alone, does not decrease in y, and is 1 at most: C is fixed before, and the costs add
    up. Where nobody has more than C rows, all rows weigh the same.

    *Rank error in rows.* With n' and r'(y) the weights in all and at or below y, each times C, and
    n and r(y) the rows: r(y) - p n = r'(y) - p n' + sum_i (1 - min(1, C / m_i)) (c_i(y) - p m_i).
    The search says how far the first part is from 0. A term of the sum is at most max(p, 1 - p)
    times max(0, m_i - C), which the histogram estimates in all, as for a sum (`Losses`).

    Attributes:
        unit: what one unit is worth.
        count: what a noisy number of people costs, which says if they are few (`usable_error`).
        search: the search, with its budget.
        candidates: the public outputs.
        alone: whether one number per partition is released, and not a row of numbers.
        rows: how C is chosen; None: people count once each.
        are_ends: whether the first and the last candidate are public ends of the values.
    """

    unit: Fraction
    count: Budget
    search: SplitSearch
    candidates: Candidates
    alone: bool = True
    rows: RowClips | None = None
    are_ends: bool = False

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What all searches of a partition cost together, and the choice of C."""
        histogram = None if self.rows is None else self.rows.histogram
        return spends_of((histogram,), self.count.without_delta(), self.search.cost)

    @property
    def shift(self) -> int:
        """How far the rank of the first one may be off, in people, where many are."""
        return self.search.usual_errors[0]

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value or one row of values per partition; there is no shared clip."""
        answers = self._true if noise.is_off else self._answers
        drawn = [answers(lines, noise) for lines in view.owned(0)]
        shape = (view.size, len(self.search.shares))[: 1 if self.alone else 2]
        return _ranked([answer for row in drawn for answer in row], self.candidates, shape)

    def _answers(self, lines: Lines, noise: Noise) -> list[Answer]:
        indexes = places_of(lines.items, self.unit, self.candidates)
        clip = RowClip(1, _NOTHING)
        if self.rows is not None:
            clip = self.rows.choose(rows_of(lines), max(self.search.usual_errors), noise)
        weights = increments(lines.people, indexes, lines.counts, clip=clip.rows)
        node = Node.of(*weights, self.candidates.size, self.are_ends)
        size = self._people(node, noise)
        answers = self.search.answers(node, self.candidates, noise, size)
        ends = [float(max(p, 1 - p)) for p in self.search.shares]
        return [
            answer._replace(error=usable_error(clip.error(answer.error, end), size * clip.rows))
            for answer, end in zip(answers, ends, strict=True)
        ]

    def _true(self, lines: Lines, _: Noise) -> list[Answer]:
        """Return the true quantiles for trials: no search is asked, as it is what is tried."""
        if not len(lines.items):
            return [Answer()] * len(self.search.shares)
        order = np.argsort(lines.items)
        each = lines.counts / 1.0
        if self.rows is None:
            each /= np.bincount(lines.people, lines.counts)[lines.people]
        until = np.cumsum(each[order])
        needs = np.array([float(p) for p in self.search.shares]) * until[-1] * (1 - _ROUNDED)
        items = lines.items[order][np.searchsorted(until, needs)]
        places = places_of(items, self.unit, self.candidates).tolist()
        return [Answer(place, 0.0) for place in places]

    def _people(self, node: Node, noise: Noise) -> float:
        """Return about how many people there are, by their weights: a private draw."""
        units = np.array([int(node.sums[-1])], object)
        noisy = AdditiveNoise(self.count).add(units, RESOLUTION, noise)
        return float(Fraction(int(noisy[0]), RESOLUTION))

    def describe(self) -> Description:
        """Describe whose ranks are searched."""
        many, levels = len(self.search.shares), self.search.levels
        reason = f"{many} of a column for the price of {levels}" if levels < many else ""
        if self.rows is None:
            mechanism = "rank search, each person counts once"
            return Description(mechanism, people(self.shift), reason=reason)
        return Description(_OF_ROWS, worth_of(self.shift), reason=reason)


def worth_of(number: int) -> str:
    """Return how far a rank of rows may be off, in words."""
    return f"{counted(number, 'clip', 'clips')} of rows + clipping loss"


def spends_of(histograms: Sequence[Budget | None], *searches: Budget) -> tuple[Spending, ...]:
    """Return the searches together, and the histograms together, where there are any."""
    shown = [histogram for histogram in histograms if histogram is not None]
    if not shown:
        return (Spending(cost_of_all(searches)),)
    return Spending(cost_of_all(searches), "ranks"), Spending(cost_of_all(shown), "clip")


def places_of(numbers: np.ndarray, unit: Fraction, candidates: Candidates) -> np.ndarray:
    """Return the candidate of each number; what is above the last one counts as the last one."""
    indexes = candidates.indexes(integers.scale(numbers, unit).astype(np.float64))
    return np.minimum(indexes, candidates.size - 1)


def rows_of(lines: Lines) -> np.ndarray:
    """Return how many rows each person has who has any."""
    rows = integers.sums_at(lines.people, lines.counts, int(lines.people.max(initial=-1)) + 1)
    return rows[rows > 0]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Ranked(OfValues, Profiled):
    """A metric that is one of the values, found by ranks or by its removal profile."""

    several_owners: ClassVar[bool] = True
    of_values: ClassVar[bool] = True
    words: ClassVar[tuple[str, ...]] = (SPARSE_VECTOR, TWO_PHASE)
    most_false_stop: ClassVar[float]

    search: SearchKind = SPARSE_VECTOR

    @property
    def _false_stop(self) -> float:
        """The chance that a scan stops where nobody is."""
        return min(self.most_false_stop, float(self.beta))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Extreme(_Ranked):
    """The largest or smallest number of a column, by ranks of people or by its removal profile.

    Attributes:
        candidates: the public outputs; None: anything, and 0 and decimals of 4 digits, of both
            signs, to 10^18 for a search.
        search: "sparse_vector" for the first number from the outside that enough people reach (see
            `TailSearch`); "two_phase" for a clip and noise (see `TwoPhase`), which is nearer from
            about 1,000 people on at epsilon 1, but beyond all data in a tenth of all releases; or
            a search over the removal loss, which errs to one side, and by more. Rows with
            several owners are released in two phases, or by such a search.
        beta: how often the guarantee of a search may fail.
        unit: the grid of values.
    """

    most_false_stop: ClassVar[float] = _FALSE_STOP
    statistic: ClassVar[str]

    def build(self, context: Context, share: Budget) -> Release:
        """Return the sparse-vector scan from the outside; two phases where rows have several
        owners."""
        if self.search != SPARSE_VECTOR or context.others or self.grid.size >= WIDE:
            return super().build(context, share)
        search = TailSearch(context.each(share), false_stop=self._false_stop, resolution=1)
        field, unit = context.field(self.source, self.word), self.exact_unit
        number = Measure(field, self.sign, additive=False, outputs=self.grid, unit=unit)
        return ExtremeRelease(number, search, self.grid)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the extreme without the people who have most, or least."""
        if context.others:
            relation = Relation(context.index(self.source), context.others)
            return KthRow(relation, removals, self.exact_unit, self.sign)
        field = context.field(self.source, self.word)
        return OneNumberEach(Measure(field, self.sign, (), removals + 1, False), self.exact_unit)

    def of_people(self) -> PeopleStatistic:
        """Return the extreme of people's extremes, which is that of all rows."""
        return PeopleStatistic(self.statistic, self.word)


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
    own_epsilons: ClassVar[tuple[str, ...]] = ("maximum",)


class Min(_Extreme):
    """Release a value that nearly nobody is below: the mirror of `Max`.

    Attributes:
        column: the value column.
    """

    word: ClassVar[str] = "min"
    statistic: ClassVar[str] = "minimum"
    sign: ClassVar[int] = -1


@dataclasses.dataclass(frozen=True)
class KthLargest(_Ranked):
    """Release the k-th largest of all rows, one person owning any number of them.

    By default a number C of rows is chosen privately, each person counts for at most C of their
    largest rows, and ranks are searched (`KthRelease`). In 95% of releases the rank is off by at
    most `<name>_rank_error` rows. NaN where people are too few. For a k below about 12 / epsilon C
    is 1: ranks and their error count people, each by their largest row, and all such k give nearly
    the same value.

    Attributes:
        column: the value column.
        k: which, from 1 on.
        search: as of `Max`.
        unit: the grid of values.
    """

    word: ClassVar[str] = "kth"
    most_false_stop: ClassVar[float] = FALSE_STOP

    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive_integer("KthLargest", "k", self.k, "Write k=1 for the largest.")
        if self.search == SPARSE_VECTOR:
            check_indexes("KthLargest", self.candidates)

    @property
    def _prefix(self) -> str:
        return f"largest_{self.k}"

    @property
    def is_ranked(self) -> bool:
        """Whether its error is one of ranks: by default."""
        return self.search == SPARSE_VECTOR

    def build(self, context: Context, share: Budget) -> Release:
        """Return the scan by ranks."""
        if self.search != SPARSE_VECTOR:
            return super().build(context, share)
        each, candidates, k, false_stop = context.each(share), self.grid, self.k, self._false_stop
        alone = TailSearch(each, rank=k, false_stop=false_stop, resolution=1)
        of = Relation(context.index(self.source)), self.exact_unit
        only = dataclasses.replace(alone, resolution=RESOLUTION)
        # With one row each, or near the top, no clip above 1 comes nearer.
        if context.max_rows_per_partition == 1 or alone.is_floored(candidates):
            one = RowClips(None, (1,))
            return KthRelease(*of, one, None, one, search=only, candidates=candidates)
        size, first, histogram, rest = each.split(_KTH_SHARES)
        near, search = (dataclasses.replace(only, budget=part) for part in (first, rest))
        clips = row_clips(min(self.k, context.max_rows_per_partition or self.k))
        sizes, rows = RowClips(size, clips), RowClips(histogram, clips)
        return KthRelease(*of, sizes, near, rows, search=search, candidates=candidates)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the exact profile; of shared rows a relaxed one."""
        relation = Relation(context.index(self.source), context.others)
        return KthRow(relation, removals, self.exact_unit, k=self.k)

    def for_several_owners(self) -> Metric:
        """Return it by its removal profile: the ranks of people say nothing of shared rows."""
        return dataclasses.replace(self, search=TWO_PHASE) if self.search == SPARSE_VECTOR else self


@dataclasses.dataclass(frozen=True)
class ExtremeRelease(Release):
    """The largest number of one per person, by `TailSearch`.

    With a chance of at most `false_stop`, or twice that where the largest is below 0 (the smallest
    above it), the released value is above all data; else the largest number is above the candidate
    before it. Where more than a tenth of the people may be beyond the value, nothing is said of the
    largest number (`usable_error`); where more than half of them may be, or people are too few, it
    is NaN.

    Attributes:
        measure: one number per person, in buckets of the candidates; the sign says whether they
            are mirrored, for the smallest.
        search: the search, with its budget, in whole people.
        candidates: the public outputs, mirrored where the numbers are.
    """

    one_sided: ClassVar[bool] = True

    measure: Measure
    search: TailSearch
    candidates: Candidates

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
        # An error of one person is no reason to hide a number, however few people there are.
        drawn = [e if e.error <= max(1, _HALF * e.people) else Answer() for e in drawn]
        values = as_array([answer.value(self.candidates) * sign + 0 for answer in drawn])
        errors = np.array(
            [usable_error(answer.error, answer.people) for answer in drawn], np.float64
        )
        steps = np.array([self._step(answer.candidate) for answer in drawn], np.float64)
        below = np.where(np.isfinite(errors), steps, math.inf)
        return Released.between(values, *(below, math.inf)[::sign])

    def _step(self, index: int | None) -> float:
        """Return how far the candidate before is; the truth is above that one."""
        return float(self.candidates[index] - self.candidates[index - 1]) if index else math.inf

    def describe(self) -> Description:
        """Describe how many people the release passes over."""
        return scan_from_outside(self.search, self.candidates)


@dataclasses.dataclass(frozen=True)
class KthRelease(OfLines):
    """The k-th largest of all rows: at most C rows of each person count, and ranks are searched.

    Let c_i(y) be the rows of person i at or above y. A `TailSearch` scans from the top to where
    A(y) = sum_i min(c_i(y), C) / C reaches (k - 1/2) / C: the C largest rows of each person weigh
    1 / C, at most 1 in all, so that its theorem holds for every C that was fixed before. A(y) C is
    at most the number of rows at or above y, and less by sum_i max(0, c_i(y) - C).

    *Which C.* Few rows of a person may be near the k-th largest, however many they have in all. So
    three parts choose C. A histogram of all rows says how many rows of each person are enough to
    have about 2 k together. A first scan with so many finds a place with about k rows at or above
    it. A histogram of the rows that each person has from there on chooses C (`RowClips`). Each of
    the four parts is private for every outcome of those before it, and their costs add up.

    *Rank error*: that of the scan, in C rows each, and what people above C lose by the histogram.

    Attributes:
        unit: what one unit is worth.
        sizes: the histogram of all rows, which says how many of each person the first scan counts.
        near: the first scan; None: C is 1, which needs no choice, and the error is one of people.
        rows: how C is chosen.
        search: the second scan; `worth` is put in.
        candidates: the public outputs.
    """

    unit: Fraction
    sizes: RowClips
    near: TailSearch | None
    rows: RowClips
    search: TailSearch
    candidates: Candidates

    @property
    def spends(self) -> tuple[Spending, ...]:
        """Both scans, and both histograms."""
        scans = (self.search.cost,) if self.near is None else (self.near.cost, self.search.cost)
        return spends_of((self.sizes.histogram, self.rows.histogram), *scans)

    @property
    def shift(self) -> int:
        """How far the rank may be off, in people."""
        return self.search.rank_error(self.candidates)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no shared clip."""
        drawn = [self._answer(lines, noise) for lines in view.owned(0)]
        return _ranked(drawn, self.candidates, (view.size,))

    def _answer(self, lines: Lines, noise: Noise) -> Answer:
        indexes = places_of(lines.items, self.unit, self.candidates)
        order = order_of(lines.people, self.candidates.size - 1 - indexes)
        own = Lines(lines.owners[:, order], indexes[order], lines.counts[order])
        clip = self._clip(own, noise)
        search = dataclasses.replace(self.search, worth=clip.rows)
        answer = self._scanned(own, search, noise)
        return answer._replace(
            error=usable_error(clip.error(answer.error), answer.people * clip.rows)
        )

    def _clip(self, own: Lines, noise: Noise) -> RowClip:
        """Return C, by the rows from the place on where the first scan ends."""
        least = 0
        if self.near is not None:
            worth = self.sizes.reaching(rows_of(own), 2 * self.near.rank, noise)
            near = dataclasses.replace(self.near, worth=worth)
            least = self._scanned(own, near, noise).candidate or 0
        above = own.items >= least
        upper = Lines(own.owners[:, above], own.items[above], own.counts[above])
        return self.rows.choose(rows_of(upper), self.search.usual_error, noise)

    def _scanned(self, own: Lines, search: TailSearch, noise: Noise) -> Answer:
        """Return the answer for the largest rows of each person; lines fall for each of them."""
        people, indexes, counts = _largest(own, search.worth)
        weights = increments(people, indexes, counts, clip=search.worth)
        return search.choose_at(Node.of(*weights, self.candidates.size), self.candidates, noise)

    def describe(self) -> Description:
        """Describe how many rows of a person count, and how far the rank may be off."""
        return scan_from_outside(self.search, self.candidates, self.near is not None)


@dataclasses.dataclass(frozen=True)
class MiddleRelease(OfLines):
    """The median of one item per person (or block), each with a weight, by `CentralSearch`.

    Attributes:
        search: the search, with its budget.
        cost: what one partition costs.
        candidates: the public outputs.
        mechanism: how it is drawn, in words.
        ranked: what has an item, in words: one, and several.
        unit: what one unit of an item is worth; None: items are indexes of candidates.
        weights: how much an item with the count 1, 2, ... adds to a rank, in units of the search's
            resolution.
    """

    search: CentralSearch
    cost: Budget
    candidates: Candidates
    mechanism: str
    ranked: tuple[str, str]
    unit: Fraction | None = None
    weights: tuple[int, ...] = (1,)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What the search costs."""
        return (Spending(self.cost),)

    @property
    def shift(self) -> int:
        """How far the rank may be off, in largest weights."""
        return self.search.usual_error

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no clip."""
        nodes = [self.node(lines.items, lines.counts) for lines in view.owned(0)]
        answers = [self.search.choose_at(node, self.candidates, noise) for node in nodes]
        return _ranked(answers, self.candidates, (view.size,))

    def node(self, items: np.ndarray, counts: np.ndarray) -> Node:
        """Return the weights of the candidates that somebody has."""
        if self.unit is not None:
            items = places_of(items, self.unit, self.candidates)
        weights = np.array(self.weights)[np.minimum(counts, len(self.weights)) - 1]
        return Node.of(items, weights, self.candidates.size)

    def describe(self) -> Description:
        """Describe whose ranks are searched."""
        return Description(self.mechanism, f"at most {counted(self.shift, *self.ranked)}")


def _ranked(answers: Sequence[Answer], candidates: Candidates, shape: tuple[int, ...]) -> Released:
    """Return quantiles, whose ranks may be off."""
    values = [answer.value(candidates) for answer in answers], [answer.error for answer in answers]
    number, rank = (np.array(each, np.float64).reshape(shape) for each in values)
    return Released.between(number, np.inf, np.inf, rank)


def scan_from_outside(
    search: TailSearch, candidates: Candidates, clipped: bool = False
) -> Description:
    """Describe a scan in which each person counts once, or with the rows that a clip leaves."""
    how, error = "sparse-vector scan from the outside, each person counts once", people
    if clipped:
        how, error = (
            "clip on rows for each partition, then sparse-vector scan from the outside",
            worth_of,
        )
    reason = f"NaN where fewer than about {search.floor(candidates)} people are"
    return Description(how, error(search.rank_error(candidates)), reason=reason)


def _largest(own: Lines, most: int) -> Sequence[np.ndarray]:
    """Return people, places and counts of the `most` largest rows of each person."""
    if not len(own.items):
        return own.people, own.items, own.counts
    starts = np.flatnonzero(ordering.changes(own.people.view(np.uint64)[None]))
    counts = ordering.first_rows(own.counts, starts, most)
    kept = counts > 0
    return own.people[kept], own.items[kept], counts[kept]

"""Release quantiles, extremes and the k-th largest by ranks, of people or of rows."""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.histogram_choice.clip import ClipChoice
from beam_dp.mechanisms.histogram_choice.loss import ClipEdges, Losses
from beam_dp.mechanisms.histogram_choice.noisy_histogram import Choice
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.integers import scale
from beam_dp.mechanisms.releases.released import (
    Description,
    Release,
    Released,
    Spending,
    counted,
    people,
)
from beam_dp.mechanisms.releases.shifted_inverse import as_array
from beam_dp.mechanisms.search.ranks.node import RESOLUTION, Answer, Node, increments, order_of
from beam_dp.mechanisms.search.ranks.splitting import SplitSearch
from beam_dp.mechanisms.search.ranks.tail import TailSearch
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Lines, Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_TENTH, _HALF = 0.1, 0.5
_BOUND = 3  # the 95% error of a rank beside the scale of its noise, as of a sum


def stated(error: float, people: float) -> float:
    """Return how far a rank may be off; infinite, where that is more than a tenth of the people.

    This is the one rule for what is marked as being of little use: tables, pages and files show
    that nothing is known of such a rank.

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
        look: what the histogram costs; None: there is one clip only, and nothing to choose.
        clips: the public ones.
    """

    look: Budget | None
    clips: tuple[int, ...]

    def choose(self, rows: np.ndarray, error: float, noise: Noise) -> RowClip:
        """Return the clip for people with so many rows each: a private draw.

        Args:
            rows: of each person, from 1 on.
            error: the 95% error of the rank, in people.
            noise: the randomness.
        """
        if self.look is None:
            return RowClip(self.clips[0], _NOTHING)
        choice, drawn = self._drawn(self.look, rows, noise)
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
        if self.look is None:
            return self.clips[0]
        choice, drawn = self._drawn(self.look, rows, noise)
        shown = int(choice.tops(drawn)[0, 0]) + 1
        people = np.maximum(drawn.noisy[0, 0, :shown], 0)
        means = ClipEdges(self.clips).means[:shown]
        clips = [c for c in self.clips[:shown] if people @ np.minimum(means, c) >= wanted]
        return min([*clips, self.clips[max(0, min(shown, len(self.clips)) - 1)]])

    def _drawn(self, look: Budget, rows: np.ndarray, noise: Noise) -> tuple[ClipChoice, Choice]:
        choice = ClipChoice((look,), self.clips, anchored=True)
        buckets = np.searchsorted(np.array(self.clips), rows)
        people = np.bincount(buckets, minlength=choice.buckets).reshape(1, 1, -1)
        return choice, choice.draw(people, noise)


_NOTHING = Losses(np.zeros(1), np.zeros(1), np.zeros(1))


@dataclasses.dataclass(frozen=True)
class RankRelease(Release):
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
        relation: who owns which values, in units.
        unit: what one unit is worth.
        count: what a noisy number of people costs, which says if they are few (`stated`).
        search: the search, with its budget.
        candidates: the public outputs.
        alone: whether one number per partition is released, and not a row of numbers.
        rows: how C is chosen; None: people count once each.
    """

    relation: Relation
    unit: Fraction
    count: Budget
    search: SplitSearch
    candidates: Candidates
    alone: bool = True
    rows: RowClips | None = None

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation alone."""
        return (self.relation,)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What all searches of a partition cost together, and the choice of C."""
        look = None if self.rows is None else self.rows.look
        return _spent((look,), self.count.without_delta(), self.search.cost)

    @property
    def shift(self) -> int:
        """How far the rank of the first one may be off, in people, where many are."""
        return self.search.usual_errors[0]

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value or one row of values per partition; there is no shared clip."""
        drawn = [self._answers(lines, noise) for lines in view.owned(0)]
        shape = (view.size, len(self.search.shares))
        values = [answer.value(self.candidates) for row in drawn for answer in row]
        ranks = [answer.error for row in drawn for answer in row]
        kept = shape[:1] if self.alone else shape
        number, rank = (np.array(each, np.float64).reshape(kept) for each in (values, ranks))
        return Released.ranked(number, rank)

    def _answers(self, lines: Lines, noise: Noise) -> list[Answer]:
        indexes = _places(lines, self.unit, self.candidates)
        clip = RowClip(1, _NOTHING)
        if self.rows is not None:
            clip = self.rows.choose(_rows(lines), max(self.search.usual_errors), noise)
        weights = increments(lines.people, indexes, lines.counts, clip=clip.rows)
        node = Node.of(*weights, self.candidates.size)
        there = self._people(node, noise) * clip.rows
        answers = self.search.answers(node, self.candidates, noise)
        ends = [float(max(p, 1 - p)) for p in self.search.shares]
        return [
            answer._replace(error=stated(clip.error(answer.error, end), there))
            for answer, end in zip(answers, ends, strict=True)
        ]

    def _people(self, node: Node, noise: Noise) -> float:
        """Return about how many people there are, by their weights: a private draw."""
        units, one = np.array([int(node.sums[-1])], object), np.array([RESOLUTION], object)
        noisy = AdditiveNoise(self.count).add(units, one, noise)
        return float(Fraction(int(noisy[0]), RESOLUTION))

    def describe(self) -> Description:
        """Describe whose ranks are searched."""
        several = f"{len(self.search.shares)} of a column for the price of {self.search.levels}"
        reason = "" if self.alone else several
        if self.rows is None:
            mechanism = "rank search, each person counts once"
            return Description(mechanism, "-", self.shift, people(self.shift), reason)
        return Description(_OF_ROWS, "-", self.shift, _worth(self.shift), reason)


_OF_ROWS = "clip on rows for each partition, then rank search"


def _worth(number: int) -> str:
    """Return how far a rank of rows may be off, in words."""
    return f"{counted(number, 'clip', 'clips')} of rows + cut"


def _spent(looks: Sequence[Budget | None], *searches: Budget) -> tuple[Spending, ...]:
    """Return the searches together, and the histograms together, where there are any."""
    shown = [look for look in looks if look is not None]
    if not shown:
        return (Spending(_together(searches)),)
    return Spending(_together(searches), "ranks"), Spending(_together(shown), "clip")


def _together(costs: Sequence[Budget]) -> Budget:
    amount = sum((cost.amount for cost in costs), Fraction(0))
    return Budget.zcdp(amount) if costs[0].is_zcdp else Budget(amount)


def _places(lines: Lines, unit: Fraction, candidates: Candidates) -> np.ndarray:
    """Return the candidate of each line; what is above the last one counts as the last one."""
    indexes = candidates.indexes(scale(lines.items, unit).astype(np.float64))
    return np.minimum(indexes, candidates.size - 1)


def _rows(lines: Lines) -> np.ndarray:
    """Return how many rows each person has who has any."""
    rows = np.zeros(int(lines.people.max(initial=-1)) + 1, np.int64)
    np.add.at(rows, lines.people, lines.counts)
    return rows[rows > 0]


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
class KthRelease(Release):
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
        relation: who owns which values, in units.
        unit: what one unit is worth.
        whole: the histogram of all rows.
        near: the first walk; None: C is 1, which needs no choice, and the error is one of people.
        rows: how C is chosen.
        search: the second walk; `worth` is put in.
        candidates: the public outputs.
    """

    relation: Relation
    unit: Fraction
    whole: RowClips
    near: TailSearch | None
    rows: RowClips
    search: TailSearch
    candidates: Candidates

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The relation alone."""
        return (self.relation,)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """Both walks, and both histograms."""
        walks = (self.search.cost,) if self.near is None else (self.near.cost, self.search.cost)
        return _spent((self.whole.look, self.rows.look), *walks)

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
        indexes = _places(lines, self.unit, self.candidates)
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
            worth = self.whole.reaching(_rows(own), 2 * self.near.rank, noise)
            near = dataclasses.replace(self.near, worth=worth)
            least = self._walked(own, near, noise).candidate or 0
        above = own.items >= least
        upper = Lines(own.owners[:, above], own.items[above], own.counts[above])
        return self.rows.choose(_rows(upper), self.search.usual_error, noise)

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
        return Description(mechanism, "-", self.shift, _worth(self.shift), reason)


def _largest(own: Lines, most: int) -> Sequence[np.ndarray]:
    """Return people, places and counts of the `most` largest rows of each person."""
    if not len(own.items):
        return own.people, own.items, own.counts
    starts = np.flatnonzero(ordering.changes(own.people.view(np.uint64)[None]))
    counts = ordering.first_rows(own.counts, starts, most)
    kept = counts > 0
    return own.people[kept], own.items[kept], counts[kept]

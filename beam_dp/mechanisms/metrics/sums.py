"""Counts and sums: of rows, people and numbers, by one clip and noise (`clipped_sum`)."""

import abc
import dataclasses
from fractions import Fraction
from typing import ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.decimal_grid import VALUE_CLIPS
from beam_dp.mechanisms.metrics.additive.additive_release import clipped_sum, people_release
from beam_dp.mechanisms.metrics.additive.shared_clip import row_clips
from beam_dp.mechanisms.metrics.base import Context, Metric, OfNumbers, PeopleStatistic
from beam_dp.mechanisms.metrics.profiled import Profiled
from beam_dp.mechanisms.metrics.released import Profiler, Release
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.profiles.from_summaries import OneNumberEach, RowsOfSeveralOwners
from beam_dp.mechanisms.search.choose import CLIP, TWO_PHASE, SearchKind
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation

_LARGEST_CLIP = 1 << 200
_COARSE = Fraction(1, 1000)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clippable(Profiled):
    """A metric that is released by a privately chosen clip and noise, or searched for, one-sided.

    Attributes:
        clip: None: chosen privately. Or a number, if you know without the data that nobody counts
            for more in a partition: whoever has more counts for that much there. With one
            partition, or a bound on partitions, nothing is spent on a choice then. The interval
            holds the truth if nobody has more.
        search: "clip" for a clip and noise; of rows with several owners in two phases. A search
            over the removal loss is one-sided: never above the true value but for 5%, and below it
            by the contributions of about `shift` people. "two_phase": see `TwoPhase`.
        candidates: the public outputs of a search; None: a geometric grid that is wide enough for
            anything.
        beta: how often a search may be above the true value, or too far below it.

    Options that have no effect are refused: a clip beside a search, and `candidates` and `beta`
    without one.
    """

    several_owners: ClassVar[bool] = True
    words: ClassVar[tuple[str, ...]] = (CLIP, TWO_PHASE)

    clip: checks.Real | None = None
    search: SearchKind = CLIP

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.search == CLIP:
            because = "without a search, as a clip is chosen and noise is added"
            hint = "Write search=dp.AboveThreshold beside it, or leave it out."
            checks.refuse(self, ("candidates", "beta"), because, hint)
        else:
            because = "with a search for the output, which clips nobody"
            checks.refuse(self, ("clip",), because, "Leave one of the two out.")
        if self.clip is not None:
            hint = "Write clip=100, or leave it out to have it chosen privately."
            checks.fraction_between(type(self).__name__, "clip", self.clip, 0, _LARGEST_CLIP, hint)

    @property
    def is_plain(self) -> bool:
        """Whether it is released by a clip that is chosen."""
        return self.search == CLIP and self.clip is None

    @property
    def given_clip(self) -> Fraction | None:
        """The clip, exactly; None: it is chosen."""
        return None if self.clip is None else checks.decimal("Clippable", "clip", self.clip)

    @abc.abstractmethod
    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise."""

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise, or by its removal profile."""
        by_profile = self.search != CLIP or context.others
        return super().build(context, share) if by_profile else self.clipped(context, share)

    def for_several_owners(self) -> Metric:
        """Return it as it is released where rows have several owners: by its removal profile."""
        because = "where rows have several owners, which are released by their removal profile"
        checks.refuse(self, ("clip",), because, "Leave it out.")
        return self


class Count(Clippable):
    """Count the rows of each partition.

    No bound on rows per person is needed. With `ContributionBounds(rows_per_partition=...)` the
    clip is searched up to it only.
    """

    word: ClassVar[str] = "number of rows"
    whole: ClassVar[bool] = True

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the number of rows, each person clipped."""
        measure = Measure(ROWS, thresholds=row_clips(context.max_rows_per_partition))
        return clipped_sum(context, share, measure, given=self.given_clip)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the total without the people who have most."""
        if context.others:
            return RowsOfSeveralOwners(Relation(-1, context.others), removals)
        return OneNumberEach(Measure(ROWS, keep=removals + 1), self.exact_unit)


@dataclasses.dataclass(frozen=True)
class Sum(Clippable, OfNumbers):
    """Sum a column; rows without a valid value add nothing.

    Numbers may have both signs. Every row's number is rounded to a multiple of `unit` first, then
    summed exactly. With a search, people whose total is below 0 count as 0. Where rows have
    several owners, numbers below 0 are taken as 0, sums of rows with the same owners are rounded
    down to multiples of 0.001 if the unit is a finer power of ten, and are at most 2^32 of these:
    4,294,967 by default.

    Attributes:
        column: the value column.
        unit: the grid of values; integers and decimals that are multiples of it are exact. Of a
            whole unit, sums are whole numbers.
    """

    word: ClassVar[str] = "sum"
    own_epsilons: ClassVar[tuple[str, ...]] = ("sum",)

    @property
    def is_rounded(self) -> bool:
        """Whether its number is rounded to a whole one."""
        return self.exact_unit.denominator == 1

    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the sum, each person clipped."""
        measure = Measure(context.field(self.source, "sum"), sign=0, thresholds=VALUE_CLIPS)
        unit, given = self.exact_unit, self.given_clip
        return clipped_sum(context, share, measure, unit, given=given, anchored=False)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the total without the people who have most."""
        unit = self.exact_unit
        if context.others:
            coarse = _coarse(unit)
            relation = Relation(-1, context.others, context.index(self.source))
            return RowsOfSeveralOwners(relation, removals, unit * coarse, coarse=coarse)
        field = context.field(self.source, "sum")
        return OneNumberEach(Measure(field, keep=removals + 1), unit)

    def of_people(self) -> PeopleStatistic:
        """Return the sum of people's totals, which only people with an epsilon of their own use."""
        return PeopleStatistic("sum", "sum")


def _coarse(unit: Fraction) -> int:
    """Return how many units of a sum of shared rows are one: up to 0.001, a power of ten."""
    factor = 1
    while unit * factor * 10 <= _COARSE:
        factor *= 10
    return factor


class PeopleCount(Metric):
    """Count the people of each partition, where one person changes the number by 1 at most."""

    word: ClassVar[str] = "number of people"
    monotone: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    def build(self, context: Context, share: Budget) -> Release:
        """Return the number plus noise."""
        return people_release(context, share)

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the number without k people, for those who search it themselves."""
        return OneNumberEach(Measure(PEOPLE, keep=removals + 1), self.exact_unit)

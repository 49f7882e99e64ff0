"""Statistics of values that are only compared: `DistinctCount`, `MaxFrequency`, `SumOfSquares`."""

import dataclasses
from typing import ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.metrics.base import Command
from beam_dp.mechanisms.metrics.clipped import ClippedRequest, Sided, SidedRequest, row_clips
from beam_dp.mechanisms.metrics.profiled import ProfileRequest, Searched, Searching
from beam_dp.mechanisms.numerics.exact_statistics import Exact, occurrences
from beam_dp.mechanisms.profiles.from_summaries import (
    DistinctItems,
    MostFrequentItem,
    SquaresByItem,
)
from beam_dp.mechanisms.releases.clipped import ClippedDistinct, ClippedFrequency, ClippedSum
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.releases.request import Context, Request
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.releases.two_phase import TwoPhaseDistinct
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.worker_limits import LINES, VALUES


@dataclasses.dataclass(frozen=True)
class DistinctCount(Sided):
    """Count the different values of a column over all people.

    By default in two phases: a number C of values per person is chosen privately, each person pays
    for at most C of theirs, and noise of that size is added; a value that several people have
    needs only one who pays. Where C is for one partition, it is chosen by what it makes of the
    number (`TwoPhaseDistinct`), else by how many values people have. `one_sided=True` searches the
    relaxed removal loss instead: only values that more than T people are needed to remove count.

    *Rows with several owners.* By default in two phases, for any number of owners: the rows of each
    value are removed together, by parts of people, at a price per removal (`profiles.packed`).

    Attributes:
        column: the column; its values are only compared. Rows without one do not count.
        one_sided: never above the true number but for beta / 2, and below it by about the values
            of as many people as the plan shows.
        clip: as in `Count`, and refused with `one_sided=True`.
        clip_share: as in `Count`, and refused with `one_sided=True`. Without `one_sided=True`,
            `search` and `beta` are refused, as there is nothing that they could change.
        search: how a one-sided release searches.
    """

    monotone: ClassVar[bool] = True
    several_owners: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    command: ClassVar[Command] = Command(
        "COLUMN",
        "number of different values of a column",
        "number of different values of a column, one-sided",
    )

    column: str

    def columns(self) -> tuple[Column, ...]:
        """Return the column, whose values are only compared."""
        return (Column(self.column, Role.ITEM),)

    def requests(self) -> tuple[Request, ...]:
        """Return the number of values, by clip and noise or from below."""
        [column] = self.columns()
        request = DistinctRequest(column, self._clipping)
        return (self.profile_request() if self.one_sided else request,)

    def profile_request(self) -> ProfileRequest:
        """Return the number of values by its relaxed removal profile."""
        return DistinctFromBelow(self.columns()[0], Searching.of(self))

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(lambda people: len(occurrences(people)))

    @property
    def _prefix(self) -> str:
        return "distinct"


@dataclasses.dataclass(frozen=True)
class DistinctRequest(ClippedRequest):
    """The number of different values: each person pays for at most so many of theirs."""

    word: ClassVar[str] = "distinct"
    owner: ClassVar[str] = "DistinctCount"
    most_rows: ClassVar[int] = VALUES

    def source(self, context: Context) -> int:
        """Return the number of a person's different values."""
        return context.field(self.column, self.word)

    def build(self, context: Context, share: Budget) -> Release:
        """Return it in two phases where the clip is one partition's own, and nobody gave any."""
        clipping, alone = self.clipping, context.partitions == 1
        if clipping.candidates is None and (alone or not clipping.shared):
            relation = Relation(context.index(self.column))
            each = context.each(share)
            return TwoPhaseDistinct.of(relation, each, clipping.share, context.alpha)
        return self.clipped(context, share)

    def release(self, context: Context, made: ClippedSum) -> ClippedSum:
        """Return the release that also knows who owns which value."""
        relation = Relation(context.index(self.column))
        return ClippedDistinct(**vars(made), relation=relation)


@dataclasses.dataclass(frozen=True)
class DistinctFromBelow(SidedRequest):
    """The number of different values by its relaxed removal profile.

    Where rows have several owners, programs at low prices are hard: the profile, which looks at few
    and high ones, is released in two phases.
    """

    word: ClassVar[str] = "distinct"
    owner: ClassVar[str] = "DistinctCount"
    most_rows: ClassVar[int] = VALUES
    priced: ClassVar[bool] = False

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile of owners; with one owner, of as many as can matter."""
        most = 0 if context.several_owners else removals + 1
        relation = Relation(context.index(self.column), context.others, most=most)
        return DistinctItems(relation, removals)


@dataclasses.dataclass(frozen=True)
class MaxFrequency(Sided):
    """Release how many rows the most frequent value of a column has.

    By default a number C of rows per person and value is chosen privately, each person counts for
    at most C rows of a value, and noise of that size is added (`ClippedFrequency`). Of rows with
    several owners it is what the rows of one value pack when nobody counts for more than a price
    (`profiles.packed`). `one_sided=True` searches the removal loss, by the profile in which people
    are removed for each value apart (`profiles.frequency`).

    Attributes:
        column: the column; its values are only compared. Rows without one do not count.
        one_sided: never above the true number but for beta / 2, and below it by about the rows of
            as many people as the plan shows.
        clip: as in `Count`, and refused with `one_sided=True`.
        clip_share: as in `Count`, and refused with `one_sided=True`. Without `one_sided=True`,
            `search` and `beta` are refused, as there is nothing that they could change.
        search: how a one-sided release searches.
    """

    monotone: ClassVar[bool] = True
    several_owners: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    command: ClassVar[Command] = Command(
        "COLUMN",
        "rows of the most frequent value of a column",
        "rows of the most frequent value of a column, one-sided",
    )

    column: str

    def columns(self) -> tuple[Column, ...]:
        """Return the column, whose values are only compared."""
        return (Column(self.column, Role.ITEM),)

    def requests(self) -> tuple[Request, ...]:
        """Return the number of rows, by clip and noise or from below."""
        [column] = self.columns()
        request = MaxFrequencyRequest(column, self._clipping)
        return (self.profile_request() if self.one_sided else request,)

    def profile_request(self) -> ProfileRequest:
        """Return the number of rows by its removal profile."""
        return MaxFrequencyFromBelow(self.columns()[0], Searching.of(self))

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(lambda people: max(occurrences(people).values(), default=0))

    @property
    def _prefix(self) -> str:
        return "max_frequency"


@dataclasses.dataclass(frozen=True)
class MaxFrequencyRequest(ClippedRequest):
    """The rows of the most frequent value: each person counts for at most so many of each."""

    word: ClassVar[str] = "frequency"
    owner: ClassVar[str] = "MaxFrequency"
    most_rows: ClassVar[int] = LINES

    def source(self, context: Context) -> int:
        """Return the most rows that a person has of one value."""
        return context.field(self.column, "mode")

    def default_clips(self, context: Context) -> tuple[int, ...]:
        """Return powers of two, up to the bound on rows."""
        return row_clips(context.depth)

    def release(self, context: Context, made: ClippedSum) -> ClippedSum:
        """Return the release that also knows who has which value."""
        return ClippedFrequency(**vars(made), relation=Relation(context.index(self.column)))


class MaxFrequencyFromBelow(SidedRequest):
    """The number of rows of the most frequent value by its removal profile."""

    word: ClassVar[str] = "frequency"
    owner: ClassVar[str] = "MaxFrequency"
    most_rows: ClassVar[int] = LINES

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed for each value apart, or by packings."""
        return MostFrequentItem(Relation(context.index(self.column), context.others), removals)


@dataclasses.dataclass(frozen=True)
class SumOfSquares(Searched):
    """Release the sum over all values of their squared numbers of rows (the self-join size, F2).

    What its numbers mean is as of `Max` with `search="two_phase"`, for the profile in which people
    are removed for each value apart: good where few popular values make up most of the sum.

    Attributes:
        column: the column; its values are only compared.
        search: "two_phase" for a clip and noise (see `TwoPhase`), or a search over the removal
            loss, which errs to one side, and by more.
    """

    monotone: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    command: ClassVar[Command] = Command("COLUMN", "sum of squared rows over all values")

    column: str
    _: dataclasses.KW_ONLY
    search: SearchKind = TWO_PHASE

    def columns(self) -> tuple[Column, ...]:
        """Return the column, whose values are only compared."""
        return (Column(self.column, Role.ITEM),)

    def requests(self) -> tuple[Request, ...]:
        """Return the sum by its removal profile."""
        return (self.profile_request(),)

    def profile_request(self) -> ProfileRequest:
        """Return the sum by its relaxed removal profile."""
        return SquaresRequest(self.columns()[0], Searching.of(self))

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(lambda people: sum(n * n for n in occurrences(people).values()))

    @property
    def _prefix(self) -> str:
        return "sum_of_squares"


class SquaresRequest(ProfileRequest):
    """The sum over all values of their squared numbers of rows, relaxed by values."""

    word: ClassVar[str] = "squares"
    most_rows: ClassVar[int] = LINES

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed for each value apart."""
        return SquaresByItem(Relation(context.index(self.column)), removals)

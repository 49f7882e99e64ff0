"""Statistics of values that are only compared: `DistinctCount`, `MaxFrequency`, `SumOfSquares`."""

import dataclasses
from typing import Any, ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.metrics.base import Command, Metric
from beam_dp.mechanisms.metrics.clipped import ClippedRequest, Sided, SidedRequest
from beam_dp.mechanisms.metrics.profiled import ProfileRequest, Searched, Searching
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.numerics.exact_statistics import Exact, occurrences
from beam_dp.mechanisms.profiles.frequency import PAIRS
from beam_dp.mechanisms.profiles.from_summaries import (
    DistinctItems,
    MostFrequentItem,
    SquaresByItem,
    SquaresByPairs,
)
from beam_dp.mechanisms.releases.clipped import ClippedDistinct, ClippedSum
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.releases.request import Context, Request
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.releases.two_phase import TwoPhaseDistinct
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.worker_limits import LINES, PROGRAM, VALUES

_RELAXATIONS = ("items", "pairs")
_OF_SEVERAL_OWNERS = ("owners", "rows")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _OfItems(Searched):
    """A statistic of values that are only compared: numbers, text, dates or booleans.

    Attributes:
        search: "two_phase" for a clip and noise (see `TwoPhase`), or a search over the removal
            loss, which errs to one side, and by more.
    """

    monotone: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    search: SearchKind = TWO_PHASE

    def columns(self) -> tuple[Column, ...]:
        """Return the column, whose values are only compared."""
        return (Column(vars(self)["column"], Role.ITEM),)

    def requests(self) -> tuple[Request, ...]:
        """Return the statistic by its removal profile."""
        return (self.profile_request(),)


@dataclasses.dataclass(frozen=True)
class DistinctCount(Sided):
    """Count the different values of a column over all people.

    By default in two phases: a number C of values per person is chosen privately, each person pays
    for at most C of theirs, and noise of that size is added; a value that several people have
    needs only one who pays. Where C is for one partition, it is chosen by what it makes of the
    number (`TwoPhaseDistinct`), else by how many values people have. `one_sided=True` searches the
    relaxed removal loss instead: only values that more than T people are needed to remove count.

    *Rows with several owners.* By default in two phases, for any number of owners: the rows of each
    value are removed together, by parts of people, at a price per removal
    (`profiles.shared_values`). `relaxation="rows"` does the same for each number of removals
    (`profiles.shared_rows`): a little closer, and slow where values have many rows each.
    `relaxation="owners"`, for two owners only, counts a value that more people are needed to remove
    than a search passes over, one-sided: right for values that very many people have.

    Attributes:
        column: the column; its values are only compared. Rows without one do not count.
        one_sided: never above the true number but for beta / 2, and below it by about the values
            of as many people as the plan shows.
        clip: as in `Count`, and refused with `one_sided=True`.
        clip_share: as in `Count`, and refused with `one_sided=True`. Without `one_sided=True`,
            `search` and `beta` are refused, as there is nothing that they could change.
        search: how a one-sided release searches.
        relaxation: "rows" or "owners", of rows with several owners; None: the default.
    """

    monotone: ClassVar[bool] = True
    several_owners: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    command: ClassVar[Command] = Command(
        "COLUMN[:RELAXATION]",
        "number of different values of a column; :rows, :owners of rows with several owners",
        "number of different values of a column, one-sided",
    )

    column: str
    _: dataclasses.KW_ONLY
    relaxation: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relaxation is not None:
            checks.one_of("DistinctCount", "relaxation", self.relaxation, _OF_SEVERAL_OWNERS)

    def columns(self) -> tuple[Column, ...]:
        """Return the column, whose values are only compared."""
        return (Column(self.column, Role.ITEM),)

    def requests(self) -> tuple[Request, ...]:
        """Return the number of values, by clip and noise or from below."""
        [column] = self.columns()
        request = DistinctRequest(column, self._clipping, self.relaxation)
        return (self.profile_request() if self.one_sided else request,)

    def profile_request(self) -> ProfileRequest:
        """Return the number of values by its relaxed removal profile."""
        return DistinctFromBelow(self.columns()[0], Searching.of(self), self.relaxation)

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(lambda people: len(occurrences(people)))

    def _search_of_several_owners(self) -> SearchKind:
        """Return the search from below: by owners, two phases seldom err by less."""
        return self.search if self.relaxation == "owners" else TWO_PHASE

    @property
    def _prefix(self) -> str:
        return "distinct"


def _check_relaxation(relaxation: str | None, owners: int) -> None:
    """Refuse a relaxation that does not suit the number of owners of a row."""
    checks.require(
        relaxation is None or owners > 1,
        "DistinctCount",
        "relaxation",
        "be left out where rows have one owner",
    )
    checks.require(
        relaxation != "owners" or owners < 3,
        "DistinctCount",
        "relaxation",
        f'not be "owners" where rows have {owners} owners: it is proved for two',
        "Leave it out.",
    )


@dataclasses.dataclass(frozen=True)
class DistinctRequest(ClippedRequest):
    """The number of different values: each person pays for at most so many of theirs.

    Attributes:
        relaxation: as of `DistinctCount`.
    """

    relaxation: str | None = None

    word: ClassVar[str] = "distinct"
    owner: ClassVar[str] = "DistinctCount"
    most_rows: ClassVar[int] = VALUES

    def source(self, context: Context) -> int:
        """Return the number of a person's different values."""
        return context.field(self.column, self.word)

    def build(self, context: Context, share: Budget) -> Release:
        """Return it in two phases where the clip is one partition's own, and nobody gave any."""
        _check_relaxation(self.relaxation, 1)
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

    Attributes:
        relaxation: as of `DistinctCount`.
    """

    relaxation: str | None = None

    word: ClassVar[str] = "distinct"
    owner: ClassVar[str] = "DistinctCount"
    most_rows: ClassVar[int] = VALUES

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile of owners; with one owner, of as many as can matter."""
        _check_relaxation(self.relaxation, 1 + len(context.others))
        most = 0 if context.several_owners else removals + 1
        relation = Relation(context.index(self.column), context.others, most=most)
        return DistinctItems(relation, removals, relaxation=self.relaxation)


@dataclasses.dataclass(frozen=True)
class MaxFrequency(_OfItems):
    """Release how often the most frequent value of a column occurs, by its removal profile.

    What its numbers mean is as of `Max` with `search="two_phase"`, for the profile in which people
    may be removed in parts (a linear program, rounded down by less than half a row): see
    `profiles.frequency`, and for rows with several owners `profiles.shared_rows`.

    Attributes:
        column: the column; its values are only compared.
    """

    several_owners: ClassVar[bool] = True
    command: ClassVar[Command] = Command("COLUMN", "rows of the most frequent value")

    column: str

    def profile_request(self) -> ProfileRequest:
        """Return the number of rows by its relaxed removal profile."""
        return MaxFrequencyRequest(self.columns()[0], Searching.of(self))

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(lambda people: max(occurrences(people).values(), default=0))

    @property
    def _prefix(self) -> str:
        return "max_frequency"


class MaxFrequencyRequest(ProfileRequest):
    """The number of rows of the most frequent value."""

    word: ClassVar[str] = "frequency"
    most_rows: ClassVar[int] = PROGRAM

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile of the linear program over all values."""
        return MostFrequentItem(Relation(context.index(self.column), context.others), removals)


@dataclasses.dataclass(frozen=True)
class SumOfSquares(_OfItems):
    """Release the sum over all values of their squared numbers of rows (the self-join size, F2).

    What its numbers mean is as of `Max` with `search="two_phase"`, for a relaxed profile
    (`relaxation`).

    Attributes:
        column: the column; its values are only compared.
        relaxation: "items" removes people for each value apart: any size, good where few popular
            values make up most of the sum. "pairs" removes them for all values at once: tighter
            where values are evenly frequent, but it needs memory for every pair of people who
            share a value (about 80 bytes).
        people: the most people of one partition, for "pairs" only, which is refused above 6,324
            people (20 million pairs). It must be true, as memory depends on it; privacy does not.
    """

    command: ClassVar[Command] = Command(
        "COLUMN[:PEOPLE]", "sum of squared rows over all values; by pairs of the PEOPLE at most"
    )

    column: str
    _: dataclasses.KW_ONLY
    relaxation: str = "items"
    people: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("SumOfSquares", "relaxation", self.relaxation, _RELAXATIONS)
        if self.relaxation == "items":
            because = 'with relaxation="items", which takes any number of people'
            options.refuse(self, ("people",), because, 'Write relaxation="pairs" beside it.')
        if self.relaxation == "pairs":
            mend = 'Write people=1000, or leave relaxation="pairs" out.'
            people = checks.positive_integer("SumOfSquares", "people", self.people, mend)
            checks.require(
                people * (people + 1) // 2 <= PAIRS,
                "SumOfSquares",
                "people",
                f'be at most 6324 for relaxation="pairs", not {people}',
                "Leave it out: by items there is no limit.",
            )

    def profile_request(self) -> ProfileRequest:
        """Return the sum by its relaxed removal profile."""
        kind = SquaresRequest if self.relaxation == "items" else PairSquaresRequest
        return kind(self.columns()[0], Searching.of(self))

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return Exact(lambda people: sum(n * n for n in occurrences(people).values()))

    @classmethod
    def from_command(cls, column: str | None, **words: Any) -> Metric:
        """Return the sum by items, or by pairs of the given number of people."""
        if not words:
            return super().from_command(column)
        pairs = cls(str(column), relaxation="pairs", people=int(words["people"]))
        return dataclasses.replace(pairs, name=f"{pairs.output}_by_pairs")

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


class PairSquaresRequest(SquaresRequest):
    """The same sum, relaxed by pairs of people."""

    word: ClassVar[str] = "pairs"

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the profile in which people are removed for all values at once."""
        return SquaresByPairs(Relation(context.index(self.column)), removals)

"""The largest and the smallest number of a column: `Max` and `Min`."""

import dataclasses
from typing import ClassVar

from beam_dp.mechanisms.metrics.base import (
    UNIT,
    Command,
    Metric,
    OfPeople,
    check_not_preprocessed,
    check_unit,
)
from beam_dp.mechanisms.metrics.profiled import ProfileRequest, Searched, Searching
from beam_dp.mechanisms.metrics.spread import preprocessed
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.numerics.exact_statistics import Exact, extreme
from beam_dp.mechanisms.profiles.from_summaries import LargestOfTwoOwners, OneNumberEach
from beam_dp.mechanisms.releases.request import Context, Request
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Extreme(Searched):
    """The largest or smallest number of a column, by its removal profile.

    Attributes:
        candidates: the public outputs; None: anything, and 0 and numbers 0.025% apart, of both
            signs, to 10^19 for a search.
        search: "two-phase" for a clip and noise (see `TwoPhase`), or the search over the removal
            loss, which errs to one side, and by more where people are many.
        beta: how often the guarantee of a search may fail.
        unit: the grid of values.
        method: "search", or "preprocessing": the extreme of one number per person, cut so that
            nobody moves it far, and noise (see `Preprocessing`; the error is a distance then).
    """

    monotone: ClassVar[bool] = True
    two_owners: ClassVar[bool] = True
    statistic: ClassVar[str]
    sign: ClassVar[int]

    search: SearchKind = TWO_PHASE
    unit: checks.Real = UNIT
    method: str = "search"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unit(type(self).__name__, self.unit)
        options.check_method(self, "search", "candidates", "search", "beta")

    def requests(self) -> tuple[Request, ...]:
        """Return the extreme by its removal profile, or preprocessed."""
        if self.is_preprocessed:
            return preprocessed(self).requests()
        return (self.profile_request(),)

    def exactly(self) -> Exact:
        """Return it as a function of records; the smallest is mirrored."""
        return extreme(self.sign)

    def for_two_owners(self, owner: str) -> Metric:
        """Return it as it is: its profile is proved for two owners too."""
        check_not_preprocessed(owner, self)
        return self

    def of_people(self) -> OfPeople:
        """Return the extreme of people's extremes, which is that of all rows."""
        return OfPeople(self.statistic, type(self).__name__.lower())


@dataclasses.dataclass(frozen=True)
class Max(_Extreme):
    """Release the largest value, or one that few people exceed.

    With probability 95% it is within `max_<column>_error` of a number between the maximum and that
    without some people, whose number the plan shows. With `search=dp.AboveThreshold` it is, with
    probability 1 - beta, at most the maximum (rounded up to the candidates), and at most
    `max_<column>_error` people have more. NaN where people are too few for the budget and no
    candidates were given.

    Attributes:
        column: the value column.
    """

    statistic: ClassVar[str] = "maximum"
    sign: ClassVar[int] = 1
    command: ClassVar[Command] = Command("COLUMN", "largest value of a column")

    column: str

    def profile_request(self) -> ProfileRequest:
        """Return the largest value by its removal profile."""
        return LargestRequest(self.columns()[0], Searching.of(self))

    def takes_own_epsilons(self) -> bool:
        """Return that each person may have an epsilon of their own."""
        return True


@dataclasses.dataclass(frozen=True)
class Min(_Extreme):
    """Release a value that nearly nobody is below: the mirror of `Max`.

    Attributes:
        column: the value column.
    """

    statistic: ClassVar[str] = "minimum"
    sign: ClassVar[int] = -1
    command: ClassVar[Command] = Command("COLUMN", "smallest value of a column")

    column: str

    def profile_request(self) -> ProfileRequest:
        """Return the smallest value by its removal profile, which is mirrored."""
        return SmallestRequest(self.columns()[0], Searching.of(self))


@dataclasses.dataclass(frozen=True)
class LargestRequest(ProfileRequest):
    """The largest value of a column."""

    word: ClassVar[str] = "max"
    values: ClassVar[bool] = True
    in_its_unit: ClassVar[bool] = True

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the largest value without the people who have most."""
        if context.two_owners:
            relation = Relation(context.index(self.column), context.owner)
            return LargestOfTwoOwners(relation, removals, self.unit, self.sign)
        field = context.field(self.column, self.word)
        return OneNumberEach(Measure(field, self.sign, (), removals + 1, False), self.unit)


@dataclasses.dataclass(frozen=True)
class SmallestRequest(LargestRequest):
    """The smallest value of a column: the mirror of the largest."""

    word: ClassVar[str] = "min"
    sign: ClassVar[int] = -1

"""The statistics of rows, values and their owners that a user can ask for, beside `metrics`."""

import dataclasses
import math
from fractions import Fraction

from beam_dp.mechanisms import checks, unused
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.metrics import (
    UNIT,
    Metric,
    check_candidates,
    check_clip,
    check_places,
    check_unit,
)
from beam_dp.mechanisms.people import ProfileFunction, check_callable
from beam_dp.mechanisms.removal.frequency import PAIRS
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.parameters import check_share
from beam_dp.mechanisms.searching import TWO_PHASE, SearchKind, check_search

_RELAXATIONS = ("items", "pairs")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Searched(Metric):
    """A metric that searches a loss or ranks.

    Attributes:
        candidates: the public outputs; None: wide enough for anything.
        beta: how often the guarantee may fail.
    """

    candidates: Candidates | None = None
    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        check_candidates(owner, self.candidates)
        if "unit" in vars(self):
            check_unit(owner, vars(self)["unit"])
        if "search" in vars(self):
            check_search(owner, vars(self)["search"])


@dataclasses.dataclass(frozen=True)
class KthLargest(_Searched):
    """Release the k-th largest of all rows, one person owning any number of them.

    With probability 95% it is within `<name>_error` of a number between the true one and that
    without some people, whose number the plan shows. With `search=dp.AboveThreshold` it is, with
    probability 1 - beta, at most the true one (rounded up to the candidates), and at least what is
    the k-th largest when `<name>_error` people are removed. NaN where people are too few for the
    budget and no candidates were given. k must not come from the data.

    Attributes:
        column: the value column.
        k: which, from 1 on.
        search: as of `Max`.
        unit: the grid of values.
    """

    column: str
    k: int
    _: dataclasses.KW_ONLY
    search: SearchKind = TWO_PHASE
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive_integer("KthLargest", "k", self.k, "Write k=1 for the largest.")

    @property
    def _prefix(self) -> str:
        return f"largest_{self.k}"


@dataclasses.dataclass(frozen=True)
class Quantile(_Searched):
    """Release a p-quantile in which every person counts once, however many rows they own.

    Each person spreads one vote evenly over their rows. With probability 1 - beta the share of
    votes at or below the released value is within `<name>_error` people of p: see `RankSearch`.
    This is the default because it errs least: it needs no noisy number of rows, and nobody's many
    rows move it. With `per="row"` every row counts once: a part of the budget buys a noisy number
    n of rows, the rest the k-th largest with k = (1 - p) n, whose error is that of both. Where
    hardly anybody is, any candidate may come out: by default that is far from any data.

    Attributes:
        column: the value column.
        p: the share below, above 0 and below 1.
        per: "person" or "row".
        unit: the grid of values.
    """

    column: str
    p: checks.Real
    _: dataclasses.KW_ONLY
    per: str = "person"
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.fraction_between("Quantile", "p", self.p, 0, 1, "Write p=0.5 for the median.")
        check_share("Quantile", self.p)
        checks.one_of("Quantile", "per", self.per, ("person", "row"))
        if self.per == "person":
            check_places(type(self).__name__, self.candidates)

    @property
    def _prefix(self) -> str:
        return f"quantile_{float(checks.decimal('Quantile', 'p', self.p)):g}"


@dataclasses.dataclass(frozen=True)
class Median(_Searched):
    """Release the median: `Quantile` with p = 1/2.

    Attributes:
        column: the value column.
        per: "person" or "row".
        unit: the grid of values.
        method: "search", or "preprocessing": the median of people's means as in `Preprocessing`,
            whose error is a distance; it errs less where values are even and people many.
    """

    column: str
    _: dataclasses.KW_ONLY
    per: str = "person"
    unit: checks.Real = UNIT
    method: str = "search"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("Median", "per", self.per, ("person", "row"))
        unused.check_method(self, "search", "per", "candidates", "beta")
        if self.per == "person":
            check_places(type(self).__name__, self.candidates)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _OfItems(_Searched):
    """A statistic of values that are only compared: numbers, text, dates or booleans.

    Attributes:
        search: as of `Max`.
    """

    search: SearchKind = TWO_PHASE

    @property
    def items(self) -> tuple[str, ...]:
        """The columns whose values are only compared."""
        return self.columns


@dataclasses.dataclass(frozen=True)
class DistinctCount(_OfItems):
    """Count the different values of a column over all people.

    By default in two phases: a number C of values per person is chosen privately, each person pays
    for at most C of theirs, and noise of that size is added; a value that several people have
    needs only one who pays. Where C is for one partition, it is chosen by what it makes of the
    number (`TwoPhaseDistinct`), else by how many values people have. `one_sided=True` searches the
    relaxed removal loss instead, as rows with two owners do: there a value counts that more than T
    people are needed to remove, and `search="two-phase"`, which takes clip and noise of that loss,
    seldom errs by less.

    Attributes:
        column: the column; its values are only compared. Rows without one do not count.
        one_sided: never above the true number but for beta / 2, and below it by about the values
            of `<name>_error` people.
        clip: as in `Count`, and refused with `one_sided=True`.
        clip_share: as in `Count`, and refused with `one_sided=True`. Without, `search` and `beta`
            are refused, as there is nothing that they could change.
        search: how a one-sided release searches.
    """

    column: str
    _: dataclasses.KW_ONLY
    one_sided: bool = False
    clip: str = "shared"
    clip_share: checks.Real | None = None
    search: SearchKind = AboveThreshold

    def __post_init__(self) -> None:
        super().__post_init__()
        check_clip("DistinctCount", self.clip, self.clip_share)
        unused.check_side(self)

    @property
    def _prefix(self) -> str:
        return "distinct"


@dataclasses.dataclass(frozen=True)
class MaxFrequency(_OfItems):
    """Release how often the most frequent value of a column occurs, by its removal profile.

    What its numbers mean is as of `KthLargest`, for the profile in which people may be removed in
    parts (a linear program, rounded down by less than half a row): see `removal.frequency`.

    Attributes:
        column: the column; its values are only compared.
    """

    column: str

    @property
    def _prefix(self) -> str:
        return "max_frequency"


@dataclasses.dataclass(frozen=True)
class SumOfSquares(_OfItems):
    """Release the sum over all values of their squared numbers of rows (the self-join size, F2).

    What its numbers mean is as of `KthLargest`, for a relaxed profile (`relaxation`).

    Attributes:
        column: the column; its values are only compared.
        relaxation: "items" removes people for each value apart: any size, good where few popular
            values make up most of the sum. "pairs" removes them for all values at once: tighter
            where values are evenly frequent, but it needs memory for every pair of people who
            share a value (about 80 bytes).
        people: the most people of one partition, for "pairs" only, which is refused above 6,324
            people (20 million pairs). It must be true, as memory depends on it; privacy does not.
    """

    column: str
    _: dataclasses.KW_ONLY
    relaxation: str = "items"
    people: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("SumOfSquares", "relaxation", self.relaxation, _RELAXATIONS)
        if self.relaxation == "items":
            because = 'with relaxation="items", which takes any number of people'
            unused.refuse(self, ("people",), because, 'Write relaxation="pairs" beside it.')
        if self.relaxation == "pairs":
            mend = 'Write people=1000, or leave relaxation="pairs" out.'
            people = checks.positive_integer("SumOfSquares", "people", self.people, mend)
            checks.require(
                people * (people + 1) // 2 <= PAIRS,
                f'SumOfSquares: people must be at most 6324 for relaxation="pairs", not {people}. '
                "Leave it out: by items there is no limit.",
            )

    @property
    def _prefix(self) -> str:
        return "sum_of_squares"


@dataclasses.dataclass(frozen=True)
class CustomProfile(_Searched):
    """Release a monotone statistic of your own, by its removal profile.

    The profile is yours to prove: B[k] must be the least value of the statistic when at most k
    people are removed, or a relaxation that interlaces. For people and the same with one more,
    whose profile is B', that is `B'[k + 1] <= B[k] <= B'[k]`, and B' has as many numbers as B or
    one more: below all of them the loss is how many there are. `testing.check_profile` tries to
    refute that. On the way only what shows is checked: a function that raises or returns no
    profile, or one that its profile of nobody rules out for so many people, counts as `lowest`
    (`GuardedProfile`).
    There is no shorter way for many people: exact search over removals is for small sets
    (`mechanisms.monotone.Monotone`).

    Attributes:
        column: the value column.
        profile: takes a tuple of people, each the tuple of their values in increasing order, and
            returns B[0], B[1], ...; it must be picklable.
        candidates: the public outputs; required.
        lowest: the value of the statistic for nobody.
        search: as of `Max`.
        unit: the grid of values.
    """

    column: str
    profile: ProfileFunction
    _: dataclasses.KW_ONLY
    lowest: checks.Real = -math.inf
    search: SearchKind = TWO_PHASE
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        check_callable("CustomProfile", "profile", self.profile)
        if type(self.profile).__hash__ is None:
            raise TypeError(
                "CustomProfile: profile must be hashable, as functions are, not "
                f"{type(self.profile).__name__}. Write profile=lambda people: ...."
            )
        checks.require(
            self.candidates is not None,
            "CustomProfile: candidates must be given: nothing is known of the statistic. "
            "Write candidates=dp.Candidates.linear(0, 1000, 1).",
        )

    @property
    def _prefix(self) -> str:
        return "custom"


def share_of(metric: Quantile | Median) -> Fraction:
    """Return p as an exact fraction."""
    p = metric.p if isinstance(metric, Quantile) else Fraction(1, 2)
    return checks.decimal(type(metric).__name__, "p", p)

"""Statistics of all rows, of whoever owns them: `KthLargest`, `Quantile` and `Median`."""

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.defaults import default_values
from beam_dp.mechanisms.metrics.base import (
    UNIT,
    Command,
    OfPeople,
    check_indexes,
    check_unit,
)
from beam_dp.mechanisms.metrics.clipped import Clipping
from beam_dp.mechanisms.metrics.profiled import ProfileRequest, Searched, Searching
from beam_dp.mechanisms.metrics.spread import preprocessed
from beam_dp.mechanisms.metrics.totals import RowsWithValueRequest
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.numerics.exact_statistics import Exact, present
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import People
from beam_dp.mechanisms.profiles import kth_largest
from beam_dp.mechanisms.profiles.from_summaries import KthRow
from beam_dp.mechanisms.releases.quantiles import RankRelease, RowQuantile
from beam_dp.mechanisms.releases.released import OVERSHOOT, Release
from beam_dp.mechanisms.releases.request import ColumnRequest, Context, Request
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.search import AboveThreshold, RankSearch
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind
from beam_dp.mechanisms.search.common import check_share
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.worker_limits import LINES

_COUNT_CLIP = Fraction(1, 2)  # of the number of rows: cutting everybody costs more than noise
_COUNT_SHARE = Fraction(1, 5)  # of a row quantile's budget, for the number of rows
_THINNED = 1 << 22  # rows that a k-th largest may be thinned to; sorting for more saves nothing


@dataclasses.dataclass(frozen=True)
class KthLargest(Searched):
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

    monotone: ClassVar[bool] = True
    command: ClassVar[Command] = Command("COLUMN:K", "K-th largest value of all rows")

    column: str
    k: int
    _: dataclasses.KW_ONLY
    search: SearchKind = TWO_PHASE
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unit("KthLargest", self.unit)
        checks.positive_integer("KthLargest", "k", self.k, "Write k=1 for the largest.")

    @property
    def _prefix(self) -> str:
        return f"largest_{self.k}"

    def requests(self) -> tuple[Request, ...]:
        """Return the k-th largest by its removal profile."""
        return (self.profile_request(),)

    def profile_request(self) -> ProfileRequest:
        """Return the k-th largest by its removal profile."""
        return KthLargestRequest(self.columns()[0], Searching.of(self), self.k)

    def exactly(self) -> Exact:
        """Return it as a function of records."""
        return kth_of_records(self.k)


@dataclasses.dataclass(frozen=True)
class KthLargestRequest(ProfileRequest):
    """The k-th largest of all rows.

    Attributes:
        k: which.
    """

    word: ClassVar[str] = "kth"
    values: ClassVar[bool] = True
    in_its_unit: ClassVar[bool] = True
    most_rows: ClassVar[int] = LINES

    k: int

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the exact profile, of as many rows as can matter."""
        most = removals + 1 if self.k * (removals + 1) <= _THINNED else 0
        relation = Relation(context.index(self.column), most=most, rank=self.k)
        return KthRow(relation, removals, self.unit, k=self.k)


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
        return (values[level] if level >= 0 else -math.inf for level in levels)

    return Exact(statistic, profile)


@dataclasses.dataclass(frozen=True)
class Quantile(Searched):
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

    command: ClassVar[Command] = Command(
        "COLUMN:P[:row]",
        "value with a share P of the rows at or below, each person once; or each row",
    )

    column: str
    p: checks.Real
    _: dataclasses.KW_ONLY
    per: str = "person"
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.fraction_between("Quantile", "p", self.p, 0, 1, "Write p=0.5 for the median.")
        check_share("Quantile", self.p)
        check_unit("Quantile", self.unit)
        checks.one_of("Quantile", "per", self.per, ("person", "row"))
        if self.per == "person":
            check_indexes(type(self).__name__, self.candidates)

    @property
    def _prefix(self) -> str:
        return f"quantile_{float(checks.decimal('Quantile', 'p', self.p)):g}"

    def requests(self) -> tuple[Request, ...]:
        """Return the quantile of people, or of rows."""
        return (quantile_request(self, checks.decimal("Quantile", "p", self.p)),)


@dataclasses.dataclass(frozen=True)
class Median(Searched):
    """Release the median: `Quantile` with p = 1/2.

    Attributes:
        column: the value column.
        per: "person" or "row".
        unit: the grid of values.
        method: "search", or "preprocessing": the median of people's means as in `Preprocessing`,
            whose error is a distance; it errs less where values are even and people many.
    """

    command: ClassVar[Command] = Command("COLUMN[:row]", "the quantile with P = 0.5")

    column: str
    _: dataclasses.KW_ONLY
    per: str = "person"
    unit: checks.Real = UNIT
    method: str = "search"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unit("Median", self.unit)
        checks.one_of("Median", "per", self.per, ("person", "row"))
        options.check_method(self, "search", "per", "candidates", "beta")
        if self.per == "person":
            check_indexes(type(self).__name__, self.candidates)

    def requests(self) -> tuple[Request, ...]:
        """Return the median of people, or of rows, or the preprocessed one."""
        if self.is_preprocessed:
            return preprocessed(self).requests()
        return (quantile_request(self, Fraction(1, 2)),)

    def of_people(self) -> OfPeople:
        """Return the median of people's means."""
        return OfPeople("median", "mean")

    def takes_own_epsilons(self) -> bool:
        """Return that each person may have an epsilon of their own."""
        return True


def quantile_request(metric: Quantile | Median, p: Fraction) -> Request:
    """Return the request of a quantile.

    Args:
        metric: which says of what, of whom, and which candidates.
        p: the share below.
    """
    kind = PeopleQuantileRequest if metric.per == "person" else RowQuantileRequest
    [column] = metric.columns()
    return kind(column, p, metric.candidates, metric.beta)


@dataclasses.dataclass(frozen=True)
class PeopleQuantileRequest(ColumnRequest):
    """A quantile in which every person counts once.

    Attributes:
        p: the share below.
        given: the public outputs; None: the default ones.
        beta: how often the search may fail.
    """

    word: ClassVar[str] = "rank"
    in_its_unit: ClassVar[bool] = True
    most_rows: ClassVar[int] = LINES

    p: Fraction
    given: Candidates | None
    beta: float

    @property
    def candidates(self) -> Candidates:
        """The public outputs."""
        return default_values(self.unit) if self.given is None else self.given

    def build(self, context: Context, share: Budget) -> Release:
        """Return the search of ranks."""
        search = RankSearch(context.each(share), self.p, float(self.beta))
        relation = Relation(context.index(self.column))
        return RankRelease(relation, self.unit, search, self.candidates)


@dataclasses.dataclass(frozen=True)
class RowQuantileRequest(PeopleQuantileRequest):
    """A quantile in which every row counts once."""

    word: ClassVar[str] = "quantile"

    def build(self, context: Context, share: Budget) -> Release:
        """Return a noisy number of rows, then the k-th largest."""
        counting, searching = share.split((_COUNT_SHARE, 1 - _COUNT_SHARE))
        rows = RowsWithValueRequest(self.column, Clipping("partition", _COUNT_CLIP))
        beta, blank = float(self.beta), self.given is None
        search = AboveThreshold(context.each(searching), beta, min(OVERSHOOT, beta / 2))
        search = dataclasses.replace(search, gate=blank)
        removals = context.check_removals(search.cap(self.candidates.size))
        return RowQuantile(
            count=rows.clipped(context, counting),
            rows=KthRow(Relation(context.index(self.column)), removals, self.unit),
            p=self.p,
            search=search,
            candidates=self.candidates,
            cost=context.each(share),
            blank=blank,
        )

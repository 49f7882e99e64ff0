"""Quantiles of people or of rows: `Quantile`, `Quantiles` and `Median`."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.defaults import default_values
from beam_dp.mechanisms.metrics.base import (
    UNIT,
    Command,
    Metric,
    OfPeople,
    Output,
    check_indexes,
)
from beam_dp.mechanisms.metrics.clipped import Clipping
from beam_dp.mechanisms.metrics.profiled import OfValues, ProfileRequest, Searching
from beam_dp.mechanisms.metrics.quotients.mean import RowsWithValueRequest
from beam_dp.mechanisms.metrics.spread import preprocessed
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.profiles.from_summaries import KthRow, RowsOfSeveralOwners
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.releases.quantiles import RankRelease, RowQuantile
from beam_dp.mechanisms.releases.released import OVERSHOOT, Release, Released
from beam_dp.mechanisms.releases.request import ColumnRequest, Context, Request
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.releases.two_phase import TwoPhase
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.common import check_share
from beam_dp.mechanisms.search.ranks.splitting import SplitSearch
from beam_dp.mechanisms.search.ranks.tail import STRAY
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.worker_limits import LINES

_OF_SEARCH = ("per", "candidates", "beta", "low", "high")
_COUNT_CLIP = Fraction(1, 2)  # of the number of rows: cutting everybody costs more than noise
_COUNT_SHARE = Fraction(1, 5)  # of a row quantile's budget, for the number of rows


@dataclasses.dataclass(frozen=True, kw_only=True)
class _OfRanks(OfValues):
    """A metric whose error is a number of people, by which the rank of its value may be off."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if vars(self).get("per") == "row":
            return
        check_indexes(type(self).__name__, self.candidates)

    @property
    def is_ranked(self) -> bool:
        """Whether its error is one of ranks: yes."""
        return True

    def for_several_owners(self, owner: str) -> Metric:
        """Return it as it is; it must be one of rows, which have no owner whose vote they are."""
        checks.require(
            vars(self)["per"] == "row",
            type(self).__name__,
            "per",
            'be "row" where rows have several owners: a vote per person would move with the rows '
            "of others",
            'Write per="row".',
        )
        return self


@dataclasses.dataclass(frozen=True)
class Quantile(_OfRanks):
    """Release a p-quantile in which every person counts once, however many rows they own.

    Each person spreads one vote evenly over their rows. In 95% of releases the share of votes at or
    below the released value is within `<name>_rank_error` people of p, but for people who share the
    value; NaN: too few people. From 0.2 to 0.8 see `CentralSearch`, else `TailSearch`, which reads
    a lower rank where p is too far out for so few people, and says so by a larger error.

    Several quantiles of one column cost less together: `Quantiles`. This one needs no noisy number
    of rows, and nobody's many rows move it. With `per="row"` every row counts once: a part of the
    budget buys a noisy number n of rows, the rest the k-th largest with k = (1 - p) n, less a part
    of the shift of that search. Its error is how many people the search may end from there; that of
    n comes on top, and the error is infinite where n may be 0.

    Attributes:
        column: the value column.
        p: the share below, above 0 and below 1.
        per: "person" or "row".
        unit: the grid of values.
    """

    several_owners: ClassVar[bool] = True
    command: ClassVar[Command] = Command(
        "COLUMN:P[:row]",
        "value with a share P of the people at or below; or :row, of the rows",
    )

    column: str
    p: checks.Real
    _: dataclasses.KW_ONLY
    per: str = "person"
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_p("Quantile", "p", self.p)
        checks.one_of("Quantile", "per", self.per, ("person", "row"))

    @property
    def _prefix(self) -> str:
        return _named(checks.decimal("Quantile", "p", self.p))

    def requests(self) -> tuple[Request, ...]:
        """Return the quantile of people, or of rows."""
        return (quantile_request(self, checks.decimal("Quantile", "p", self.p)),)


@dataclasses.dataclass(frozen=True)
class Quantiles(_OfRanks):
    """Release several quantiles of one column for one share of the budget; people count once each.

    They cost far less together than apart, and rise. Each p has the columns
    `quantiles_<column>_<p>` and `quantiles_<column>_<p>_rank_error`; with a name, `<name>_<p>`.
    See `SplitSearch`.

    Attributes:
        column: the value column.
        shares: every p, above 0 and below 1.
        unit: the grid of values.
    """

    command: ClassVar[Command] = Command(
        "COLUMN:P:P...", "values with shares P of the people at or below, for the price of few"
    )

    column: str
    shares: Sequence[checks.Real]
    _: dataclasses.KW_ONLY
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        owner = "Quantiles"
        if isinstance(self.shares, str) or not isinstance(self.shares, Sequence):
            mend = 'Write dp.Quantiles("spent", [0.25, 0.5, 0.75]).'
            rule = f"be a list of numbers, not {checks.shown(self.shares)}"
            raise checks.ParameterTypeError(owner, "shares", rule, mend)
        checks.require(len(self.shares) > 0, owner, "shares", "have at least one p", "Write [0.5].")
        for share in self.shares:
            _check_p(owner, "every p", share)
        exact = sorted({checks.decimal(owner, "every p", share) for share in self.shares})
        object.__setattr__(self, "shares", tuple(exact))
        super().__post_init__()

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The columns of each p: its value, and the error of its rank."""
        names = [self._named(Fraction(share)) for share in self.shares]
        ends = ("", "_rank_error")
        return tuple(Output(f"{name}{end}") for name in names for end in ends)

    def _named(self, share: Fraction) -> str:
        return f"{self.output}_{float(share):g}"

    def requests(self) -> tuple[Request, ...]:
        """Return all of them as one request."""
        shares = tuple(Fraction(share) for share in self.shares)
        [column] = self.columns()
        return (PeopleQuantileRequest(column, shares, self.given, self.beta, alone=False),)

    def output_columns(self, released: Released) -> tuple[np.ndarray, ...]:
        """Return the value and the error of every p."""
        pairs = zip(released.values.T, released.rank.T, strict=True)
        return tuple(column for pair in pairs for column in pair)


@dataclasses.dataclass(frozen=True)
class Median(_OfRanks):
    """Release the median: `Quantile` with p = 1/2.

    Attributes:
        column: the value column.
        per: "person" or "row".
        unit: the grid of values.
        method: "search", or "preprocessing": the median of people's means as in `Preprocessing`,
            whose interval is open; it errs less where values are even and people many.
    """

    several_owners: ClassVar[bool] = True
    command: ClassVar[Command] = Command("COLUMN[:row]", "the quantile with P = 0.5")

    column: str
    _: dataclasses.KW_ONLY
    per: str = "person"
    unit: checks.Real = UNIT
    method: str = "search"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("Median", "per", self.per, ("person", "row"))
        options.check_method(self, "search", _OF_SEARCH)

    @property
    def is_ranked(self) -> bool:
        """Whether its error is one of ranks: if it is searched for."""
        return not self.is_preprocessed

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


def _check_p(owner: str, name: str, p: checks.Real) -> None:
    """Refuse what is no share of rows."""
    checks.fraction_between(owner, name, p, 0, 1, "Write 0.5 for the median.")
    check_share(owner, p)


def _named(p: Fraction) -> str:
    return f"quantile_{float(p):g}"


def quantile_request(metric: Quantile | Median, p: Fraction) -> Request:
    """Return the request of a quantile.

    Args:
        metric: which says of what, of whom, and which candidates.
        p: the share below.
    """
    kind = PeopleQuantileRequest if metric.per == "person" else RowQuantileRequest
    [column] = metric.columns()
    return kind(column, (p,), metric.given, metric.beta)


@dataclasses.dataclass(frozen=True)
class PeopleQuantileRequest(ColumnRequest):
    """Quantiles in which every person counts once.

    Attributes:
        shares: every share below.
        given: the public outputs; None: the default ones.
        beta: how often a search may end where nobody is; at most `STRAY` where it is larger.
        alone: whether it is one number and not a row of numbers.
    """

    word: ClassVar[str] = "rank"
    in_its_unit: ClassVar[bool] = True
    most_rows: ClassVar[int] = LINES

    shares: tuple[Fraction, ...]
    given: Candidates | None
    beta: float
    alone: bool = True

    @property
    def candidates(self) -> Candidates:
        """The public outputs."""
        return default_values(self.unit) if self.given is None else self.given

    def build(self, context: Context, share: Budget) -> Release:
        """Return the search of ranks."""
        stray = min(STRAY, float(self.beta))
        search = SplitSearch(context.each(share), self.shares, stray=stray)
        relation = Relation(context.index(self.column))
        return RankRelease(relation, self.unit, search, self.candidates, self.alone)


class SharedRowsRequest(ProfileRequest):
    """The number of rows with a value by its removal profile, where rows have several owners."""

    word: ClassVar[str] = "valid"

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the number of rows without the people who have most, relaxed."""
        relation = Relation(context.index(self.column), context.others)
        return RowsOfSeveralOwners(relation, removals)


class RowQuantileRequest(PeopleQuantileRequest):
    """A quantile in which every row counts once."""

    word: ClassVar[str] = "quantile"

    def build(self, context: Context, share: Budget) -> Release:
        """Return a noisy number of rows, then the k-th largest."""
        counting, searching = share.split((_COUNT_SHARE, 1 - _COUNT_SHARE))
        beta, blank = float(self.beta), self.given is None
        search = AboveThreshold(context.each(searching), beta, min(OVERSHOOT, beta / 2))
        search = dataclasses.replace(search, gate=blank)
        removals = context.check_removals(search.cap(self.candidates.size))
        return RowQuantile(
            count=self._count(context, counting),
            rows=KthRow(self._relation(context), removals, self.unit),
            p=self.shares[0],
            search=search,
            candidates=self.candidates,
            cost=context.each(share),
            blank=blank,
        )

    def _relation(self, context: Context) -> Relation:
        return Relation(context.index(self.column), context.others)

    def _count(self, context: Context, share: Budget) -> ClippedSum | TwoPhase:
        """Return the noisy number of rows with a value."""
        if context.several_owners:
            return SharedRowsRequest(self.column, Searching()).two_phase(
                context, context.each(share)
            )
        rows = RowsWithValueRequest(self.column, Clipping("partition", _COUNT_CLIP))
        return rows.clipped(context, share)

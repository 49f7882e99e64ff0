"""Quantiles of people or of rows: `Quantile`, `Quantiles` and `Median`."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.defaults import default_values
from beam_dp.mechanisms.metrics.base import Command, OfPeople, Output, check_indexes
from beam_dp.mechanisms.metrics.clipped import row_clips
from beam_dp.mechanisms.metrics.part import Context, MetricPart
from beam_dp.mechanisms.metrics.profiled import OfValues
from beam_dp.mechanisms.metrics.spread import preprocessed
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.releases.quantiles import RankRelease, RowClips
from beam_dp.mechanisms.releases.released import Release, Released
from beam_dp.mechanisms.search.ranks.node import check_share
from beam_dp.mechanisms.search.ranks.splitting import SplitSearch
from beam_dp.mechanisms.search.ranks.tail import STRAY
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.worker_limits import LINES

_OF_SEARCH = ("per", "candidates", "beta", "low", "high")
_COUNT_SHARE = Fraction(1, 20)  # of the rest, to tell if people are few
_CLIP_SHARE = Fraction(1, 5)  # of a row quantile's budget, for the choice of the clip


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfRanks(OfValues):
    """A metric whose error is by how many rows, or people, the rank of its value may be off.

    Attributes:
        per: "row", as in SQL, or "person", where every person counts once.
    """

    word: ClassVar[str] = "rank"
    most_rows: ClassVar[int] = LINES

    per: str = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(type(self).__name__, "per", self.per, ("row", "person"))
        check_indexes(type(self).__name__, self.candidates)

    @property
    def is_ranked(self) -> bool:
        """Whether its error is one of ranks: yes."""
        return True

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
        if self.per == "row" and context.depth != 1:
            look, each = each.split((_CLIP_SHARE, 1 - _CLIP_SHARE))
            rows = RowClips(look, row_clips(context.depth))
        count, rest = each.split((_COUNT_SHARE, 1 - _COUNT_SHARE))
        unit, given = self.exact_unit, self.given
        return RankRelease(
            relation=Relation(context.index(self.source)),
            unit=unit,
            count=count,
            search=SplitSearch(rest, shares, stray=min(STRAY, float(self.beta))),
            candidates=default_values(unit) if given is None else given,
            alone=alone,
            rows=rows,
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

    command: ClassVar[Command] = Command(
        "COLUMN:P[:person]",
        "value with a share P of the rows at or below; or :person, of the people",
    )

    column: str
    p: checks.Real

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_p("Quantile", "p", self.p)

    @property
    def _exact(self) -> Fraction:
        return checks.decimal("Quantile", "p", self.p)

    @property
    def _prefix(self) -> str:
        return f"quantile_{float(self._exact):g}"

    def build(self, context: Context, share: Budget) -> Release:
        """Return the quantile of rows, or of people."""
        return self.by_ranks(context, share, (self._exact,))


@dataclasses.dataclass(frozen=True)
class Quantiles(OfRanks):
    """Release several quantiles of one column for one share of the budget: of rows, or of people.

    They cost far less together than apart, and rise. What each says is as of `Quantile`. Each p has
    the columns `quantiles_<column>_<p>` and `quantiles_<column>_<p>_rank_error`; with a name,
    `<name>_<p>`. See `SplitSearch`.

    Attributes:
        column: the value column.
        shares: every p, above 0 and below 1.
        per: "row" or "person".
        unit: the grid of values.
    """

    command: ClassVar[Command] = Command(
        "COLUMN:P:P...[:person]",
        "values with shares P of the rows (people) at or below, for the price of few",
    )

    column: str
    shares: Sequence[checks.Real]

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
        names = [f"{self.output}_{float(share):g}" for share in self.shares]
        ends = ("", "_rank_error")
        return tuple(Output(f"{name}{end}") for name in names for end in ends)

    def build(self, context: Context, share: Budget) -> Release:
        """Return all of them by one search."""
        return self.by_ranks(
            context, share, tuple(Fraction(share) for share in self.shares), alone=False
        )

    def output_columns(self, released: Released) -> tuple[np.ndarray, ...]:
        """Return the value and the error of every p."""
        pairs = zip(released.values.T, released.rank.T, strict=True)
        return tuple(column for pair in pairs for column in pair)


@dataclasses.dataclass(frozen=True)
class Median(OfRanks):
    """Release the median: `Quantile` with p = 1/2.

    Attributes:
        column: the value column.
        per: "row" or "person".
        unit: the grid of values.
        method: "search", or "preprocessing": the median of people's means as in `Preprocessing`,
            whose interval is open; it errs less where values are even and people many.
    """

    command: ClassVar[Command] = Command("COLUMN[:person]", "the quantile with P = 0.5")

    column: str
    _: dataclasses.KW_ONLY
    method: str = "search"

    def __post_init__(self) -> None:
        super().__post_init__()
        options.check_method(self, "search", _OF_SEARCH)

    @property
    def is_ranked(self) -> bool:
        """Whether its error is one of ranks: if it is searched for."""
        return not self.is_preprocessed

    def parts(self) -> tuple[MetricPart, ...]:
        """Return the quantile of rows, or of people, or the preprocessed median."""
        if self.is_preprocessed:
            return preprocessed(self).parts()
        kept = {name: value for name, value in vars(self).items() if name != "method"}
        return Quantile(**kept, p=Fraction(1, 2)).parts()

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

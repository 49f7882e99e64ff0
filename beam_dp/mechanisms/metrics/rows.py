"""The metrics of ranked rows: the k-th largest, quantiles and the median."""

import dataclasses
from fractions import Fraction

from beam_dp.mechanisms.metrics import options
from beam_dp.mechanisms.metrics.base import (
    UNIT,
    Searched,
    check_places,
)
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind
from beam_dp.mechanisms.search.common import check_share


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
class Median(Searched):
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
        options.check_method(self, "search", "per", "candidates", "beta")
        if self.per == "person":
            check_places(type(self).__name__, self.candidates)


def share_of(metric: Quantile | Median) -> Fraction:
    """Return p as an exact fraction."""
    p = metric.p if isinstance(metric, Quantile) else Fraction(1, 2)
    return checks.decimal(type(metric).__name__, "p", p)

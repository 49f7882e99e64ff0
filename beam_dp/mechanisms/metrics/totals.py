"""The metrics that add up: numbers of rows and of people, sums and means."""

import dataclasses

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import options
from beam_dp.mechanisms.metrics.base import UNIT, Metric, check_candidates, check_clip, check_unit
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.choose import SearchKind, check_search


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Additive(Metric):
    """A metric that adds up: by a privately chosen clip and noise, or one-sided.

    Attributes:
        one_sided: release by the shifted inverse mechanism: never above the true value but for
            5%, and below it by the contributions of about `shift` people. Else clip and noise.
        clip: choose the clip once for all partitions ("shared"), or "partition": in each, which
            suits partitions of thousands of people whose contributions differ by magnitudes.
        candidates: the public clips, or the public outputs if one-sided; None: a geometric
            grid that is wide enough for anything.
        clip_share: the part of the metric's budget that chooses the clip; None: a third, or
            an eighth where there is one partition only.
        search: how a one-sided release searches.
        beta: how often a one-sided release may be above the true value, or too far below it.

    Options that have no effect are refused: of the clip with `one_sided=True`, and of the search
    without.
    """

    one_sided: bool = False
    clip: str = "shared"
    candidates: Candidates | None = None
    clip_share: checks.Real | None = None
    search: SearchKind = AboveThreshold
    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        check_clip(owner, self.clip, self.clip_share)
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        check_search(owner, self.search)
        check_candidates(owner, self.candidates)
        options.check_side(self)


@dataclasses.dataclass(frozen=True)
class Count(_Additive):
    """Count the rows of each partition.

    No bound on rows per person is needed. With `ContributionBounds(rows_per_partition=...)` the
    clip is searched up to it only.
    """


@dataclasses.dataclass(frozen=True)
class Sum(_Additive):
    """Sum a column; rows without a valid value add nothing.

    Numbers may have both signs. Every row's number is rounded to a multiple of `unit` first, then
    summed exactly. A one-sided sum takes people whose total is below 0 as 0. Where rows have two
    owners, numbers below 0 are taken as 0, sums of a pair of owners are rounded down to multiples
    of 0.001 if the unit is a finer power of ten, and are at most 2^32 of these: 4,294,967 by
    default.

    Attributes:
        column: the value column.
        unit: the grid of values; integers and decimals that are multiples of it are exact.
    """

    column: str
    _: dataclasses.KW_ONLY
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unit("Sum", self.unit)


@dataclasses.dataclass(frozen=True)
class PeopleCount(Metric):
    """Count the people of each partition: plain noise, for one person changes it by 1."""

    @property
    def _prefix(self) -> str:
        return "people_count"


@dataclasses.dataclass(frozen=True)
class Mean(Metric):
    """Release the mean of a column: a noisy sum over a noisy number of rows or people.

    The sum is shared with `Sum(column)` if that is asked for too, and so is the count of rows with
    a value. The error bound is that of the quotient of the two intervals: infinite where the
    count's interval reaches 0. A noisy count below 1 is taken as 1.

    Attributes:
        column: the value column; rows without a valid value do not count.
        per: "row" for the mean over rows, "person" for the mean over people of their totals.
        unit: the grid of values.
        clip: as in `Sum`.
        clip_share: as in `Sum`.
        method: "clip" as above, or "preprocessing": the mean of one number per person (the mean of
            their values; their total with per="person") as in `Preprocessing`. It errs less where
            few people have by far the largest numbers.
    """

    column: str
    _: dataclasses.KW_ONLY
    per: str = "row"
    unit: checks.Real = UNIT
    clip: str = "shared"
    clip_share: checks.Real | None = None
    method: str = "clip"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("Mean", "per", self.per, ("row", "person"))
        check_clip("Mean", self.clip, self.clip_share)
        check_unit("Mean", self.unit)
        options.check_method(self, "clip", "clip", "clip_share")

"""Metrics that are released by their removal profile: by a search, or in two phases."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.defaults import (
    default_totals,
    default_values,
    values_between,
)
from beam_dp.mechanisms.metrics.base import (
    Metric,
    check_candidates,
    check_not_preprocessed,
    check_unit,
    ends_of,
)
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.profiles.from_summaries import PackedProfiler
from beam_dp.mechanisms.releases.priced import Priced
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.releases.request import ColumnRequest, Context
from beam_dp.mechanisms.releases.shifted_inverse import DirectRelease, ProfiledRequest, Profiler
from beam_dp.mechanisms.releases.two_phase import (
    TwoPhase,
    floor_removals,
    floor_search,
    split,
    unit_of,
)
from beam_dp.mechanisms.search import AboveThreshold, ScaleThenChoose
from beam_dp.mechanisms.search.choose import (
    TWO_PHASE,
    WALK,
    SearchKind,
    build_search,
    check_search,
)


@dataclasses.dataclass(frozen=True)
class Searching:
    """How a removal profile is released.

    Attributes:
        search: how its loss is searched, or "two_phase", or "walk".
        candidates: the public outputs; None: wide enough for anything.
        beta: how often the search may fail.
    """

    search: SearchKind = TWO_PHASE
    candidates: Candidates | None = None
    beta: float = 0.05

    @classmethod
    def of(cls, metric: Any) -> "Searching":
        """Return what a metric says, which has these three."""
        return cls(metric.search, metric.candidates, metric.beta)


@dataclasses.dataclass(frozen=True)
class ProfileRequest(ColumnRequest, ProfiledRequest):
    """A statistic with a removal profile.

    Attributes:
        searching: how it is released.
        values: whether it is one of the values, which may be below 0 (else a number of 0 or more).
        priced: whether its packings are quick enough at every price.
    """

    searching: Searching

    values: ClassVar[bool] = False
    priced: ClassVar[bool] = True

    @property
    def wants_delta(self) -> bool:
        """Whether its search spends delta.

        "auto" does not: the searches that do would win only beyond 2^256 candidates.
        """
        return self.searching.search is ScaleThenChoose

    @property
    def blank(self) -> bool:
        """Whether the lowest candidate stands for nobody: on the default grid of values."""
        return self.values and self.searching.candidates is None

    def candidates(self) -> Candidates:
        """Return the outputs of a search, in the order of the profile: mirrored for a minimum."""
        given = self.searching.candidates
        default = default_values if self.values else default_totals
        outputs = default(self.unit) if given is None else given
        return outputs.mirrored() if self.sign < 0 else outputs

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release in two phases, or from below."""
        if self.searching.search == WALK:
            return self.by_ranks(context, context.each(share))
        if self.searching.search == TWO_PHASE:
            return self.noisy(context, context.each(share))
        return self._from_below(context, context.each(share))

    def by_ranks(self, context: Context, each: Budget) -> Release:
        """Return the release by ranks of people; two phases where there is none."""
        return self.two_phase(context, each)

    def _checked(self, context: Context, removals: int) -> Profiler:
        return self.profiler(context, context.check_removals(removals))

    def _from_below(self, context: Context, each: Budget) -> DirectRelease:
        candidates, asked = self.candidates(), self.searching
        search = build_search(asked.search, each, float(asked.beta), candidates.size)
        if isinstance(search, AboveThreshold):
            search = dataclasses.replace(search, gate=self.blank)
        profiler = self._checked(context, search.cap(candidates.size))
        chosen_with = each if asked.search == "auto" else None
        return DirectRelease(profiler, search, candidates, self.blank, chosen_with)

    def noisy(self, context: Context, each: Budget) -> TwoPhase | Priced:
        """Return the release with noise: by packings, where rows have several owners."""
        if not (self.priced and context.several_owners and self.searching.candidates is None):
            return self.two_phase(context, each)
        profiler = self.profiler(context, 1)
        if isinstance(profiler, PackedProfiler):
            return Priced.of(profiler, profiler.unit, each, context.alpha)
        return self.two_phase(context, each)

    def two_phase(self, context: Context, each: Budget) -> TwoPhase:
        """Return the release with a floor, a clip and noise."""
        floor, prices, noise = split(each)
        given, candidates, beta = self.searching.candidates, self.candidates(), self.searching.beta
        search = floor_search(floor, float(beta))
        return TwoPhase(
            profiler=self._checked(context, floor_removals(search, candidates)),
            unit=unit_of(self.unit, given),
            search=search,
            prices=prices,
            noise_cost=noise,
            candidates=candidates,
            listed=given is not None,
            blank=self.blank,
            beta=float(beta),
            alpha=context.alpha,
        )


def from_below(owner: str, metric: Metric, chosen: Mapping[str, Any]) -> Metric:
    """Return a metric as it is released from below, with a search and its options.

    Args:
        owner: who asks.
        metric: one with a `search`.
        chosen: search, beta and candidates, where they are given.

    Raises:
        ValueError: for options that have no effect then.
    """
    if "one_sided" in vars(metric):
        because = f"in {owner}, which searches for the output and clips nobody"
        options.refuse(metric, options.CLIP, because, "Leave it out.")
        chosen = {**chosen, "one_sided": True}
    check_not_preprocessed(owner, metric)
    return dataclasses.replace(metric, **chosen)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Searched(Metric):
    """A metric that searches a loss or ranks.

    Attributes:
        candidates: the public outputs; None: wide enough for anything.
        beta: how often the guarantee of a search may fail; of quantiles of people and a "walk" only
            the most chance to stop where nobody is, if that is below the default.
    """

    walks: ClassVar[bool] = False
    """Whether ranks of people can be searched for it."""

    candidates: Candidates | None = None
    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        check_candidates(owner, self.candidates)
        if "search" in vars(self):
            search = check_search(owner, vars(self)["search"], self.walks)
            object.__setattr__(self, "search", search)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfValues(Searched):
    """A metric that is one of the values of a column.

    Attributes:
        low: a bound that you know without the data: values below count as that.
        high: values above count as that.
    """

    low: checks.Real | None = None
    high: checks.Real | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        check_unit(owner, vars(self)["unit"])
        ends_of(owner, self.low, self.high)
        if self.candidates is not None:
            because = "with candidates, which have bounds of their own"
            options.refuse(self, ("low", "high"), because, "Leave out one of the two.")

    @property
    def given(self) -> Candidates | None:
        """The public outputs that the user means; None: the default ones."""
        low, high = ends_of(type(self).__name__, self.low, self.high)
        if low is None and high is None:
            return self.candidates
        unit = checks.decimal(type(self).__name__, "unit", vars(self)["unit"])
        return values_between(unit, low, high)

    @property
    def searching(self) -> Searching:
        """How it is released, if by a search."""
        return Searching(vars(self)["search"], self.given, self.beta)

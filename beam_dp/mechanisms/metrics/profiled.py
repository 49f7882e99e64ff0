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
    UNIT,
    Metric,
    check_candidates,
    check_not_preprocessed,
    check_unit,
    ends_of,
)
from beam_dp.mechanisms.metrics.part import Context
from beam_dp.mechanisms.numerics import checks, options
from beam_dp.mechanisms.profiles.from_summaries import PackedProfiler
from beam_dp.mechanisms.releases.priced import Priced
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.releases.shifted_inverse import DirectRelease
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Searched(Metric):
    """A metric that searches public outputs: by a removal profile, or by ranks.

    Attributes:
        candidates: the public outputs; None: wide enough for anything.
        beta: how often the guarantee of a search may fail; of quantiles of people and a "walk" only
            the most chance to stop where nobody is, if that is below the default.
    """

    candidates: Candidates | None = None
    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        check_candidates(owner, self.candidates)

    @property
    def given(self) -> Candidates | None:
        """The public outputs that the user means; None: the default ones."""
        return self.candidates


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfValues(Searched):
    """A metric that is one of the values of a column.

    Attributes:
        low: a bound that you know without the data: values below count as that.
        high: values above count as that.
        unit: the grid of values.
    """

    low: checks.Real | None = None
    high: checks.Real | None = None
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        check_unit(owner, self.unit)
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
        return values_between(self.exact_unit, low, high)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Profiled(Searched):
    """A metric that has a removal profile, and is released by it if that is asked for.

    Attributes:
        search: how its loss is searched, or "two_phase", or "walk" for one of the values.
    """

    monotone: ClassVar[bool] = True
    of_values: ClassVar[bool] = False
    """Whether it is one of the values, which may be below 0 (else a number of 0 or more)."""
    priced: ClassVar[bool] = True
    """Whether its packings are quick enough at every price."""

    search: SearchKind = TWO_PHASE

    def __post_init__(self) -> None:
        super().__post_init__()
        search = check_search(type(self).__name__, self.search, self.of_values)
        object.__setattr__(self, "search", search)

    @property
    def wants_delta(self) -> bool:
        """Whether its search spends delta.

        "auto" does not: the searches that do would win only beyond 2^256 candidates.
        """
        return self.search is ScaleThenChoose

    @property
    def blank(self) -> bool:
        """Whether the lowest candidate stands for nobody: on the default grid of values."""
        return self.of_values and self.given is None

    @property
    def grid(self) -> Candidates:
        """The outputs of a search, in the order of the profile: mirrored for a minimum."""
        default = default_values if self.of_values else default_totals
        outputs = default(self.exact_unit) if self.given is None else self.given
        return outputs.mirrored() if self.sign < 0 else outputs

    def from_below(self, owner: str, chosen: Mapping[str, Any]) -> Metric:
        """Return it as it is released from below, with a search and its options.

        Args:
            owner: who asks.
            chosen: search, beta and candidates, where they are given.

        Raises:
            ValueError: for options that have no effect then.
        """
        check_not_preprocessed(owner, self)
        return dataclasses.replace(self, **chosen)

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release by its removal profile: in two phases, or from below."""
        each, candidates = context.each(share), self.grid
        if self.search in (TWO_PHASE, WALK):
            return self._priced(context, each) or self._two_phase(context, each)
        search = build_search(self.search, each, float(self.beta), candidates.size)
        if isinstance(search, AboveThreshold):
            search = dataclasses.replace(search, gate=self.blank)
        profiler = self.profiler(context, context.check_removals(search.cap(candidates.size)))
        chosen_with = each if self.search == "auto" else None
        return DirectRelease(profiler, search, candidates, self.blank, chosen_with)

    def _priced(self, context: Context, each: Budget) -> Priced | None:
        """Return the release by packings, where rows have several owners; None: there is none."""
        if not (self.priced and context.several_owners and self.given is None):
            return None
        profiler = self.profiler(context, 1)
        if not isinstance(profiler, PackedProfiler):
            return None
        return Priced.of(profiler, profiler.unit, each, context.alpha)

    def _two_phase(self, context: Context, each: Budget) -> TwoPhase:
        """Return the release with a floor, a clip and noise."""
        floor, prices, noise = split(each)
        candidates, beta = self.grid, float(self.beta)
        search = floor_search(floor, beta)
        removals = context.check_removals(floor_removals(search, candidates))
        return TwoPhase(
            profiler=self.profiler(context, removals),
            unit=unit_of(self.exact_unit, self.given),
            search=search,
            prices=prices,
            noise_cost=noise,
            candidates=candidates,
            listed=self.given is not None,
            blank=self.blank,
            beta=beta,
            alpha=context.alpha,
        )

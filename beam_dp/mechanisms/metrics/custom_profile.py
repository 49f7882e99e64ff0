"""The metric `CustomProfile`: a monotone statistic of a user's own, by its removal profile."""

import dataclasses
import math

from beam_dp.mechanisms.metrics.base import (
    UNIT,
    Searched,
)
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.user_functions import ProfileFunction, check_callable
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind


@dataclasses.dataclass(frozen=True)
class CustomProfile(Searched):
    """Release a monotone statistic of your own, by its removal profile.

    The profile is yours to prove: B[k] must be the least value of the statistic when at most k
    people are removed, or a relaxation that interlaces. For people and the same with one more,
    whose profile is B', that is `B'[k + 1] <= B[k] <= B'[k]`, and B' has as many numbers as B or
    one more: below all of them the loss is how many there are. `testing.check_profile` tries to
    refute that. On the way only what shows is checked: a function that raises or returns no
    profile, or one that its profile of nobody rules out for so many people, counts as `lowest`
    (`GuardedProfile`).
    There is no shorter way for many people: exact search over removals is for small sets
    (`monotone.Monotone`).

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

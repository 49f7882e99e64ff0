"""Release numbers by searching a removal loss: the shifted inverse mechanism.

A `Profiler` computes the removal profile of a statistic per partition; `DirectRelease` searches it.
"""

import dataclasses
import math
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.releases.released import (
    Description,
    Release,
    Released,
    Spending,
    people,
)
from beam_dp.mechanisms.search import Search, why
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_BETA = 0.05  # an interval that fails more often than this is none


class Profiler(Protocol):
    """Computes the removal profiles of one statistic."""

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What must be summarised."""

    @property
    def sign(self) -> int:
        """1, or -1 where the profile is that of -f."""

    def profiles(self, view: PartitionView) -> Iterable[Profile]:
        """Yield B[0..K] of each partition, in the user's scale; one at a time, to save memory."""


@dataclasses.dataclass(frozen=True)
class DirectRelease(Release):
    """The shifted inverse mechanism: search the removal loss for a value.

    With probability 1 - beta the released y is at most f (rounded up to the candidates) and at
    least f without its `shift` largest people. So the interval ends at the candidate before y on
    one side, and is open on the other; on both if beta is above 5%.

    Attributes:
        profiler: the statistic.
        search: the search, with its budget.
        candidates: the public outputs, in the user's scale, mirrored where the profile is.
        blank: release NaN for the lowest candidate. On the default grid of extremes that is a
            number far below any data, which is chosen where there are fewer than `shift` people.
        chosen_with: the budget with which the library chose the search; None: the user did.
    """

    profiler: Profiler
    search: Search
    candidates: Candidates
    blank: bool = False
    chosen_with: Budget | None = None

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What the profiler needs."""
        return self.profiler.measures

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What the search costs."""
        return (Spending(self.search.cost),)

    @property
    def shift(self) -> int:
        """How many people the release may pass over."""
        return self.search.shift(self.candidates.size)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one value per partition; there is no clip."""
        return self.released(
            [self.draw_one(profile, noise) for profile in self.profiler.profiles(view)]
        )

    def released(self, values: list[Number]) -> Released:
        """Return drawn values, with what is known of the truth by them."""
        below = np.array([self.below(value) for value in values], np.float64)
        return Released.at_least(as_array(values), below, self.profiler.sign)

    def below(self, value: Number) -> float:
        """Return how far the truth may be on the side that is known.

        It is above the candidate before the released one, which is f rounded up at most.
        """
        chosen = value * self.profiler.sign
        unknown = math.isnan(value) or self.search.beta > _BETA
        index = 0 if unknown else self.candidates.index(chosen)
        return float(chosen - self.candidates[index - 1]) if index else math.inf

    def draw_one(self, profile: Profile, noise: Noise) -> Number:
        """Return the value for one profile."""
        chosen = self.search.choose(profile, self.candidates, noise)
        blank = self.blank and chosen == self.candidates[0]
        return math.nan if blank else chosen * self.profiler.sign + 0  # never -0.0

    def describe(self) -> Description:
        """Describe the search, and why it was chosen if the library chose it."""
        mechanism = f"shifted inverse, {type(self.search).__name__}"
        reason = ""
        if self.chosen_with is not None:
            reason = why(self.chosen_with, self.candidates.size, self.search.beta)
        return Description(mechanism, "-", self.shift, people(self.shift), reason)


def as_array(values: list[Number]) -> np.ndarray:
    """Return numbers as an array; integers above 2^63 stay integers, which numpy alone changes."""
    large = any(isinstance(value, int) and value.bit_length() > 63 for value in values)
    return np.array(values, object if large else None)

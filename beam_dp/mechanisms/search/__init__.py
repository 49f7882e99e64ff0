"""The searches: from a removal profile to one candidate, privately.

All of them have the same face, `Search`, but `UnboundedSearch`, which has no number of candidates;
`auto` takes the one with the smallest proved shift. Each relies on one fact only, proved in
`profile`: adding a person moves every loss by 0 or by 1, all in the same direction.
"""

from typing import Protocol

from beam_dp.mechanisms.budget import Budget
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.grids import Number
from beam_dp.mechanisms.noise import Noise
from beam_dp.mechanisms.profile import Profile
from beam_dp.mechanisms.search.above_threshold import AboveThreshold as AboveThreshold
from beam_dp.mechanisms.search.auto import Alternative as Alternative
from beam_dp.mechanisms.search.auto import alternatives as alternatives
from beam_dp.mechanisms.search.auto import auto as auto
from beam_dp.mechanisms.search.auto import why as why
from beam_dp.mechanisms.search.binary import NoisyBinarySearch as NoisyBinarySearch
from beam_dp.mechanisms.search.exponential import ExponentialMechanism as ExponentialMechanism
from beam_dp.mechanisms.search.parameters import SYSTEM_NOISE
from beam_dp.mechanisms.search.ranks import RankProfile as RankProfile
from beam_dp.mechanisms.search.ranks import RankSearch as RankSearch
from beam_dp.mechanisms.search.ranks import increments as increments
from beam_dp.mechanisms.search.scale_then_choose import ScaleThenChoose as ScaleThenChoose
from beam_dp.mechanisms.search.unbounded import UnboundedSearch as UnboundedSearch


class Search(Protocol):
    """What every search offers; n is the number of candidates."""

    @property
    def cost(self) -> Budget:
        """What one `choose` spends."""

    def shift(self, n: int) -> int:
        """Return the T that is guaranteed with probability 1 - beta."""

    def cap(self, n: int) -> int:
        """Return a K such that B[0..K] decides like the whole profile but for 1e-12."""

    def choose(
        self, profile: Profile, candidates: Candidates, noise: Noise = SYSTEM_NOISE
    ) -> Number:
        """Return one candidate: a private draw."""

    def distribution(self, profile: Profile, candidates: Candidates) -> list[float]:
        """Return the exact output probabilities, for at most 64 candidates."""

"""The searches: from a removal profile to one candidate, privately.

Those that search a removal loss offer the methods of `Search` in `search.common`; `auto` takes the
one with the smallest proved shift. They rely on one fact only, proved in `profiles.profile`: adding
a person moves every loss by 0 or by 1, all in the same direction. Those in `search.ranks` search
ranks, each with a proof of its own.
"""

from beam_dp.mechanisms.search.above_threshold import AboveThreshold as AboveThreshold
from beam_dp.mechanisms.search.choose import Alternative as Alternative
from beam_dp.mechanisms.search.choose import alternatives as alternatives
from beam_dp.mechanisms.search.choose import auto as auto
from beam_dp.mechanisms.search.choose import why as why
from beam_dp.mechanisms.search.common import Search as Search
from beam_dp.mechanisms.search.published.binary import NoisyBinarySearch as NoisyBinarySearch
from beam_dp.mechanisms.search.published.exponential import (
    ExponentialMechanism as ExponentialMechanism,
)
from beam_dp.mechanisms.search.published.scale_then_choose import ScaleThenChoose as ScaleThenChoose
from beam_dp.mechanisms.search.ranks.rank_profile import RankProfile as RankProfile
from beam_dp.mechanisms.search.ranks.rank_profile import increments as increments

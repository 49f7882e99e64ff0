"""The searches: from a removal profile to one candidate, privately.

Those that search a removal loss are a `Search` of `search.common`; "auto" takes the one with the
smallest proved shift. They rely on one fact only, proved in `profiles.profile`: adding
a person moves every loss by 0 or by 1, all in the same direction. Those in `search.quantiles` search
ranks, each with a proof of its own.
"""

from beam_dp.mechanisms.search.above_threshold import AboveThreshold as AboveThreshold
from beam_dp.mechanisms.search.binary import NoisyBinarySearch as NoisyBinarySearch
from beam_dp.mechanisms.search.common import Search as Search
from beam_dp.mechanisms.search.exponential import ExponentialMechanism as ExponentialMechanism

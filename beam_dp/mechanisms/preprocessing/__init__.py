"""Cummings and Durfee's preprocessing: g, the function near f that no person moves beyond Delta.

`general` and `plane` give g of any function of few people, exactly. `Preprocessed` and `noisy`
give g of usual statistics exactly on a grid of integers: only that is released.
"""

from beam_dp.mechanisms.preprocessing.few_people import general, plane
from beam_dp.mechanisms.preprocessing.groups import PreprocessedStatistic as Preprocessed
from beam_dp.mechanisms.preprocessing.groups import noisy

__all__ = ["Preprocessed", "general", "noisy", "plane"]

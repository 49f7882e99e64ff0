"""Cummings and Durfee's preprocessing: g, the function near f that no person moves beyond Delta.

`mean`, `median`, ... give g of one database in double precision. `general` and its neighbours give
g exactly, for few people. `Preprocessed` and `noisy` give g exactly on a grid of integers: only
that is released.
"""

from beam_dp.mechanisms.preprocessing.error_bounds import (
    enough_for_mean,
    enough_for_variance,
    error_bound,
    mean_bounds,
)
from beam_dp.mechanisms.preprocessing.functions import (
    maximum,
    mean,
    median,
    minimum,
    trimmed_mean,
    variance,
)
from beam_dp.mechanisms.preprocessing.individual.general import coordinates, general, plane
from beam_dp.mechanisms.preprocessing.individual.personalised import Personalised, proportional
from beam_dp.mechanisms.preprocessing.individual.unequal import (
    classes,
    from_profile,
    individual,
    largest,
    monotone,
    ordered,
    total,
)
from beam_dp.mechanisms.preprocessing.release import PreprocessedStatistic as Preprocessed
from beam_dp.mechanisms.preprocessing.release import noisy

__all__ = [
    "Personalised",
    "Preprocessed",
    "classes",
    "coordinates",
    "enough_for_mean",
    "enough_for_variance",
    "error_bound",
    "from_profile",
    "general",
    "individual",
    "largest",
    "maximum",
    "mean",
    "mean_bounds",
    "median",
    "minimum",
    "monotone",
    "noisy",
    "ordered",
    "plane",
    "proportional",
    "total",
    "trimmed_mean",
    "variance",
]

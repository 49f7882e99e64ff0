"""What a user can ask for. A metric is one file, and one line of `REGISTRY` with its import.

The command lines make their flags of it, and messages name the metrics that can do what was asked;
all else is asked of the metric itself (`base.Metric`).
"""

from collections.abc import Callable

from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.histogram import Histogram
from beam_dp.mechanisms.metrics.mean import Mean, StandardDeviation, Variance
from beam_dp.mechanisms.metrics.own_function import BlackBox, CustomProfile
from beam_dp.mechanisms.metrics.preprocessed import Preprocessed, TrimmedMean
from beam_dp.mechanisms.metrics.quantiles import KthLargest, Max, Median, Min, Quantile, Quantiles
from beam_dp.mechanisms.metrics.ratio import Ratio
from beam_dp.mechanisms.metrics.sums import Count, PeopleCount, Sum
from beam_dp.mechanisms.metrics.values import DistinctCount, MaxFrequency, SumOfSquares

REGISTRY: dict[str, type[Metric]] = {
    "count": Count,
    "people_count": PeopleCount,
    "sum": Sum,
    "max": Max,
    "min": Min,
    "mean": Mean,
    "kth_largest": KthLargest,
    "quantile": Quantile,
    "quantiles": Quantiles,
    "median": Median,
    "histogram": Histogram,
    "distinct_count": DistinctCount,
    "max_frequency": MaxFrequency,
    "sum_of_squares": SumOfSquares,
    "custom_profile": CustomProfile,
    "ratio": Ratio,
    "variance": Variance,
    "standard_deviation": StandardDeviation,
    "trimmed_mean": TrimmedMean,
    "preprocessed": Preprocessed,
    "black_box": BlackBox,
}
"""All metrics by the name of their flag, in the order of the help."""


def names_of(suits: Callable[[type[Metric]], bool]) -> str:
    """Return the names of the metrics that suit, for messages."""
    return ", ".join(kind.__name__ for kind in REGISTRY.values() if suits(kind))

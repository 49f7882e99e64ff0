"""Refuse metrics with functions of the user that could not be sent to workers."""

from collections.abc import Sequence

from apache_beam.internal import pickler

from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.black_box import BlackBox
from beam_dp.mechanisms.metrics.custom_profile import CustomProfile
from beam_dp.transforms import guards, votes


def check(asked: Sequence[Metric]) -> None:
    """Refuse functions that cannot be pickled and unpickled as workers do.

    Args:
        asked: the metrics.

    Raises:
        TypeError: with the metric, and how to mend the call.
    """
    for metric in asked:
        if isinstance(metric, BlackBox):
            guards.check_picklable("BlackBox", "function", metric.function, votes.made)
        if isinstance(metric, CustomProfile):
            guards.check_picklable("CustomProfile", "profile", metric.profile, pickler.loads)

"""Refuse partitions that one worker cannot take for a metric, if their size is known."""

from collections.abc import Sequence

from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.summaries.worker_limits import EDGES


def most_rows(metric: Metric, several_owners: bool = False) -> int | None:
    """Return the most rows of one partition that the metric takes; None: any number.

    Rows of the same person with the same value are one line, and count once.

    Args:
        metric: what is released.
        several_owners: whether rows have several owners.
    """
    if several_owners:
        return EDGES
    limits = (part.most_rows for part in metric.parts())
    return min((limit for limit in limits if limit is not None), default=None)


def check_rows(owner: str, rows: int | None, asked: Sequence[Metric], several_owners: bool) -> None:
    """Refuse a bound on the size of partitions that is beyond what one worker can take.

    Args:
        owner: the name that errors begin with.
        rows: the user's bound; None: not known, then nothing is refused.
        asked: the metrics.
        several_owners: whether rows have several owners.

    Raises:
        TypeError, ValueError: unless `rows` is None, or an int from 1 to the limit of every metric.
    """
    if rows is None:
        return
    checks.positive_integer(owner, "partition_rows", rows, "Leave it out if you do not know.")
    for metric in asked:
        most = most_rows(metric, several_owners)
        kind = type(metric).__name__ + (" of rows with several owners" if several_owners else "")
        checks.require(
            most is None or rows <= most,
            owner,
            "partition_rows",
            f"be at most {most} for {kind} (output column {metric.output}), not {rows}: "
            "one worker takes a whole partition",
            "Cut the partitions finer, sample the people first, or ask for what needs "
            "summaries only: Count, Sum, Max, Min, Mean, PeopleCount or Ratio of rows "
            "with one owner.",
        )

"""Refuse metrics that cannot be released: of rows with two owners, or not picklable."""

import dataclasses
from collections.abc import Sequence

from apache_beam.internal import pickler

from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics import base, extremes, items, options, spread, totals
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.black_box import BlackBox
from beam_dp.mechanisms.metrics.custom_profile import CustomProfile
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search.choose import TWO_PHASE
from beam_dp.transforms.partitions import Partitions, PrivatePartitions
from beam_dp.transforms.steps import block_votes, guards

_COUNTED = (totals.Count, totals.Sum, items.DistinctCount)
ALLOWED = (*_COUNTED, extremes.Max, extremes.Min)
"""The metrics that rows with two owners can have."""


def check_person(owner: str, person: object) -> tuple[str, str | None]:
    """Return the column of the person, and that of the second owner where rows have two."""
    if isinstance(person, str) or not isinstance(person, (list, tuple)):
        return checks.column(owner, "person", person), None
    names = checks.columns(owner, "person", person)
    checks.require(
        len(names) == 2,
        f"{owner}: person must be one column, or the two of rows with two owners, not "
        f"{len(names)}: more owners make a linear program without an exact solution in integers. "
        "Split such rows by pairs of owners, or name the one person who must be protected.",
    )
    return names[0], names[1]


def check_two(
    owner: str,
    asked: Sequence[Metric],
    bounds: ContributionBounds,
    partitions: Partitions | None,
) -> tuple[Metric, ...]:
    """Return the metrics as they are released for rows with two owners: by their removal profile.

    In two phases, but for distinct counts, which seldom gain by them.

    A person's new rows belong to others too: bounding them would move rows of others, and counting
    people would count those. So neither is offered.

    Raises:
        TypeError: for a metric that has no proved loss for two owners.
        ValueError: for bounds, and for private partitions.
    """
    checks.require(
        bounds == ContributionBounds(None),
        f"{owner}: bounds must be left out where rows have two owners: cutting the rows of one "
        "would move those of another.",
    )
    checks.require(
        not isinstance(partitions, PrivatePartitions),
        f"{owner}: partitions must be public where rows have two owners. "
        "Write partitions=dp.PublicPartitions([1, 2, 3]).",
    )
    return tuple(_directly(owner, metric) for metric in asked)


def _directly(owner: str, metric: Metric) -> Metric:
    if isinstance(metric, _COUNTED):
        because = "where rows have two owners, which are released by their removal profile"
        options.refuse(metric, options.CLIP, because, "Leave it out.")
        checks.require(
            not (metric.one_sided and metric.search == TWO_PHASE),
            f'{type(metric).__name__}: search must not be "two-phase" with one_sided=True: two '
            "phases err to both sides. Leave one of the two out.",
        )
        # A distinct count has another default; else no search is left without one_sided=True.
        sided = metric.one_sided or isinstance(metric, items.DistinctCount)
        search = metric.search if sided else TWO_PHASE
        return dataclasses.replace(metric, one_sided=True, search=search)
    if isinstance(metric, ALLOWED):
        spread.check_removed(owner, metric)
        return metric
    names = ", ".join(kind.__name__ for kind in ALLOWED)
    raise TypeError(
        f"{owner}: a metric of rows with two owners must be {names}, not {base.shown(metric)}: "
        "no loss of another is proved to move by at most 1 when either owner is removed."
    )


def check(asked: Sequence[Metric]) -> None:
    """Refuse functions that cannot be pickled and unpickled as workers do.

    Args:
        asked: the metrics.

    Raises:
        TypeError: with the metric, and how to mend the call.
    """
    for metric in asked:
        if isinstance(metric, BlackBox):
            guards.check_picklable("BlackBox", "function", metric.function, block_votes.made)
        if isinstance(metric, CustomProfile):
            guards.check_picklable("CustomProfile", "profile", metric.profile, pickler.loads)

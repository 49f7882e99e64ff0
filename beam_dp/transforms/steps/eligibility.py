"""Refuse metrics that cannot be released: for rows with two owners, or not picklable."""

from collections.abc import Sequence

from apache_beam.internal import pickler

from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics import names_of
from beam_dp.mechanisms.metrics.base import Metric, shown
from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.partitions import Partitions, PrivatePartitions
from beam_dp.transforms.steps import guards


def check_person(owner: str, person: object) -> tuple[str, str | None]:
    """Return the column of the person, and that of the second owner where rows have two."""
    if isinstance(person, str) or not isinstance(person, (list, tuple)):
        return checks.column(owner, "person", person), None
    names = checks.columns(owner, "person", person)
    checks.require(
        len(names) == 2,
        owner,
        "person",
        f"be one column, or the two of rows with two owners, not {len(names)}: more "
        "owners make a linear program without an exact solution in integers",
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

    They are released in two phases, except distinct counts, which seldom gain by two phases.

    A person's new rows belong to other people too: bounding them would move rows of other people,
    and counting people would count those. So neither is offered.

    Raises:
        TypeError: for a metric that has no proved loss for two owners.
        ValueError: for bounds, and for private partitions.
    """
    checks.require(
        bounds == ContributionBounds(None),
        owner,
        "bounds",
        "be left out where rows have two owners: cutting the rows of one would move "
        "those of another",
    )
    checks.require(
        not isinstance(partitions, PrivatePartitions),
        owner,
        "partitions",
        "be public where rows have two owners",
        "Write partitions=dp.PublicPartitions([1, 2, 3]).",
    )
    return tuple(_as_released(owner, metric) for metric in asked)


def _as_released(owner: str, metric: Metric) -> Metric:
    if metric.two_owners:
        return metric.for_two_owners(owner)
    names = names_of(lambda kind: kind.two_owners)
    raise checks.ParameterTypeError(
        owner,
        "a metric of rows with two owners",
        f"be {names}, not {shown(metric)}: no loss of another is proved to move by at "
        "most 1 when either owner is removed",
    )


def check(asked: Sequence[Metric]) -> None:
    """Refuse metrics with functions that cannot be pickled and unpickled as workers do.

    Args:
        asked: the metrics.

    Raises:
        TypeError: names the metric, and says how to mend the call.
    """
    for metric in asked:
        for name in metric.functions:
            owner, function = type(metric).__name__, vars(metric)[name]
            guards.check_picklable(owner, name, function, pickler.loads)

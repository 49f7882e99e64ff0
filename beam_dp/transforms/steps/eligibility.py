"""Refuse metrics that cannot be released: for rows with several owners, or not picklable."""

from collections.abc import Sequence

from apache_beam.internal import pickler

from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics import names_of
from beam_dp.mechanisms.metrics.base import Metric, check_not_preprocessed, shown
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.summaries.worker_limits import OWNERS
from beam_dp.transforms.partitions import Partitions, PrivatePartitions
from beam_dp.transforms.steps import guards


def check_person(owner: str, person: object) -> tuple[str, tuple[str, ...]]:
    """Return the column of the person, and those of further owners where rows have several."""
    if isinstance(person, str) or not isinstance(person, (list, tuple)):
        return checks.column(owner, "person", person), ()
    names = checks.columns(owner, "person", person)
    checks.require(
        1 <= len(names) <= OWNERS,
        owner,
        "person",
        f"be one column, or the 2 to {OWNERS} of rows with several owners, not {len(names)}",
        "Name those who must be protected, and leave out the others.",
    )
    return names[0], tuple(names[1:])


def named(owner: str, others: tuple[str, ...]) -> str | tuple[str, ...]:
    """Return the columns of `check_person` as a caller names them."""
    return (owner, *others) if others else owner


def check_several(
    owner: str,
    asked: Sequence[Metric],
    bounds: ContributionBounds,
    partitions: Partitions | None,
) -> tuple[Metric, ...]:
    """Return the metrics as released for rows with several owners: by their removal profile.

    They are released in two phases, except distinct counts, which seldom gain by two phases.

    A person's new rows belong to other people too: bounding them would move rows of other people,
    and counting people would count those. So neither is offered.

    Raises:
        TypeError: for a metric that has no proved loss for several owners.
        ValueError: for bounds, and for private partitions.
    """
    checks.require(
        bounds == ContributionBounds(None),
        owner,
        "bounds",
        "be left out where rows have several owners: cutting the rows of one would "
        "move those of another",
    )
    checks.require(
        not isinstance(partitions, PrivatePartitions),
        owner,
        "partitions",
        "be public where rows have several owners",
        "Write partitions=dp.PublicPartitions([1, 2, 3]).",
    )
    return tuple(_as_released(owner, metric) for metric in asked)


def _as_released(owner: str, metric: Metric) -> Metric:
    if metric.several_owners:
        check_not_preprocessed(owner, metric)
        return metric.for_several_owners()
    names = names_of(lambda kind: kind.several_owners)
    raise checks.ParameterTypeError(
        owner,
        "a metric of rows with several owners",
        f"be {names}, not {shown(metric)}: no loss of another is proved to move by at "
        "most 1 when any owner is removed",
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

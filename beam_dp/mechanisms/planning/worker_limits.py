"""What one worker can take of one partition: rows, by the kind of statistic, and removals."""

from collections.abc import Sequence

from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.parts import parts_of

LINES = 50_000_000
"""What is sorted: memory sets the limit, 150 to 270 bytes for each line."""

VALUES = 6_000_000
"""What is solved, from people to values: time sets the limit, about a minute for a flow."""

PROGRAM = 1_000_000
"""What is a linear program: 6 million lines took seconds where people own few values, 180,000 a
minute, which are half of all pairs of 600 people and 600 values."""

EDGES = 10_000_000
"""What is solved as a flow between two owners of every row."""

REMOVALS = 2_000_000
"""K: how many people a search may look at. A profile of so many takes some 100 MB and seconds."""

_KINDS = {
    "kth": LINES,
    "rank": LINES,
    "quantile": LINES,
    "custom": LINES,
    "preprocessed": LINES,
    "black_box": LINES,
    "frequency": PROGRAM,
    "squares": LINES,
    "pairs": LINES,
    "distinct": VALUES,
}
"""The parts that need rows or owners; all others need summaries only, and have no limit."""


def most_rows(metric: Metric, two_owners: bool = False) -> int | None:
    """Return the most rows of one partition that the metric takes; None: any number.

    Rows of the same person with the same value are one line, and count once.

    Args:
        metric: what is released.
        two_owners: whether rows have two owners.
    """
    if two_owners:
        return EDGES
    found = [_KINDS[part.kind] for part in parts_of(metric) if part.kind in _KINDS]
    return min(found, default=None)


def check_rows(owner: str, rows: int | None, asked: Sequence[Metric], two_owners: bool) -> None:
    """Refuse a bound on the size of partitions that is beyond what one worker can take.

    Args:
        owner: who asks.
        rows: the user's bound; None: not known, and nothing is refused.
        asked: the metrics.
        two_owners: whether rows have two owners.

    Raises:
        TypeError, ValueError: unless it is None, or an int from 1 up to the limit of every metric.
    """
    if rows is None:
        return
    checks.positive_integer(owner, "partition_rows", rows, "Leave it out if you do not know.")
    for metric in asked:
        most = most_rows(metric, two_owners)
        kind = type(metric).__name__ + (" of rows with two owners" if two_owners else "")
        checks.require(
            most is None or rows <= most,
            f"{owner}: partition_rows must be at most {most} for {kind} (output column "
            f"{metric.output}), not {rows}: one worker takes a whole partition. Cut the partitions "
            "finer, sample the people first, or ask for what needs summaries only: Count, Sum, "
            "Max, Min, Mean, PeopleCount or Ratio of rows with one owner.",
        )


def check_removals(metric: Metric, removals: int) -> None:
    """Refuse a search that would look at more people than a worker can hold numbers of.

    How many these are depends on the budget and the candidates only; of the data that there is, far
    fewer tell something.

    Args:
        metric: what is released.
        removals: K.

    Raises:
        ValueError: with the metric, the number, and how to mend the call.
    """
    checks.require(
        removals <= REMOVALS,
        f"{type(metric).__name__}: budget must be larger: the search for output column "
        f"{metric.output} would look at the {removals} most important people of each partition, "
        f"and at most {REMOVALS} can be held. Give it more epsilon (rho) or weight, fewer "
        "candidates, or fewer partitions per person: bounds=dp.ContributionBounds(partitions=1); "
        "or release from below, which looks at fewer: search=dp.AboveThreshold.",
    )

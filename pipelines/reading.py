"""Which columns of the files a job reads, and as what."""

from collections.abc import Sequence

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric


def rows_of(
    pattern: str,
    owners: Sequence[str],
    partition: Sequence[str],
    metrics: Sequence[Metric],
    quotes: bool = True,
) -> dp.ReadRows:
    """Return the reader of what the metrics need.

    A CSV file has no types. Columns whose values are added or ordered are read as numbers; all
    others stay the text that they are, so that "017" and "17", or two integers beyond 2^53, remain
    two ids or two items.

    Args:
        pattern: the files.
        owners: the columns of the person, or of the two owners.
        partition: the columns of the partition.
        metrics: what is released.
        quotes: whether quotes mean something in CSV files.

    Raises:
        ValueError: for a column of a CSV file that would have to be both, or for files without
            quotes that are no CSV files.
    """
    items = [name for metric in metrics for name in (*metric.items, *dict(metric.flags))]
    text = dict.fromkeys([*owners, *partition, *items])
    numbers = dict.fromkeys(
        n
        for metric in metrics
        for n in (*metric.columns, *metric.orders, *(metric.tiers or ())[:1])
        if n not in metric.items and not metric.flags
    )
    both = [name for name in numbers if name in text]
    if both and pattern.endswith((".csv", ".csv.gz")):
        raise ValueError(
            f"--input: column {both[0]!r} of a CSV file would have to be text (for --person, "
            "--partition, --distinct, --max_frequency, --sum_of_squares or --ratio) and numbers "
            "(for another metric): convert the file to Parquet, or give it a copy of the column"
        )
    return dp.ReadRows(pattern, list({**text, **numbers}), list(numbers), quotes)

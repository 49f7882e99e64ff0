"""Choose the columns of files that a release reads, and which of these are numbers."""

from collections.abc import Sequence

from beam_dp.mechanisms.bounding.columns import Role, table_order, with_role
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.io.read_rows import ReadRows


def reader(
    pattern: str,
    owners: Sequence[str],
    partition: Sequence[str],
    metrics: Sequence[Metric],
    quotes: bool = True,
) -> ReadRows:
    """Return the reader of the columns that the metrics need.

    A CSV file has no types. Columns whose values are added or ordered are read as numbers; all
    others stay the text that they are, so that "017" and "17", or two integers beyond 2^53, remain
    two ids or two items.

    Args:
        pattern: the files.
        owners: the columns of the person, or those of rows with several owners.
        partition: the columns of the partition.
        metrics: what is released.
        quotes: whether quotes have a meaning in CSV files.

    Raises:
        ValueError: for a column of a CSV file that would have to be text and numbers, or for
            `quotes=False` with other files than CSV.
    """
    columns = table_order(column for metric in metrics for column in metric.columns())
    compared = with_role(columns, Role.ITEM, Role.FLAG)
    ordered = with_role(columns, Role.VALUE, Role.ORDER, Role.EPSILON)
    text = dict.fromkeys([*owners, *partition, *(column.name for column in compared)])
    numbers = dict.fromkeys(column.name for column in ordered)
    both = [name for name in numbers if name in text]
    if both and pattern.endswith((".csv", ".csv.gz")):
        raise checks.ParameterError(
            "ReadRows",
            f"column {both[0]!r} of a CSV file",
            "be read as text (as the person, a partition, or a value that is compared) or as "
            "numbers (for sums, quantiles and the like), not as both",
            "Convert the file to Parquet, or give it a copy of the column.",
        )
    return ReadRows(pattern, list({**text, **numbers}), list(numbers), quotes)

"""List the columns that a program reads: those of all metrics, once each, and the second owner."""

from collections.abc import Sequence

from beam_dp.mechanisms.bounding.columns import Column, Role, table_order
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks


def columns_of(asked: Sequence[Metric], second: str | None = None) -> tuple[Column, ...]:
    """Return the columns in the order of a table.

    The second owner is another column even if the same column is compared too: owners are ids.

    Args:
        asked: the metrics.
        second: the column of the second owner, where rows have two.

    Raises:
        ValueError: when a column of numbers has two units.
    """
    units: dict[str, Column] = {}
    for metric in asked:
        for column in metric.columns():
            if column.role is Role.VALUE:
                _check_unit(metric, units.setdefault(column.name, column), column)
    owners = () if second is None else (Column(second, Role.OWNER),)
    return table_order([*owners, *(column for metric in asked for column in metric.columns())])


def _check_unit(metric: Metric, first: Column, column: Column) -> None:
    checks.require(
        first.detail == column.detail,
        type(metric).__name__,
        "unit",
        f"be the same for all metrics of {column.name!r}, not both "
        f"{float(first.detail)} and {float(column.detail)}",
    )

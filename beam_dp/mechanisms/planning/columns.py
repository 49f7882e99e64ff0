"""List the columns that a program reads: those of all metrics, once each, and further owners."""

from collections.abc import Sequence

from beam_dp.mechanisms.bounding.columns import Column, Role, table_order
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks


def columns_of(asked: Sequence[Metric], others: Sequence[str] = ()) -> tuple[Column, ...]:
    """Return the columns in the order of a table.

    An owner is another column even if the same column is compared too: owners are ids.

    Args:
        asked: the metrics.
        others: the columns of further owners, where rows have several.

    Raises:
        ValueError: when a column of numbers has two units.
    """
    units: dict[str, Column] = {}
    for metric in asked:
        for column in metric.columns():
            if column.role is Role.VALUE:
                _check_unit(metric, units.setdefault(column.name, column), column)
    owners = (Column(name, Role.OWNER) for name in others)
    return table_order([*owners, *(column for metric in asked for column in metric.columns())])


def _check_unit(metric: Metric, first: Column, column: Column) -> None:
    checks.require(
        first.detail == column.detail,
        type(metric).__name__,
        "unit",
        f"be the same for all metrics of {column.name!r}, not both "
        f"{float(first.detail)} and {float(column.detail)}",
    )

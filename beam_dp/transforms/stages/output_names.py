"""The names and the types of the output columns.

Flink's and Spark's runners, which are written in Java, read the schema of all rows that cross a
shuffle, and fail at a column of type `Any` ("Unexpected type_info: TYPEINFO_NOT_SET"). `row_type`
makes rows with such a column bytes to these runners; to Python they are rows with a schema.
"""

import keyword
import re
from collections.abc import Sequence
from typing import Any

from apache_beam.coders import Coder, registry
from apache_beam.coders.row_coder import RowCoder
from apache_beam.typehints.row_type import GeneratedClassRowTypeConstraint, RowTypeConstraint

from beam_dp.mechanisms.metrics.base import Metric, Output
from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.partitions import Partitions, PrivatePartitions


class _OpenRow(GeneratedClassRowTypeConstraint):
    """A schema that only Python reads."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _OpenRow, (self._fields,)


class _OpenRowCoder(RowCoder):
    """The coder of a row, shown to the runner as a coder that it does not know.

    Workers unpickle it as a `RowCoder`, so they need nothing of this module.
    """

    def to_runner_api_parameter(self, context: Any) -> Any:
        """Send the coder pickled, instead of its schema."""
        return Coder.to_runner_api_parameter(self, context)


registry.register_coder(_OpenRow, _OpenRowCoder)


def row_type(fields: Sequence[tuple[str, Any]]) -> RowTypeConstraint:
    """Return the type of rows with these columns.

    Args:
        fields: the name and the type of each column, `Any` where it is not known.
    """
    unknown = any(kind is Any for _, kind in fields)
    return _OpenRow(fields) if unknown else RowTypeConstraint.from_fields(fields)


OTHER = "is_other"
"""The column that says which rows are what is not listed, where there are such rows."""
_TAKEN = ("self", "")
_BEFORE = "of_"
"""What stands for the word that a metric puts before the name of a column."""


def plain_name(name: str) -> str:
    """Return the words of `name` joined by underscores: "Time spent (min)" is Time_spent_min."""
    return re.sub(r"\W+", "_", name).strip("_")


def field_name(name: str) -> str:
    """Return `name` as a field of a schema: plain, no keyword, no number or underscore first."""
    if _is_field(name):
        return name
    plain = plain_name(name) or "column"
    return plain if _is_field(plain) else f"column_{plain}"


def _is_field(name: str) -> bool:
    taken = keyword.iskeyword(name) or name in _TAKEN or name.startswith("_")
    return name.isidentifier() and not taken


def check_names(
    subject: str, partition: Sequence[str], metrics: Sequence[Metric], batches: bool = False
) -> None:
    """Refuse two output columns of the same name.

    Args:
        subject: the name that errors begin with.
        partition: the partition columns.
        metrics: what is released.
        batches: whether the output is batches, which can have any names.
    """
    names = (output_names if batches else field_names)(partition, metrics)
    doubled = sorted({name for name in names if names.count(name) > 1})
    checks.require(
        not doubled,
        subject,
        "output columns",
        f"have different names, not {doubled} twice",
        'Name a metric: dp.Sum("spent", name="revenue").',
    )


def _word_of(metric: Metric) -> str:
    """Return the part of a metric's name that its user chose: its name, or that of its column."""
    return metric.name or _BEFORE + str(vars(metric).get("column", ""))


def check_batches(subject: str, batches: object, partitions: Partitions | None) -> None:
    """Refuse batches where a key column has no single type that is known beforehand."""
    checks.boolean(subject, "batches", batches)
    checks.require(
        not (batches and isinstance(partitions, PrivatePartitions)),
        subject,
        "batches",
        "be False with private partitions: their keys can be of any types",
        "Leave it out, or list public partitions.",
    )


def outputs_of(metrics: Sequence[Metric]) -> tuple[Output, ...]:
    """Return the output columns of all metrics, in order."""
    return tuple(output for metric in metrics for output in metric.outputs)


def output_names(partition: Sequence[str], metrics: Sequence[Metric]) -> tuple[str, ...]:
    """Return the names of the output columns, in order, as their users wrote them."""
    named = [
        field_name(output.name) if _is_field(_word_of(metric)) else output.name
        for metric in metrics
        for output in metric.outputs
    ]
    return (*partition, *named)


def field_names(partition: Sequence[str], metrics: Sequence[Metric]) -> tuple[str, ...]:
    """Return the same as fields of rows, which have plain names."""
    return tuple(map(field_name, (*partition, *(output.name for output in outputs_of(metrics)))))


def output_type(
    partition: Sequence[str], metrics: Sequence[Metric], layout: Layout, may_lack: bool = False
) -> RowTypeConstraint:
    """Return the schema of the output: key columns, `Any` if of unknown type, then numbers.

    Args:
        partition: the partition columns.
        metrics: the metrics.
        layout: which columns hold what.
        may_lack: whether a whole number may be None.
    """
    pairs = enumerate(partition)
    kinds = [bool if name == OTHER else _key_type(index, layout) for index, name in pairs]
    whole = int | None if may_lack else int
    kinds += [whole if output.whole else float for output in outputs_of(metrics)]
    names = field_names(partition, metrics)
    return row_type(list(zip(names, kinds, strict=True)))


def _key_type(index: int, layout: Layout) -> Any:
    """Return the type of a key column, from the public list alone.

    Private keys come out as they are in the data, whatever the input's schema says: a coder that
    relied on the schema would fail on the first row that does not keep to it.
    """
    kind = layout.public.keys.kind(index) if layout.public is not None else None
    return kind if kind in (int, str, bool) else Any

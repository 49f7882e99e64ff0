"""Released numbers as `beam.Row`s with a schema."""

import keyword
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.typehints.row_type import RowTypeConstraint

from beam_dp.mechanisms import checks
from beam_dp.mechanisms.metrics import Count, Metric, PeopleCount
from beam_dp.transforms.columns import Layout
from beam_dp.transforms.release import Block

ERROR = "_error"
_TAKEN = ("self",)


def check_names(owner: str, partition: Sequence[str], metrics: Sequence[Metric]) -> None:
    """Refuse two output columns of one name, and names that a schema of Beam cannot hold."""
    names = output_names(partition, metrics)
    for name in names:
        checks.require(
            name.isidentifier() and not keyword.iskeyword(name) and name not in _TAKEN
            and not name.startswith("_"),
            f"{owner}: output columns must have names that Python can give to a field, "
            f"not {name!r}. Rename the column before this transform, or name the metric: "
            'dp.Sum("total cost", name="total_cost").',
        )
    doubled = sorted({name for name in names if names.count(name) > 1})
    checks.require(
        not doubled,
        f"{owner}: output columns must have different names, not {doubled} twice. "
        'Name a metric: dp.Sum("spent", name="revenue").',
    )


def output_names(partition: Sequence[str], metrics: Sequence[Metric]) -> tuple[str, ...]:
    """Return the names of the output columns, in order."""
    return (*partition, *(name for m in metrics for name in (m.output, m.output + ERROR)))


def output_type(
    partition: Sequence[str], metrics: Sequence[Metric], layout: Layout, element_type: object
) -> RowTypeConstraint:
    """Return the schema of the output: key columns as typed as is known, then numbers."""
    fields = [(name, _key_type(place, name, layout, element_type)) for place, name in enumerate(partition)]
    for metric in metrics:
        whole = isinstance(metric, (Count, PeopleCount))
        fields += [(metric.output, int if whole else float), (metric.output + ERROR, float)]
    return RowTypeConstraint.from_fields(fields)


def _key_type(place: int, name: str, layout: Layout, element_type: object) -> Any:
    """Return the type of a key column: from the public list, or from the input's schema."""
    if layout.public is not None:
        kinds = {type(key[place]) for key in layout.public.keys}
        return kinds.pop() if len(kinds) == 1 and kinds <= {int, str, bool} else Any
    known = RowTypeConstraint.from_user_type(element_type)
    kind = dict(known._fields).get(name) if known is not None else None
    return kind if kind in (int, str, bool) else Any


def from_block(block: Block, names: tuple[str, ...]) -> Iterator[beam.Row]:
    """Return the rows of a released block."""
    for key, numbers in block:
        yield beam.Row(**dict(zip(names, (*key, *numbers), strict=True)))

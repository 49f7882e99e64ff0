"""What the provider file names: functions of plain values that return transforms of rows."""

import dataclasses
import datetime
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np

from beam_dp.beam_yaml.mappings import (
    aggregate_of,
    bounds_of,
    budget_of,
    columns_of,
)
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.transforms.known_columns import fields_of
from beam_dp.transforms.one_statistic import SelectPartitions
from beam_dp.transforms.stages.output_names import row_type

_KINDS = (bool, int, str, datetime.date)
_PLAIN: dict[Any, type] = {
    np.bool_: bool,
    np.str_: str,
    **dict.fromkeys((np.int8, np.int16, np.int32, np.int64), int),
}


def private_aggregate(
    person: Any,
    metrics: Any,
    budget: Any,
    *,
    partition: Any = None,
    bounds: Any = None,
    partitions: Any = None,
    shards: Any = None,
) -> beam.PTransform[Any, Any]:
    """Release statistics about people per partition.

    Args:
        person: The column that identifies a person.
        metrics: What to release, for example [count, {sum: spent}, {max: minutes}].
        budget: What the whole output may cost, {epsilon: 1, delta: 1e-6} or {rho: 0.1}.
        partition: The column, or columns, whose values name a partition.
        bounds: How much of the data a person may reach, {partitions: 3, rows_per_partition: 10}.
        partitions: A list of public keys, or {product: ...}, {files: ...} or {private: ...}.
        shards: How many parts the people are cut into on the way.
    """
    made = aggregate_of("PrivateAggregate", locals())
    return ReleasedRows(made, tuple(made.partition))


def select_partitions(
    person: Any, partition: Any, budget: Any, bounds: Any, pre_threshold: int = 1
) -> beam.PTransform[Any, Any]:
    """Release the keys of partitions that have enough people.

    Args:
        person: The column that identifies a person.
        partition: The column, or columns, whose values name a partition.
        budget: What the output may cost, {epsilon: 1, delta: 1e-6}.
        bounds: How many partitions a person keeps, {partitions: 3}.
        pre_threshold: Never name a partition with fewer people than this.
    """
    owner, columns = "SelectPartitions", columns_of(partition)
    limits = bounds_of(owner, bounds) or ContributionBounds(None)  # which is refused
    made = SelectPartitions(person, columns, budget_of(owner, budget), limits, pre_threshold)
    return ReleasedRows(made, tuple(columns))


@dataclasses.dataclass(eq=False)
class ReleasedRows(beam.PTransform[Any, Any]):
    """Apply a release, and give its rows a schema that other languages read.

    The keys of private partitions have the types that the schema of the input says. A key of
    another type, which such a schema does not allow, is left out: that looks at released keys only.

    Attributes:
        release: the transform.
        partition: the partition columns.
    """

    release: beam.PTransform[Any, Any]
    partition: tuple[str, ...]

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[Any]:
        """Release, then name the types of the keys."""
        known = dict(fields_of(rows) or ())
        released: beam.PCollection[Any] = rows | "Release" >> self.release
        fields = list(fields_of(released) or ())
        kinds = [_kind(known.get(name)) for name in self.partition]
        typed = [
            (name, kind if said is Any else said)
            for (name, said), kind in zip(fields, kinds, strict=False)
        ]
        after = [*typed, *fields[len(typed) :]]
        step = beam.FlatMap(fitting, [kind for _, kind in typed])
        out: beam.PCollection[Any] = released | "Typed" >> step.with_output_types(row_type(after))
        return out


def _kind(declared: Any) -> Any:
    """Return the type of a key column by the schema of the input: text, where it says nothing."""
    inner = getattr(declared, "inner_types", None)
    parts = list(inner()) if callable(inner) else getattr(declared, "__args__", (declared,))
    said = {_PLAIN.get(part, part) for part in parts} - {type(None)}
    return said.pop() if len(said) == 1 and said <= {*_KINDS} else str


def fitting(row: beam.Row, kinds: Sequence[Any]) -> Iterator[beam.Row]:
    """Yield a released row whose keys have these types; text stands for a key of another one."""
    cells = row.as_dict()
    for name, kind in zip(cells, kinds, strict=False):
        if kind is str and type(cells[name]) in _KINDS:
            cells[name] = str(cells[name])
        elif type(cells[name]) is not kind:
            return
    yield beam.Row(**cells)

"""What the provider file names: functions of plain values that return transforms of rows."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import apache_beam as beam

from beam_dp.beam_yaml.mappings import aggregate_of, options_of, statement_of
from beam_dp.beam_yaml.select import Select
from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.known_columns import fields_of
from beam_dp.transforms.stages.output_names import row_type


def private_aggregate(
    person: Any,
    metrics: Any = None,
    budget: Any = None,
    *,
    select: Any = None,
    partition: Any = None,
    bounds: Any = None,
    partitions: Any = None,
    shards: Any = None,
    period: Any = None,
    ledger_period: Any = None,
    keep: Any = None,
    nonnegative: bool = False,
    also_by: Any = None,
    **unknown: Any,
) -> beam.PTransform[Any, Any]:
    """Release statistics about people per partition.

    Args:
        person: The column that identifies a person.
        budget: What the whole output may cost, {epsilon: 1, delta: 1e-6} or {rho: 0.1}.
        metrics: What to release, for example [count, {sum: spent}, {max: minutes}].
        select: One SELECT ... FROM rows, which says metrics, partition and filters.
        partition: The column, or columns, whose values name a partition.
        bounds: How much of the data a person may reach, {partitions: 3, rows_per_partition: 10}.
        partitions: A list of public keys, or {product: ...}, {files: ...} or {private: ...}.
        shards: How many parts the people are cut into on the way.
        period: The column of the period; one person's rows of one period are then protected.
        ledger_period: The periods whose rows count, 2026-11-22 or 2026-11-01..2026-11-30.
        keep: Which numbers leave, reliable or {within: 0.25, at_least: {people_count: 100}}.
        nonnegative: Whether released numbers below 0 become 0.
        also_by: For jobs only: here a further table is one more PrivateAggregate.
        unknown: What is refused, with the name that may be meant.
    """
    given = {**locals(), **unknown}
    del given["unknown"]
    rule = "be left out: a transform releases one table"
    mend = "Write one PrivateAggregate for each table, with its share as budget."
    checks.require(given.pop("also_by") is None, "PrivateAggregate", "also_by", rule, mend)
    if given.pop("select") is None:
        return ReleasedRows(aggregate_of("PrivateAggregate", given))
    said = statement_of("PrivateAggregate", {**given, "select": select}).mapping
    parts = {name: said.get(name, part) for name, part in given.items()}
    options = options_of("PrivateAggregate", parts)
    del options["metrics"], options["partition"]
    asked = Select(select, **options)
    checks.require(len(asked.tables.tables) == 1, "PrivateAggregate", "select", rule, mend)
    return ReleasedRows(asked)


@dataclasses.dataclass(eq=False)
class ReleasedRows(beam.PTransform[Any, Any]):
    """Apply a release, and give its rows a schema that other languages read.

    Keys of private partitions, whose types are those of the data, become text.

    Attributes:
        release: the transform.
    """

    release: beam.PTransform[Any, Any]

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[Any]:
        """Release, then name the types of the keys."""
        released: beam.PCollection[Any] = rows | "Release" >> self.release
        fields = list(fields_of(released) or ())
        unknown = [name for name, kind in fields if kind is Any]
        after = [(name, str if kind is Any else kind) for name, kind in fields]
        step = beam.Map(with_text, unknown).with_output_types(row_type(after))
        out: beam.PCollection[Any] = released | "Typed" >> step
        return out


def with_text(row: beam.Row, names: Sequence[str]) -> beam.Row:
    """Return a released row with text in some columns."""
    cells = row.as_dict()
    return beam.Row(**{**cells, **{name: str(cells[name]) for name in names}})

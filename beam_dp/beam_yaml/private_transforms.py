"""What the provider file names: functions of plain values that return transforms of rows."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import apache_beam as beam

from beam_dp.beam_yaml import mappings
from beam_dp.beam_yaml.select import Select
from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.known_columns import fields_of
from beam_dp.transforms.private_tables import AGREE
from beam_dp.transforms.stages.output_names import OTHER, row_type


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
    suppress: Any = None,
    nonnegative: bool = False,
    also_by: Any = None,
    totals: Any = AGREE,
    **unknown: Any,
) -> beam.PTransform[Any, Any]:
    """Release statistics about people per partition.

    Args:
        person: The column that identifies a person.
        budget: What the whole output may cost, {epsilon: 1, delta: 1e-6} or {rho: 0.1}.
        metrics: What to release, for example [count, {sum: spent}, {max: minutes}].
        select: One SELECT ... FROM rows, which says metrics, partition and filters.
        partition: The column, or columns, whose values name a partition.
        bounds: How much one person may contribute, {partitions: 3, rows_per_partition: 10}.
        partitions: A list of public keys, or {product: ...}, {files: ...} or {private: ...}.
        shards: How many parts the people are cut into on the way.
        period: The column of the period; one person's rows of one period are then protected.
        ledger_period: The periods whose rows count, 2026-11-22 or 2026-11-01..2026-11-30.
        suppress: Which numbers are empty, unreliable or {beyond: 0.25, below: {people_count: 100}}.
        nonnegative: Whether released numbers below 0 become 0.
        also_by: Further tables of the same rows and budget, [store, [day, store], total]. Then there
            are several outputs, first, by_store, by_day_store and total.
        totals: Whether totals of these tables agree, or are apart, as they were drawn.
        unknown: What is refused, with the name that may be meant.
    """
    given = {name: _plain(value) for name, value in {**locals(), **unknown}.items()}
    del given["unknown"]
    known = [name for name in given if name not in unknown]
    mappings.check_words("PrivateAggregate", "config", unknown, known)
    subject, further = "PrivateAggregate", (given.pop("also_by"), given.pop("totals"))
    if given.pop("select") is None:
        run = mappings.tables_of(subject, mappings.aggregate_of(subject, given), *further)
        return ReleasedRows(run, run.endings)
    rule, hint = "be left out beside select", "Write GROUP BY ROLLUP (store, day)."
    checks.require(further[0] in mappings.NONE, subject, "also_by", rule, hint)
    mapping = mappings.statement_of(subject, {**given, "select": select}).mapping
    options = mappings.options_of(subject, {name: mapping.get(name, given[name]) for name in given})
    del options["metrics"], options["partition"]
    asked = Select(select, totals=further[1], **options)
    return ReleasedRows(asked, asked.tables.endings)


def _plain(value: Any) -> Any:
    """Return the rows in a value, which other languages write, as mappings of what they have."""
    fields = getattr(value, "as_dict", None) or getattr(value, "_asdict", None)
    if fields is not None:
        return {name: _plain(each) for name, each in fields().items() if each is not None}
    return list(map(_plain, value)) if isinstance(value, list) else value


@dataclasses.dataclass(eq=False)
class ReleasedRows(beam.PTransform[Any, Any]):
    """Apply a release, and give its rows schemas that other languages read; several have names.

    Keys of private partitions, whose types are those of the data, become text.

    Attributes:
        run: the release.
        endings: those of the names of its tables, the first table's first.
    """

    run: beam.PTransform[Any, Any]
    endings: Sequence[str]

    def expand(self, pcoll: beam.PCollection[Any]) -> Any:
        """Release, then name the types of the keys."""
        tables = pcoll | "Release" >> self.run
        tables = (tables,) if isinstance(tables, beam.PCollection) else tables
        released = zip(self.endings, tables, strict=True)
        out = {ending.strip("_") or "first": _typed(rows, ending) for ending, rows in released}
        return out if len(out) > 1 else out["first"]


def _typed(rows: beam.PCollection[Any], ending: str) -> beam.PCollection[Any]:
    fields = list(fields_of(rows) or ())
    unknown = [name for name, kind in fields if kind is Any]
    text = str | None if OTHER in dict(fields) else str
    step = beam.Map(with_text, unknown).with_output_types(
        row_type([(name, text if kind is Any else kind) for name, kind in fields])
    )
    out: beam.PCollection[Any] = rows | f"Typed{ending}" >> step
    return out


def with_text(row: beam.Row, names: Sequence[str]) -> beam.Row:
    """Return a released row with text in some columns; what is empty stays so."""
    cells = row.as_dict()
    texts = {name: None if cells[name] is None else str(cells[name]) for name in names}
    return beam.Row(**{**cells, **texts})

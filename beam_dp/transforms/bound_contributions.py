"""BoundContributions: keep as many rows of each person as the bounds allow, as rows.

`PrivateAggregate` bounds by itself, on columns that are summed before they travel; this transform
is for pipelines that go on with rows. A row travels as its canonical encoding, and a 128-bit keyed
hash of that tells rows apart, so that equal rows are one line with a multiplicity.
"""

import dataclasses
import marshal
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.bounding.accumulator import BATCH_LINES
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Column, Role, Table
from beam_dp.mechanisms.numerics import checks, hashing
from beam_dp.mechanisms.summaries import wire
from beam_dp.transforms.columns import layout as layouts
from beam_dp.transforms.columns import plain_values, row_fields
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.row_fields import FieldLists
from beam_dp.transforms.partitions import BOUNDS, PublicPartitions, check_bounds, check_public
from beam_dp.transforms.rows_of_people import RowsOfPeople
from beam_dp.transforms.stages import output_names, quick_steps, shard_number
from beam_dp.transforms.stages.bound_and_summarise import gather, packed_by_place
from beam_dp.transforms.stages.output_names import row_type

_SUBJECT = "BoundContributions"
_Texts = dict[tuple[int, int], bytes]
"""The encoding of each row by its digest."""
_FORMAT = 2  # of marshal: one without references, so that equal rows have equal bytes


def _digests(table: Table) -> list[tuple[int, int]]:
    return list(zip(*(column.view(np.uint64).tolist() for column in table.values), strict=True))


class _CollectRows(quick_steps.QuickStep):
    """Turn rows into packed lines by shard, reduced some hundred thousand rows at a time."""

    def __init__(self, layout: Layout, kept: Sequence[str], bounder: Bounder, shards: int) -> None:
        self._layout, self._keys = layout, len(layout.names) - 1
        self._names = (*layout.names[: self._keys], *kept)
        self._bounder, self._shards = bounder, shards

    def start_bundle(self) -> None:
        """Begin a bundle with no rows."""
        self._lists = FieldLists(self._names)

    def process(self, element: Any) -> Iterator[tuple[int, bytes]]:
        """Take one row, or one Arrow batch or table."""
        if row_fields.is_columnar(element):
            for batch in layouts.batches(element):
                self._extend(batch)
        else:
            self._lists.add(element)
        if len(self._lists) >= BATCH_LINES // 4:
            yield from self._packed()

    def _extend(self, batch: pa.RecordBatch) -> None:
        columns = {name: layouts.column_of(batch, name) for name in self._names}
        if batch.schema.metadata != row_fields.OF_DICTS:
            types = {name: column.type for name, column in columns.items()}
            layouts.check_types(self._layout, types)
        self._lists.extend(plain_values.to_list(columns[name]) for name in self._names)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the lines that are still held."""
        for element in self._packed():
            yield GlobalWindows.windowed_value(element)

    def _packed(self) -> Iterator[tuple[int, bytes]]:
        """Yield the collected rows as lines; the digest of each row is its value columns."""
        lists = self._lists.drain()
        texts = [
            marshal.dumps(tuple(map(plain_values.plain, row)), _FORMAT)
            for row in zip(*lists, strict=True)
        ]
        if not texts:
            return
        digests = hashing.digests(*hashing.pack(texts), self._layout.key).view(np.int64)
        indexes: list[object] = list(range(len(texts)))
        for table in self._layout.from_lists([*lists[: self._keys], indexes]):
            [chosen] = table.values
            table = dataclasses.replace(table, values=[digests[0, chosen], digests[1, chosen]])
            chosen_texts = (texts[index] for index in chosen.tolist())
            text_of = dict(zip(_digests(table), chosen_texts, strict=True))
            yield from self._by_shard(self._bounder.reduce(table), text_of)

    def _by_shard(self, table: Table, text_of: _Texts) -> Iterator[tuple[int, bytes]]:
        person_hash = self._bounder.person_hash(table)
        shard = (person_hash >> np.uint64(33)).astype(np.int64) % self._shards

        def packed(part: Table) -> bytes:
            texts = [text_of[digest] for digest in _digests(part)]
            return marshal.dumps((wire.pack(part), texts), _FORMAT)

        return packed_by_place(table, shard.astype(np.uint16), self._shards, packed)


def _unpacked(blob: bytes) -> tuple[Table, _Texts]:
    packed, texts = marshal.loads(blob)
    table = wire.unpack(packed)
    return table, dict(zip(_digests(table), texts, strict=True))


class _SettleRows(quick_steps.QuickStep):
    """Settle the bounds of the people of a shard, and restore their rows."""

    def __init__(self, bounder: Bounder, names: Sequence[str], skip: int) -> None:
        self._bounder, self._names, self._skip = bounder, tuple(names), skip

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[beam.Row]:
        """Take all lines of one shard, twice: rows are restored once it is settled which stay."""
        lines = gather((marshal.loads(blob)[0] for blob in element[1]), self._bounder)
        if lines is None:
            return
        settled = self._bounder.settle(lines)
        wanted, text_of = set(_digests(settled)), _Texts()
        for blob in element[1]:
            found = _unpacked(blob)[1]
            text_of.update((digest, found[digest]) for digest in wanted & found.keys())
        yield from self._restore(settled, text_of)

    def _restore(self, table: Table, text_of: _Texts) -> Iterator[beam.Row]:
        for digest, copies in zip(_digests(table), table.rows.tolist(), strict=True):
            values = map(plain_values.restored, marshal.loads(text_of[digest])[self._skip :])
            row = beam.Row(**dict(zip(self._names, values, strict=True)))
            for _ in range(copies):
                yield row


@dataclasses.dataclass(eq=False)
class BoundContributions(RowsOfPeople):
    """Keep as many rows of each person as the bounds allow. Not private by itself.

    In the output a person has rows in at most `bounds.partitions` partitions, at most
    `bounds.rows_per_partition` rows in each and at most `bounds.rows` in all, and as many as that
    where they own as many. If, say, a third of a person's rows in a partition stays, a third of
    each group of equal rows stays, rounded down or up. Hashes with a key that is drawn once per run
    decide which rows stay: the same rows under retry and recompute, however the data is cut into
    bundles. They decide it for each person alone, so that a person's rows never decide which rows
    of another person stay.

    One `beam.Row` per kept row, with the columns `person`, `partition` and `values`; a name that is
    no word of letters becomes one: `visit day` is `visit_day`.

    Edge cases:
        rows without a usable person or partition are dropped (see `columns.layout`); values of
        types other than numbers, text, bytes, booleans, dates, datetimes, decimals and UUIDs come
        out as None, and so do values that Python cannot hold (text that is no UTF-8, a date after
        9999).

    Args:
        person: the column that identifies a person.
        partition: the columns whose values name a partition; empty: one partition for all.
        bounds: at least one limit.
        values: further columns to keep.
        partitions: public partitions; rows of other partitions are dropped first.
        shards: how many parts the people are cut into on the way, a power of two; None: by the size
            of the input and the number of workers (see `stages.shard_number`).
        columns: all columns that the rows have, if these are dicts: see `PrivateAggregate`.

    Raises:
        TypeError, ValueError: when the pipeline is built.
    """

    person: str
    partition: Sequence[str]
    bounds: ContributionBounds
    values: Sequence[str] = ()
    partitions: PublicPartitions | None = None
    shards: int | None = None
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self._check_names()
        self.values = checks.columns(_SUBJECT, "values", self.values)
        self.bounds = check_bounds(_SUBJECT, self.bounds)
        limits = self.bounds.max_partitions, self.bounds.max_rows_per_partition
        rule = "have at least one limit, not none"
        checks.require(any(limits), _SUBJECT, "bounds", rule, BOUNDS)
        self._wanted = tuple(dict.fromkeys((self._subject, *self._partition, *self.values)))
        output_names.check_names(_SUBJECT, self._wanted, ())
        self.partitions = check_public(_SUBJECT, self._partition, self.partitions)

    def expand(self, pcoll: beam.PCollection[Any]) -> beam.PCollection[beam.Row]:
        """Collect lines, group them by person, settle the bounds, and restore the rows."""
        self._check_input(pcoll, self._wanted)
        # The one value column is the index of the row among those collected.
        index = (Column("", Role.VALUE, Fraction(1)),)
        layout = self._laid_out(index)
        bounder = Bounder(self.bounds, (), layout.key, keep_rows=True)
        collect = _CollectRows(
            layout, self._wanted, bounder, shard_number.number_of(pcoll, self.shards)
        )
        named = output_names.field_names(self._wanted, ())
        settle = _SettleRows(bounder, named, len(layout.names) - 1)
        kind = row_type([(name, Any) for name in named])
        return (
            pcoll
            | "CollectRows" >> beam.ParDo(collect).with_output_types(tuple[int, bytes])
            | "GroupByShard" >> beam.GroupByKey()
            | "SettleBounds" >> beam.ParDo(settle).with_output_types(kind)
        )

"""The first step: rows become packed contributions, merged per person and partition, by shard."""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.bounding.accumulator import Accumulator
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.summaries import wire
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import layout as layouts
from beam_dp.transforms.columns import row_fields
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.steps import quick_steps, runtime, shard_number

_BLOB_LINES = 1 << 15
_NOTHING: Iterator[tuple[int, bytes]] = iter(())


class Collect(quick_steps.QuickStep):
    """Turn rows into packed contributions by shard, merged as far as the bundle goes.

    Args:
        layout: which columns hold what.
        bounder: the bounding of the run.
        shards: how many parts the people are cut into; a power of two.
    """

    def __init__(self, layout: Layout, bounder: Bounder, shards: int) -> None:
        self._layout, self._bounder, self._shards = layout, bounder, shards

    def setup(self) -> None:
        """Return the memory that building the pipeline used."""
        self._accumulator = Accumulator(self._bounder)
        runtime.give_back()

    def start_bundle(self) -> None:
        """Begin a bundle with no rows: a bundle that failed leaves nothing behind."""
        pool, ahead = runtime.pool(), runtime.threads()
        self._accumulator = Accumulator(self._bounder, pool=pool, ahead=ahead)
        self._rows = row_fields.FieldLists(self._layout.names)
        self._add_row = self._rows.add

    def process(self, element: Any) -> Iterator[tuple[int, bytes]]:
        """Take one row, or one Arrow batch or table."""
        if type(element) is not dict and row_fields.is_columnar(element):
            return self._take_batches(element)
        # No generator and no further call for each row: these would take longer than the row.
        if not self._add_row(element):
            return _NOTHING
        return itertools.chain.from_iterable(map(self._take, self._tables()))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the contributions that are still held."""
        tables = [full for rows in self._tables() for full in self._accumulator.add(rows)]
        tables += self._accumulator.drain()
        for element in itertools.chain.from_iterable(map(self._pack, tables)):
            yield GlobalWindows.windowed_value(element)
        self._accumulator = Accumulator(self._bounder)  # runners keep the step: free its table
        runtime.give_back()

    def teardown(self) -> None:
        """Let go of threads and rows; runners do this at the end and after a failure."""
        self._accumulator.forget()

    def _tables(self) -> list[Table]:
        """Return the collected rows as tables."""
        return self._layout.from_lists(self._rows.drain()) if len(self._rows) else []

    def _take_batches(self, element: pa.Table | pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        for batch in layouts.batches(element):
            yield from self._take(functools.partial(self._layout.from_batch, batch))

    def _take(self, rows: Table | Callable[[], Table]) -> Iterator[tuple[int, bytes]]:
        for full in self._accumulator.add(rows):
            yield from self._pack(full)

    def _pack(self, table: Table) -> Iterator[tuple[int, bytes]]:
        shift = np.uint64(64 - self._shards.bit_length() + 1)
        shard = np.zeros(len(table), np.uint16)
        if self._shards > 1:
            shard = (self._bounder.hashes(table)[0] >> shift).astype(np.uint16)
        if (shard[1:] < shard[:-1]).any():  # reduced lines are in order already
            order = np.argsort(shard, kind="stable")
            table, shard = table.take(order), shard[order]
        edges = np.searchsorted(shard, np.arange(self._shards + 1)).tolist()
        for number, (start, end) in enumerate(itertools.pairwise(edges)):
            for low in range(start, end, _BLOB_LINES):
                part = table.take(slice(low, min(low + _BLOB_LINES, end)))
                yield number, wire.pack_table(part)


def collecting(
    rows: beam.PCollection[Any],
    layout: Layout,
    bounder: Bounder,
    shards: int | None,
) -> beam.ParDo:
    """Return the step that collects `rows`; check the types of known fields.

    Args:
        rows: the rows.
        layout: which columns hold what.
        bounder: the bounding of the run.
        shards: how many parts the people are cut into, a power of two; None: by `shard_number`.
    """
    layouts.check_types(layout, known_columns.types_of(rows))
    collect = Collect(layout, bounder, shard_number.number_of(rows, shards))
    return beam.ParDo(collect).with_output_types(tuple[int, bytes])

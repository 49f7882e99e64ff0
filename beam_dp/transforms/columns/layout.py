"""Turn rows of any kind into columns of contributions: the door of every transform.

Rows come as dicts, as `beam.Row`, NamedTuple or dataclass (`row_fields`), or as Arrow record
batches and tables. A row counts
if its person is an id and every part of its partition is a key (`ids`); otherwise it is
dropped, by itself and without a trace. A value that is no number (`fixed_point`) is absent: the row
counts as a row and adds nothing to what is computed from that column. Fields that nobody asked for
are never looked at. What a row is made of never reaches an exception, a log or a counter; the
errors raised here name columns and Arrow types, which are not data.
"""

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.transforms.columns import (
    compared_values,
    fixed_point,
    ids,
    partition_keys,
    person_epsilon,
    public_keys,
    row_order,
)
from beam_dp.transforms.columns.row_fields import FieldLists

BATCH_ROWS = 1 << 18
_BUFFERED_ROWS = 1 << 16


@dataclasses.dataclass(frozen=True)
class Layout:
    """Which columns hold what.

    Attributes:
        person: the column that identifies the person.
        partition: the columns whose values name the partition; empty: one partition.
        values: the value columns.
        units: the grid of each value column.
        items: the columns whose values are only compared; after the value columns in a table.
        second: whether the first of them identifies the second owner of a row.
        flags: the columns that are compared with one value, and that value; after the items in a
            table, as 1 where they are equal and 0 where not.
        public: the public keys; None: partitions are private.
        key: the run's key.
        orders: the columns that say which row is the last; after the flags (`row_order`).
        tiers: the column of people's own epsilons, and the public ones in rising order; last in a
            table, as the place of the row's epsilon. Rows with another one are dropped.
    """

    person: str
    partition: tuple[str, ...]
    values: tuple[str, ...]
    units: tuple[Fraction, ...]
    public: public_keys.PublicKeys | None
    key: bytes
    items: tuple[str, ...] = ()
    second: bool = False
    flags: tuple[tuple[str, Any], ...] = ()
    orders: tuple[str, ...] = ()
    tiers: tuple[str, tuple[Fraction, ...]] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that are read, in the order of `collect`."""
        flags = (name for name, _ in self.flags)
        epsilons = self.tiers[:1] if self.tiers is not None else ()
        read = (*self.values, *self.items, *flags, *self.orders, *epsilons)
        return (self.person, *self.partition, *read)

    def from_batch(self, batch: pa.RecordBatch) -> Table:
        """Return the contributions in a record batch.

        Raises:
            ValueError: for a column that is missing.
            TypeError: for a column of a type that cannot hold what it should.
        """
        columns = [column_of(batch, name) for name in self.names]
        check_types(
            self, {name: column.type for name, column in zip(self.names, columns, strict=True)}
        )
        person, valid = ids.identify(columns[0], self.key)
        partition, kept, names = self._partitions(columns[1 : 1 + len(self.partition)], len(batch))
        found = columns[1 + len(self.partition) :]
        units = zip(found, self.units, strict=False)
        values = [fixed_point.to_units(column, unit) for column, unit in units]
        compared = found[len(self.units) :]
        values += [
            compared_values.codes(column, self.key) for column in compared[: len(self.items)]
        ]
        values += map(self._flag, compared[len(self.items) :], self.flags)
        values += map(row_order.ranks, self._last(columns))
        return self._table(person, partition, values, valid & kept, names, columns[-1])

    def from_lists(self, lists: list[list[object]]) -> list[Table]:
        """Return the contributions in lists of Python values, one per name."""
        end = 1 + len(self.partition)
        parts = [ids.to_array(values) for values in lists[1:end]]
        if all(column is not None and ids.supported(column.type) for column in parts):
            return [self._from_lists(lists, parts)]
        return [
            self._from_lists(group, [ids.to_array(values) for values in group[1:end]])
            for group in _by_type(lists, end)
        ]

    def _from_lists(self, lists: list[list[object]], parts: list[pa.Array]) -> Table:
        person, valid = ids.identify_values(lists[0], self.key)
        partition, kept, names = self._partitions(parts, len(lists[0]))
        found = lists[1 + len(parts) :]
        units = zip(found, self.units, strict=False)
        values = [fixed_point.values_to_units(column, unit) for column, unit in units]
        compared = found[len(self.units) :]
        if self.second:
            compared[0] = [
                None if compared_values.is_float(value) else value for value in compared[0]
            ]
        values += [
            compared_values.codes_of_values(column, self.key)
            for column in compared[: len(self.items)]
        ]
        values += map(self._flag_values, compared[len(self.items) :], self.flags)
        values += map(row_order.ranks_of_values, self._last(lists))
        return self._table(person, partition, values, valid & kept, names, lists[-1])

    def _last(self, columns: list[Any]) -> list[Any]:
        end = len(columns) - (self.tiers is not None)
        return columns[end - len(self.orders) : end]

    def _table(
        self,
        person: np.ndarray,
        partition: np.ndarray,
        values: list[np.ndarray],
        valid: np.ndarray,
        names: dict[tuple[int, int], bytes],
        last: pa.Array | list[object],
    ) -> Table:
        """Return the table of the valid rows; with tiers, of those whose epsilon is one of them."""
        if self.tiers is not None:
            tier = person_epsilon.places(last, self.tiers[1])
            values, valid = [*values, tier], valid & (tier >= 0)
        table = Table(person, partition, np.ones(len(valid), np.int64), values, names)
        return table if valid.all() else table.take(valid)

    def _flag(self, column: pa.Array, flag: tuple[str, Any]) -> np.ndarray:
        """Return 1 where a column has what it is compared with, 0 where not."""
        if callable(flag[1]):
            return compared_values.judged_column(column, flag[1])
        return compared_values.equal(compared_values.codes(column, self.key), flag[1], self.key)

    def _flag_values(self, values: list[object], flag: tuple[str, Any]) -> np.ndarray:
        if callable(flag[1]):
            return compared_values.judged(values, flag[1])
        return compared_values.equal(
            compared_values.codes_of_values(values, self.key), flag[1], self.key
        )

    def _partitions(
        self, columns: list[pa.Array], size: int
    ) -> tuple[np.ndarray, np.ndarray, dict[tuple[int, int], bytes]]:
        if not self.partition:
            return np.zeros((1, size), np.uint64), np.ones(size, bool), {}
        if self.public is None:
            return partition_keys.name_keys(columns, self.key)
        places = self.public.places(columns, self.key)
        return np.maximum(places, 0).astype(np.uint64)[None], places >= 0, {}


def fresh_key() -> bytes:
    """Return the key of a new run: it decides which rows stay, and is no secret of the noise."""
    return Noise().words(4).tobytes()


def _by_type(lists: list[list[object]], end: int) -> Iterator[list[list[object]]]:
    """Return the rows that have a key, in groups whose key parts have the same types."""
    parts = [[partition_keys.clean(part) for part in values] for values in lists[1:end]]
    columns = [lists[0], *parts, *lists[end:]]
    groups: dict[tuple[type, ...], list[int]] = {}
    for place, row in enumerate(zip(*parts, strict=True)):
        if None not in row:
            groups.setdefault(tuple(map(type, row)), []).append(place)
    for places in groups.values():
        yield [[values[place] for place in places] for values in columns]


def check_types(layout: Layout, types: dict[str, pa.DataType]) -> None:
    """Refuse columns of Arrow types that cannot hold ids, keys or values."""
    for name in (layout.person, *layout.items[: layout.second], *layout.partition):
        if name in types and not ids.supported(types[name]):
            raise TypeError(
                f"column {name!r} must hold integers, text, dates or booleans to identify people "
                f"or partitions, not {types[name]}. Cast it before this transform."
            )
    for name in (*layout.items, *(flag for flag, _ in layout.flags)):
        if name in types and not compared_values.supported(types[name]):
            raise TypeError(
                f"column {name!r} must hold numbers, text, dates or booleans to be compared, not "
                f"{types[name]}. Cast it before this transform."
            )
    for name in layout.orders:
        if name in types and not row_order.supported(types[name]):
            raise TypeError(
                f"column {name!r} must hold numbers, dates or timestamps to say which row is the "
                f"last, not {types[name]}. Cast it before this transform."
            )
    epsilons = layout.tiers[:1] if layout.tiers is not None else ()
    for name in (*layout.values, *epsilons):
        if name in types and not fixed_point.supported(types[name]):
            raise TypeError(
                f"column {name!r} must hold numbers, not {types[name]}. "
                "Cast it before this transform."
            )


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the one column of that name.

    Raises:
        ValueError: for none, or several.
        TypeError: for an extension type that is written in Python.
    """
    places = batch.schema.get_all_field_indices(name)
    if len(places) != 1:
        raise ValueError(
            f"column {name!r} must occur once in every batch, not {len(places)} times."
        )
    # Arrow makes an array of a type that is written in Python, and its name, by that type's code.
    if issubclass(type(batch.schema.field(places[0]).type), pa.ExtensionType):
        raise TypeError(
            f"column {name!r} must hold values of one of Arrow's own types, not of an extension. "
            "Cast it before this transform, to the type that it is stored in."
        )
    return batch.column(places[0])


def batches(element: pa.Table | pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Return an Arrow element as record batches of bounded size, without copying."""
    table = pa.Table.from_batches([element]) if isinstance(element, pa.RecordBatch) else element
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        if len(batch):
            yield batch


class RowBuffer:
    """Collect rows one by one into lists, and hand them out as tables.

    Args:
        layout: which fields are read.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._lists = FieldLists(layout.names)

    def add(self, row: object) -> list[Table]:
        """Take one row; return tables when enough rows have come together."""
        if self._lists.add(row) and len(self._lists) >= _BUFFERED_ROWS:
            return self.flush()
        return []

    def flush(self) -> list[Table]:
        """Return what is held as tables."""
        return self._layout.from_lists(self._lists.drain()) if len(self._lists) else []

"""Turn rows of any kind into columns of contributions: every transform reads its rows here.

Rows come as dicts, as `beam.Row`, NamedTuple or dataclass (`row_fields`), or as Arrow record
batches and tables. A row counts if its person is an id and every part of its partition is a key
(`ids`); otherwise it is dropped, by itself and without a trace. A value that is no number
(`fixed_point`) is absent: the row counts as a row and adds nothing to what is computed from that
column. Where rows have several owners, a row counts if any of them is an id (`owner_lines`). Fields
that no column of the layout names are never looked at. No content of a row reaches an exception, a
log or a counter; the errors raised here name columns and Arrow types, which are not data.

*Schemas are public.* A batch without a wanted column, or with one of a wrong type, fails the job,
and the error names the columns of the batch. That tells nothing of a person where the schema is
that of the program or of the file, the same for all batches, a batch of nobody included. Who makes
batches of rows must give them a schema that is written down (`pa.RecordBatch.from_pylist(rows,
schema=schema)`): one that is inferred would be an answer about the rows.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.summaries import owner_lines
from beam_dp.transforms.columns import ids, partition_keys, public_keys, roles
from beam_dp.transforms.columns.row_fields import FieldLists

BATCH_ROWS = 1 << 18
_BUFFERED_ROWS = 1 << 16


@dataclasses.dataclass(frozen=True)
class Layout:
    """Which columns hold what.

    Attributes:
        person: the column that identifies the person.
        partition: the columns whose values name the partition; empty: one partition.
        columns: the other columns that are read, in the order of a table. Rows whose epsilon is
            none of the public epsilons are dropped.
        public: the public keys; None: partitions are private.
        key: the run's key.
    """

    person: str
    partition: tuple[str, ...]
    columns: tuple[Column, ...]
    public: public_keys.PublicKeys | None
    key: bytes

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that are read, in the order of `from_lists`."""
        return (self.person, *self.partition, *(column.name for column in self.columns))

    def from_batch(self, batch: pa.RecordBatch) -> Table:
        """Return the contributions in a record batch.

        Raises:
            ValueError: for a column that is missing.
            TypeError: for a column of a type that does not fit its role.
        """
        arrays = [column_of(batch, name) for name in self.names]
        check_types(
            self, {name: array.type for name, array in zip(self.names, arrays, strict=True)}
        )
        end = 1 + len(self.partition)
        person, valid = ids.identify(arrays[0], self.key)
        partition, kept, names = self._partitions(arrays[1:end], len(batch))
        values = [
            roles.from_arrow(column, array, self.key)
            for column, array in zip(self.columns, arrays[end:], strict=True)
        ]
        person, valid, values = self._owners(person, valid, values)
        return self._table(person, partition, values, valid & kept, names)

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
        values = [
            roles.from_values(column, listed, self.key)
            for column, listed in zip(self.columns, lists[1 + len(parts) :], strict=True)
        ]
        person, valid, values = self._owners(person, valid, values)
        return self._table(person, partition, values, valid & kept, names)

    def _table(
        self,
        person: np.ndarray,
        partition: np.ndarray,
        values: list[np.ndarray],
        valid: np.ndarray,
        names: dict[tuple[int, int], bytes],
    ) -> Table:
        """Return the table of the valid rows; an epsilon, if there is one, must be a public one."""
        for column, numbers in zip(self.columns, values, strict=True):
            if column.role is Role.EPSILON:
                valid = valid & (numbers >= 0)
        table = Table(person, partition, np.ones(len(valid), np.int64), values, names)
        return table if valid.all() else table.take(valid)

    def _owners(
        self, person: np.ndarray, known: np.ndarray, values: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Return the first owner of each row, whether there is one, and the values with the others.

        Args:
            person: the identity in the first role.
            known: whether there is one.
            values: the values of all columns, among which are the codes in the other roles.
        """
        others = [i for i, column in enumerate(self.columns) if column.role is Role.OWNER]
        if not others:
            return person, known, values
        first = np.where(known, owner_lines.code(person, self.key), integers.LOWEST)
        codes = owner_lines.in_order(np.stack([first, *(values[i] for i in others)]))
        ordered = dict(zip(others, codes[1:], strict=True))
        values = [ordered.get(i, column) for i, column in enumerate(values)]
        return codes[:1].view(np.uint64), codes[0] != integers.LOWEST, values

    def _partitions(
        self, columns: list[pa.Array], size: int
    ) -> tuple[np.ndarray, np.ndarray, dict[tuple[int, int], bytes]]:
        if not self.partition:
            return np.zeros((1, size), np.uint64), np.ones(size, bool), {}
        if self.public is None:
            return partition_keys.name_keys(columns, self.key)
        indexes = self.public.indexes(columns, self.key)
        known = indexes >= 0
        if not known.all():
            indexes = np.maximum(indexes, 0)
        return indexes.view(np.uint64)[None], known, {}


def fresh_key() -> bytes:
    """Return the key of a new run. It decides which rows stay; the noise does not depend on it."""
    return Noise().words(4).tobytes()


def _by_type(lists: list[list[object]], end: int) -> Iterator[list[list[object]]]:
    """Return the rows that have a key, in groups whose key parts have the same types."""
    parts = [[partition_keys.clean(part) for part in values] for values in lists[1:end]]
    columns = [lists[0], *parts, *lists[end:]]
    groups: dict[tuple[type, ...], list[int]] = {}
    for index, row in enumerate(zip(*parts, strict=True)):
        if None not in row:
            groups.setdefault(tuple(map(type, row)), []).append(index)
    for indexes in groups.values():
        yield [[values[index] for index in indexes] for values in columns]


def check_types(layout: Layout, types: dict[str, pa.DataType]) -> None:
    """Refuse columns of Arrow types that do not fit their role.

    Args:
        layout: the role of each column.
        types: the types that are known, by column.
    """
    named = [(name, Role.OWNER) for name in (layout.person, *layout.partition)]
    named += [(column.name, column.role) for column in layout.columns]
    for name, role in named:
        if name in types:
            roles.check_type(name, role, types[name])


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the column of that name.

    Raises:
        ValueError: for no such column, or several.
        TypeError: for an extension type that is written in Python.
    """
    indexes = batch.schema.get_all_field_indices(name)
    if len(indexes) != 1:
        raise ValueError(
            f"column {name!r} must occur once in every batch, not {len(indexes)} times. One has: "
            f"{checks.listed(batch.schema.names)}."
        )
    # For a type that is written in Python, Arrow runs that type's code to make an array or a name.
    if issubclass(type(batch.schema.field(indexes[0]).type), pa.ExtensionType):
        raise TypeError(
            f"column {name!r} must hold values of one of Arrow's own types, not of an extension. "
            "Cast it before this transform, to the type that it is stored in."
        )
    return batch.column(indexes[0])


def batches(element: pa.Table | pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Return an Arrow element as record batches of bounded size, without copying."""
    table = pa.Table.from_batches([element]) if isinstance(element, pa.RecordBatch) else element
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        if len(batch):
            yield batch


class RowBuffer:
    """Collect rows one by one into lists, and turn the lists into tables.

    Args:
        layout: which fields are read.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._lists = FieldLists(layout.names)
        self.add = self._lists.add
        """Take one row; return whether it is time to ask for tables."""

    def full(self) -> list[Table]:
        """Return the rows as tables if the buffer is full."""
        return self.flush() if len(self._lists) >= _BUFFERED_ROWS else []

    def flush(self) -> list[Table]:
        """Return the rows in the buffer as tables."""
        return self._layout.from_lists(self._lists.drain()) if len(self._lists) else []

"""The table of contributions, as columns: one line per person, partition and different row."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from beam_dp.mechanisms.bounding.ordering import pick
from beam_dp.mechanisms.numerics import integers


@dataclasses.dataclass(frozen=True)
class Field:
    """One number per (person, partition): an operation over the values of one column.

    Attributes:
        column: the index of the value column.
        operation: "sum", "max", "min", "count" (rows whose value is present), "peak" (the largest
            magnitude), or "distinct" (how many different values).
    """

    column: int
    operation: str


@dataclasses.dataclass
class Table:
    """Columns of contributions, one line per row, per distinct row, or per pair.

    Attributes:
        person: identity of the person, uint64 of shape (1 or 2, n).
        partition: identity of the partition, uint64 of shape (1 or 2, n).
        rows: how many input rows the line stands for, int64.
        values: one exact column per value column, or per field once they are aggregated.
        names: the encoded key of each partition that is identified by a hash.
    """

    person: np.ndarray
    partition: np.ndarray
    rows: np.ndarray
    values: list[np.ndarray]
    names: dict[tuple[int, int], bytes] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: np.ndarray | slice) -> "Table":
        """Return the lines at `index`; the names stay as they are."""
        return Table(
            pick(self.person, index),
            pick(self.partition, index),
            self.rows[index],
            [column[index] for column in self.values],
            self.names,
        )


def prune(table: Table) -> Table:
    """Return the table without the names of partitions that it no longer has."""
    if len(table.names) <= len(table):
        return table
    present = two_words(table.partition)
    pairs = set(zip(*present.tolist(), strict=True))
    names = {pair: name for pair, name in table.names.items() if pair in pairs}
    return dataclasses.replace(table, names=names)


def concatenate(tables: Sequence[Table]) -> Table:
    """Return the lines of all tables, one after the other."""
    if len(tables) == 1:
        return tables[0]
    names: dict[tuple[int, int], bytes] = {}
    for table in tables:
        names.update(table.names)
    return Table(
        join_identities([table.person for table in tables]),
        join_identities([table.partition for table in tables]),
        np.concatenate([table.rows for table in tables]),
        [
            integers.concatenate(columns)
            for columns in zip(*(table.values for table in tables), strict=True)
        ],
        names,
    )


def join_identities(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return identity columns one after the other; a missing second word is 0."""
    width = max(column.shape[0] for column in columns)
    padded = [
        np.concatenate([column, np.zeros((width - column.shape[0], column.shape[1]), np.uint64)])
        for column in columns
    ]
    return np.concatenate(padded, axis=1)


def two_words(identity: np.ndarray) -> np.ndarray:
    """Return an identity column of both words, the second one 0 where it was missing."""
    return join_identities([identity, np.zeros((2, 0), np.uint64)])

"""The table of contributions, as columns: one line per person, partition and different row."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from beam_dp.mechanisms.bounding.ordering import pick
from beam_dp.mechanisms.numerics import integers

OF_ROWS = ("distinct", "mode")
"""Operations that need all settled rows of a person at once."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One number per (person, partition): an operation over the values of one column.

    Attributes:
        column: the index of the value column.
        operation: "sum", "max", "min", "count" (rows whose value is present), "peak" (the largest
            magnitude), "squares" (the sum of the squared values), "distinct" (how many different
            values), or "mode" (the most rows with one value).
        low: values below count as that, in units; None: none do.
        high: values above count as that; None: none do.
    """

    column: int
    operation: str
    low: int | None = None
    high: int | None = None


@dataclasses.dataclass
class Table:
    """Columns of contributions, one line per row, per distinct row, or per pair.

    Attributes:
        person: identity of the person, uint64 of shape (1 or 2, n).
        partition: identity of the partition, uint64 of shape (1 or 2, n).
        rows: how many input rows the line stands for, int64.
        values: one exact column per value column, or per field once they are aggregated.
        names: the encoded key of each partition that is identified by a hash.
        hashes: the hash of the person and the priority of the pair, uint64 of shape (2, n), once a
            `Bounder` has computed them.
    """

    person: np.ndarray
    partition: np.ndarray
    rows: np.ndarray
    values: list[np.ndarray]
    names: dict[tuple[int, int], bytes] = dataclasses.field(default_factory=dict)
    hashes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: np.ndarray | slice) -> "Table":
        """Return the lines at `index`; the names stay as they are."""
        if not isinstance(index, slice) and index.dtype == bool:
            index = np.flatnonzero(index)
        return Table(
            pick(self.person, index),
            pick(self.partition, index),
            self.rows[index],
            [column[index] for column in self.values],
            self.names,
            None if self.hashes is None else pick(self.hashes, index),
        )


def named(tables: Sequence[Table], names: dict[tuple[int, int], bytes]) -> list[Table]:
    """Return the tables with one dict for all: of these names, those that they still have."""
    if len(names) > sum(map(len, tables)):
        pairs = {pair for each in tables for pair in zip(*_pairs(each), strict=True)}
        names = {pair: name for pair, name in names.items() if pair in pairs}
    return [dataclasses.replace(each, names=names) for each in tables]


def _pairs(table: Table) -> list[list[int]]:
    words: list[list[int]] = two_words(table.partition).tolist()
    return words


def concatenate(tables: Sequence[Table]) -> Table:
    """Return the lines of all tables, one after the other."""
    if len(tables) == 1:
        return tables[0]
    hashes = [table.hashes for table in tables if table.hashes is not None]
    return Table(
        join_identities([table.person for table in tables]),
        join_identities([table.partition for table in tables]),
        np.concatenate([table.rows for table in tables]),
        [
            integers.concatenate(columns)
            for columns in zip(*(table.values for table in tables), strict=True)
        ],
        all_names(tables),
        np.concatenate(hashes, axis=1) if len(hashes) == len(tables) else None,
    )


def all_names(tables: Sequence[Table]) -> dict[tuple[int, int], bytes]:
    """Return the names of all tables; many tables may share one dict of them."""
    different = list({id(table.names): table.names for table in tables if table.names}.values())
    if len(different) <= 1:
        return different[0] if different else {}
    names: dict[tuple[int, int], bytes] = {}
    for some in different:
        names.update(some)
    return names


def join_identities(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return identity columns one after the other; a missing second word is 0."""
    width = max(column.shape[0] for column in columns)
    return np.concatenate([_padded(column, width) for column in columns], axis=1)


def _padded(column: np.ndarray, width: int) -> np.ndarray:
    missing = width - column.shape[0]
    if not missing:
        return column
    return np.concatenate([column, np.zeros((missing, column.shape[1]), np.uint64)])


def two_words(identity: np.ndarray) -> np.ndarray:
    """Return an identity column of both words, the second one 0 where it was missing."""
    return join_identities([identity, np.zeros((2, 0), np.uint64)])

"""Lines that people own: what statistics of more than one number per person are computed from.

A maximum or a sum needs one number per person and partition. The k-th largest row, the number of
different values, the most frequent one, or rows of two owners need to know who owns what: lines
(owner, second owner, item, count) of one partition. `Relation` says which lines a statistic needs,
`Owned` holds those of many partitions, merges equal ones, and hands them out per partition.

*Hashes.* An owner and an item are 63 bits of a keyed hash of their identity (`code`). For every
fixed key two people who share a code are one owner in everything that follows. That costs no
privacy: to remove the one owner is to remove both people, so that the loss still moves by at most 1
when one of the two is added (the profile of the set with that owner added or enlarged interlaces in
the same way). Two items that share a code are counted as one: with n different values the count is
below the truth with a probability of at most n^2 / 2^64.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms import contributions, exact, hashing, ordering
from beam_dp.mechanisms.contributions import Table

_WIDEST = 1 << 62


def code(identity: np.ndarray, key: bytes) -> np.ndarray:
    """Return 63 bits per identity, a keyed hash of both of its words, as int64.

    Args:
        identity: uint64 of shape (1 or 2, n).
        key: the run's key.
    """
    constant = hashing.salt(key, "code")
    mixed = hashing.mix(hashing.condense(identity, constant), constant)
    return (mixed >> np.uint64(1)).astype(np.int64)


@dataclasses.dataclass(frozen=True)
class Relation:
    """Which lines of the settled rows a statistic needs.

    Attributes:
        column: the place of the column whose values are the items; -1: every row has item 0.
        second: the place of the column that holds the code of a second owner; -1: one owner.
        weight: the place of the column whose values are summed instead of rows; -1: rows. Values
            below 0 count as 0.
    """

    column: int = -1
    second: int = -1
    weight: int = -1

    keep = 0

    def lines(self, table: Table, place: int, key: bytes) -> "Owned":
        """Return the lines of settled rows; rows without a value have none."""
        present = np.ones(len(table), bool)
        for column in (self.column, self.second, self.weight):
            if column >= 0:
                present &= ~exact.is_missing(table.values[column], exact.LOWEST)
        table = table.take(present)
        person = code(table.person, key)
        return Owned(
            table.partition,
            np.full(len(table), place, np.int64),
            person,
            person if self.second < 0 else table.values[self.second],
            _items(table, self.column),
            _weights(table, self.weight),
            table.names,
        )


def _items(table: Table, column: int) -> np.ndarray:
    """Return the items: the values, beyond 2^62 units those bounds."""
    if column < 0:
        return np.zeros(len(table), np.int64)
    values = table.values[column]
    if values.dtype == object:
        return np.array([max(-_WIDEST, min(_WIDEST, value)) for value in values], np.int64)
    return values


def _weights(table: Table, column: int) -> np.ndarray:
    if column < 0:
        return table.rows
    values = table.values[column]
    return exact.product(np.where(np.asarray(values > 0, bool), values, 0), table.rows)


class Lines(NamedTuple):
    """The lines of one partition; owners are numbered from 0."""

    people: np.ndarray
    second: np.ndarray
    items: np.ndarray
    counts: np.ndarray


@dataclasses.dataclass
class Owned:
    """Lines (partition, relation, owner, second owner, item) with their count or weight."""

    partition: np.ndarray
    relation: np.ndarray
    person: np.ndarray
    second: np.ndarray
    item: np.ndarray
    count: np.ndarray
    names: dict[tuple[int, int], bytes] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.relation)

    @classmethod
    def nothing(cls) -> "Owned":
        """Return no lines."""
        empty = np.empty(0, np.int64)
        return cls(np.empty((1, 0), np.uint64), empty, empty, empty, empty, empty)

    def take(self, index: np.ndarray | slice) -> "Owned":
        """Return the lines at `index`."""
        return Owned(
            ordering.pick(self.partition, index),
            self.relation[index],
            self.person[index],
            self.second[index],
            self.item[index],
            self.count[index],
            self.names,
        )

    def of(self, places: np.ndarray, size: int, relation: int) -> list[Lines]:
        """Return the lines of one relation for each of `size` partitions.

        Args:
            places: for each line, the place of its partition; -1: not wanted.
            size: the number of partitions.
            relation: which relation.
        """
        wanted = np.flatnonzero((places >= 0) & (self.relation == relation))
        wanted = wanted[np.argsort(places[wanted], kind="stable")]
        edges = np.searchsorted(places[wanted], np.arange(size + 1)).tolist()
        return [self._lines(wanted[edges[i] : edges[i + 1]]) for i in range(size)]

    def _lines(self, index: np.ndarray) -> Lines:
        owners = np.concatenate([self.person[index], self.second[index]])
        _, codes = np.unique(owners, return_inverse=True)
        return Lines(codes[: len(index)], codes[len(index) :], self.item[index], self.count[index])


def collect(table: Table, measures: Sequence[object], key: bytes) -> Owned:
    """Return the lines of every relation among `measures`, from settled rows."""
    found = [
        relation.lines(table, place, key)
        for place, relation in enumerate(measures)
        if isinstance(relation, Relation)
    ]
    return merge(found)


def merge(parts: Sequence[Owned]) -> Owned:
    """Return all lines, equal ones merged."""
    if not parts:
        return Owned.nothing()
    names: dict[tuple[int, int], bytes] = {}
    for part in parts:
        names.update(part.names)
    joined = Owned(
        contributions.join_identities([part.partition for part in parts]),
        np.concatenate([part.relation for part in parts]),
        np.concatenate([part.person for part in parts]),
        np.concatenate([part.second for part in parts]),
        np.concatenate([part.item for part in parts]),
        exact.concatenate([part.count for part in parts]),
        names,
    )
    return _merged(joined) if len(joined) else joined


def _merged(lines: Owned) -> Owned:
    keys = (lines.item, lines.second, lines.person, lines.relation, *lines.partition)
    order = np.lexsort(keys)
    lines = lines.take(order)
    columns = (lines.relation, lines.person, lines.second, lines.item)
    new = ordering.changes(lines.partition)
    for column in columns:
        new |= ordering.changes(column[None])
    starts = np.flatnonzero(new)
    count = exact.segment_sums(lines.count, starts)
    return dataclasses.replace(lines.take(starts), count=count)

"""Owner lines: who owns which values, for statistics of more than one number per person.

A maximum or a sum needs one number per person and partition. The k-th largest row, the number of
different values, the most frequent value, or rows with several owners need to know who owns what:
lines (owners, item, count) of one partition. `Relation` says which lines a statistic needs. `Owned`
holds the lines of many partitions, merges equal ones, and returns them per partition.

*Who is who.* People are told apart by their whole identity, of which `owners` makes a one-to-one
scramble: two people are one owner here only where they are one person everywhere, for which
`numerics.hashing` has the bound (0 for integer ids).

*Rows with several owners* have a column per role, and disappear when any owner does. The order of
roles plays no part, a person in two roles is one owner, and a role without an id has none: the row
belongs to the others. The codes (`code`, 63 bits) of its owners come in one form (`in_order`): the
lowest is the person of the table, the others are in the columns `Relation.others`. Two people whose
codes are equal are one owner, for every fixed key. That costs no privacy in what is computed from
such rows, a function of the removal profile, for any number of roles. Let c be the code of person
i, x the rows without those of i, x' all rows, and B, B' their profiles over codes. All rows of i
have the owner c. So to remove c from x' removes all rows of i, and leaves x without c, a part of x:
`B'[k + 1] <= B[k]`. And x is a part of x': `B[k] <= B'[k]`. So i moves every loss by 0 or 1,
whoever else has the code c. (A statistic of one number per person would see the number of c change,
not come or go. None is offered for rows with several owners: it would need the whole identity of
all owners.)

Items, which are only compared, are such codes too: what is released is a statistic of the codes.
The code of a row depends on that row alone, so that privacy asks nothing of codes. But two
different values are counted as one with a probability of at most 2^-63 + 2^-127, so that n values
are counted short with a probability of at most n^2 / 2^64.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.bounding import ordering, table
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.numerics import hashing, integers

OWNERS = 8
"""The most owners of a row that are computed with."""
_WIDEST = 1 << 62
_EMPTY = np.uint64(1 << 63)  # `integers.LOWEST`: an empty role
_NO_KEY = np.uint64(0)


def owners(identity: np.ndarray, key: bytes) -> np.ndarray:
    """Return a keyed one-to-one scramble of identities: equal for equal people, and only for them.

    The first word is a hash, so that an order by it, or a choice of a block, tells nothing about
    ids. The scramble is one to one: the second word stays as it is, and for each second word
    `condense` only shifts the first word, to which `mix`, a bijection, is applied.

    Args:
        identity: uint64 of shape (1 or 2, n), which is the shape of the result, too.
        key: the run's key.
    """
    constant = hashing.salt(key, "owner")
    first = hashing.mix(hashing.condense(identity, constant), constant)
    return np.concatenate([first[None], identity[1:]])


def code(identity: np.ndarray, key: bytes) -> np.ndarray:
    """Return 63 bits per identity, a keyed hash of both its words, as int64 of at least 0.

    Args:
        identity: uint64 of shape (1 or 2, n).
        key: the run's key.
    """
    return hashing.shortened(identity, key).view(np.int64)


def in_order(codes: np.ndarray) -> np.ndarray:
    """Return the owners of rows in one form: rising codes, each once, then the empty roles.

    Args:
        codes: int64 of shape (roles, rows); `integers.LOWEST` where a role has no owner.
    """
    words = np.sort(codes.view(np.uint64), axis=0)  # LOWEST, as uint64, is above every code
    twice = words[1:] == words[:-1]
    if twice.any():
        words[1:][twice] = _EMPTY
        words.sort(axis=0)
    return words.view(np.int64)


@dataclasses.dataclass(frozen=True)
class Relation:
    """The owner lines that a statistic needs of the settled rows.

    Attributes:
        column: the index of the column whose values are the items; -1: every row has item 0.
        others: the indexes of the columns that hold the codes of a row's owners but the first;
            empty: rows have one owner.
        weight: the index of the column whose values are summed instead of rows; -1: rows. Values
            below 0 count as 0.
        by_norm: whether the count of a line is the norm of its person, by the measure before it, in
            place of rows (`norm_lines`).
    """

    column: int = -1
    others: tuple[int, ...] = ()
    weight: int = -1
    by_norm: bool = False

    keep = 0

    def lines(self, table: Table, relation: int, key: bytes) -> "Owned":
        """Return the lines of settled rows; rows without a value have no line."""
        present = np.ones(len(table), bool)
        for column in (self.column, self.weight):
            if column >= 0:
                present &= ~integers.is_missing(table.values[column], integers.LOWEST)
        table = table.take(present)
        return Owned(
            partition=table.partition,
            relation=np.full(len(table), relation, np.int64),
            person=table.person if self.others else owners(table.person, key),
            others=tuple(table.values[column].view(np.uint64) for column in self.others),
            item=_items(table, self.column),
            count=_weights(table, self.weight),
            names=table.names,
        )


def _items(table: Table, column: int) -> np.ndarray:
    """Return the items: the values, clamped at 2^62 units."""
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
    return integers.product(np.where(np.asarray(values > 0, bool), values, 0), table.rows)


class Lines(NamedTuple):
    """The lines of one partition: owners are of shape (roles, lines), from 0; -1 is nobody."""

    owners: np.ndarray
    items: np.ndarray
    counts: np.ndarray

    @property
    def people(self) -> np.ndarray:
        """The first owner of each line, which has no other where rows have one owner."""
        return np.asarray(self.owners[0])


@dataclasses.dataclass(kw_only=True)
class Owned(table.Columnar):
    """Lines (partition, relation, owners, item) with their count or weight.

    The first owner is a column as `owners` makes it, uint64 of shape (1 or 2, n); of several owners
    it is a code, as the others are, a column each, in the form of `in_order`.
    """

    partition: np.ndarray
    relation: np.ndarray
    person: np.ndarray
    item: np.ndarray
    count: np.ndarray
    others: tuple[np.ndarray, ...] = ()
    names: dict[tuple[int, int], bytes] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.relation)

    def of(self, indexes: np.ndarray, size: int, relation: int) -> list[Lines]:
        """Return the lines of one relation for each of `size` partitions.

        Args:
            indexes: for each line, the index of its partition; -1: not wanted.
            size: the number of partitions.
            relation: the index of the relation.
        """
        wanted = np.flatnonzero((indexes >= 0) & (self.relation == relation))
        partitions = indexes[wanted]
        if (partitions[1:] < partitions[:-1]).any():
            order = np.argsort(partitions, kind="stable")
            wanted, partitions = wanted[order], partitions[order]
        edges = np.searchsorted(partitions, np.arange(size + 1)).tolist()
        return [self._lines(wanted[edges[i] : edges[i + 1]]) for i in range(size)]

    def _lines(self, index: np.ndarray) -> Lines:
        items, counts = self.item[index], self.count[index]
        person = ordering.pick(self.person, index)
        if not self.others:
            return Lines(ordering.numbered(person)[None], items, counts)
        return Lines(
            _numbered([person[0], *(column[index] for column in self.others)]), items, counts
        )


_NONE, _NOBODY = np.empty(0, np.int64), np.empty((1, 0), np.uint64)
NO_LINES = Owned(partition=_NOBODY, relation=_NONE, person=_NOBODY, item=_NONE, count=_NONE)
"""What is there where no statistic asks who owns what."""


def _numbered(codes: Sequence[np.ndarray]) -> np.ndarray:
    """Return owners by number from 0, as (roles, lines); -1 for an empty role."""
    words = np.concatenate(codes)
    full = words != _EMPTY
    numbers = np.full(len(words), -1, np.int64)
    numbers[full] = ordering.numbered(words[None, full])
    return numbers.reshape(len(codes), -1)


def collect(table: Table, bounded: Table, measures: Sequence[object], key: bytes) -> Owned:
    """Return the lines of every relation among `measures`, from settled rows.

    Args:
        table: all rows, for relations by a norm.
        bounded: those of a bounded number of partitions of each person, for others.
        measures: what is summarised.
        key: the run's key.
    """
    lines = [
        relation.lines(table if relation.by_norm else bounded, index, key)
        for index, relation in enumerate(measures)
        if isinstance(relation, Relation)
    ]
    return merge(lines)


def merge(parts: Sequence[Owned]) -> Owned:
    """Return the lines, equal ones merged; lines of a partition follow each other.

    Lines that have no equal keep their order: lines that came ordered by owner stay so.

    Args:
        parts: at least one; all may be empty.
    """
    joined = table.concatenate([part for part in parts if len(part)] or parts[:1])
    order = _by_partition(joined.partition)
    return _merged(joined if order is None else joined.take(order))


def _by_partition(partition: np.ndarray) -> np.ndarray | None:
    """Return a stable order by partition; None where all lines have one partition."""
    if all(not len(word) or (word == word[0]).all() for word in partition):
        return None
    return np.lexsort(partition)


def _merged(lines: Owned) -> Owned:
    """Add equal lines up in one of them.

    Lines with different hashes are different. So one sort of the hashes mostly shows that no line
    has an equal: no two hashes are.
    """
    hashes = _line_hash(lines)
    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():
        return lines
    keys = (lines.item, *_words(lines), lines.relation, *lines.partition)
    order = np.argsort(hashes)
    new_hash = ordering.changes(hashes[None, order])
    new = _new_lines(keys, order)
    if (new & ~new_hash).any():  # different lines share a hash, which is rare: compare whole lines
        order = np.lexsort(keys)
        new = _new_lines(keys, order)
    starts = np.flatnonzero(new)
    sums, first = integers.segment_sums(lines.count[order], starts), order[starts]
    back = np.argsort(first)
    return dataclasses.replace(lines.take(first[back]), count=sums[back])


def _words(lines: Owned) -> list[np.ndarray]:
    return [*lines.others, *lines.person]


def _line_hash(lines: Owned) -> np.ndarray:
    """Return a hash of each line, of which the owners' first words are keyed hashes already."""
    relation, item = lines.relation.view(np.uint64), lines.item.view(np.uint64)
    words = [*lines.partition, relation, *_words(lines), item]
    return hashing.fold(words, _NO_KEY)


def _new_lines(keys: Sequence[np.ndarray], order: np.ndarray) -> np.ndarray:
    """Return where a line, in that order, differs from the line before it."""
    new = ordering.changes(keys[0][None, order])
    for key in keys[1:]:
        new |= ordering.changes(key[None, order])
    return new

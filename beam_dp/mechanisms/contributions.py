"""Bound contributions: keyed bottom-L0 sampling as a mergeable, idempotent reduction of columns.

Every (person, partition) pair has the priority hash(key, person, partition), every row the
priority hash(key, pair, values). A person keeps

* **L0**: the `partitions` pairs with the lowest priorities;
* **Linf**: in each of them the `rows_per_partition` rows with the lowest priorities (equal rows
  stand together, as a multiplicity);
* **L1**: of what is left `rows` rows, taken in rounds, one from each pair in order of priority,
  each pair giving its rows in order of theirs.

*Sensitivity.* For a fixed key the kept rows of a person are a function of that person's rows
alone, so adding or removing a person moves nobody else's.

*Mergeability.* Let A be a part of the rows X. A pair dropped from A for L0 has L0 lower pairs of
the same person in A, hence in X, so it is dropped from X. A row beyond the first d rows of its pair
in A is beyond them in X. With r = min(L0, L1) and d = min(Linf, L1) both cuts are therefore safe on
any part of the data, before or after any merge: a round-robin choice of L1 rows reaches no pair
beyond the L1 lowest and no row beyond the first L1 of its pair. Hence
`settle(reduce(reduce(A) + reduce(B))) == settle(reduce(A + B))` for every way to cut the data into
bundles, shards and batches, a repeated bundle changes nothing, and what is held of one person is
at most r * d lines, however many rows they own.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from beam_dp.mechanisms import exact, hashing
from beam_dp.mechanisms.bounds import ContributionBounds

_PRIORITY_BITS = np.uint64(24)
_PERSON_BITS = np.uint64(64 - 24)


@dataclasses.dataclass(frozen=True)
class Field:
    """One number per (person, partition): an operation over the values of one column.

    Attributes:
        column: which value column, by its place.
        operation: "sum", "max", "min", or "count" (rows whose value is present).
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
            self.person[:, index],
            self.partition[:, index],
            self.rows[index],
            [column[index] for column in self.values],
            self.names,
        )


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
            exact.concatenate(columns)
            for columns in zip(*(table.values for table in tables), strict=True)
        ],
        names,
    )


def join_identities(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return identity columns side by side; a missing second word is 0."""
    width = max(column.shape[0] for column in columns)
    padded = [
        np.concatenate([column, np.zeros((width - column.shape[0], column.shape[1]), np.uint64)])
        for column in columns
    ]
    return np.concatenate(padded, axis=1)


@dataclasses.dataclass(frozen=True)
class Bounder:
    """The bounding of one run: its bounds, the fields that the metrics need, and the key.

    Attributes:
        bounds: the limits per person.
        fields: what is aggregated per (person, partition); empty: the rows themselves.
        key: the run's key. It decides which rows stay, it protects nothing.
        keep_rows: bound rows and keep them apart, with their values, instead of fields.
    """

    bounds: ContributionBounds
    fields: tuple[Field, ...]
    key: bytes
    keep_rows: bool = False

    @property
    def by_row(self) -> bool:
        """Whether lines must stay distinct rows until the bounds are settled."""
        return self.keep_rows or (self.bounds.depth is not None and bool(self.fields))

    def prepare(self, table: Table) -> Table:
        """Return raw rows in the form that `reduce` merges: fields, unless rows must stay."""
        if self.by_row:
            return table
        return dataclasses.replace(table, values=self._to_fields(table))

    def _to_fields(self, table: Table) -> list[np.ndarray]:
        return [_field(field, table.values[field.column], table.rows) for field in self.fields]

    def person_hash(self, table: Table) -> np.ndarray:
        """Return a keyed 64-bit hash of each line's person."""
        return hashing.fold(table.person, hashing.salt(self.key, "person"))

    def priority(self, table: Table, person_hash: np.ndarray) -> np.ndarray:
        """Return the priority of each line's (person, partition) pair."""
        first = hashing.mix(person_hash + table.partition[0], hashing.salt(self.key, "pair"))
        if table.partition.shape[0] == 1:
            return first
        return hashing.mix(first + table.partition[1], hashing.salt(self.key, "pair"))

    def reduce(self, table: Table) -> Table:
        """Merge equal lines and drop what the bounds exclude; lines come out by person hash."""
        if not len(table):
            return table
        person_hash = self.person_hash(table)
        priority = self.priority(table, person_hash)
        if self.by_row:
            return self._reduce_rows(table, person_hash, priority)
        return self._reduce_pairs(table, person_hash, priority)

    def _reduce_pairs(
        self, table: Table, person_hash: np.ndarray, priority: np.ndarray
    ) -> Table:
        order, new_pair = _order_pairs(table, person_hash, priority)
        starts = np.flatnonzero(new_pair)
        person = table.person[:, order[starts]]
        kept = _lowest(person, self.bounds.reach)
        if not kept.all():
            sizes = np.diff(starts, append=len(order))
            order = order[np.repeat(kept, sizes)]
            starts = np.concatenate([[0], np.cumsum(sizes[kept])[:-1]])
        heads = order[starts]
        columns = list(zip(self.fields, table.values, strict=True))
        return Table(
            table.person[:, heads],
            table.partition[:, heads],
            np.add.reduceat(table.rows[order], starts),
            [_merge(field, column[order], starts) for field, column in columns],
            table.names,
        )

    def _reduce_rows(self, table: Table, person_hash: np.ndarray, priority: np.ndarray) -> Table:
        columns = [part for column in table.values for part in _sortable(column)]
        row_hash = priority.copy()
        for part in columns:
            row_hash = hashing.mix(row_hash + part.view(np.uint64), hashing.salt(self.key, "row"))
        keys = [*columns, row_hash, *table.partition, priority, *table.person, person_hash]
        order = np.lexsort(keys)
        table = table.take(order)
        new_pair = _changes(table.person) | _changes(table.partition)
        new_row = new_pair.copy()
        for part in columns:
            new_row |= _changes(part[None, order])
        starts = np.flatnonzero(new_row)
        rows = np.add.reduceat(table.rows, starts)
        table = dataclasses.replace(table.take(starts), rows=rows)
        table = self._drop_pairs(table, new_pair[starts])
        pairs = _changes(table.person) | _changes(table.partition)
        return _first_rows(table, pairs, self.bounds.depth)

    def _drop_pairs(self, table: Table, new_pair: np.ndarray) -> Table:
        starts = np.flatnonzero(new_pair)
        kept = _lowest(table.person[:, starts], self.bounds.reach)
        return table.take(np.repeat(kept, np.diff(starts, append=len(table))))

    def settle(self, table: Table) -> Table:
        """Apply the final bounds to reduced lines and return one line per pair, with its fields.

        The argument must hold every line of each person in it. With `keep_rows` the lines stay
        rows and `rows` says how many copies of each are kept.
        """
        table = self.reduce(table)
        if not len(table):
            return self._finished(table)
        new_pair = _changes(table.person) | _changes(table.partition)
        starts = np.flatnonzero(new_pair)
        counts = np.add.reduceat(table.rows, starts)
        quota = self._quotas(counts, table.person[:, starts])
        if not self.by_row:
            return dataclasses.replace(table, rows=quota)
        table = _first_rows(table, new_pair, np.repeat(quota, np.diff(starts, append=len(table))))
        return self._finished(table)

    def _finished(self, table: Table) -> Table:
        """Turn bounded rows into fields, one line per pair, unless rows are asked for."""
        if self.keep_rows or not self.by_row:
            return table
        if not len(table):
            return dataclasses.replace(table, values=self._to_fields(table))
        starts = np.flatnonzero(_changes(table.person) | _changes(table.partition))
        columns = zip(self.fields, self._to_fields(table), strict=True)
        return Table(
            table.person[:, starts],
            table.partition[:, starts],
            np.add.reduceat(table.rows, starts),
            [_merge(field, column, starts) for field, column in columns],
            table.names,
        )

    def _quotas(self, counts: np.ndarray, person: np.ndarray) -> np.ndarray:
        if self.bounds.rows_per_partition is not None:
            counts = np.minimum(counts, self.bounds.rows_per_partition)
        if self.bounds.rows is not None:
            counts = rounds(counts, np.flatnonzero(_changes(person)), self.bounds.rows)
        return counts


def rounds(counts: np.ndarray, starts: np.ndarray, limit: int) -> np.ndarray:
    """Share `limit` rows of each person out in rounds, one row a pair and round.

    Water-filling in closed form: with the counts c of one person in increasing order and S_j the
    sum of the j smallest, all pairs get min(c, t) with t = floor((limit - S_j) / (m - j)) at the
    first j where that is less than the next count; what is left over, fewer rows than pairs that
    want one, goes to these pairs in order of priority.

    Args:
        counts: rows per pair, in order of person and priority.
        starts: where each person's pairs begin.
        limit: most rows per person.
    """
    sizes = np.diff(starts, append=len(counts))
    owner = np.repeat(np.arange(len(starts)), sizes)
    over = np.repeat(np.add.reduceat(counts, starts) > limit, sizes)
    ordered = counts[np.lexsort((counts, owner))]
    before = np.cumsum(ordered) - ordered
    before -= np.repeat(before[starts], sizes)
    place = np.arange(len(counts)) - np.repeat(starts, sizes)
    level = (limit - before) // (np.repeat(sizes, sizes) - place)
    candidates = np.where((level < ordered) & (level >= 0), np.arange(len(counts)), len(counts))
    first = np.minimum.reduceat(candidates, starts)
    levels = np.repeat(level[np.minimum(first, len(counts) - 1)], sizes)
    shares = np.minimum(counts, levels)
    left = np.repeat(limit - np.add.reduceat(shares, starts), sizes)
    wants = counts > levels
    turn = np.cumsum(wants)
    turn -= np.repeat(turn[starts] - wants[starts], sizes)
    return np.where(over, shares + (wants & (turn <= left)), counts)


def _order_pairs(
    table: Table, person_hash: np.ndarray, priority: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return an order by (person hash, person, priority, partition), and where pairs begin in it.

    One sort of a packed word (40 bits of person hash, 24 of priority) puts nearly every line in
    its place; runs in which two people share their 40 bits, or two partitions of one person
    their 24, are found afterwards and sorted again in full.
    """
    packed = person_hash >> _PRIORITY_BITS << _PRIORITY_BITS | priority >> _PERSON_BITS
    order = np.argsort(packed)
    packed = packed[order]
    new_person, new_partition = _changes(table.person[:, order]), _changes(table.partition[:, order])
    prefix = packed >> _PRIORITY_BITS
    same_prefix = ~_changes(prefix[None])
    same_packed = ~_changes(packed[None])
    mixed = (same_prefix & new_person) | (same_packed & new_partition)
    if not mixed.any():
        return order, new_person | new_partition
    runs = np.cumsum(~same_prefix) - 1
    place = np.flatnonzero(np.bincount(runs[mixed], minlength=runs[-1] + 1)[runs] > 0)
    lines = order[place]
    keys = (table.partition[:, lines], priority[None, lines], table.person[:, lines])
    again = np.lexsort([*keys[0], *keys[1], *keys[2], person_hash[lines], prefix[place]])
    order[place] = lines[again]
    return order, _changes(table.person[:, order]) | _changes(table.partition[:, order])


def _changes(columns: np.ndarray) -> np.ndarray:
    """Return where a line differs from the one before it; the first line does."""
    changes = np.ones(columns.shape[1], bool)
    changes[1:] = columns[0, 1:] != columns[0, :-1]
    for column in columns[1:]:
        changes[1:] |= column[1:] != column[:-1]
    return changes


def _lowest(person: np.ndarray, limit: int | None) -> np.ndarray:
    """Return which pairs, ordered by person and priority, are among their person's `limit` first."""
    kept = np.ones(person.shape[1], bool)
    if limit is not None and limit < person.shape[1]:
        kept[limit:] = (person[:, limit:] != person[:, :-limit]).any(axis=0)
    return kept


def _first_rows(table: Table, new_pair: np.ndarray, limit: int | np.ndarray | None) -> Table:
    """Keep the first `limit` rows of each pair; the last kept line may lose copies."""
    if limit is None or not len(table):
        return table
    starts = np.flatnonzero(new_pair)
    before = np.cumsum(table.rows) - table.rows
    before -= np.repeat(before[starts], np.diff(starts, append=len(table)))
    rows = np.clip(limit - before, 0, table.rows)
    return dataclasses.replace(table, rows=rows).take(rows > 0)


def _field(field: Field, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a field of single lines, each standing for `rows` equal rows."""
    missing = exact.is_missing(values, exact.LOWEST)
    if field.operation == "max":
        return values
    if field.operation == "min":
        high = exact.WIDEST if values.dtype == object else exact.HIGHEST
        return np.where(missing, high, values)
    if field.operation == "count":
        return np.where(missing, 0, rows)
    present = np.where(missing, 0, values)
    return exact.product(present, rows) if (rows > 1).any() else present


def _merge(field: Field, column: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return a field of each segment of lines."""
    if field.operation == "max":
        return np.maximum.reduceat(column, starts)
    if field.operation == "min":
        return np.minimum.reduceat(column, starts)
    return exact.segment_sums(column, starts)


def _sortable(column: np.ndarray) -> list[np.ndarray]:
    """Return int64 columns that tell equal values from different ones."""
    return list(exact.to_limbs(exact.widen(column))) if column.dtype == object else [column]

"""Bound contributions: keyed bottom-L0 sampling as a mergeable, idempotent reduction of columns.

Every (person, partition) pair has the priority hash(key, person, partition), every row the
priority hash(key, pair, values). A person keeps

* **L0**: the `partitions` pairs with the lowest priorities;
* **Linf**: in each of them the `rows_per_partition` rows with the lowest priorities (equal rows
  are one line with a multiplicity);
* **L1**: of the rows that are left, `rows` rows, taken in rounds: one from each pair in order of
  the pairs' priorities, and within a pair in order of the rows' priorities.

*Sensitivity.* For a fixed key the kept rows of a person are a function of that person's rows
alone, so adding or removing a person moves nobody else's.

*Mergeability.* Let A be a part of the rows X. A pair dropped from A for L0 has L0 lower pairs of
the same person in A, hence in X, so it is dropped from X. A row beyond the first d rows of its pair
in A is beyond them in X. With r = min(L0, L1) and d = min(Linf, L1) both cuts are therefore safe on
any part of the data, before or after any merge: a round-robin choice of L1 rows reaches no pair
beyond the L1 lowest and no row beyond the first L1 of its pair. Hence
`settle(reduce(reduce(A) + reduce(B))) == settle(reduce(A + B))` for every way to cut the data into
bundles, shards and batches, a repeated bundle changes nothing, and at most r * d lines are held of
one person, however many rows they own.
"""

import dataclasses

import numpy as np

from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.ordering import changes, pick
from beam_dp.mechanisms.bounding.table import Field, Table
from beam_dp.mechanisms.numerics import hashing, integers

_MOST = 1 << 62


@dataclasses.dataclass(frozen=True)
class Bounder:
    """The bounding of one run: its bounds, the fields that the metrics need, and the key.

    Attributes:
        bounds: the limits per person.
        fields: the numbers to make per (person, partition); empty: the rows themselves.
        key: the run's key. It decides which rows stay; it protects nothing.
        keep_rows: return the bounded rows with their values; `aggregate` makes fields of them.
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
        """Return raw rows in the form that `reduce` merges: fields, unless rows must stay apart."""
        if self.by_row:
            return table
        return dataclasses.replace(table, values=self._to_fields(table))

    def _to_fields(self, table: Table) -> list[np.ndarray]:
        return [_field(field, table.values[field.column], table.rows) for field in self.fields]

    def person_hash(self, table: Table) -> np.ndarray:
        """Return a keyed 64-bit hash of each line's person."""
        constant = hashing.salt(self.key, "person")
        return hashing.mix(hashing.condense(table.person, constant), constant)

    def priority(self, table: Table, person_hash: np.ndarray) -> np.ndarray:
        """Return the priority of each line's (person, partition) pair."""
        constant = hashing.salt(self.key, "pair")
        return hashing.mix(person_hash + hashing.condense(table.partition, constant), constant)

    def reduce(self, table: Table) -> Table:
        """Merge equal lines and drop what the bounds exclude; lines come out by person hash."""
        if not len(table):
            return table
        table = self.hashed(table)
        return self._reduce_rows(table) if self.by_row else self._reduce_pairs(table)

    def hashed(self, table: Table) -> Table:
        """Return the table with the hashes of its lines."""
        return dataclasses.replace(table, hashes=self.hashes(table))

    def hashes(self, table: Table) -> np.ndarray:
        """Return the hash of each line's person and the priority of its pair: shape (2, n)."""
        if table.hashes is not None:
            return table.hashes
        hashes = np.empty((2, len(table)), np.uint64)
        hashes[0] = self.person_hash(table)
        hashes[1] = self.priority(table, hashes[0])
        return hashes

    def _order_pairs(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the order of the lines by pair, and where pairs begin."""
        return ordering.order_pairs(table.person, table.partition, *self.hashes(table))

    def _reduce_pairs(self, table: Table) -> Table:
        order, new_pair = self._order_pairs(table)
        starts = np.flatnonzero(new_pair)
        heads = order[starts]
        kept = np.flatnonzero(ordering.lowest(pick(table.person, heads), self.bounds.reach))
        heads = heads[kept]
        columns = list(zip(self.fields, table.values, strict=True))
        return Table(
            pick(table.person, heads),
            pick(table.partition, heads),
            np.add.reduceat(table.rows[order], starts)[kept],
            [_merge(field, column[order], starts)[kept] for field, column in columns],
            table.names,
            pick(self.hashes(table), heads),
        )

    def _reduce_rows(self, table: Table) -> Table:
        sortable = [ordering.sortable(column) for column in table.values]
        priority = self.hashes(table)[1]
        row_hash = ordering.row_hash(priority, sortable, hashing.salt(self.key, "row"))
        columns = [part for parts in sortable for part in parts]
        order, new_pair = self._order_pairs(table)
        order, new_row = ordering.order_rows(order, new_pair, row_hash, columns)
        starts = np.flatnonzero(new_row)
        rows = np.add.reduceat(table.rows[order], starts)
        table = dataclasses.replace(table.take(order[starts]), rows=rows)
        table = self._drop_pairs(table, new_pair[starts])
        return _first_rows(table, _counted(self.bounds.depth))

    def _drop_pairs(self, table: Table, new_pair: np.ndarray) -> Table:
        starts = np.flatnonzero(new_pair)
        kept = ordering.lowest(pick(table.person, starts), self.bounds.reach)
        return table.take(np.repeat(kept, np.diff(starts, append=len(table))))

    def settle(self, table: Table) -> Table:
        """Apply the final bounds to reduced lines and return one line per pair, with its fields.

        The table must hold every line of each of its people. With `keep_rows` the lines stay rows,
        and `rows` is how many copies of each are kept.
        """
        return self._settled(self.reduce(table))

    def settle_reduced(self, table: Table) -> Table:
        """Return what `settle` makes of the lines that were reduced to `table`, without a sort.

        The table holds every line of each of its people, as the same Bounder with more partitions
        reduced them: in order of person and priority, so that the pairs to keep come first.
        """
        if not len(table):
            return self._settled(table)
        new_pair = changes(table.person) | changes(table.partition)
        return self._settled(self._drop_pairs(table, new_pair))

    def _settled(self, table: Table) -> Table:
        if not len(table):
            return self._finished(table)
        starts = _pair_starts(table)
        counts = np.add.reduceat(table.rows, starts)
        quota = self._quotas(counts, pick(table.person, starts))
        if not self.by_row:
            return dataclasses.replace(table, rows=quota)
        return self._finished(_first_rows(table, quota))

    def _finished(self, table: Table) -> Table:
        """Return bounded rows as fields, one line per pair, unless `keep_rows` asks for rows."""
        return table if self.keep_rows or not self.by_row else self.aggregate(table)

    def aggregate(self, table: Table) -> Table:
        """Return settled rows as fields, one line per pair; equal pairs stand together."""
        if not len(table):
            return dataclasses.replace(table, values=self._to_fields(table))
        starts = _pair_starts(table)
        columns = zip(self.fields, self._to_fields(table), strict=True)
        return Table(
            pick(table.person, starts),
            pick(table.partition, starts),
            np.add.reduceat(table.rows, starts),
            [_merge(field, column, starts) for field, column in columns],
            table.names,
        )

    def _quotas(self, counts: np.ndarray, person: np.ndarray) -> np.ndarray:
        depth, rows = map(_counted, (self.bounds.rows_per_partition, self.bounds.rows))
        if depth is not None:
            counts = np.minimum(counts, depth)
        if rows is not None:
            counts = ordering.rounds(counts, np.flatnonzero(changes(person)), rows)
        return counts


def _counted(limit: int | None) -> int | None:
    """Return a limit, cut to what int64 holds: nobody has more rows than that."""
    return None if limit is None else min(limit, _MOST)


def _pair_starts(table: Table) -> np.ndarray:
    return np.flatnonzero(changes(table.person) | changes(table.partition))


def _first_rows(table: Table, limit: int | np.ndarray | None) -> Table:
    """Keep the first `limit` rows of each pair; the last kept line may lose copies."""
    if limit is None or not len(table):
        return table
    rows = ordering.first_rows(table.rows, _pair_starts(table), limit)
    return dataclasses.replace(table, rows=rows).take(rows > 0)


def _field(field: Field, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the field of each single line, which stands for `rows` equal rows."""
    missing = integers.is_missing(values, integers.LOWEST)
    if field.operation == "max":
        return values
    if field.operation == "min":
        high = integers.WIDEST if values.dtype == object else integers.HIGHEST
        return np.where(missing, high, values)
    if field.operation == "count":
        return np.where(missing, 0, rows)
    if field.operation == "distinct":
        return values
    present = np.where(missing, 0, values)
    if field.operation == "peak":
        return abs(present)
    return integers.product(present, rows) if (rows > 1).any() else present


def _merge(field: Field, column: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the field of each segment of lines."""
    if field.operation in ("max", "peak"):
        return np.maximum.reduceat(column, starts)
    if field.operation == "min":
        return np.minimum.reduceat(column, starts)
    if field.operation == "distinct":
        return _distinct(column, starts)
    return integers.segment_sums(column, starts)


def _distinct(column: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the number of different values in each segment."""
    segment = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(column)))
    order = np.lexsort((column, segment))
    column = column[order]
    new = np.ones(len(column), bool)
    new[1:] = column[1:] != column[:-1]
    new[starts] = True  # the sort moved no line out of its segment
    new &= ~integers.is_missing(column, integers.LOWEST)
    return np.add.reduceat(new.astype(np.int64), starts)

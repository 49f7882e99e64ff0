"""Bound contributions: keyed bottom-L0 sampling as a mergeable, idempotent reduction of columns.

Every (person, partition) pair has the priority hash(key, person, partition), every row the
priority hash(key, pair, values). A person keeps

* **L0**: the `partitions` pairs with the lowest priorities;
* **Linf**: in each of them `rows_per_partition` rows, in proportion to their values
  (`ordering.in_proportion`: equal rows are one line with a multiplicity; each line keeps the part
  that all rows keep, so that the mix of a person's rows stays what it is);
* **L1**: `rows` rows, shared out in rounds: one to each pair in order of the pairs' priorities. A
  pair is cut once, to the least of its limits.

Of a pair with more than `MOST_DIFFERENT` different rows (or than the limit, if that is larger) only
those with the lowest priorities count, with all their copies: a uniform sample of its different
rows. This bounds memory, and is the only place where what stays is not in proportion.

*Sensitivity.* For a fixed key the kept rows of a person are a function of that person's rows
alone, so adding or removing a person moves nobody else's.

*Mergeability.* Let A be a part of the rows X. A pair dropped from A for L0 has L0 lower pairs of
the same person in A, hence in X, so it is dropped from X. A row that is beyond the first m
different rows of its pair in A is beyond them in X, so a row that counts in X was dropped from no
part, and its copies add up to those in X. With r = min(L0, L1) both cuts are therefore safe on any
part of the data, before or after any merge: L1 rows in rounds reach no pair beyond the L1 lowest.
No copy of a row that counts is dropped before a person's rows have met: how many stay depends on
all of them. Hence `settle(reduce(reduce(A) + reduce(B))) == settle(reduce(A + B))` for every way to
cut the data into bundles, shards and batches, a repeated bundle changes nothing, and at most r * m
lines are held of one person, however many rows they own.
"""

import dataclasses

import numpy as np

from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.ordering import changes, pick
from beam_dp.mechanisms.bounding.table import OF_ROWS, Field, Table
from beam_dp.mechanisms.numerics import hashing, integers

MOST_DIFFERENT = 1 << 10
"""So many different rows of a person in a partition count at least, where rows are bounded."""
_MOST = 1 << 62  # nobody has more rows


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
        return self.keep_rows or (
            self.bounds.max_rows_per_partition is not None and bool(self.fields)
        )

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
        table = dataclasses.replace(table, hashes=self.hashes(table))
        return self._reduce_rows(table) if self.by_row else self._reduce_pairs(table)

    def hashes(self, table: Table) -> np.ndarray:
        """Return the hash of each line's person and the priority of its pair: shape (2, n)."""
        if table.hashes is not None:
            return table.hashes
        hashes = np.empty((2, len(table)), np.uint64)
        hashes[0] = self.person_hash(table)
        hashes[1] = self.priority(table, hashes[0])
        return hashes

    def _reduce_pairs(self, table: Table) -> Table:
        order, new_pair = ordering.order_pairs(table.person, table.partition, *self.hashes(table))
        starts = np.flatnonzero(new_pair)
        heads = order[starts]
        most = self.bounds.max_partitions
        kept: np.ndarray | slice = slice(None)  # a mask would take every line again
        if most is not None:
            kept = np.flatnonzero(ordering.lowest(pick(table.person, heads), most))
        heads = heads[kept]
        columns = list(zip(self.fields, table.values, strict=True))
        return Table(
            pick(table.person, heads),
            pick(table.partition, heads),
            integers.segment_sums(table.rows[order], starts)[kept],
            [_merge(field, column[order], starts)[kept] for field, column in columns],
            table.names,
            pick(self.hashes(table), heads),
        )

    def _reduce_rows(self, table: Table) -> Table:
        sortable = [ordering.sortable(column) for column in table.values]
        priority = self.hashes(table)[1]
        row_hash = ordering.row_hash(priority, sortable, hashing.salt(self.key, "row"))
        columns = [part for parts in sortable for part in parts]
        order, new_pair = ordering.order_pairs(table.person, table.partition, *self.hashes(table))
        order, new_row = ordering.order_rows(order, new_pair, row_hash, columns)
        starts = np.flatnonzero(new_row)
        rows = np.add.reduceat(table.rows[order], starts)
        table = dataclasses.replace(table.take(order[starts]), rows=rows)
        new_pair = new_pair[starts]
        limit = self.bounds.max_rows_per_partition
        if limit is not None and len(table) > (most := max(limit, MOST_DIFFERENT)):
            counted = np.flatnonzero(ordering.lowest(np.cumsum(new_pair)[None], most))
            table, new_pair = table.take(counted), new_pair[counted]
        return _drop_pairs(table, new_pair, self.bounds.max_partitions)

    def settle(self, table: Table) -> Table:
        """Apply the final bounds to reduced lines and return one line per pair, with its fields.

        The table must hold every line of each of its people. With `keep_rows` the lines stay rows,
        and `rows` is how many copies of each are kept.
        """
        return self.settle_reduced(self.reduce(table))

    def settle_reduced(self, table: Table) -> Table:
        """Return what `settle` makes of the lines that were reduced to `table`, without a sort.

        The table holds every line of each of its people in the partitions that were selected, in
        order of person and priority.
        """
        if not len(table):
            return self._finished(table)
        starts = _pair_starts(table)
        counts = np.add.reduceat(table.rows, starts)
        quota = self._quotas(counts, pick(table.person, starts))
        if not self.by_row:
            return dataclasses.replace(table, rows=quota)
        return self._finished(self._cut(table, starts, counts, quota))

    def pairs(self, table: Table, most: int) -> Table:
        """Return one line for each of the `most` lowest pairs of the people of a reduced table."""
        starts = _pair_starts(table)
        return table.take(starts[ordering.lowest(pick(table.person, starts), most)])

    def lines_of_pairs(self, table: Table, most: int | None) -> Table:
        """Return all lines of the `most` lowest pairs of the people of a reduced table."""
        return _drop_pairs(table, _new_pairs(table), most) if len(table) else table

    def _cut(
        self, table: Table, starts: np.ndarray, counts: np.ndarray, quota: np.ndarray
    ) -> Table:
        """Keep so many rows of each pair, in proportion to how many each line stands for."""
        cut = np.flatnonzero(quota < counts)
        if not len(cut):
            return table
        sizes = np.diff(starts, append=len(table))
        lines = np.flatnonzero(np.repeat(quota < counts, sizes))
        priority = self.hashes(table.take(starts[cut]))[1]
        turns = hashing.mix(priority, hashing.salt(self.key, "turn"))
        rows = table.rows.copy()
        rows[lines] = ordering.in_proportion(rows[lines], sizes[cut], quota[cut], turns)
        return dataclasses.replace(table, rows=rows).take(rows > 0)

    def _finished(self, table: Table) -> Table:
        """Return bounded rows as fields, one line per pair, unless `keep_rows` asks for rows."""
        return table if self.keep_rows or not self.by_row else self.aggregate(table)

    def reduced_fields(self, table: Table) -> list[np.ndarray]:
        """Return the fields of each line of a reduced table."""
        return self._to_fields(table) if self.by_row else table.values

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
            [_of_rows(field, column, table.rows, starts) for field, column in columns],
            table.names,
        )

    def _quotas(self, counts: np.ndarray, person: np.ndarray) -> np.ndarray:
        limit, rows = self.bounds.rows_per_partition, self.bounds.rows  # of any size
        if limit is not None:
            counts = np.minimum(counts, min(limit, _MOST))
        if rows is not None:
            counts = ordering.rounds(counts, np.flatnonzero(changes(person)), min(rows, _MOST))
        return counts


def _pair_starts(table: Table) -> np.ndarray:
    return np.flatnonzero(_new_pairs(table))


def _new_pairs(table: Table) -> np.ndarray:
    return np.asarray(changes(table.person) | changes(table.partition))


def _drop_pairs(table: Table, new_pair: np.ndarray, most: int | None) -> Table:
    """Return the lines of the `most` first pairs of each person; None: of all."""
    starts = np.flatnonzero(new_pair)
    kept = ordering.lowest(pick(table.person, starts), most)
    return table.take(np.repeat(kept, np.diff(starts, append=len(table))))


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
    if field.operation in OF_ROWS:
        return values
    present = np.where(missing, 0, _between(values, field.low, field.high))
    if field.operation == "peak":
        return abs(present)
    if field.operation == "squares":
        present = integers.product(present, present)
    return integers.product(present, rows) if (rows > 1).any() else present


def _between(values: np.ndarray, low: int | None, high: int | None) -> np.ndarray:
    """Return values cut to two ends, as far as these are given.

    Those of a narrow column are within 2^62: an end beyond is taken for the end of that range.
    """
    if values.dtype != object:
        widest = (1 << 62) - 1
        low, high = (None if end is None else max(-widest, min(widest, end)) for end in (low, high))
    if low is not None:
        values = np.maximum(values, low)
    return values if high is None else np.minimum(values, high)


def _merge(field: Field, column: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the field of each segment of lines."""
    if field.operation in ("max", "peak"):
        return np.maximum.reduceat(column, starts)
    if field.operation == "min":
        return np.minimum.reduceat(column, starts)
    return integers.segment_sums(column, starts)


def _of_rows(field: Field, column: np.ndarray, rows: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the field of each segment of settled rows, which stand for so many equal ones."""
    if field.operation not in OF_ROWS:
        return _merge(field, column, starts)
    segment = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(column)))
    order = np.lexsort((column, segment))  # moves no line out of its segment
    column = column[order]
    rows = np.where(integers.is_missing(column, integers.LOWEST), 0, rows[order])
    new = np.append(True, column[1:] != column[:-1])
    new[starts] = True
    values = np.flatnonzero(new)
    each, begins = np.add.reduceat(rows, values), np.searchsorted(values, starts)
    if field.operation == "distinct":
        return np.add.reduceat((each > 0).astype(np.int64), begins)
    return np.maximum.reduceat(each, begins)

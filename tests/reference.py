"""Contributions as plain Python rows: tables of every form, and what bounding means for them.

What draws see of a settled table.
"""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from beam_dp.mechanisms.bounding import bounder as bounding
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.bounding import table as bounding_table
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field, Table
from beam_dp.mechanisms.numerics import hashing, integers
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.partition_view import PartitionView

Identity = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Row:
    """One row: who, where, and the values (None where there is none)."""

    person: Identity
    partition: Identity
    values: tuple[int | None, ...] = ()


def table_of(rows: list[Row], width: int = 0, wide: bool = False, columns: int = 1) -> Table:
    """Return the rows as a table, in the narrowest form or a wider one.

    Args:
        rows: the rows.
        width: words per identity; 0: as few as the rows allow.
        wide: store values as Python integers, even if int64 holds them.
        columns: how many values a row has.
    """
    return Table(
        _identities([row.person for row in rows], width),
        _identities([row.partition for row in rows], width),
        np.ones(len(rows), np.int64),
        [_values([row.values[place] for row in rows], wide) for place in range(columns)],
    )


def _identities(found: list[Identity], width: int) -> np.ndarray:
    width = width or (2 if any(second for _, second in found) else 1)
    return np.array(found, np.uint64).reshape(-1, 2).T[:width]


def _values(found: list[int | None], wide: bool) -> np.ndarray:
    column = np.empty(len(found), object)
    column[:] = [-integers.WIDEST if value is None else value for value in found]
    if wide or any(value is not None and abs(value) >= 1 << 62 for value in found):
        return column
    return np.array([integers.LOWEST if value is None else value for value in found], np.int64)


def settled(rows: list[Row], fields: Sequence[Field], columns: int = 1) -> Table:
    """Return the contributions without any bound, one line per person and partition."""
    bounder = Bounder(ContributionBounds(None), tuple(fields), b"key")
    return bounder.settle(bounder.prepare(table_of(rows, columns=columns)))


def of_places(table: Table, measures: Sequence[Measure], partitions: int) -> PartitionView:
    """Return the summary of a settled table as it is seen from partitions 0, 1, ..."""
    summary = histograms.summarise(histograms.Contributions(table), measures)
    return PartitionView(summary, summary.partition[0].astype(np.int64), partitions)


def of_everybody(table: Table, measures: Sequence[Measure]) -> PartitionView:
    """Return the summary of the people of a settled table, over all partitions."""
    people = histograms.summarise_people(histograms.Contributions(table), measures)
    return PartitionView(people, np.zeros(len(people), np.int64), 1)


def concatenate(tables: list[Table]) -> Table:
    """Return the lines of all tables."""
    return bounding_table.concatenate(tables)


def reference(bounder: Bounder, rows: list[Row]) -> dict[Identity, dict[Identity, Counter]]:
    """Return what bounding keeps, by its definition: person -> partition -> values -> copies."""
    people: dict[Identity, dict[Identity, Counter]] = defaultdict(lambda: defaultdict(Counter))
    for row in rows:
        people[row.person][row.partition][row.values] += 1
    return {person: _bounded(bounder, person, pairs) for person, pairs in people.items()}


def _bounded(
    bounder: Bounder, person: Identity, pairs: dict[Identity, Counter]
) -> dict[Identity, Counter]:
    bounds = bounder.bounds
    priorities = {partition: _priority(bounder, person, partition) for partition in pairs}
    ordered = sorted(pairs, key=lambda pair: (priorities[pair], pair[::-1]))
    # A limit of L1 rows, shared out in rounds, never reaches beyond the L1 lowest pairs.
    ordered = ordered[: bounds.partitions]
    queues = [_queue(bounder, priorities[pair], pairs[pair]) for pair in ordered]
    shares = [min(len(queue), bounds.rows_per_partition or len(queue)) for queue in queues]
    if bounds.rows is not None:
        shares = in_rounds(shares, bounds.rows)
    turns = [_turn(bounder, priorities[pair]) for pair in ordered]
    kept = map(evenly, queues, shares, turns)
    return {pair: Counter(rows) for pair, rows in zip(ordered, kept, strict=True) if rows}


def evenly(queue: list, share: int, turn: int) -> list:
    """Return `share` rows of a queue, as far apart as can be, from a start that a turn decides.

    Row after row pays `share` into a purse that begins with the turn modulo the number of rows;
    whoever fills it to that number is kept, and the number is taken out.
    """
    kept, size = [], len(queue)
    purse = turn % size
    for row in queue:
        purse += share
        if purse >= size:
            purse -= size
            kept.append(row)
    return kept


def in_rounds(counts: list[int], limit: int) -> list[int]:
    """Return how many each pair may give, one row a pair and round, until `limit` are taken."""
    shares = [0] * len(counts)
    while limit and any(share < count for share, count in zip(shares, counts, strict=True)):
        for place, count in enumerate(counts):
            if limit and shares[place] < count:
                shares[place] += 1
                limit -= 1
    return shares


def _priority(bounder: Bounder, person: Identity, partition: Identity) -> int:
    line = table_of([Row(person, partition)], 2, columns=0)
    return int(bounder.priority(line, bounder.person_hash(line))[0])


def _turn(bounder: Bounder, priority: int) -> int:
    words = hashing.mix(np.array([priority], np.uint64), hashing.salt(bounder.key, "turn"))
    return int(words[0])


def _queue(bounder: Bounder, priority: int, rows: Counter) -> list[tuple]:
    """Return the rows of a pair in the order of their keyed hashes, equal ones together."""
    ordered = sorted(rows, key=lambda values: _row_key(bounder, priority, values))
    if bounder.bounds.max_rows_per_partition is not None:
        ordered = ordered[: max(bounder.bounds.max_rows_per_partition, bounding.MOST_DIFFERENT)]
    return [values for values in ordered for _ in range(rows[values])]


def _row_key(bounder: Bounder, priority: int, values: tuple) -> tuple:
    columns = [ordering.sortable(_values([value], True)) for value in values]
    constant = hashing.salt(bounder.key, "row")
    row_hash = ordering.row_hash(np.array([priority], np.uint64), columns, constant)
    # np.lexsort: the last key decides first.
    return int(row_hash[0]), *(int(part[0]) for parts in columns[::-1] for part in parts[::-1])


def fields_of(bounder: Bounder, kept: dict) -> dict[tuple[Identity, Identity], tuple]:
    """Return (rows, field values) per pair of `reference`'s answer; None for no value."""
    found = {}
    for person, pairs in kept.items():
        for partition, rows in pairs.items():
            fields = [_field(field, rows) for field in bounder.fields]
            found[person, partition] = (rows.total(), *fields)
    return found


def _field(field: bounding_table.Field, rows: Counter) -> int | None:
    present = [values[field.column] for values in rows.elements()]
    present = [value for value in present if value is not None]
    if field.operation == "count":
        return len(present)
    if field.operation == "sum":
        return sum(present)
    if field.operation == "peak":
        return max(map(abs, present), default=0)
    return {"max": max, "min": min}[field.operation](present, default=None)


def fields_in(table: Table) -> dict[tuple[Identity, Identity], tuple]:
    """Return a settled table of fields in the form of `fields_of`; every pair is one line."""
    found = {}
    values = [[_plain(value) for value in integers.widen(column)] for column in table.values]
    for place, pair in enumerate(_pairs(table)):
        assert pair not in found
        found[pair] = (int(table.rows[place]), *(column[place] for column in values))
    return found


def rows_in(table: Table) -> dict[Identity, dict[Identity, Counter]]:
    """Return a settled table of rows in the form of `reference`."""
    found: dict = defaultdict(lambda: defaultdict(Counter))
    values = [[_plain(value) for value in integers.widen(column)] for column in table.values]
    for place, (person, partition) in enumerate(_pairs(table)):
        row = tuple(column[place] for column in values)
        found[person][partition][row] += int(table.rows[place])
    return {person: dict(pairs) for person, pairs in found.items()}


def _pairs(table: Table) -> list[tuple[Identity, Identity]]:
    empty = np.zeros((2, 0), np.uint64)
    people = bounding_table.join_identities([table.person, empty]).T.tolist()
    places = bounding_table.join_identities([table.partition, empty]).T.tolist()
    return [(tuple(one), tuple(other)) for one, other in zip(people, places, strict=True)]


def _plain(value: int) -> int | None:
    return None if abs(value) == integers.WIDEST else int(value)

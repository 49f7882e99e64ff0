"""One number per person, made of the values of their rows; with their own epsilon, as lines."""

import dataclasses

import numpy as np

from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.bounding import table as tables
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation, owners

PERSON_VALUES = ("mean", "sum", "max", "min")


def of_people(kind: str, items: np.ndarray, counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return one integer per person, from the values of their rows.

    Each integer depends on that person's rows alone; a mean is rounded down.

    Args:
        kind: one of `PERSON_VALUES`.
        items: the values, person after person.
        counts: how many rows have each value.
        starts: where the values of each person begin.
    """
    if not len(starts):
        return items
    if kind == "max":
        return np.asarray(np.maximum.reduceat(items, starts))
    if kind == "min":
        return np.asarray(np.minimum.reduceat(items, starts))
    sums = integers.segment_sums(integers.product(items, counts), starts)
    if kind == "sum":
        return sums
    return integers.narrow(sums // np.add.reduceat(counts, starts))


_WIDEST = 1 << 62
_NOBODY = np.zeros(0, np.int64)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TierRelation(Relation):
    """One line per person and partition: item their number, count 1 + the index of their tier.

    A tier is one of the public epsilons, by its index in rising order. A person's tier is the
    lowest in any of their rows that the bounds leave, in all partitions.

    Attributes:
        tier: the index of the column of tiers.
        person_value: what a person's values become.
    """

    tier: int
    person_value: str

    def lines(self, table: Table, relation: int, key: bytes) -> Owned:
        """Return the lines of settled rows, among which are all rows of each person."""
        values = [*table.values, _lowest(table, self.tier)]
        kept = ~integers.is_missing(table.values[self.column], integers.LOWEST)
        table = dataclasses.replace(table, values=values).take(kept)
        return self._lines_of(table, relation, key)

    def _lines_of(self, table: Table, relation: int, key: bytes) -> Owned:
        pairs = np.concatenate([table.person, table.partition])
        starts = np.flatnonzero(ordering.changes(pairs)) if len(table) else _NOBODY
        numbers = of_people(self.person_value, table.values[self.column], table.rows, starts)
        heads = table.take(starts)
        items = np.array([max(-_WIDEST, min(_WIDEST, int(number))) for number in numbers], np.int64)
        return Owned(
            partition=heads.partition,
            relation=np.full(len(heads), relation, np.int64),
            person=owners(heads.person, key),
            item=items,
            count=heads.values[-1] + 1,
            names=heads.names,
        )


def _lowest(table: Table, tier: int) -> np.ndarray:
    """Return for each line the lowest tier of its person, whose lines are consecutive."""
    if not len(table):
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(ordering.changes(tables.two_words(table.person)))
    lowest = np.minimum.reduceat(table.values[tier], starts)
    return np.repeat(lowest, np.diff(starts, append=len(table)))

"""Lines for releases in which each person has an epsilon: their number, and their epsilon."""

import dataclasses

import numpy as np

from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.bounding import table as tables
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.numerics.integers import LOWEST, is_missing
from beam_dp.mechanisms.summaries import person_value
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation, owners

_WIDEST = 1 << 62
_NOBODY = np.zeros(0, np.int64)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TierRelation(Relation):
    """One line per person and partition: their number, and as count 1 + the index of their tier.

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
        kept = ~is_missing(table.values[self.column], LOWEST)
        table = dataclasses.replace(table, values=values).take(kept)
        return self._lines_of(self.latest(table), relation, key)

    def _lines_of(self, table: Table, relation: int, key: bytes) -> Owned:
        pairs = np.concatenate([table.person, table.partition])
        starts = np.flatnonzero(ordering.changes(pairs)) if len(table) else _NOBODY
        numbers = person_value.of_people(
            self.person_value, table.values[self.column], table.rows, starts
        )
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

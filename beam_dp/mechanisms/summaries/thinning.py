"""Drop owner lines that the profile of a k-th largest row does not depend on, in every shard.

A removal profile B[0..K] is computed from the lines without k <= K people. That of the k-th largest
row (`profiles.kth_largest`, where k is called the rank) need not know all lines for that, so that
memory is bounded by a public number, not by the data: per person the `rank` largest rows, then over
all people the `most` * `rank` largest of those, `most` = K + 1.

Let c_i(y) be the rows of person i above y, cut at the rank, and C(y) their sum: they decide every
loss. For every y, either all c_i(y) are what they were, or C(y) >= most * rank both before and
after, where the loss is `most` or more: K people own at most K * rank of the cut rows, `rank`
remain. For a row above y is left out only beyond the `rank`-th of its person (c_i stays), or when
most * rank other rows, none smaller, are kept, at most `rank` of each person. Unions keep the
property: cut counts of a union follow from those of its parts and are not below them.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.summaries import owner_lines
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation

_MOST = 1 << 62


def merge(parts: Sequence[Owned], measures: Sequence[Measure | Relation]) -> Owned:
    """Return the merged lines that the relations need; lines of a partition are consecutive."""
    return thin(owner_lines.merge(parts), measures)


def thin(lines: Owned, measures: Sequence[Measure | Relation]) -> Owned:
    """Return merged lines without those that the relations among `measures` do not need."""
    for index, relation in enumerate(measures):
        if isinstance(relation, Relation) and relation.most:
            wanted = np.flatnonzero(lines.relation == index)
            lines = _largest_rows(lines, wanted, relation.rank, relation.most)
    return lines


def _largest_rows(lines: Owned, wanted: np.ndarray, rank: int, most: int) -> Owned:
    """Return the lines with the `most` * `rank` largest of all people's `rank` largest rows.

    Lines of which no row is left are dropped.
    """
    count = lines.count.copy()
    for own, limit in ((True, rank), (False, rank * most)):
        person = lines.person if own else lines.person[:0]
        columns = [-lines.item, *person, *lines.partition]
        wanted = wanted[np.lexsort([column[wanted] for column in columns])]
        words = np.concatenate([lines.partition, person])
        starts = np.flatnonzero(ordering.changes(ordering.pick(words, wanted)))
        count[wanted] = ordering.first_rows(count[wanted], starts, min(limit, _MOST))
        wanted = wanted[np.asarray(count[wanted] > 0, bool)]
    kept = np.flatnonzero(np.asarray(count > 0, bool))
    return dataclasses.replace(lines, count=count).take(kept)

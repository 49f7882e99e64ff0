"""Drop owner lines that the removal profile does not depend on, in every shard.

A removal profile B[0..K] is computed from the lines without k <= K people. Two statistics need not
know all lines for that, so that memory is bounded by a public number, not by the data:

* *The number of different items* (`profiles.coverage`): an item with more than k owners counts 1 at
  level k, whoever owns it. `most` = K + 1 owners per item tell that for every k <= K, and items of
  at most K owners keep all owners: the profile is the same. An owner who is not among the lowest of
  a part is not among the lowest of the whole, so parts are thinned in any order. (The count by a
  capped flow, `coverage.capped`, is not a matter of removals: every owner may be the one who has
  room there, and nothing is dropped.)
* *The k-th largest row* (`profiles.kth_largest`, where k is called the rank): per person the `rank`
  largest rows, then over all people the `most` * `rank` largest of those, `most` = K + 1.
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
from beam_dp.mechanisms.numerics import hashing
from beam_dp.mechanisms.summaries import owner_lines
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation

_NO_KEY = np.uint64(0)
_MOST = 1 << 62
_WORD = np.uint64


def merge(parts: Sequence[Owned], measures: Sequence[Measure | Relation]) -> Owned:
    """Return the merged lines that the relations need; lines of a partition are consecutive."""
    return thin(owner_lines.merge(parts), measures)


def thin(lines: Owned, measures: Sequence[Measure | Relation]) -> Owned:
    """Return merged lines without those that the relations among `measures` do not need."""
    for index, relation in enumerate(measures):
        if isinstance(relation, Relation) and relation.most:
            wanted = np.flatnonzero(lines.relation == index)
            if relation.rank:
                lines = _largest_rows(lines, wanted, relation.rank, relation.most)
            else:
                lines = _lowest_owners(lines, wanted, relation.most)
    return lines


def _lowest_owners(lines: Owned, wanted: np.ndarray, most: int) -> Owned:
    """Return the lines with the `most` lowest owners of each item only.

    One sort of hashes shows which items may have more owners; only their lines are put in order.
    """
    hashes = _item_hash(lines, wanted)
    ordered = np.sort(hashes)
    crowded = ordered[most:][ordered[most:] == ordered[:-most]] if most < len(ordered) else ordered
    if most >= len(ordered) or not len(crowded):
        return lines
    index = np.minimum(np.searchsorted(crowded, hashes), len(crowded) - 1)
    wanted = wanted[crowded[index] == hashes]
    # The order of owners is the same in every part, of one word or two: the first word decides.
    wanted = wanted[_order(lines, wanted, [*lines.person[::-1], lines.item])]
    kept = np.ones(len(lines), bool)
    starts = np.flatnonzero(_changes(lines, wanted, lines.item[None]))
    ones = np.ones(len(wanted), np.int64)
    kept[wanted] = ordering.first_rows(ones, starts, most) > 0
    return lines.take(np.flatnonzero(kept))


def _item_hash(lines: Owned, wanted: np.ndarray) -> np.ndarray:
    mixed = hashing.mix(lines.item[wanted].view(np.uint64), _NO_KEY)
    for word in lines.partition:
        mixed = hashing.mix(mixed + word[wanted], _NO_KEY)
    return mixed


def _largest_rows(lines: Owned, wanted: np.ndarray, rank: int, most: int) -> Owned:
    """Return the lines with the `most` * `rank` largest of all people's `rank` largest rows.

    Lines of which no row is left are dropped.
    """
    count = lines.count.copy()
    for own, limit in ((True, rank), (False, rank * most)):
        person = lines.person if own else lines.person[:0]
        wanted = wanted[_order(lines, wanted, [-lines.item, *person])]
        starts = np.flatnonzero(_changes(lines, wanted, person))
        count[wanted] = ordering.first_rows(count[wanted], starts, min(limit, _MOST))
        wanted = wanted[np.asarray(count[wanted] > 0, bool)]
    kept = np.flatnonzero(np.asarray(count > 0, bool))
    return dataclasses.replace(lines, count=count).take(kept)


def _order(lines: Owned, wanted: np.ndarray, columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return an order of the wanted lines by partition, then by the columns, the last one first."""
    return np.asarray(np.lexsort([word[wanted] for word in (*columns, *lines.partition)]))


def _changes(lines: Owned, wanted: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return where an ordered line has another partition or other words than the line before."""
    joined = np.concatenate([ordering.pick(lines.partition, wanted), words[:, wanted].view(_WORD)])
    return np.asarray(ordering.changes(joined))

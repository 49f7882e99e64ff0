"""Make a small linear program of who owns what: rare items are left out, equal people merged.

In the program of `linear_program` a person is a column c_i. People with the same column become one
variable, bounded by their number: if r is feasible, so is r with each of them at the mean of their
r_i, and it leaves the same rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.optimization.linear_program import LinearProgram

_ALIKE = 8  # people with more items than this are hardly ever alike, and are not compared


@dataclass(frozen=True)
class RankedLines:
    """Lines by person, items numbered by falling total.

    Attributes:
        people: the code of each line's person, rising.
        ranks: the number of each line's item, rising within a person.
        counts: how many rows each line stands for.
        codes: of each line, equal where rank and count are equal.
        totals: the rows of each rank, falling.
    """

    people: np.ndarray
    ranks: np.ndarray
    counts: np.ndarray
    codes: np.ndarray
    totals: np.ndarray

    @property
    def owners(self) -> int:
        """How many people there are."""
        return int(np.count_nonzero(_changes(self.people)))

    @classmethod
    def of(cls, people: np.ndarray, items: np.ndarray, counts: np.ndarray) -> "RankedLines":
        """Return the lines in the order of people and ranks.

        Args:
            people: per line a code.
            items: per line a code; no two lines have the same person and item.
            counts: per line how many rows.
        """
        order = np.argsort(items, kind="stable")
        starts = np.flatnonzero(_changes(items[order]))
        totals = integers.segment_sums(counts[order], starts)
        by_total = np.argsort(-totals, kind="stable")
        ranks = np.empty(len(items), np.int64)
        rank_of = np.empty(len(totals), np.int64)
        rank_of[by_total] = np.arange(len(totals))
        ranks[order] = rank_of[np.cumsum(_changes(items[order])) - 1]
        order = np.lexsort((ranks, people))
        different, codes = np.unique(counts[order], return_inverse=True)
        ranks = ranks[order]
        codes = ranks * len(different) + codes
        return cls(people[order], ranks, counts[order], codes, totals[by_total])

    def program(self, size: int, removals: int) -> LinearProgram:
        """Return the program of the most frequent items, people who are alike merged.

        Args:
            size: how many items: those with the highest totals.
            removals: K.
        """
        kept = np.flatnonzero(self.ranks < size)
        starts = np.flatnonzero(_changes(self.people[kept]))
        owned = np.diff(np.append(starts, len(kept)))
        heads, numbers = [], []
        for first, number in _alike(self.codes[kept], starts, owned):
            heads.append(first)
            numbers.append(number)
        first, sizes = np.concatenate(heads), np.concatenate(numbers)
        lengths = owned[np.searchsorted(starts, first)]
        groups = np.repeat(np.arange(len(first)), lengths)
        shift = np.repeat(first - (np.cumsum(lengths) - lengths), lengths)
        entries = kept[np.arange(len(groups)) + shift]
        return LinearProgram(
            self.totals[:size],
            self.ranks[entries],
            groups,
            self.counts[entries],
            np.minimum(sizes, removals),
        )


def _alike(
    codes: np.ndarray, starts: np.ndarray, owned: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, per group of equal people, where the lines of one of them start, and their number."""
    many = starts[owned > _ALIKE]
    yield many, np.ones(len(many), np.int64)
    for size in range(1, _ALIKE + 1):
        heads = starts[owned == size]
        rows = codes[heads[:, None] + np.arange(size)]
        order = np.lexsort(rows.T)
        opens = np.flatnonzero(_changes(rows[order]))
        yield heads[order[opens]], np.diff(np.append(opens, len(heads)))


def _changes(rows: np.ndarray) -> np.ndarray:
    """Return where a row (or a number) is the first one or differs from the one before."""
    changed = np.ones(len(rows), bool)
    differs = rows[1:] != rows[:-1]
    changed[1:] = differs if differs.ndim == 1 else differs.any(axis=1)
    return changed

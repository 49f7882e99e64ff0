"""PartitionView: the summaries of a list of partitions, as releases read them."""

import copy

import numpy as np

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.bounding.ordering import changes, pick
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries.histograms import RESIDUAL, Summary, from_bits
from beam_dp.mechanisms.summaries.owner_lines import NO_LINES, Lines, Owned


class PartitionView:
    """The summary of a list of partitions, some of which may have no line.

    Args:
        summary: reduced lines.
        indexes: for each line, the index of its partition in the list; -1: not in the list.
        size: the length of the list.
        owned: owner lines, for relations.
        owned_places: for each owner line, the index of its partition in the list.

    A release gets a view from its own first measure on (`at`), and counts its measures from 0.

    Attributes:
        size: the length of the list.
        total: how many partitions there are in all lists of the run.
        clip_histogram: what was drawn to choose the clip that all partitions share; None: nothing.
        octave: what was drawn to choose a smaller one of different values; -1: nothing.
    """

    def __init__(
        self,
        summary: Summary,
        indexes: np.ndarray,
        size: int,
        owned: Owned = NO_LINES,
        owned_places: np.ndarray = NO_LINES.relation,
    ) -> None:
        self._summary = summary
        self._indexes = indexes
        self._owned, self._owned_indexes = owned, owned_places
        self.size = size
        self.total = size
        self.clip_histogram: np.ndarray | None = None
        self.octave = -1
        self._first = 0

    def at(
        self, first: int, clip_histogram: np.ndarray | None = None, octave: int = -1
    ) -> "PartitionView":
        """Return the view for a release, by its first measure and what chose its shared clip."""
        view = copy.copy(self)
        view._first, view.clip_histogram, view.octave = first, clip_histogram, octave
        return view

    def after(self, measures: int) -> "PartitionView":
        """Return the view that begins so many measures later, without a clip."""
        return self.at(self._first + measures)

    @classmethod
    def of_all(cls, summary: Summary) -> "PartitionView":
        """Return the view of every partition that has a line in the summary."""
        new = changes(summary.partition)
        return cls(summary, np.cumsum(new) - 1, int(new.sum()))

    @classmethod
    def of_listed(
        cls, summary: Summary, listed: np.ndarray, owned: Owned = NO_LINES
    ) -> "PartitionView":
        """Return the view of some partitions, by their different identities."""
        indexes, owned_places = (places_of(each.partition, listed) for each in (summary, owned))
        return cls(summary, indexes, listed.shape[1], owned, owned_places)

    def among(self, total: int) -> "PartitionView":
        """Return the view as that of a run with so many partitions."""
        view = copy.copy(self)
        view.total = total
        return view

    def owned(self, relation: int) -> list[Lines]:
        """Return the lines of a relation, per partition."""
        return self._owned.of(self._owned_indexes, self.size, self._first + relation)

    def lines(self, relation: int) -> tuple[np.ndarray, Owned]:
        """Return the lines of a relation, in no order, with the index of their partition."""
        wanted = (self._owned_indexes >= 0) & (self._owned.relation == self._first + relation)
        return self._owned_indexes[wanted], self._owned.take(wanted)

    def _places(self, measure: int) -> np.ndarray:
        """Return where the lines of a measure are, without those of no partition in the list."""
        of_measure = self._summary.measure == self._first + measure
        return np.flatnonzero(of_measure & (self._indexes >= 0))

    def histogram(self, measure: int, buckets: int) -> tuple[np.ndarray, np.ndarray]:
        """Return people and totals per partition and bucket: two arrays (size, buckets)."""
        lines = self._places(measure)
        cell = self._indexes[lines], self._summary.bucket[lines]
        people = np.zeros((self.size, buckets), np.int64)
        people[cell] = self._summary.people[lines]
        total = np.zeros((self.size, buckets), self._summary.total.dtype)
        total[cell] = self._summary.total[lines]
        return people, total

    def tallies(self, measure: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return per partition the buckets with somebody in them, and how many people are there."""
        lines = self._places(measure)
        lines = lines[np.argsort(self._indexes[lines], kind="stable")]
        edges = np.searchsorted(self._indexes[lines], np.arange(self.size + 1)).tolist()
        parts = (lines[edges[i] : edges[i + 1]] for i in range(self.size))
        return [(self._summary.bucket[part], self._summary.people[part]) for part in parts]

    def clipped(self, measure: int, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the total up to a last bucket per partition, and the people in higher buckets."""
        lines = self._places(measure)
        partition, total = self._indexes[lines], self._summary.total[lines]
        above = self._summary.bucket[lines] > last[partition]
        people = integers.sums_at(partition[above], self._summary.people[lines[above]], self.size)
        return integers.sums_at(partition[~above], total[~above], self.size), people

    def clipped_cells(self, measure: int, cells: int, width: int, last: int) -> list[np.ndarray]:
        """Return what `clipped` does for each cell of so many neighbouring buckets: (size,
        cells)."""
        lines = self._places(measure)
        cell, bucket = np.divmod(self._summary.bucket[lines], width)
        place, above = self._indexes[lines] * cells + cell, bucket > last
        total, people = self._summary.total[lines], self._summary.people[lines]
        parts = (place[~above], total[~above]), (place[above], people[above])
        return [integers.sums_at(*part, self.size * cells).reshape(-1, cells) for part in parts]

    def largest(self, measure: int, size: int) -> list[list[int]]:
        """Return per partition the `size` largest numbers of single people, in falling order."""
        lines = self._places(measure)[::-1]
        lines = lines[self._summary.bucket[lines] != RESIDUAL]
        largest: list[list[int]] = [[] for _ in range(self.size)]
        numbers = from_bits(self._summary.bucket[lines]).tolist()
        people = self._summary.people[lines].tolist()
        for index, number, count in zip(
            self._indexes[lines].tolist(), numbers, people, strict=True
        ):
            kept = largest[index]
            kept += [number] * min(count, size - len(kept))
        return largest

    def totals(self, measure: int) -> list[int]:
        """Return the exact total per partition."""
        totals: list[int] = self.clipped(measure, np.full(self.size, integers.HIGHEST))[0].tolist()
        return totals


def places_of(identities: np.ndarray, listed: np.ndarray) -> np.ndarray:
    """Return the index of each identity in a list of different ones; -1 if it is not listed.

    Args:
        identities: of shape (1 or 2, n).
        listed: of shape (1 or 2, m).
    """
    if not listed.shape[1]:
        return np.full(identities.shape[1], -1, np.int64)
    order = np.lexsort(listed[::-1])
    first, second = pick(table.two_words(listed), order)
    words = identities if identities.shape[0] > 1 else [identities[0], np.uint64(0)]
    place = np.searchsorted(first, words[0])
    found = np.full(identities.shape[1], -1, np.int64)
    # Different identities may share their first word: all places of that word are looked at.
    for step in range(int(np.unique(first, return_counts=True)[1].max())):
        at = np.minimum(place + step, len(first) - 1)
        same = (first[at] == words[0]) & (second[at] == words[1])
        found[same] = order[at[same]]
    return found

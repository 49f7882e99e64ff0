"""What releases see of the summaries: a list of partitions, some of which may be empty."""

from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.bounding.ordering import changes, pick
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries.histograms import RESIDUAL, Summary, from_bits, new_partition
from beam_dp.mechanisms.summaries.owner_lines import Lines, Owned


class PlacedLines(NamedTuple):
    """Lines of one relation and many partitions; people are owners (see `owner_lines`)."""

    places: np.ndarray
    people: np.ndarray
    items: np.ndarray
    counts: np.ndarray


class Cells:
    """A reduced summary, seen from a list of partitions (some of which may have no line).

    Args:
        summary: reduced lines.
        places: for each line, the place of its partition in the list; -1: not in it.
        size: the length of the list.
        owned: lines of owners, for relations.
        owned_places: for each of them, the place of its partition in the list.
    """

    def __init__(
        self,
        summary: Summary,
        places: np.ndarray,
        size: int,
        owned: Owned | None = None,
        owned_places: np.ndarray | None = None,
    ) -> None:
        self._summary = summary
        self._places = places
        self._owned = Owned.nothing() if owned is None else owned
        self._owned_places = np.empty(0, np.int64) if owned_places is None else owned_places
        self.size = size

    @classmethod
    def of_all(cls, summary: Summary, owned: Owned | None = None) -> "Cells":
        """Return the view on every partition that has a line in the summary."""
        new = new_partition(summary)
        lines = Owned.nothing() if owned is None else owned
        heads = changes(lines.partition) if len(lines) else np.zeros(0, bool)
        found = _find(pick(lines.partition, heads), pick(summary.partition, new))
        places = found[np.cumsum(heads) - 1]
        return cls(summary, np.cumsum(new) - 1, int(new.sum()), lines, places)

    def select(self, kept: np.ndarray) -> "Cells":
        """Return the view on the partitions at `kept`, in that order."""
        place = np.full(self.size + 1, -1, np.int64)
        place[kept] = np.arange(len(kept))
        places, owned = place[self._places], place[self._owned_places]
        return Cells(self._summary, places, len(kept), self._owned, owned)

    def part(self, start: int, end: int) -> "Cells":
        """Return the view on the partitions from `start` to before `end`."""
        return self.select(np.arange(start, min(end, self.size)))

    def owned(self, relation: int) -> list[Lines]:
        """Return the lines of a relation, per partition."""
        return self._owned.of(self._owned_places, self.size, relation)

    def lines(self, relation: int) -> PlacedLines:
        """Return the lines of a relation, in no order, with the place of their partition."""
        wanted = (self._owned_places >= 0) & (self._owned.relation == relation)
        found = self._owned.take(wanted)
        return PlacedLines(self._owned_places[wanted], found.person, found.item, found.count)

    def histogram(self, measure: int, buckets: int) -> tuple[np.ndarray, np.ndarray]:
        """Return people and totals per partition and bucket: two arrays (size, buckets)."""
        lines = np.flatnonzero((self._summary.measure == measure) & (self._places >= 0))
        cell = self._places[lines], self._summary.bucket[lines]
        people = np.zeros((self.size, buckets), np.int64)
        people[cell] = self._summary.people[lines]
        total = np.zeros((self.size, buckets), self._summary.total.dtype)
        total[cell] = self._summary.total[lines]
        return people, total

    def cut(self, measure: int, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the total up to a last bucket per partition, and the people in those above."""
        lines = np.flatnonzero((self._summary.measure == measure) & (self._places >= 0))
        place, total = self._places[lines], self._summary.total[lines]
        above = self._summary.bucket[lines] > last[place]
        people = np.zeros(self.size, np.int64)
        np.add.at(people, place[above], self._summary.people[lines[above]])
        return integers.sums_at(place[~above], total[~above], self.size), people

    def people(self, measure: int) -> np.ndarray:
        """Return the number of people per partition."""
        lines = np.flatnonzero((self._summary.measure == measure) & (self._places >= 0))
        return np.bincount(self._places[lines], self._summary.people[lines], self.size).astype(
            np.int64
        )

    def largest(self, measure: int, size: int) -> list[list[int]]:
        """Return per partition the `size` largest numbers of single people, in falling order."""
        lines = np.flatnonzero(
            (self._summary.measure == measure)
            & (self._places >= 0)
            & (self._summary.bucket != RESIDUAL)
        )[::-1]
        found: list[list[int]] = [[] for _ in range(self.size)]
        numbers = from_bits(self._summary.bucket[lines]).tolist()
        people = self._summary.people[lines].tolist()
        for place, number, count in zip(self._places[lines].tolist(), numbers, people, strict=True):
            cell = found[place]
            cell += [number] * min(count, size - len(cell))
        return found

    def totals(self, measure: int) -> list[int]:
        """Return the exact total per partition."""
        totals = [0] * self.size
        lines = np.flatnonzero((self._summary.measure == measure) & (self._places >= 0))
        amounts = self._summary.total[lines].tolist()
        for place, amount in zip(self._places[lines].tolist(), amounts, strict=True):
            totals[place] += amount
        return totals


def _find(identities: np.ndarray, listed: np.ndarray) -> np.ndarray:
    """Return the place of each identity in a list of different ones; -1 where it is not in it."""
    if not listed.shape[1]:
        return np.full(identities.shape[1], -1, np.int64)
    joined = table.join_identities([listed, identities])
    _, codes = np.unique(joined, axis=1, return_inverse=True)
    codes = codes.ravel()
    place = np.full(int(codes.max()) + 1, -1, np.int64)
    place[codes[: listed.shape[1]]] = np.arange(listed.shape[1])
    return place[codes[listed.shape[1] :]]

"""Node: people's shares on a run of candidates; the whole of them at first, later parts of it."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.integers import WIDE, Number

RESOLUTION = 6_983_776_800
"""2^5 3^3 5^2 7 11 13 17 19, a multiple of 1, ..., 22: shares of so many rows are exact."""


def increments(
    people: np.ndarray,
    buckets: np.ndarray,
    counts: np.ndarray,
    resolution: int = RESOLUTION,
    clip: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (bucket, amount) pairs: how much all people's weights of rows rise at each bucket.

    For a person with c_i(y) of m_i rows at or below candidate y the weight is
    G_i(y) = floor(D c_i(y) / max(m_i, C)), D the resolution and C the clip: it depends on that
    person alone, does not decrease in y, and is D at most. With C = 1 it is their share of rows,
    and each person adds D in all. With another clip each row of somebody who has at most C of them
    weighs D / C, and whoever has more adds D. The pairs of disjoint groups of people are simply put
    together.

    Args:
        people: per line the code of its person; all lines of a person must be here.
        buckets: per line the index of a candidate, at least 0.
        counts: per line how many rows, at least 1; lines of one person and bucket add up.
        resolution: D, public.
        clip: C, a number that was released.
    """
    order = order_of(people, buckets)
    people, buckets, counts = people[order], buckets[order], counts[order]
    new = np.append(True, people[1:] != people[:-1])[: len(people)]
    starts = np.flatnonzero(new)
    sizes = np.diff(np.append(starts, len(people)))
    totals = np.add.reduceat(counts, starts) if len(starts) else counts
    below = counts.cumsum() - np.repeat(totals.cumsum() - totals, sizes)
    totals = np.maximum(totals, clip)
    scaled = integers.product(np.full(len(below), resolution), below)
    shares = integers.narrow(scaled // np.repeat(totals, sizes))
    rises = shares - np.where(new, 0, np.append(0, shares[:-1])[: len(shares)])
    return _merged(buckets, rises)


def order_of(people: np.ndarray, buckets: np.ndarray) -> np.ndarray:
    """Return the order by people, then buckets: by one int64 key where it fits, which is faster."""
    width = int(buckets.max(initial=0)) + 1
    if (int(people.max(initial=0)) + 1) * width < WIDE:
        return np.argsort(people * width + buckets)
    return np.lexsort((buckets, people))


def _merged(buckets: np.ndarray, amounts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each bucket once, in rising order, with the exact sum of its amounts."""
    order = np.argsort(buckets)  # sums are exact: equal buckets may come in any order
    buckets = buckets[order]
    new = np.append(True, buckets[1:] != buckets[:-1])[: len(buckets)]
    starts = np.flatnonzero(new)
    return buckets[starts], integers.segment_sums(amounts[order], starts)


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """The shares that people have at the candidates first, ..., stop - 1; private data.

    Attributes:
        buckets: the indexes where somebody has something, rising, each once.
        amounts: how much all people have there, in units of 1 / D of a person.
        first: the first candidate.
        stop: the end of the candidates.
        known: whether the first, and the last, is an answer, or a public end of the values.
    """

    buckets: np.ndarray
    amounts: np.ndarray
    first: int
    stop: int
    known: tuple[bool, bool] = (False, False)

    @classmethod
    def of(
        cls, buckets: np.ndarray, amounts: np.ndarray, size: int, are_ends: bool = False
    ) -> "Node":
        """Return the node of all candidates; what lies above the last one counts as the last.

        Args:
            buckets: indexes, in any order; an index may stand there several times.
            amounts: per bucket, by how much the sum rises; see `increments`.
            size: the number of candidates.
            are_ends: whether the first and the last one are public ends of the values.
        """
        lines = _merged(np.minimum(buckets, size - 1), amounts)
        return cls(*lines, 0, size, (are_ends, are_ends))

    @property
    def sums(self) -> np.ndarray:
        """The sum of the amounts before each bucket, and that of all."""
        return np.append(integers.narrow(np.array([0])), integers.running_sums(self.amounts))

    def around(self, index: int) -> tuple[int, int, int]:
        """Return how much all people have below a candidate, at it, and above it."""
        low, high = self.sums[np.searchsorted(self.buckets, [index, index + 1])].tolist()
        return low, high - low, int(self.sums[-1]) - high

    def split(self, index: int, below: int = 0, above: int = 0) -> tuple["Node", "Node"]:
        """Return what is below a candidate, and what is above it.

        The candidate itself belongs to both, as both parts may answer with it too. What people have
        at it is in neither: each has there an amount that is public.
        """
        start, end = np.searchsorted(self.buckets, [index, index + 1]).tolist()
        lower, upper = slice(start), slice(end, None)
        here = np.array([index], np.int64)
        return (
            Node(
                np.append(self.buckets[lower], here),
                integers.concatenate([self.amounts[lower], integers.alone(below)]),
                self.first,
                index + 1,
                (self.known[0], True),
            ),
            Node(
                np.append(here, self.buckets[upper]),
                integers.concatenate([integers.alone(above), self.amounts[upper]]),
                index,
                self.stop,
                (True, self.known[1]),
            ),
        )


class Answer(NamedTuple):
    """What a search answers; all of it is released.

    Attributes:
        candidate: its index; None: there are too few people.
        error: how far its rank may be off, in people, in 95% of draws.
        people: about how many there are, where the search tells; 0 without an answer.
    """

    candidate: int | None = None
    error: float = math.inf
    people: float = 0.0

    def value(self, candidates: Candidates) -> Number:
        """Return the candidate, NaN for none."""
        return math.nan if self.candidate is None else candidates[self.candidate]

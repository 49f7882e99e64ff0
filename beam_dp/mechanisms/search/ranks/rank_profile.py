"""RankProfile: how much people have at every candidate, each of them one person's worth at most."""

from dataclasses import dataclass

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.numbers import WIDE

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


@dataclass(frozen=True, init=False, eq=False, repr=False)
class RankProfile:
    """The sum over people of their shares at every candidate; private data, not private by itself.

    Args:
        buckets: indexes of candidates, in any order; an index may stand there several times.
        amounts: per bucket, by how much the sum rises; see `increments`.
        resolution: D, what one person adds in all.
    """

    buckets: np.ndarray
    amounts: np.ndarray
    resolution: int

    def __init__(
        self, buckets: np.ndarray, amounts: np.ndarray, resolution: int = RESOLUTION
    ) -> None:
        merged = _merged(buckets, amounts)
        object.__setattr__(self, "buckets", merged[0])
        object.__setattr__(self, "amounts", merged[1])
        object.__setattr__(self, "resolution", resolution)

    def __repr__(self) -> str:
        return f"RankProfile(of {len(self.buckets)} buckets)"


def alone(value: int) -> np.ndarray:
    """Return a column of one integer of any size."""
    return integers.narrow(np.array([value], object))

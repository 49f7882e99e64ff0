"""The removal profile of one partition, and the loss that it gives to every candidate."""

import bisect
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import WIDE, Number, is_nan


class Plateau(NamedTuple):
    """A run of candidates start <= i < stop that share one loss; never empty."""

    loss: int
    start: int
    stop: int


@dataclass(frozen=True, init=False, repr=False)
class Profile:
    """B[0] >= B[1] >= ... >= B[K]: the statistic after the best removal of at most k people.

    It is private data, not a private release: neither its repr nor an error shows a value.

    For databases x and x' = x + one person and a monotone f, the profiles interlace:
    `B'[k + 1] <= B[k] <= B'[k]` (an optimal removal R from x becomes R + that person from x', and
    one from x' may leave that person out). Hence, for every candidate y at once,
    `loss(x, y) <= loss(x', y) <= loss(x, y) + 1`, which is all that the searches rely on
    (Fang, Dong, Yi, "Shifted Inverse", CCS 2022). A loss that is cut at K + 1 keeps both of them.

    Args:
        values: B[0..K], numbers that do not increase; -inf and inf are allowed.

    Raises:
        ValueError: if there is no value, or one is NaN or larger than the one before it.
    """

    values: tuple[Number, ...]

    def __init__(self, values: Iterable[Number]) -> None:
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        plain = tuple(v.item() if isinstance(v, np.generic) else v for v in listed)
        rule = "Profile", "values", "be numbers that do not increase, at least one and no NaN"
        checks.require(len(plain) > 0 and not is_nan(plain[0]), *rule)
        pairs = itertools.pairwise(plain)
        ordered = all(after is before or after <= before for before, after in pairs)
        checks.require(ordered, *rule)  # a NaN fails too
        object.__setattr__(self, "values", plain)

    def __repr__(self) -> str:
        return f"Profile(of {len(self.values)} values)"

    def steps(self, candidates: Candidates) -> list[int]:
        """Return steps[k], the first i with candidate i >= B[k]: loss(y_i) <= k iff i >= steps[k].

        It takes O(K log N) time for N candidates; steps[k] does not increase in k.
        """
        if candidates.size < WIDE and all(type(value) is float for value in self.values):
            indexes: list[int] = candidates.indexes(np.array(self.values)).tolist()
            return indexes
        # With few people nearly all values of a long profile are equal.
        known = {value: candidates.index(value) for value in dict.fromkeys(self.values)}
        return [known[value] for value in self.values]

    def loss(self, candidates: Candidates) -> list[int]:
        """Return per candidate y the least k with B[k] <= y, and len(values) where there is none.

        The list is non-increasing and as long as the candidates: meant for few of them.
        """
        losses: list[int] = []
        for plateau in self.plateaus(candidates):
            losses += [plateau.loss] * (plateau.stop - plateau.start)
        return losses

    def plateaus(self, candidates: Candidates) -> Iterator[Plateau]:
        """Yield the runs of equal loss from the lowest candidate up: at most K + 2, O(K log N)."""
        steps = self.steps(candidates)
        start = 0
        for loss in range(len(steps), -1, -1):
            stop = steps[loss - 1] if loss > 0 else candidates.size
            if stop > start:
                yield Plateau(loss, start, stop)
                start = stop


def loss_at(steps: list[int], i: int) -> int:
    """Return the loss of candidate i from `Profile.steps`: the number of k with steps[k] > i."""
    return bisect.bisect_left(steps, -i, key=lambda step: -step)

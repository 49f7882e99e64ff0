"""What a release would say of people as a user guesses them to be: before any row is read.

The guess is that numbers are even up to the most that one person has: half of the people above half
of that, and so on. The noise is left out but for the width of the interval, which is a function of
parameters and of what the histogram would show.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True)
class Crowd:
    """A guess at the people: no data.

    Attributes:
        people: how many have rows in a partition.
        partitions: how many partitions there are.
        reach: how many of them one person has rows in.
        most: the most that one person adds to the number of a partition; None: no guess.
        whole: whether what a person adds is a whole number of at least 1.
    """

    people: float
    partitions: int
    reach: int
    most: float | None
    whole: bool = False

    @property
    def everybody(self) -> float:
        """How many people there are in all partitions together."""
        return self.people * self.partitions / self.reach

    @property
    def total(self) -> float:
        """What the people of a partition add, by the guess; 0 without one."""
        return self.people * ((self.most or 0.0) + self.whole) / 2

    def histogram(self, thresholds: Sequence[int], unit: Fraction, people: float) -> np.ndarray:
        """Return how many of the people are in each bucket."""
        edges = np.array([float(edge * unit) for edge in thresholds])
        below = np.minimum(edges / (self.most or 1.0), 1.0)
        return people * np.diff(np.concatenate([[0.0], below, [1.0]]))


@dataclass(frozen=True)
class Foreseen:
    """A number that a release would give, and its interval.

    Attributes:
        value: the number.
        low: the lower end of the interval; -inf where nothing would be known.
        high: the upper end.
    """

    value: float
    low: float
    high: float

    @property
    def is_wide(self) -> bool:
        """Whether the interval is as wide as the number: then that says nothing."""
        return not self.high - self.low < abs(self.value)

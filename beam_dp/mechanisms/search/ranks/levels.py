"""The levels that a `TailSearch` compares numbers of people with; all is public."""

import math
from fractions import Fraction
from typing import NamedTuple

from beam_dp.mechanisms.search.ranks.first_look import FARTHER

_FINE = 1 << 40  # levels are multiples of 1 / 2^40 of a person


class Levels(NamedTuple):
    """What is public after the first look: rates per person, and levels in people.

    Attributes:
        rate: e2.
        share: s, or 0 where the floor alone counts.
        more: max(0, rank - 1/2) + h.
        floor: L, nearest to the data.
        most: L, furthest away.
        cuts: the indexes where L rises, falling; see `stretches`.
        behind: t.
        many: whether people are many.
    """

    rate: Fraction
    share: Fraction
    more: Fraction
    floor: Fraction
    most: Fraction
    cuts: tuple[int, ...]
    behind: Fraction
    many: bool

    def floor_at(self, index: int) -> float:
        """Return L of a candidate."""
        beyond = sum(index < cut for cut in self.cuts)
        return min(
            float(self.most), float(self.floor) + beyond * math.log(FARTHER) / float(self.rate)
        )


def floor_of(rate: Fraction, size: int, stray: float) -> float:
    """Return the floor of so many candidates.

    It is half a person at least: where a large epsilon could do with less, strays become rarer for
    nothing, as one person is still above it.
    """
    return max(0.5, math.log(size / (2 * stray)) / float(rate))


def rounded_up(people: float) -> Fraction:
    """Return a number of people as a fraction, not below it."""
    return Fraction(math.ceil(people * _FINE), _FINE)


def exceeded(chance: float, rate: float) -> float:
    """Return what discrete Laplace noise is at least with so small a chance, or a little more."""
    return max(0.0, -math.log(chance * (1 + math.exp(-rate)))) / rate


def laplace_at_least(least: int, rate: float) -> float:
    """Return P(eta >= least) of the discrete Laplace distribution."""
    if least > 0:
        return math.exp(-rate * least) / (1 + math.exp(-rate))
    return 1 - math.exp(-rate * (1 - least)) / (1 + math.exp(-rate))

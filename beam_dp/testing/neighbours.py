"""The neighbouring sets of people that a check looks at, and those that it finds."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import People

Pair = tuple[int, int]
"""Bit masks of two neighbouring sets: the second has one person more."""

_CHAIN = 16  # neighbours that follow each other in one random chain


@dataclass(frozen=True)
class Counterexample:
    """People for whom a claim is false.

    Attributes:
        rule: the claim.
        smaller: one record per person.
        larger: the same people and one more; for a rule about one set of people, the same set.
        values: the left and the right side of the rule, which break it.
        at: the k of B[k], or the y of loss(y), where the rule has one.
    """

    rule: str
    smaller: People
    larger: People
    values: tuple[Number, Number]
    at: Number | None = None


def pairs(n: int, attempts: int, most: int) -> Iterator[Pair]:
    """Yield all neighbours of at most `most` people if there are few sets, else random ones."""
    if most == n and 1 << n <= attempts:
        bits = [1 << i for i in range(n)]
        yield (0, 0)  # the empty set alone: for n = 0 there is no other pair
        yield from ((s, s | bit) for s in range(1 << n) for bit in bits if not s & bit)
    else:
        yield from itertools.islice(chains(n, most), attempts)


def chains(n: int, most: int) -> Iterator[Pair]:
    """Yield, without end, neighbours along random chains of growing sets, of all sizes alike."""
    while True:
        order = [1 << int(i) for i in Noise().words(n).argsort()]
        start = below(most)
        smaller = sum(order[:start])
        for bit in order[start : min(start + _CHAIN, most)]:
            yield smaller, smaller | bit
            smaller |= bit


def below(n: int) -> int:
    """Return a random index below n (its bias of n / 2^64 matters to no check)."""
    return int(Noise().words(1)[0]) % n

"""Lipschitz extensions: functions near a statistic whose sensitivity is a given threshold.

An extension E of a monotone statistic f is a function of a database and of a threshold D > 0, in
units, with `E(D) <= f` and, for x' = x + one person, `0 <= E'(D) - E(D) <= D`: noise of size D
hides a person in it, however much f may move. It is the function of Cummings and Durfee,
"Individual Sensitivity Preprocessing for Data Privacy" (SODA 2020), which for a monotone f is the
least value of f without some people plus D for each of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.integers import Number


@dataclass(frozen=True)
class ProfileExtension:
    """The extension of a removal profile that is known for K removals, above a floor.

        E(D) = min(min over k = 0..K of (B[k] + k D), L + (K + 1) D),

    B cut to [L, U]: L and U are public, or were released before. The second term stands for all
    larger k; without it nothing could be said of one person more.

    Proof of 0 <= E' - E <= D, from `B'[k + 1] <= B[k] <= B'[k]`, which cutting keeps. Each term of
    E' is at least that of E: E <= E'. If E = B[k] + k D with k < K, then E' <= B'[k + 1] + (k + 1)
    D <= E + D. If it is B[K] + K D >= L + K D, then E' <= L + (K + 1) D <= E + D. Else E is the
    last term, and E' <= E.

    Numbers are rounded to whole units first, which keeps their order. Where B is convex and L at
    least B[K], the last term matters only at thresholds below what one of the first K people counts
    on average.

    Attributes:
        levels: B[0..K] in units, from L to U.
        floor: L in units.
    """

    levels: tuple[int, ...]
    floor: int

    @classmethod
    def of(
        cls, values: Sequence[Number], floor: Number, top: Number, unit: Fraction
    ) -> "ProfileExtension":
        """Return the extension of B[0..K] in the user's scale, cut to [floor, top]."""
        clamped = [min(max(value, floor), top) for value in values]
        return cls(tuple(_units(value, unit) for value in clamped), _units(floor, unit))

    def __call__(self, threshold: Fraction) -> Fraction:
        """Return E(D)."""
        # In integers of 1 / denominator, which are faster than fractions.
        step, parts = map(integers.alone, threshold.as_integer_ratio())
        levels, people = self._terms
        sums = integers.add(integers.product(levels, parts), integers.product(people, step))
        return Fraction(int(sums.min()), threshold.denominator)

    @cached_property
    def _terms(self) -> tuple[np.ndarray, np.ndarray]:
        """B[0..K] and L, and 0 to K + 1."""
        levels = np.array([*self.levels, self.floor], object)
        return integers.narrow(levels), np.arange(len(levels))


def _units(value: Number, unit: Fraction) -> int:
    """Return the nearest whole number of units; of two equally near ones the higher."""
    over, under = value.as_integer_ratio()
    parts = under * unit.numerator
    return (2 * over * unit.denominator + parts) // (2 * parts)

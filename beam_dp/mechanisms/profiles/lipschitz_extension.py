"""Lipschitz extensions: statistics in which nobody counts for more than a given price.

An extension E of a monotone statistic f is a function of a database and of a price D > 0, in units,
with `E(D) <= f` and, for x' = x + one person, `0 <= E'(D) - E(D) <= D`: noise of size D hides a
person in it, however much f may move. It is the function of Cummings and Durfee, "Individual
Sensitivity Preprocessing for Data Privacy" (SODA 2020), which for a monotone f is the least value
of f without some people plus D for each of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from beam_dp.mechanisms.numerics.numbers import Number


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
    least B[K], the last term matters only at prices below what one of the first K people counts on
    average.

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
        cut = [min(max(value, floor), top) for value in values]
        return cls(tuple(_units(value, unit) for value in cut), _units(floor, unit))

    def __call__(self, price: Fraction) -> Fraction:
        """Return E(D)."""
        # In integers of 1 / denominator, which are faster than fractions.
        step, parts = price.numerator, price.denominator
        return Fraction(min(level * parts + k * step for k, level in self._corners), parts)

    @cached_property
    def _corners(self) -> list[tuple[int, int]]:
        """(k, B[k]) and (K + 1, L) on their lower convex envelope: only these can be the least."""
        kept: list[tuple[int, int]] = []
        for point in enumerate((*self.levels, self.floor)):
            while len(kept) > 1 and _is_above(kept[-1], kept[-2], point):
                kept.pop()
            kept.append(point)
        return kept


def _is_above(middle: tuple[int, int], left: tuple[int, int], right: tuple[int, int]) -> bool:
    """Return whether a point is on or above the line through the others."""
    rise = (middle[1] - left[1]) * (right[0] - left[0])
    return rise >= (right[1] - left[1]) * (middle[0] - left[0])


def _units(value: Number, unit: Fraction) -> int:
    """Return the nearest whole number of units; of two equally near ones the higher."""
    over, under = value.as_integer_ratio()
    parts = under * unit.numerator
    return (2 * over * unit.denominator + parts) // (2 * parts)
